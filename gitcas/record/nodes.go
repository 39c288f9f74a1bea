package record

import (
	"maps"
	"reflect"
	"strings"
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

// peersUsage is a usage as the peers' later StepNodes have it. Duration is in seconds where a
// program was the agent (uwf-hermes: until 0.6), in milliseconds where a broker called one.
type peersUsage struct {
	Turns        int     `payload:"turns"`
	InputTokens  int64   `payload:"inputTokens"`
	OutputTokens int64   `payload:"outputTokens"`
	Duration     float64 `payload:"duration"`
}

// laterFields are those that the peers' later StepNodes have besides.
type laterFields struct {
	Usage            *peersUsage `payload:"usage,optional,null"`
	PreviousAttempts []node.Hash `payload:"previousAttempts,optional,null"`
}

// splitLater reads the fields of a later StepNode into s, and gives the node without them.
func (s *Step) splitLater(n node.Node) (node.Node, error) {
	all, _ := n.Payload.(map[string]any)
	rest, more, fields := maps.Clone(all), map[string]any{}, []string{"usage"}
	if n.Type == AttemptsStepSchema {
		fields = append(fields, "previousAttempts")
	}
	for _, field := range fields {
		if v, ok := rest[field]; ok && v != nil {
			more[field] = v
		}
		delete(rest, field)
	}
	var later laterFields
	if err := (reader{what: "StepNode"}).readStruct(more, reflect.ValueOf(&later).Elem()); err != nil {
		return n, err
	}
	s.PreviousAttempts = later.PreviousAttempts
	if u := later.Usage; u != nil {
		if agent, _ := all["agent"].(string); strings.HasPrefix(agent, "uwf-") {
			u.Duration *= 1000
		}
		// What it cost they never said.
		s.Usage = &Usage{Turns: u.Turns, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, DurationMs: int64(u.Duration), Unpriced: u.InputTokens+u.OutputTokens > 0}
	}
	n.Payload = rest
	return n, nil
}

// ParseStep reads a StepNode of any of its schemas, see ParseStart.
func ParseStep(n node.Node) (s Step, err error) {
	if _, isObject := n.Payload.(map[string]any); isLaterStep(n.Type) && isObject {
		if n, err = s.splitLater(n); err != nil {
			return s, err
		}
	}
	err = readRecord("StepNode", n, IsStep(n.Type), IsOwnStep(n.Type), &s)
	if err == nil && s.Digests != nil {
		err = s.checkDigests()
	}
	return s, err
}

// ForPeers makes the StepNode as the peers' latest generation writes it, without what is ours
// alone, see Start.Node for at.
func (s Step) ForPeers(at time.Time) (node.Node, node.Hash, error) {
	later := laterFields{PreviousAttempts: s.PreviousAttempts}
	if u := s.Usage; u != nil {
		later.Usage = &peersUsage{u.Turns, u.InputTokens, u.OutputTokens, float64(u.DurationMs)}
		if strings.HasPrefix(s.Agent, "uwf-") { // see peersUsage
			later.Usage.Duration /= 1000
		}
	}
	p, _ := toPayload(reflect.ValueOf(Step{
		Start: s.Start, Prev: s.Prev, Role: s.Role, Output: s.Output, Detail: s.Detail, Agent: s.Agent, EdgePrompt: s.EdgePrompt,
		StartedAtMs: s.StartedAtMs, CompletedAtMs: s.CompletedAtMs, Cwd: s.Cwd, AssembledPrompt: s.AssembledPrompt,
	}))
	more, _ := toPayload(reflect.ValueOf(later))
	maps.Copy(p, more)
	return node.New(AttemptsStepSchema, p, at)
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
