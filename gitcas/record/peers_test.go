package record

import (
	"reflect"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/node"
)

// TestForPeers: a step of ours is one of the peers' latest generation, which is read as the same
// but for what is ours alone.
func TestForPeers(t *testing.T) {
	prev, prompt, body := h1, h2, h3
	full := Step{
		Start: h1, Prev: &prev, Role: "dev", Output: h2, Detail: h3, Agent: "builtin", EdgePrompt: "go on", StartedAtMs: 1, CompletedAtMs: 2, Cwd: ".",
		AssembledPrompt: &prompt, Body: &body, Usage: &Usage{Turns: 1, InputTokens: 2, OutputTokens: 3, DurationMs: 1500, CostUSD: 4, Unpriced: true},
		Work: &Work{Branch: "b", Commit: "c"}, PreviousAttempts: []node.Hash{h1, h2}, Run: &Run{ID: "r", Attempt: 1}, By: &By{Kind: ByLocal, Name: "n"},
		Answer: &body, Patch: &body, Prepare: &body, Checks: []Check{{Name: "c", Status: CheckPassed}}, Notes: []string{"n"}, Counts: &Counts{}, Digests: &StepDigests{},
	}
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("this test forgets %s", v.Type().Field(i).Name)
		}
	}
	for name, change := range map[string]func(*Step){
		"all of it":           func(*Step) {},
		"the predecessor's":   func(s *Step) { s.Agent = "uwf-hermes" },
		"without what may be": func(s *Step) { s.Prev, s.AssembledPrompt, s.Usage, s.PreviousAttempts = nil, nil, nil, nil },
	} {
		s := full
		change(&s)
		n, h, err := s.ForPeers(time.UnixMilli(77))
		if err != nil || n.Type != AttemptsStepSchema || n.Timestamp != 77 || node.Verify(h, n) != nil || node.Check(node.Map(Schemas()), n) != nil {
			t.Errorf("%s: %v, %v", name, n, err)
		}
		want := s
		usage, attempts := want.Usage, want.PreviousAttempts
		w := reflect.ValueOf(&want).Elem()
		for i := range w.NumField() {
			if fieldOf(w.Type().Field(i)).own {
				w.Field(i).SetZero()
			}
		}
		if want.PreviousAttempts = attempts; usage != nil {
			u := *usage
			u.CostUSD = 0 // nobody says it there
			want.Usage = &u
		}
		if got, err := ParseStep(n); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
}
