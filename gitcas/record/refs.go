package record

import (
	"fmt"
	"reflect"

	"github.com/united-workforce/uwf/gitcas/node"
)

// StartDigests are the digests of what a StartNode refers to, by its fields.
type StartDigests struct {
	Workflow node.Digest `payload:"workflow"`
}

// StepDigests are the digests of what a StepNode refers to, by its fields. Start is
// that of a first step, and of one with Counts: whoever goes by these doesn't read the chain
// down to the first. Those of fields that the step doesn't have are empty.
type StepDigests struct {
	Start            node.Digest   `payload:"start,optional"`
	Prev             node.Digest   `payload:"prev,optional"`
	Output           node.Digest   `payload:"output"`
	Detail           node.Digest   `payload:"detail"`
	AssembledPrompt  node.Digest   `payload:"assembledPrompt,optional"`
	Body             node.Digest   `payload:"body,optional"`
	Answer           node.Digest   `payload:"answer,optional"`
	Patch            node.Digest   `payload:"patch,optional"`
	Prepare          node.Digest   `payload:"prepare,optional"`
	PreviousAttempts []node.Digest `payload:"previousAttempts,optional"`
}

// digestOf is where the digest of a field of one node is.
func (d *StepDigests) digestOf(field string) *node.Digest {
	return map[string]*node.Digest{
		"start": &d.Start, "prev": &d.Prev, "output": &d.Output, "detail": &d.Detail,
		"assembledPrompt": &d.AssembledPrompt, "body": &d.Body, "answer": &d.Answer, "patch": &d.Patch,
		"prepare": &d.Prepare,
	}[field]
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
	var out []Ref
	for _, r := range []struct {
		field string
		to    Target
		hash  *node.Hash
	}{
		{"start", ToRecord, &s.Start}, {"prev", ToRecord, s.Prev}, {"output", ToOwn, &s.Output}, {"body", ToOwn, s.Body}, {"detail", ToDetail, &s.Detail},
		{"assembledPrompt", ToDetail, s.AssembledPrompt}, {"answer", ToOwn, s.Answer}, {"patch", ToDetail, s.Patch},
		{"prepare", ToDetail, s.Prepare},
	} {
		if r.hash != nil {
			out = append(out, Ref{r.field, r.to, *r.hash, *d.digestOf(r.field)})
		}
	}
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
		if r.Field == "start" && s.Prev != nil && s.Counts == nil {
			continue
		}
		digest, err := of(r)
		if err != nil {
			return err
		}
		if r.Field == "previousAttempts" {
			d.PreviousAttempts = append(d.PreviousAttempts, digest)
		} else {
			*d.digestOf(r.Field) = digest
		}
	}
	s.Digests = &d
	return nil
}

// checkDigests refuses digests that are not those of the references, one for each.
func (s Step) checkDigests() error {
	r, left := reader{what: "StepNode's digests"}, *s.Digests
	if len(left.PreviousAttempts) != len(s.PreviousAttempts) {
		return r.refuseField("previousAttempts", "as many SHA-256s as there are attempts")
	}
	for _, ref := range s.Refs() {
		switch {
		case ref.Field == "start" && s.Prev != nil && s.Counts == nil:
			continue
		case ref.Digest == "":
			return r.refuseField(ref.Field, "a SHA-256")
		case ref.Field == "previousAttempts":
			left.PreviousAttempts = nil
		default:
			*left.digestOf(ref.Field) = ""
		}
	}
	if !reflect.ValueOf(left).IsZero() {
		return fmt.Errorf("%w: a StepNode's digests with unknown fields", ErrNotRecord)
	}
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
