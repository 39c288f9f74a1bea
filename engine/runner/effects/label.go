package effects

import (
	"context"
	"slices"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/threadview"
)

// StartLabel is the label that starts a thread.
func (j *Effects) StartLabel() string {
	if j.Inputs.Label == "" {
		return "uwf"
	}
	return j.Inputs.Label
}

// Labels are those that tell of a thread that waits or failed.
func Labels() []forge.Label {
	return []forge.Label{
		{Name: LabelWaiting, Color: "fbca04", Description: "An agent's question waits for an answer"},
		{Name: LabelFailed, Color: "b60205", Description: "uwf can't go on without help"},
	}
}

// SetLabel puts one of the labels on and takes the others off, as far as the payload tells
// that they are there.
func (j *Effects) SetLabel(ctx context.Context, p *threadview.Thread, name string) {
	if p.Trigger.Number == 0 {
		return
	}
	ctx, cancel := WithEffectTime(ctx)
	defer cancel()
	for _, l := range Labels() {
		switch {
		case l.Name == name:
			if err := j.Forge.AddLabel(ctx, p.Trigger.Number, l); err != nil {
				j.Warn("the label "+name+" could not be put on", err)
			}
		case j.HasLabel(p.Trigger.Number, l.Name):
			j.RemoveLabels(ctx, p, l.Name)
		}
	}
	j.CallHook("labelled")
}

// RemoveLabels takes labels off. That they are not there is no error.
func (j *Effects) RemoveLabels(ctx context.Context, p *threadview.Thread, names ...string) {
	if p.Trigger.Number == 0 {
		return
	}
	ctx, cancel := WithEffectTime(ctx)
	defer cancel()
	for _, name := range names {
		if err := j.Forge.RemoveLabel(ctx, p.Trigger.Number, name); err != nil {
			j.Warn("the label "+name+" could not be taken off", err)
		}
	}
}

// HasLabel reports whether the event's subject is that number, with that label.
func (j *Effects) HasLabel(number int, label string) bool {
	s := j.Event.Subject
	return s != nil && s.Number == number && slices.Contains(s.Labels, label)
}
