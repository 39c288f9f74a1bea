package record

import (
	"reflect"
	"time"

	"github.com/united-workforce/uwf/gitcas/node"
)

// newRecord makes the node of a record, with the peers' schema where no field of our own is
// set.
func newRecord(peers, own node.Hash, record any, at time.Time) (node.Node, node.Hash, error) {
	p, hasOwn := toPayload(reflect.ValueOf(record))
	if hasOwn {
		peers = own
	}
	return node.New(peers, p, at)
}

// Node makes the StartNode. at is when it was made; it is not part of the hash.
func (s Start) Node(at time.Time) (node.Node, node.Hash, error) {
	return newRecord(StartSchema, OwnStartSchema, s, at)
}

// Node makes the StepNode, see Start.Node for at.
func (s Step) Node(at time.Time) (node.Node, node.Hash, error) {
	return newRecord(StepSchema, OwnStepSchema, s, at)
}

// ParseStart reads a StartNode of either schema. It checks every field itself, so
// that it can be used on nodes that nobody validated.
func ParseStart(n node.Node) (s Start, err error) {
	err = readRecord("StartNode", n, IsStart(n.Type), n.Type == OwnStartSchema, &s)
	return s, err
}

// ParseStep reads a StepNode of either schema, see ParseStart.
func ParseStep(n node.Node) (s Step, err error) {
	err = readRecord("StepNode", n, IsStep(n.Type), n.Type == OwnStepSchema, &s)
	if err == nil && s.Digests != nil {
		err = s.checkDigests()
	}
	return s, err
}

// ErrorOutput is the output of a step that failed. Phase, which may be empty,
// says where: "agent", "extract", "seal".
type ErrorOutput struct {
	Error string
	Phase string
}

// Node makes the output node, see Start.Node for at.
func (o ErrorOutput) Node(at time.Time) (node.Node, node.Hash, error) {
	p := map[string]any{"$status": "error", "error": o.Error}
	if o.Phase != "" {
		p["phase"] = o.Phase
	}
	return node.New(ErrorOutputSchema, p, at)
}
