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
	r := openNode("StartNode", n, IsStart(n.Type))
	s := Start{Workflow: r.readHash("workflow"), Prompt: r.readText("prompt"), Cwd: r.readText("cwd")}
	if n.Type == OwnStartSchema {
		if v, ok := r.takeField("trigger"); ok {
			s.Trigger, ok = v.(map[string]any)
			r.checkField(ok, "trigger", "an object")
		}
		s.Base, s.Title, s.By = r.optionalText("base"), r.optionalText("title"), r.readBy()
		if r.hasField("digests") {
			d := r.readObject("digests")
			s.Digests = &StartDigests{Workflow: d.readDigest("workflow")}
			r.takeComplaint(d)
		}
	}
	return s, r.firstComplaint()
}

// ParseStep reads a StepNode of either schema, see ParseStart.
func ParseStep(n node.Node) (Step, error) {
	r := openNode("StepNode", n, IsStep(n.Type))
	s := Step{
		Start: r.readHash("start"), Prev: r.nullableHash("prev", true), Role: r.readText("role"),
		Output: r.readHash("output"), Detail: r.readHash("detail"), Agent: r.readText("agent"),
		EdgePrompt: r.optionalText("edgePrompt"), Cwd: r.readText("cwd"),
		StartedAtMs: r.readInteger("startedAtMs"), CompletedAtMs: r.readInteger("completedAtMs"),
		AssembledPrompt: r.nullableHash("assembledPrompt", false),
	}
	if n.Type == OwnStepSchema {
		r.readOwnFields(&s)
	}
	return s, r.firstComplaint()
}

// readOwnFields reads the fields that only our StepNode has.
func (r *reader) readOwnFields(s *Step) {
	s.Body = r.optionalHash("body")
	if r.hasField("usage") {
		u := r.readObject("usage")
		s.Usage = &Usage{
			Turns: int(u.readInteger("turns")), InputTokens: u.readInteger("inputTokens"), OutputTokens: u.readInteger("outputTokens"),
			DurationMs: u.readInteger("durationMs"), CostUSD: u.readNumber("costUsd"), Unpriced: u.optionalFlag("unpriced"),
		}
		r.takeComplaint(u)
	}
	if r.hasField("work") {
		w := r.readObject("work")
		s.Work = &Work{Branch: w.readText("branch"), Commit: w.readText("commit")}
		r.takeComplaint(w)
	}
	if r.hasField("previousAttempts") {
		s.PreviousAttempts = r.readHashes("previousAttempts")
	}
	if r.hasField("run") {
		o := r.readObject("run")
		s.Run = &Run{ID: o.readText("id"), Attempt: int(o.readInteger("attempt"))}
		r.takeComplaint(o)
	}
	s.By = r.readBy()
	s.Answer, s.Patch = r.optionalHash("answer"), r.optionalHash("patch")
	s.Checks = r.readChecks()
	if r.hasField("digests") {
		d := r.readObject("digests")
		s.Digests = d.stepDigests(s)
		r.takeComplaint(d)
	}
}

// stepDigests reads the digests of a StepNode: one for each of its references.
func (r *reader) stepDigests(s *Step) *StepDigests {
	d := &StepDigests{Output: r.readDigest("output"), Detail: r.readDigest("detail")}
	if s.Prev == nil {
		d.Start = r.readDigest("start")
	} else {
		d.Prev = r.readDigest("prev")
	}
	if s.AssembledPrompt != nil {
		d.AssembledPrompt = r.readDigest("assembledPrompt")
	}
	for field, of := range map[string]struct {
		hash   *node.Hash
		digest *node.Digest
	}{"body": {s.Body, &d.Body}, "answer": {s.Answer, &d.Answer}, "patch": {s.Patch, &d.Patch}} {
		if of.hash != nil {
			*of.digest = r.readDigest(field)
		}
	}
	if len(s.PreviousAttempts) > 0 {
		v, _ := r.takeField("previousAttempts")
		list, _ := v.([]any)
		r.checkField(len(list) == len(s.PreviousAttempts), "previousAttempts", "a list of as many SHA-256s as there are attempts")
		for _, e := range list {
			text, _ := e.(string)
			r.checkField(node.Digest(text).Valid(), "previousAttempts", "a list of SHA-256s")
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

func openNode(what string, n node.Node, known bool) *reader {
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

// firstComplaint gives the first complaint; fields that nobody took are one.
func (r *reader) firstComplaint() error {
	if r.err == nil && r.taken != len(r.m) {
		r.err = fmt.Errorf("%w: %s with unknown fields", ErrNotRecord, withArticle(r.what))
	}
	return r.err
}

// takeComplaint takes over the complaint of a nested object.
func (r *reader) takeComplaint(inner *reader) {
	if err := inner.firstComplaint(); r.err == nil {
		r.err = err
	}
}

func (r *reader) checkField(ok bool, field, want string) {
	if !ok && r.err == nil {
		r.err = fmt.Errorf("%w: %s of %s must be %s", ErrNotRecord, field, withArticle(r.what), want)
	}
}

func (r *reader) hasField(field string) bool {
	_, ok := r.m[field]
	return ok
}

func (r *reader) takeField(field string) (any, bool) {
	v, ok := r.m[field]
	if ok {
		r.taken++
	}
	return v, ok
}

func (r *reader) readText(field string) string {
	v, _ := r.takeField(field)
	s, ok := v.(string)
	r.checkField(ok, field, "a string")
	return s
}

func (r *reader) optionalText(field string) string {
	if !r.hasField(field) {
		return ""
	}
	return r.readText(field)
}

func (r *reader) readHash(field string) node.Hash {
	v, _ := r.takeField(field)
	s, _ := v.(string)
	r.checkField(node.Hash(s).Valid(), field, "a node's hash")
	return node.Hash(s)
}

func (r *reader) readDigest(field string) node.Digest {
	v, _ := r.takeField(field)
	s, _ := v.(string)
	r.checkField(node.Digest(s).Valid(), field, "a SHA-256 of 64 small hexadecimal digits")
	return node.Digest(s)
}

func (r *reader) nullableHash(field string, required bool) *node.Hash {
	v, ok := r.m[field]
	if v == nil {
		if ok {
			r.taken++
		}
		r.checkField(ok || !required, field, "a node's hash or null")
		return nil
	}
	h := r.readHash(field)
	return &h
}

// optionalHash reads a hash that may be missing, but not null.
func (r *reader) optionalHash(field string) *node.Hash {
	if !r.hasField(field) {
		return nil
	}
	h := r.readHash(field)
	return &h
}

// readChecks reads the results of a step's checks.
func (r *reader) readChecks() []Check {
	if !r.hasField("checks") {
		return nil
	}
	v, _ := r.takeField("checks")
	list, ok := v.([]any)
	r.checkField(ok, "checks", "a list")
	out := make([]Check, 0, len(list))
	for _, e := range list {
		m, _ := e.(map[string]any)
		o := &reader{what: "check of a " + r.what, m: m}
		c := Check{Name: o.readText("name"), Status: o.readText("status")}
		o.checkField(c.Status == "passed" || c.Status == "failed" || c.Status == "skipped", "status", "passed, failed or skipped")
		if o.hasField("exitCode") {
			c.ExitCode = int(o.readInteger("exitCode"))
		}
		if o.hasField("durationMs") {
			c.DurationMs = o.readInteger("durationMs")
		}
		out = append(out, c)
		r.takeComplaint(o)
	}
	return out
}

func (r *reader) readHashes(field string) []node.Hash {
	v, _ := r.takeField(field)
	list, ok := v.([]any)
	r.checkField(ok, field, "a list of hashes")
	out := make([]node.Hash, 0, len(list))
	for _, e := range list {
		s, _ := e.(string)
		r.checkField(node.Hash(s).Valid(), field, "a list of hashes")
		out = append(out, node.Hash(s))
	}
	return out
}

func (r *reader) readInteger(field string) int64 {
	v, _ := r.takeField(field)
	i, ok := v.(int64)
	r.checkField(ok, field, "a whole number")
	return i
}

func (r *reader) readNumber(field string) float64 {
	v, _ := r.takeField(field)
	if i, ok := v.(int64); ok {
		return float64(i)
	}
	f, ok := v.(float64)
	r.checkField(ok, field, "a number")
	return f
}

func (r *reader) optionalFlag(field string) bool {
	if !r.hasField(field) {
		return false
	}
	v, _ := r.takeField(field)
	is, ok := v.(bool)
	r.checkField(ok, field, "true or false")
	return is
}

func (r *reader) readObject(field string) *reader {
	v, _ := r.takeField(field)
	m, ok := v.(map[string]any)
	r.checkField(ok, field, "an object")
	return &reader{what: r.what + "'s " + field, m: m}
}

// withArticle is what a complaint calls a record.
func withArticle(what string) string {
	if strings.HasPrefix(what, "A") {
		return "an " + what
	}
	return "a " + what
}
