package record

import "github.com/united-workforce/uwf/gitcas/node"

// StartDigests are the digests of what a StartNode refers to, by its fields.
type StartDigests struct{ Workflow node.Digest }

// StepDigests are the digests of what a StepNode refers to, by its fields. Start is
// that of a first step alone: in any other it is in the step before, whose digest is
// Prev. Those of fields that the step doesn't have are empty.
type StepDigests struct {
	Start, Prev, Output, Detail, AssembledPrompt, Body, Answer, Patch node.Digest
	PreviousAttempts                                                  []node.Digest
}

// Target says where on the state branch a reference of a record leads.
type Target uint8

// The targets.
const (
	ToShared Target = iota // cas/
	ToRecord               // another record of the thread
	ToOwn                  // what is stored under the record's hash
	ToDetail               // its details
)

// Ref is one reference of a record.
type Ref struct {
	Field  string
	To     Target
	Hash   node.Hash
	Digest node.Digest // empty: the record has none for it
}

// Refs are the references of a StartNode.
func (s Start) Refs() []Ref {
	r := Ref{Field: "workflow", To: ToShared, Hash: s.Workflow}
	if s.Digests != nil {
		r.Digest = s.Digests.Workflow
	}
	return []Ref{r}
}

// Refs are the references of a StepNode, in the order of its fields.
func (s Step) Refs() []Ref {
	var d StepDigests
	if s.Digests != nil {
		d = *s.Digests
	}
	out := []Ref{{"start", ToRecord, s.Start, d.Start}}
	maybe := func(field string, to Target, h *node.Hash, digest node.Digest) {
		if h != nil {
			out = append(out, Ref{field, to, *h, digest})
		}
	}
	maybe("prev", ToRecord, s.Prev, d.Prev)
	out = append(out, Ref{"output", ToOwn, s.Output, d.Output})
	maybe("body", ToOwn, s.Body, d.Body)
	out = append(out, Ref{"detail", ToDetail, s.Detail, d.Detail})
	maybe("assembledPrompt", ToDetail, s.AssembledPrompt, d.AssembledPrompt)
	maybe("answer", ToOwn, s.Answer, d.Answer)
	maybe("patch", ToDetail, s.Patch, d.Patch)
	for i, h := range s.PreviousAttempts {
		r := Ref{Field: "previousAttempts", To: ToRecord, Hash: h}
		if i < len(d.PreviousAttempts) {
			r.Digest = d.PreviousAttempts[i]
		}
		out = append(out, r)
	}
	return out
}

// SetDigests gives a StepNode the digests of its references, as of returns them.
func (s *Step) SetDigests(of func(Ref) (node.Digest, error)) error {
	s.Digests = nil
	var d StepDigests
	for _, r := range s.Refs() {
		if r.Field == "start" && s.Prev != nil {
			continue
		}
		digest, err := of(r)
		if err != nil {
			return err
		}
		switch r.Field {
		case "start":
			d.Start = digest
		case "prev":
			d.Prev = digest
		case "output":
			d.Output = digest
		case "body":
			d.Body = digest
		case "detail":
			d.Detail = digest
		case "assembledPrompt":
			d.AssembledPrompt = digest
		case "answer":
			d.Answer = digest
		case "patch":
			d.Patch = digest
		case "previousAttempts":
			d.PreviousAttempts = append(d.PreviousAttempts, digest)
		}
	}
	s.Digests = &d
	return nil
}

// RefsOf are the references of a record, and whether it has digests for them. A node
// that is no record has none.
func RefsOf(n node.Node) (refs []Ref, digests bool, err error) {
	switch {
	case IsStart(n.Type):
		s, err := ParseStart(n)
		return s.Refs(), s.Digests != nil, err
	case IsStep(n.Type):
		s, err := ParseStep(n)
		return s.Refs(), s.Digests != nil, err
	}
	return nil, false, nil
}

// IsRecord reports whether a node of this type is a StartNode or a StepNode.
func IsRecord(typ node.Hash) bool { return IsStart(typ) || IsStep(typ) }
