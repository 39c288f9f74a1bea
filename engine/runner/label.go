package runner

import (
	"context"
	"slices"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/picture"
)

func (j *effects) label() string {
	if j.Inputs.Label == "" {
		return "uwf"
	}
	return j.Inputs.Label
}

func labels() []forge.Label {
	return []forge.Label{
		{Name: labelWaiting, Color: "fbca04", Description: "An agent's question waits for an answer"},
		{Name: labelFailed, Color: "b60205", Description: "uwf can't go on without help"},
	}
}

// mark puts one of the labels on and takes the others off, as far as the payload tells
// that they are there.
func (j *effects) mark(ctx context.Context, p *picture.Picture, name string) {
	if p.Trigger.Number == 0 {
		return
	}
	ctx, cancel := effectContext(ctx)
	defer cancel()
	for _, l := range labels() {
		switch {
		case l.Name == name:
			if err := j.Forge.AddLabel(ctx, p.Trigger.Number, l); err != nil {
				j.warn("the label "+name+" could not be put on", err)
			}
		case j.carries(p.Trigger.Number, l.Name):
			j.unmark(ctx, p, l.Name)
		}
	}
	j.hook("labelled")
}

// unmark takes labels off. That they are not there is no error.
func (j *effects) unmark(ctx context.Context, p *picture.Picture, names ...string) {
	if p.Trigger.Number == 0 {
		return
	}
	ctx, cancel := effectContext(ctx)
	defer cancel()
	for _, name := range names {
		if err := j.Forge.RemoveLabel(ctx, p.Trigger.Number, name); err != nil {
			j.warn("the label "+name+" could not be taken off", err)
		}
	}
}

// carries reports whether the event's subject is that number, with that label.
func (j *effects) carries(number int, label string) bool {
	s := j.ev.Subject
	return s != nil && s.Number == number && slices.Contains(s.Labels, label)
}
