package thread

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutations take one rule of the step protocol away each.
var mutations = []struct {
	name, file, old, new string
}{
	{
		"no re-check after the claim", "claim.go",
		"if !ok || !reflect.DeepEqual(withoutEffects(entry), withoutEffects(h.entry)) {",
		"if !ok || false && !reflect.DeepEqual(withoutEffects(entry), withoutEffects(h.entry)) {",
	},
	{
		"no entry check on rebuild", "commit.go",
		"case !sameThread(entry, r.entry):\n\t\treturn entry, held, &movedError",
		"case false:\n\t\treturn entry, held, &movedError",
	},
	{
		"a pause is not looked at", "decide.go",
		"if r.entry.Pause != nil {",
		"if false && r.entry.Pause != nil {",
	},
	{
		"a pause is forgotten by the commit", "commit.go",
		"if entry.Pause != nil {\n\t\t\tpaused(&entry, next.role)",
		"if false && entry.Pause != nil {\n\t\t\tpaused(&entry, next.role)",
	},
	{
		"a poked step is not linked", "commit.go",
		"append(r.poked(), prev...)",
		"prev",
	},
	{
		"a poked step's edits stay", "poke.go",
		"if err != nil || !own {",
		"if err != nil || own || !own {",
	},
	{
		"people change a thread that another one works on", "alone.go",
		"if !alive || !sameThread(entry, before) || !claimed || !h.own(held.Claim) {",
		"if _ = claimed; !alive || !sameThread(entry, before) {",
	},
	{
		"a job suspends under another one's claim", "suspend.go",
		"if !claimed || !r.hold.own(held.Claim) {",
		"if !claimed {",
	},
	{
		"claims deleted without comparing", "claim.go",
		"if !ok || !h.own(held.Claim) {\n\t\th.gone = true",
		"if !ok {\n\t\th.gone = true",
	},
	{
		"what could not be delivered is archived", "deliver.go",
		"case err != nil:\n\t\treturn r.notDone(ctx, err)\n\t}",
		"}",
	},
	{
		"a delivery is archived without the claim", "deliver.go",
		"return entry, held, alive && sameThread(entry, r.entry) && claimed && r.hold.own(held.Claim)",
		"return entry, held, alive && sameThread(entry, r.entry) && claimed",
	},
	{
		"a delivery doesn't bring the branch up", "deliver.go",
		"return r.whereFrom(ctx)",
		"return tip, nil",
	},
	{
		"what isn't known takes away what is", "effects.go",
		"if f.Comment > 0 && (",
		"if f.Comment >= 0 && (",
	},
	{
		"a refused dispatch suspends what somebody works on", "suspendat.go",
		"!pending || claimed && e.counts(v, held.Claim, entry)",
		"!pending || false && claimed && e.counts(v, held.Claim, entry)",
	},
	{
		"a claim is told by its run, not its nonce", "claim.go",
		"return h.nonce != \"\" && c.Nonce == h.nonce",
		"return h.nonce != \"\" && c.Run == h.e.Who.Run && c.Attempt == h.e.Who.Attempt",
	},
	{
		"a torn listing is looked at once", "claim.go",
		"case old.ID == seen && old.Head != entry.Head:",
		"case (old.ID == seen || true) && old.Head != entry.Head:",
	},
	{
		"a claim from the future counts", "alive.go",
		"if since.Sub(now) > ahead {",
		"if false && since.Sub(now) > ahead {",
	},
	{
		"a claim may live as long as it says", "alive.go",
		"if until.After(end) {",
		"if false && until.After(end) {",
	},
	{
		"a claim that is not renewed dies early", "alive.go",
		"if c.Until == 0 || renewed.After(since) {",
		"if c.Until == 0 || !renewed.Before(since) {",
	},
	{
		"an earlier attempt is not known to be over", "alive.go",
		"c.Job == e.Who.Job && c.Attempt < e.Who.Attempt || ",
		"",
	},
	{
		"a job that the rescue knows is over counts", "alive.go",
		"slices.Contains(e.Who.Over, c.Job)",
		"false && slices.Contains(e.Who.Over, c.Job)",
	},
	{
		"a dead process counts", "alive.go",
		"return w.Alive(c.PID, c.Started), true",
		"return w.Alive(c.PID, c.Started), w.Alive(c.PID, c.Started)",
	},
	{
		"pids of another container count", "alive.go",
		"c.PIDNS != \"\" && c.PIDNS == w.PIDNS",
		"c.PIDNS != \"\"",
	},
	{
		"a claim stays when its job is over", "claim.go",
		"h.e.letGo.Store(h.nonce, true)\n",
		"h.e.letGo.Store(h.nonce, true)\n\treturn\n",
	},
	{
		"too many failed attempts don't stop", "step.go",
		"if n := attemptsOn(r.entry, r.id, held.Died); n >= MaxAttempts {",
		"if n := attemptsOn(r.entry, r.id, held.Died); false && n >= MaxAttempts {",
	},
	{
		"reads don't wait", "../../gitcas/wire/patient.go",
		"if err := o.Wait(ctx, err, after); err != nil {\n\t\t\treturn got, err",
		"if o.Wait == nil || after >= 0 {\n\t\t\treturn got, err",
	},
	{
		"refs alone don't wait", "../../gitcas/wire/patient.go",
		"if err := o.Wait(ctx, err, after); err != nil {\n\t\t\t\treturn at, fmt",
		"if o.Wait == nil || after >= 0 {\n\t\t\t\treturn at, fmt",
	},
	{
		"the state branch doesn't wait", "../../gitcas/update.go",
		"if err := u.outage.Wait(ctx, err, after); err != nil {",
		"if after >= 0 {",
	},
	{
		"what landed is not looked for", "../../gitcas/update.go",
		"if len(u.unanswered) == 0 {\n\t\treturn nil, nil, nil",
		"if len(u.unanswered) >= 0 {\n\t\treturn nil, nil, nil",
	},
	{
		"a push that may have landed is sure", "../../gitcas/update.go",
		"if len(u.unanswered) == 0 || errors.Is(err, ErrUnsure) {\n\t\treturn err",
		"if len(u.unanswered) >= 0 || errors.Is(err, ErrUnsure) {\n\t\treturn err",
	},
	{
		"refs alone are not proved", "../../gitcas/wire/patient.go",
		"case taken:",
		"case taken && after < 0:",
	},
	{
		"the sealed step is not on disk", "step.go",
		"\tr.keepOnDisk(step)\n",
		"",
	},
	{
		"the sealed step is deleted before it landed", "commit.go",
		"\tv, err := r.e.update(push, r.v, build, r.id)\n\tvar moved *movedError",
		"\tr.dropFromDisk()\n\tv, err := r.e.update(push, r.v, build, r.id)\n\tvar moved *movedError",
	},
	{
		"the sealed step stays on disk", "commit.go",
		"\tr.settled(push, v, done)\n\tr.dropFromDisk()",
		"\tr.settled(push, v, done)\n\tr.onDisk = false",
	},
	{
		"what is on disk is not brought in", "step.go",
		"if res, in, err := r.bringIn(ctx); in",
		"if res, in, err := r.result(), false, error(nil); in",
	},
	{
		"it is brought in whatever people said since", "bringin.go",
		"if !r.brought.same {",
		"if false && !r.brought.same {",
	},
	{
		"it is brought in on another head", "bringin.go",
		"|| entry.Head != r.brought.Entry.Head {",
		"{",
	},
	{
		"what is in the thread is brought in again", "bringin.go",
		"if r.has(r.brought.step) {",
		"if false && r.has(r.brought.step) {",
	},
	{
		"it is brought in without a claim", "bringin.go",
		"v, h, err := r.e.claim(ctx, r.v, r.id, terms{work: deliveryTime})",
		"v, h, err := r.e.claim(ctx, r.v, r.id, terms{work: deliveryTime, take: &gitcas.Held{}})",
	},
}

// TestMutationsFit: each rule that can be taken away is in the code, once.
func TestMutationsFit(t *testing.T) {
	for _, m := range mutations {
		src, err := os.ReadFile(m.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(src), m.old); n != 1 {
			t.Errorf("%s: %s holds the rule %d times, want once", m.name, m.file, n)
		}
	}
}

// TestSimulationCatchesMutations shows that the simulation can fail: without any
// one rule it does. It compiles the package once for each rule, so it runs only
// when UWF_SIM_MUTATE is set.
func TestSimulationCatchesMutations(t *testing.T) {
	if os.Getenv("UWF_SIM_MUTATE") == "" {
		t.Skip("set UWF_SIM_MUTATE=1: it takes some minutes")
	}
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			src, err := os.ReadFile(m.file)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			mutated := filepath.Join(dir, filepath.Base(m.file))
			if err := os.WriteFile(mutated, []byte(strings.Replace(string(src), m.old, m.new, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			real, err := filepath.Abs(m.file)
			if err != nil {
				t.Fatal(err)
			}
			overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{real: mutated}})
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "overlay.json")
			if err := os.WriteFile(file, overlay, 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "-overlay", file, "-run", "TestSimulation$", ".")
			cmd.Env = append(os.Environ(), "UWF_SIM_SEEDS=2000", "UWF_SIM_MUTATE=")
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("the simulation passes without the rule:\n%s", out)
			}
			if !strings.Contains(string(out), "seed ") {
				t.Fatalf("the mutated package does not run:\n%s", out)
			}
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, "seed ") {
					t.Log(strings.TrimSpace(line))
					break
				}
			}
		})
	}
}
