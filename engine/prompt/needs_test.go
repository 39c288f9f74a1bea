package prompt_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/prompt"
	"github.com/united-workforce/uwf/gitcas/record"
)

// TestNeeds: a prompt from as many of the newest steps as Needs says is that from all of them, and
// Needs doesn't ask for steps that a prompt has no room for.
func TestNeeds(t *testing.T) {
	d := definition(t, "../../examples/solve-issue.yaml")
	for _, name := range []string{"planner", "developer"} {
		role := d.Roles[name]
		role.Checks = []string{"of " + name}
		d.Roles[name] = role
	}
	roles := []string{"planner", "developer", "reviewer"}
	rnd := rand.New(rand.NewPCG(1, 2))
	for try := range 200 {
		in := prompt.Input{Definition: d, Task: "Do it.", Role: roles[rnd.IntN(3)], Window: []int{0, 2000, 200_000}[rnd.IntN(3)]}
		size, rare := []int{10, 500, 5000}[rnd.IntN(3)], 1+rnd.IntN(60)
		var all []prompt.Step
		for n := range 1 + rnd.IntN(120) {
			role := roles[1+n%2]
			if rnd.IntN(rare) == 0 {
				role = roles[0]
			}
			s := prompt.Step{Role: role, Status: "done", Output: map[string]any{"$status": "done", "summary": fmt.Sprint(n)}, Body: strings.Repeat("x", rnd.IntN(size))}
			if role != "reviewer" {
				s.Checks = []record.Check{{Name: "of " + role, Status: record.CheckFailed, Output: fmt.Sprint("run ", n)}}
			}
			all = append(all, s)
			in.Counts = in.Counts.After(record.Step{Role: role}, nil)
		}
		in.Steps = all
		want := prompt.Assemble(in)
		in.Steps = all[len(all)-min(len(all), 8):]
		for need := prompt.Needs(in); need > len(in.Steps); need = prompt.Needs(in) {
			in.Steps = all[len(all)-need:]
		}
		if got := prompt.Assemble(in); got != want {
			t.Fatalf("try %d, %d of %d steps: got\n%s\nwant\n%s", try, len(in.Steps), len(all), got, want)
		}
		if size == 5000 && in.Counts.Of("planner").Last == 0 && len(in.Steps) > 64 {
			t.Errorf("try %d: %d of %d long steps are needed", try, len(in.Steps), len(all))
		}
	}
}
