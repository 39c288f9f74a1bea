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
		"if !sameThread(entry, r.entry) {\n\t\treturn entry, gitcas.Held{}, nil, &movedError",
		"if false && !sameThread(entry, r.entry) {\n\t\treturn entry, gitcas.Held{}, nil, &movedError",
	},
	{
		"no head check on rebuild", "commit.go",
		"if entry.Head != r.entry.Head {",
		"if false && entry.Head != r.entry.Head {",
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
			if strings.Count(string(src), m.old) != 1 {
				t.Fatalf("%s holds the rule %d times, want once", m.file, strings.Count(string(src), m.old))
			}
			dir := t.TempDir()
			mutated := filepath.Join(dir, m.file)
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
			cmd.Env = append(os.Environ(), "UWF_SIM_SEEDS=10000", "UWF_SIM_MUTATE=")
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
