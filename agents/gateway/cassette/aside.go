package cassette

import (
	"errors"
	"fmt"
	"slices"
)

// ErrNotRecorded: a replay was asked for something that the cassette has no answer to.
var ErrNotRecorded = errors.New("it was not recorded")

// KeepAside records what an agent asked for besides its model, and the answer.
func (r *Recorder) KeepAside(path string, body, answer []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	asked, err := r.redactText(string(body))
	var said string
	if err == nil {
		said, err = r.redactText(string(answer))
	}
	if err != nil {
		r.err = fmt.Errorf("record %s of step %d (%s): not recorded: %w", path, r.o.Step, r.o.Role, err)
		return r.err
	}
	r.asides = append(r.asides, Entry{Step: r.o.Step, Role: r.o.Role, Aside: &Aside{Path: path, Body: asked}, Answer: Answer{Status: 200, Body: said}})
	return nil
}

// PlayAside finds the recorded answer. Of several to the same question each is played once,
// in order, and the last one again. The error is ErrNotRecorded, or the redactor's; it stops
// nothing else: a cassette that was written by hand need not know of it.
func (p *Player) PlayAside(path string, body []byte) ([]byte, error) {
	asked, err := p.o.Redact(string(body))
	if err != nil {
		return nil, fmt.Errorf("replay %s: %w", path, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	asked = p.norm.normaliseText(asked)
	same := func(e Entry) bool { return e.Aside.Path == path && p.norm.normaliseText(e.Aside.Body) == asked }
	i := slices.IndexFunc(p.asides, same)
	if i < 0 {
		return nil, fmt.Errorf("replay %s: step %d (%s) of %s has no answer to %.200s: %w; record it again", path, p.o.Step, p.o.Role, p.cassette.File, asked, ErrNotRecorded)
	}
	said := p.asides[i].Answer.Body
	if slices.ContainsFunc(p.asides[i+1:], same) {
		p.asides = slices.Delete(p.asides, i, i+1)
	}
	return []byte(said), nil
}

// AsidePaths are the paths that a role asked for something besides its model, sorted.
func (c *Cassette) AsidePaths(role string) []string {
	var out []string
	for _, e := range c.Entries {
		if e.Role == role && e.Aside != nil {
			out = append(out, e.Aside.Path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// OffersTool reports whether a role was recorded with a tool to call.
func (c *Cassette) OffersTool(role, tool string) bool {
	return slices.ContainsFunc(c.Entries, func(e Entry) bool {
		return e.Role == role && e.Request != nil && slices.Contains(e.Request.Tools, tool)
	})
}
