package thread_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutation takes one rule of the step protocol away.
type mutation struct {
	name, file, old, new string
}

// mutations are those that the simulation notices.
var mutations = []mutation{
	{
		"no re-check after the claim", "../lease/lease.go",
		"if !ok || !reflect.DeepEqual(life.WithoutEffects(entry), life.WithoutEffects(l.Entry)) {",
		"if !ok || false && !reflect.DeepEqual(life.WithoutEffects(entry), life.WithoutEffects(l.Entry)) {",
	},
	{
		"no entry check on rebuild", "../step/commit.go",
		"case !life.SameThread(entry, r.Entry):\n\t\treturn entry, held, r.Refuse",
		"case false:\n\t\treturn entry, held, r.Refuse",
	},
	{
		"a pause is not looked at", "../step/decide.go",
		"if r.Entry.Pause != nil {",
		"if false && r.Entry.Pause != nil {",
	},
	{
		"a pause is forgotten by the commit", "../step/commit.go",
		"if entry.Pause != nil {\n\t\t\tlife.ApplyPause(&entry, next.role)",
		"if false && entry.Pause != nil {\n\t\t\tlife.ApplyPause(&entry, next.role)",
	},
	{
		"a poked step is not linked", "../step/commit.go",
		"append(r.PokedStep(), prev...)",
		"prev",
	},
	{
		"a poked step's edits stay", "poke.go",
		"if err != nil || !own {",
		"if err != nil || own || !own {",
	},
	{
		"claims deleted without comparing", "../lease/lease.go",
		"if !ok || !l.Owns(held.Claim) {\n\t\tl.gone = true",
		"if !ok {\n\t\tl.gone = true",
	},
	{
		"what could not be delivered is archived", "../deliver/deliver.go",
		"case err != nil:\n\t\treturn r.noteFailure(ctx, err)\n\t}",
		"}",
	},
	{
		"a job suspends, ends or archives under another one's claim", "session.go",
		"return entry, held, alive && life.SameThread(entry, s.Entry) && claimed && s.Lease.Owns(held.Claim)",
		"return entry, held, alive && life.SameThread(entry, s.Entry) && claimed",
	},
	{
		"a delivery doesn't bring the branch up", "../deliver/deliver.go",
		"return r.FindBase(ctx)",
		"return tip, nil",
	},
	{
		"what isn't known takes away what is", "../life/entry.go",
		"if f.Comment > 0 && (",
		"if f.Comment >= 0 && (",
	},
	{
		"a refused dispatch suspends what somebody works on", "suspend.go",
		"!pending || claimed && held.Head == entry.Head &&",
		"!pending || false && claimed && held.Head == entry.Head &&",
	},
	{
		"a claim is told by its run, not its nonce", "../lease/lease.go",
		"return l.nonce != \"\" && c.Nonce == l.nonce",
		"return l.nonce != \"\" && c.Run == l.who.Run && c.Attempt == l.who.Attempt",
	},
	{
		"a claim from the future counts", "../life/claim.go",
		"if since.Sub(now) > ahead {",
		"if false && since.Sub(now) > ahead {",
	},
	{
		"a claim may live as long as it says", "../life/claim.go",
		"if until.After(end) {",
		"if false && until.After(end) {",
	},
	{
		"a claim that is not renewed dies early", "../life/claim.go",
		"if c.Until == 0 || renewed.After(since) {",
		"if c.Until == 0 || !renewed.Before(since) {",
	},
	{
		"an earlier attempt is not known to be over", "../lease/keeper.go",
		"c.Job == k.Who.Job && c.Attempt < k.Who.Attempt || ",
		"",
	},
	{
		"a job that the rescue knows is over counts", "../lease/keeper.go",
		"slices.Contains(k.Who.Over, c.Job)",
		"false && slices.Contains(k.Who.Over, c.Job)",
	},
	{
		"a dead process counts", "../lease/keeper.go",
		"return w.Alive(c.PID, c.Started), true",
		"return w.Alive(c.PID, c.Started), w.Alive(c.PID, c.Started)",
	},
	{
		"pids of another container count", "../lease/keeper.go",
		"c.PIDNS != \"\" && c.PIDNS == w.PIDNS",
		"c.PIDNS != \"\"",
	},
	{
		"a claim stays when its job is over", "../lease/lease.go",
		"l.k.Released.Store(l.nonce, true)\n",
		"l.k.Released.Store(l.nonce, true)\n\treturn\n",
	},
	{
		"too many failed attempts don't stop", "../step/step.go",
		"case failed >= life.MaxAttempts:",
		"case false && failed >= life.MaxAttempts:",
	},
	{
		"reads don't wait", "../../gitcas/wire/patient.go",
		"if err := o.WaitToRetry(ctx, err, after); err != nil {\n\t\t\treturn got, err",
		"if o.WaitToRetry == nil || after >= 0 {\n\t\t\treturn got, err",
	},
	{
		"refs alone don't wait", "../../gitcas/wire/patient.go",
		"if err := o.WaitToRetry(ctx, err, after); err != nil {\n\t\t\t\treturn at, fmt",
		"if o.WaitToRetry == nil || after >= 0 {\n\t\t\t\treturn at, fmt",
	},
	{
		"the state branch doesn't wait", "../../gitcas/update.go",
		"if err := u.outage.WaitToRetry(ctx, err, after); err != nil {",
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
		"the sealed step is not on disk", "../step/step.go",
		"\tr.keepOnDisk(step)\n",
		"",
	},
	{
		"the sealed step is deleted before it landed", "../step/commit.go",
		"\tv, err := r.e.Update(push, r.View, build, r.ID)\n\terr = r.judgeLostRace",
		"\tr.dropFromDisk()\n\tv, err := r.e.Update(push, r.View, build, r.ID)\n\terr = r.judgeLostRace",
	},
	{
		"a step that loses its races is paid again", "../step/keep.go",
		"r.onDisk && errors.Is(cause, gitcas.ErrLostRace) {",
		"false && errors.Is(cause, gitcas.ErrLostRace) {",
	},
	{
		"the sealed step stays on disk", "../step/commit.go",
		"r.noteCommitted(push, v, done)\n\t\tr.dropFromDisk()",
		"r.noteCommitted(push, v, done)\n\t\tr.onDisk = false",
	},
	{
		"what is on disk is not brought in", "../step/step.go",
		"if res, in, err := r.bringIn(ctx); in",
		"if res, in, err := r.describeThread(), false, error(nil); in",
	},
	{
		"it is brought in without a claim", "../step/bringin.go",
		"r.Claim(ctx, lease.Terms{Work: lease.DeliveryTime})",
		"r.Claim(ctx, lease.Terms{Work: lease.DeliveryTime, Take: &gitcas.Held{}})",
	},
	{
		"a claim that counts is replaced", "../lease/lease.go",
		"case !l.k.IsAlive(v, old.Claim):",
		"case true:",
	},
	{
		"a claim that a guessed clock tells dead is taken at once", "../lease/lease.go",
		"known || !v.TimeGuessed() || old.ID == stood {",
		"known || old.ID != stood {",
	},
	{
		"a guessed clock tells the future", "../life/claim.go",
		"ahead = MaxGuessed",
		"ahead = maxAhead",
	},
	{
		"a renewed claim lives to its end", "../life/claim.go",
		"if c.Until == 0 || renewed.After(since) {",
		"if c.Until == 0 {",
	},
	{
		"a claim is renewed once", "../lease/lease.go",
		"renewed, unrenewed, begun = now, 0, n",
		"renewed, unrenewed, begun = now.Add(life.MaxClaim), -life.MaxClaim, n",
	},
	{
		"nobody looks after a claim while an agent works", "../lease/lease.go",
		"_, err = l.readClaim(ctx)\n\t\t}\n",
		"}\n",
	},
	{
		"nobody looks after a thread while an agent works", "../lease/lease.go",
		"if !ok || !alive || !life.SameThread(entry, l.Entry) {",
		"if _, _ = entry, alive; !ok {",
	},
	{
		"a claim is renewed until its job is over", "session.go",
		"\tcancel()\n\twg.Wait()\n",
		"\tcontext.AfterFunc(ctx, cancel)\n\twg.Go(func() {})\n",
	},
	{
		"a claim that may have landed is not looked for", "../lease/keeper.go",
		"\t\tl.releaseUnknown(ctx)\n",
		"",
	},
	{
		"who is told to end leaves the claim", "../lease/lease.go",
		"ctx, cancel := deadline.Outlive(ctx, 0, deadline.ReleaseGrace)\n\tdefer cancel()\n\tfor range",
		"ctx, cancel := context.WithCancel(ctx)\n\tdefer cancel()\n\tfor range",
	},
	{
		"a step is committed without the claim", "../step/commit.go",
		"case !claimed || !r.Lease.Owns(held.Claim):",
		"case claimed && false:",
	},
	{
		"a step leaves its claim", "../step/commit.go",
		"Refs:    append(refs, claim),",
		"Refs:    append(refs, claim)[:len(refs)],",
	},
	{
		"a person's suspension leaves the claim", "suspend.go",
		"held, claimed := dropClaim(c, v, id); claimed &&",
		"held, claimed := v.FindClaim(id); claimed &&",
	},
	{
		"a job's suspension or delivery leaves the claim", "session.go",
		"[]wire.RefUpdate{lease.DropClaim(s.ID, held)},",
		"[]wire.RefUpdate{lease.DropClaim(s.ID, held)}[:0],",
	},
	{
		"a cancellation leaves the claim", "cancel.go",
		"\tdropClaim(c, v, id)\n",
		"",
	},
	{
		"a claim that is found dead is no attempt", "../lease/lease.go",
		"change.Refs, c.Died = RecordDeadClaim(",
		"change.Refs, _ = RecordDeadClaim(",
	},
	{
		"a claim that is freed is no attempt", "remains.go",
		"life.LinkAttempts(&entry, id, died)",
		"_ = died",
	},
	{
		"a rescue frees a claim that counts", "remains.go",
		" || e.Leases().Counts(v, held.Claim, entry) {",
		" {",
	},
	{
		"another head is stepped than was told", "session.go",
		"if expect := s.Expect; expect.Hash != \"\" && s.Entry",
		"if expect := s.Expect; expect.Hash == \"\" && s.Entry",
	},
	{
		"a next step goes on with a claim that is gone", "../lease/lease.go",
		"if !ok || held.Head != entry.Head {",
		"if false && (!ok || held.Head != entry.Head) {",
	},
	{
		"a next step is claimed on a thread that is to wait", "../step/commit.go",
		"if after.Status != gitcas.StatusActive {\n\t\talong",
		"if false && after.Status != gitcas.StatusActive {\n\t\talong",
	},
	{
		"a next step leaves the claim that it was given", "../step/step.go",
		"\t\tr.Lease = r.req.Held\n\t\tdefer r.Lease.Release(ctx)\n",
		"\t\tr.Lease = r.req.Held\n",
	},
	{
		"an attempt goes out after the state branch", "../../gitcas/push.go",
		"!u.New.IsZero():\n\t\treturn 0",
		"!u.New.IsZero():\n\t\treturn 4",
	},
	{
		"a claim goes out before the state branch", "../../gitcas/push.go",
		"\t\treturn 3\n\t}\n\treturn 4",
		"\t\treturn 3\n\t}\n\treturn -1",
	},
	{
		"a step in parts is on no attempt's ref", "../step/commit.go",
		"if err := r.holdWork(c, v, own, work); err != nil {",
		"if err := error(nil); err != nil {",
	},
	{
		"people's commits are written over", "../step/commit.go",
		"if !tip.IsZero() && tip != r.from {",
		"if false && !tip.IsZero() && tip != r.from {",
	},
	{
		"a server that asks to be left alone is not", "../../internal/outage/outage.go",
		"wait := max(after, o.backOff())",
		"wait := o.backOff()",
	},
	{
		"pushes are repeated at once", "../../internal/outage/outage.go",
		"FirstWait = 2 * time.Second",
		"FirstWait = 200 * time.Millisecond",
	},
	{
		"how many refs a push may have is not learnt", "../../gitcas/push.go",
		"if s.learnt.CompareAndSwap(old, int64(most)) {",
		"if most > 0 {",
	},
	{
		"how many refs a push may have is not noted", "../../gitcas/change.go",
		"if noted := b.cur.Version.Refs; learnt == 0 ||",
		"if noted := b.cur.Version.Refs; learnt >= 0 ||",
	},
}

// guarded are those that no story of the simulation shows, each with the test that fails
// without the rule.
var guarded = []struct {
	by string
	mutation
}{
	{"TestFailedAgentsCollide", mutation{
		"an attempt that failed is not linked", "../step/keep.go",
		"life.LinkAttempts(&entry, r.ID, nil, layout.AttemptRef(r.ID, a.Run, a.Attempt))\n\t\tresult",
		"result",
	}},
	{"TestAgain", mutation{
		"what a run did it does not know", "session.go",
		"s.Deed == life.Step && s.SteppedBy",
		"s.Deed == life.Deliver && s.SteppedBy",
	}},
	{"TestNoNextStep", mutation{
		"a next step is claimed past a limit", "../step/decide.go",
		"if limit := after.effectiveLimits().Check(after.used, next.role); limit != nil {",
		"if limit := after.effectiveLimits().Check(after.used, next.role); false && limit != nil {",
	}},
	{"TestNextOfOtherJobs", mutation{
		"a next step is not claimed with a step", "../step/decide.go",
		"if r.req.Next == nil || next.role == \"\" {",
		"if r.req.Next == nil || next.role != \"\" {",
	}},
	{"TestBringInWithPeople", mutation{
		"edits are replayed where files overlap", "../workbranch/workbranch.go",
		"if err == nil && len(m.Overlap) > 0 {",
		"if false && len(m.Overlap) > 0 {",
	}},
	{"TestDeliverBringsTheBranchUp", mutation{
		"a work branch that lags is not brought up by a job", "../workbranch/workbranch.go",
		"return b.bringUp(ctx, id, w, tip)",
		"return wire.ZeroID, &DivergedError{Branch: w.Branch, Recorded: w.Commit, Tip: tip.String()}",
	}},
	{"TestResumeChangesTheEntry", mutation{
		"resuming leaves the entry as it was", "../life/entry.go",
		"since = max(since, entry.Next.Since+1)",
		"since = entry.Next.Since",
	}},
	{"TestBringInPushed", mutation{
		"a step that was taken back is brought in", "../step/bringin.go",
		"if alive && r.wasPoked() {",
		"if false && alive && r.wasPoked() {",
	}},
	{"TestBringInForged", mutation{
		"it is brought in as another role's", "../step/bringin.go",
		"if p := planOf(decision); p.role != r.plan.role {",
		"if p := planOf(decision); false && p.role != r.plan.role {",
	}},
	{"TestDeadAhead", mutation{
		"a dead claim is not charged", "../attempt/ledger.go",
		"Usage: life.ClaimUsage(c),",
		"Usage: &record.Usage{},",
	}},
	{"TestDeadAhead", mutation{
		"what the dead took is not held against the limits", "../step/claim.go",
		"if len(held.Died) == 0 && len(",
		"if len(held.Died) >= 0 && len(",
	}},
	{"TestBringIn", mutation{
		"a step that is brought in is paid beside its dead claim", "../attempt/ledger.go",
		"if kept.Claim != nil && a.Replaces != nil && a.Replaces(*kept.Claim) {",
		"if false && kept.Claim != nil && a.Replaces != nil && a.Replaces(*kept.Claim) {",
	}},
	{"TestRenewalByUsage", mutation{
		"the tenth begun is not charged", "../task/task.go",
		"float64(countTenths(used, budget))*budget/10) }",
		"0) }",
	}},
	{"TestPokedUnderAnothersClaim", mutation{
		"people change a thread that another one works on", "deed.go",
		"if !alive || !life.SameThread(entry, before) || !claimed || !h.Owns(held.Claim) {",
		"if _ = claimed; !alive || !life.SameThread(entry, before) {",
	}},
	{"TestTornListing", mutation{
		"a torn listing is looked at once", "../lease/lease.go",
		"case old.ID == seen && old.Head != entry.Head:",
		"case (old.ID == seen || true) && old.Head != entry.Head:",
	}},
	{"TestClaimGoneWhileBranchIsBroughtUp", mutation{
		"a claim seen gone as the branch is brought up is worked under", "session.go",
		"if _, err := s.Lease.CheckView(v); err != nil {",
		"if _, err := s.Lease.CheckView(v); false && err != nil {",
	}},
	{"TestUnansweredOnePartOfMany", mutation{
		"the rest of what landed in part is not sent", "../../gitcas/update.go",
		"lagging := pusher{u.s}.sendRest(ctx, u.s.refsAtOnce(v.Version), p)",
		"lagging := map[string]error(nil)",
	}},
	{"TestUnreadableAnswer", mutation{
		"a push whose answer can't be read is made again", "../../gitcas/update.go",
		"u.last = err // something",
		"// something",
	}},
	{"TestUnreadableAnswer", mutation{
		"a push whose answer can't be read is not looked for", "../../gitcas/update.go",
		"if unreadable || errors.Is(err, wire.ErrUnreachable) ||",
		"if errors.Is(err, wire.ErrUnreachable) ||",
	}},
	{"TestRestingBranchIsBroughtUp", mutation{
		"a thread comes to rest with a branch that lags", "../workbranch/workbranch.go",
		"if b.Store.Atomic(v) || w.Commit",
		"if true || b.Store.Atomic(v) || w.Commit",
	}},
	{"TestPushRefs", mutation{
		"refs alone are not proved", "../../gitcas/wire/patient.go",
		"case taken:",
		"case taken && after < 0:",
	}},
	{"TestBringInLate", mutation{
		"it is brought in whatever people said since", "../step/bringin.go",
		"if !r.brought.same {",
		"if false && !r.brought.same {",
	}},
	{"TestBringInLate", mutation{
		"it is brought in on another head", "../step/bringin.go",
		"|| entry.Head != r.brought.Entry.Head {",
		"{",
	}},
	{"TestBringInPushed", mutation{
		"what is in the thread is brought in again", "../step/bringin.go",
		"if r.HasStep(r.brought.step) {",
		"if false && r.HasStep(r.brought.step) {",
	}},
	{"TestBringInForged", mutation{
		"it is brought in for a role that there isn't", "../step/bringin.go",
		"if _, ok := r.Def.Roles[b.step.Role]; !ok {",
		"if _, ok := r.Def.Roles[b.step.Role]; false && !ok {",
	}},
	{"TestBringInForged", mutation{
		"its files are not searched for secrets", "../step/bringin.go",
		"err = screen.Search(ctx, snap, r.e.Redact, r.e.ReadBlobs)",
		"_ = screen.Search(ctx, snap, r.e.Redact, r.e.ReadBlobs)",
	}},
	{"TestInterrupt", mutation{
		"who is told to end waits as long as others", "../deadline/interrupt.go",
		"out = outage.WithHurry(out,",
		"_ = outage.WithHurry(out,",
	}},
	{"TestInterrupt", mutation{
		"who is told to end keeps nothing", "../step/keep.go",
		"ctx, cancel := deadline.Outlive(ctx, 0, deadline.LinkGrace)\n\tdefer cancel()\n\tstopped",
		"ctx, cancel := context.WithCancel(ctx)\n\tdefer cancel()\n\tstopped",
	}},
	{"TestSaidBetweenTwoJobs", mutation{
		"what another job left is taken whatever people said since", "../step/handover.go",
		"case !life.SameThread(u.Entry, r.Entry):",
		"case false && !life.SameThread(u.Entry, r.Entry):",
	}},
	{"TestAgentThatHandsOver", mutation{
		"an agent outlives its claim", "../lease/lease.go",
		"return min(t, left)",
		"return t",
	}},
}

// TestMutationsFit: each rule that can be taken away is in the code, once.
func TestMutationsFit(t *testing.T) {
	all := mutations
	for _, g := range guarded {
		all = append(all[:len(all):len(all)], g.mutation)
	}
	for _, m := range all {
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
			out, passed := withoutRule(t, m, "TestSimulation$")
			if passed {
				t.Fatalf("the simulation passes without the rule:\n%s", out)
			}
			t.Log(firstWith(t, out, "seed ", "panic: deadlock"))
		})
	}
	for _, g := range guarded {
		t.Run(g.name, func(t *testing.T) {
			out, passed := withoutRule(t, g.mutation, g.by+"$")
			if passed {
				t.Fatalf("%s passes without the rule:\n%s", g.by, out)
			}
			t.Log(firstWith(t, out, "--- FAIL: "+g.by))
		})
	}
}

// withoutRule runs tests of this package and of the Store without a rule.
func withoutRule(t *testing.T, m mutation, tests string) (out string, passed bool) {
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
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "-overlay", file, "-run", tests, ".", "../../gitcas/...")
	cmd.Env = append(os.Environ(), "UWF_SIM_SEEDS=2000", "UWF_SIM_MUTATE=")
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}

// firstWith is the first line of an output that has one of some words: without any, the
// mutated package does not run.
func firstWith(t *testing.T, out string, words ...string) string {
	for line := range strings.Lines(out) {
		for _, w := range words {
			if strings.Contains(line, w) {
				return strings.TrimSpace(line)
			}
		}
	}
	t.Fatalf("the mutated package does not run:\n%s", out)
	return ""
}
