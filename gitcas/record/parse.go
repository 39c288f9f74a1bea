package record

import (
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
)

// ErrNotRecord is wrapped where a node is not the record it should be.
var ErrNotRecord = errors.New("not the expected record")

// ParseStart reads a StartNode of either schema. It checks every field itself, so
// that it can be used on nodes that nobody validated.
func ParseStart(n node.Node) (Start, error) {
	r := open("StartNode", n, IsStart(n.Type))
	s := Start{Workflow: r.hash("workflow"), Prompt: r.text("prompt"), Cwd: r.text("cwd")}
	if n.Type == OwnStartSchema {
		if v, ok := r.take("trigger"); ok {
			s.Trigger, ok = v.(map[string]any)
			r.check(ok, "trigger", "an object")
		}
		s.Base, s.Title, s.By = r.optionalText("base"), r.optionalText("title"), r.by()
		if r.has("digests") {
			d := r.object("digests")
			s.Digests = &StartDigests{Workflow: d.digest("workflow")}
			r.join(d)
		}
	}
	return s, r.close()
}

// ParseStep reads a StepNode of either schema, see ParseStart.
func ParseStep(n node.Node) (Step, error) {
	r := open("StepNode", n, IsStep(n.Type))
	s := Step{
		Start: r.hash("start"), Prev: r.nullableHash("prev", true), Role: r.text("role"),
		Output: r.hash("output"), Detail: r.hash("detail"), Agent: r.text("agent"),
		EdgePrompt: r.optionalText("edgePrompt"), Cwd: r.text("cwd"),
		StartedAtMs: r.integer("startedAtMs"), CompletedAtMs: r.integer("completedAtMs"),
		AssembledPrompt: r.nullableHash("assembledPrompt", false),
	}
	if n.Type == OwnStepSchema {
		r.own(&s)
	}
	return s, r.close()
}

// own reads the fields that only our StepNode has.
func (r *reader) own(s *Step) {
	s.Body = r.optionalHash("body")
	if r.has("usage") {
		u := r.object("usage")
		s.Usage = &Usage{
			Turns: int(u.integer("turns")), InputTokens: u.integer("inputTokens"), OutputTokens: u.integer("outputTokens"),
			DurationMs: u.integer("durationMs"), CostUSD: u.number("costUsd"), Unpriced: u.optionalFlag("unpriced"),
		}
		r.join(u)
	}
	if r.has("work") {
		w := r.object("work")
		s.Work = &Work{Branch: w.text("branch"), Commit: w.text("commit")}
		r.join(w)
	}
	if r.has("previousAttempts") {
		s.PreviousAttempts = r.hashes("previousAttempts")
	}
	if r.has("run") {
		o := r.object("run")
		s.Run = &Run{ID: o.text("id"), Attempt: int(o.integer("attempt"))}
		r.join(o)
	}
	s.By = r.by()
	s.Answer, s.Patch = r.optionalHash("answer"), r.optionalHash("patch")
	s.Checks = r.checks()
	if r.has("digests") {
		d := r.object("digests")
		s.Digests = d.stepDigests(s)
		r.join(d)
	}
}

// stepDigests reads the digests of a StepNode: one for each of its references.
func (r *reader) stepDigests(s *Step) *StepDigests {
	d := &StepDigests{Output: r.digest("output"), Detail: r.digest("detail")}
	if s.Prev == nil {
		d.Start = r.digest("start")
	} else {
		d.Prev = r.digest("prev")
	}
	if s.AssembledPrompt != nil {
		d.AssembledPrompt = r.digest("assembledPrompt")
	}
	for field, of := range map[string]struct {
		hash   *node.Hash
		digest *node.Digest
	}{"body": {s.Body, &d.Body}, "answer": {s.Answer, &d.Answer}, "patch": {s.Patch, &d.Patch}} {
		if of.hash != nil {
			*of.digest = r.digest(field)
		}
	}
	if len(s.PreviousAttempts) > 0 {
		v, _ := r.take("previousAttempts")
		list, _ := v.([]any)
		r.check(len(list) == len(s.PreviousAttempts), "previousAttempts", "a list of as many SHA-256s as there are attempts")
		for _, e := range list {
			text, _ := e.(string)
			r.check(node.Digest(text).Valid(), "previousAttempts", "a list of SHA-256s")
			d.PreviousAttempts = append(d.PreviousAttempts, node.Digest(text))
		}
	}
	return d
}

// reader takes fields out of a payload and keeps the first complaint.
type reader struct {
	what  string
	m     map[string]any
	taken int
	err   error
}

func open(what string, n node.Node, known bool) *reader {
	r := &reader{what: what}
	m, ok := n.Payload.(map[string]any)
	switch {
	case !known:
		r.err = fmt.Errorf("%w: a node of type %s is no %s", ErrNotRecord, n.Type, what)
	case !ok:
		r.err = fmt.Errorf("%w: the payload of %s must be an object", ErrNotRecord, withArticle(what))
	}
	r.m = m
	return r
}

// close gives the first complaint; fields that nobody took are one.
func (r *reader) close() error {
	if r.err == nil && r.taken != len(r.m) {
		r.err = fmt.Errorf("%w: %s with unknown fields", ErrNotRecord, withArticle(r.what))
	}
	return r.err
}

// join takes over the complaint of a nested object.
func (r *reader) join(inner *reader) {
	if err := inner.close(); r.err == nil {
		r.err = err
	}
}

func (r *reader) check(ok bool, field, want string) {
	if !ok && r.err == nil {
		r.err = fmt.Errorf("%w: %s of %s must be %s", ErrNotRecord, field, withArticle(r.what), want)
	}
}

func (r *reader) has(field string) bool {
	_, ok := r.m[field]
	return ok
}

func (r *reader) take(field string) (any, bool) {
	v, ok := r.m[field]
	if ok {
		r.taken++
	}
	return v, ok
}

func (r *reader) text(field string) string {
	v, _ := r.take(field)
	s, ok := v.(string)
	r.check(ok, field, "a string")
	return s
}

func (r *reader) optionalText(field string) string {
	if !r.has(field) {
		return ""
	}
	return r.text(field)
}

func (r *reader) hash(field string) node.Hash {
	v, _ := r.take(field)
	s, _ := v.(string)
	r.check(node.Hash(s).Valid(), field, "a node's hash")
	return node.Hash(s)
}

func (r *reader) digest(field string) node.Digest {
	v, _ := r.take(field)
	s, _ := v.(string)
	r.check(node.Digest(s).Valid(), field, "a SHA-256 of 64 small hexadecimal digits")
	return node.Digest(s)
}

func (r *reader) nullableHash(field string, required bool) *node.Hash {
	v, ok := r.m[field]
	if v == nil {
		if ok {
			r.taken++
		}
		r.check(ok || !required, field, "a node's hash or null")
		return nil
	}
	h := r.hash(field)
	return &h
}

// optionalHash reads a hash that may be missing, but not null.
func (r *reader) optionalHash(field string) *node.Hash {
	if !r.has(field) {
		return nil
	}
	h := r.hash(field)
	return &h
}

// checks reads the results of a step's checks.
func (r *reader) checks() []Check {
	if !r.has("checks") {
		return nil
	}
	v, _ := r.take("checks")
	list, ok := v.([]any)
	r.check(ok, "checks", "a list")
	out := make([]Check, 0, len(list))
	for _, e := range list {
		m, _ := e.(map[string]any)
		o := &reader{what: "check of a " + r.what, m: m}
		c := Check{Name: o.text("name"), Status: o.text("status")}
		o.check(c.Status == "passed" || c.Status == "failed" || c.Status == "skipped", "status", "passed, failed or skipped")
		if o.has("exitCode") {
			c.ExitCode = int(o.integer("exitCode"))
		}
		if o.has("durationMs") {
			c.DurationMs = o.integer("durationMs")
		}
		out = append(out, c)
		r.join(o)
	}
	return out
}

func (r *reader) hashes(field string) []node.Hash {
	v, _ := r.take(field)
	list, ok := v.([]any)
	r.check(ok, field, "a list of hashes")
	out := make([]node.Hash, 0, len(list))
	for _, e := range list {
		s, _ := e.(string)
		r.check(node.Hash(s).Valid(), field, "a list of hashes")
		out = append(out, node.Hash(s))
	}
	return out
}

func (r *reader) integer(field string) int64 {
	v, _ := r.take(field)
	i, ok := v.(int64)
	r.check(ok, field, "a whole number")
	return i
}

func (r *reader) number(field string) float64 {
	v, _ := r.take(field)
	if i, ok := v.(int64); ok {
		return float64(i)
	}
	f, ok := v.(float64)
	r.check(ok, field, "a number")
	return f
}

func (r *reader) optionalFlag(field string) bool {
	if !r.has(field) {
		return false
	}
	v, _ := r.take(field)
	is, ok := v.(bool)
	r.check(ok, field, "true or false")
	return is
}

func (r *reader) object(field string) *reader {
	v, _ := r.take(field)
	m, ok := v.(map[string]any)
	r.check(ok, field, "an object")
	return &reader{what: r.what + "'s " + field, m: m}
}

// withArticle is what a complaint calls a record.
func withArticle(what string) string {
	if strings.HasPrefix(what, "A") {
		return "an " + what
	}
	return "a " + what
}
