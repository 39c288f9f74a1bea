package thread

import (
	"context"

	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/record"
)

// identifying finds out who speaks to a thread.
type identifying struct{ *Engine }

// identifySpeaker is who speaks to a thread, see identify.
func (e identifying) identifySpeaker(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) *story.Person {
	if _, alive := v.Entry(id); !alive || !e.canIdentify() {
		return e.By
	}
	t, err := reading.Read(ctx, v, id)
	if err != nil {
		return e.By // what is wrong with the thread is said by who changes it
	}
	return e.identifyPerson(ctx, t.Def, id, "what you say is noted, and is no approval")
}

// canIdentify reports whether the forge could say who somebody is of whom only git does.
func (e identifying) canIdentify() bool {
	return e.By != nil && e.By.Kind == record.ByLocal && e.Prove != nil
}

// identifyPerson is who does something with a thread: where its workflow has edges that only an
// approval opens, a person whom the forge names, if it does. Else what that means is said.
func (e identifying) identifyPerson(ctx context.Context, def *workflow.Definition, id gitcas.ThreadID, otherwise string) *story.Person {
	if !e.canIdentify() || !def.NeedsApproval() {
		return e.By
	}
	p, err := e.Prove(ctx)
	if err != nil {
		e.Emit(Event{Kind: "notice", Thread: id, Text: otherwise + ": " + err.Error()})
		return e.By
	}
	return p
}
