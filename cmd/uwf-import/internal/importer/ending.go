package importer

import (
	"fmt"

	"github.com/united-workforce/uwf/cmd/uwf-import/internal/ocas"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
)

// judgeEnding tells whether a thread ended or was killed, whose list says the same of both:
// only one that its workflow leads to $END had ended. The text says why that is not sure.
func (m *mover) judgeEnding(def *workflow.Definition, chain ocas.Chain) (status, why string) {
	next, err := m.askModerator(def, chain)
	switch {
	case err != nil:
		return ocas.Cancelled, fmt.Sprintf("it is taken for cancelled: what follows its last step can't be told: %v", err)
	case next.Kind == moderator.End:
		return ocas.Ended, ""
	}
	return ocas.Cancelled, ""
}

// askModerator asks what follows the last step.
func (m *mover) askModerator(def *workflow.Definition, chain ocas.Chain) (moderator.Decision, error) {
	var t moderator.Thread
	for _, p := range chain.Parts {
		n, err := m.src.Get(p.Head)
		if err != nil {
			return moderator.Decision{}, err
		}
		record, _ := n.Payload.(map[string]any)
		if p.Step == nil {
			t.Start = record
			continue
		}
		out, err := m.src.Get(p.Step.Output)
		if err != nil {
			return moderator.Decision{}, err
		}
		said, _ := out.Payload.(map[string]any)
		t.Steps = append(t.Steps, moderator.Output{Role: p.Step.Role, Output: said, Node: record})
	}
	return moderator.Next(def, t)
}
