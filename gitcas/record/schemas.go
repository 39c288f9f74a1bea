package record

import (
	"embed"
	"io/fs"
	"maps"
	"path"
	"sync"

	"github.com/united-workforce/uwf/gitcas/node"
)

// Types of the records: the hashes of their schemas. All but those of our own
// are those of the TypeScript uwf, so that equal records have equal hashes in
// both systems.
const (
	StartSchema               node.Hash = "44P8EP6N3NXZ5"
	StepSchema                node.Hash = "108DB063KRQWW"
	WorkflowSchema            node.Hash = "4EAEYQKFHTJ23"
	ErrorOutputSchema         node.Hash = "8KPJ61GZX0N6R"
	SuspendOutputSchema       node.Hash = "E7A9HKZVD39BK"
	StepStartSchema           node.Hash = "3J809WXNWT1KC"
	StepCompleteSchema        node.Hash = "86KNEJXZYH2ZA"
	TurnSchema                node.Hash = "5T4MFYA0YHBKK"
	BuiltinDetailSchema       node.Hash = "620HA0J0YDFHE"
	BuiltinTurnSchema         node.Hash = "62W26KF53H78R"
	ClaudeCodeDetailSchema    node.Hash = "AEBZKYF1831T8"
	ClaudeCodeTurnSchema      node.Hash = "CVBRDZTWJ0BGN"
	ClaudeCodeRawOutputSchema node.Hash = "80B2AT85TMF1A"
	HermesDetailSchema        node.Hash = "6AT9BBJ2Y42ZV"
	HermesRawOutputSchema     node.Hash = "DXN3VVEXFVX51"
	MockDetailSchema          node.Hash = "EWDF8D2DQ06CK"
	BrokerDetailSchema        node.Hash = "1S7KXWF34RDJC"

	// The StepNodes of the later generations: with usage (0.1 to 0.3), and with
	// previousAttempts besides (from 0.4 on).
	UsageStepSchema    node.Hash = "6XHWEZPP6GQRB"
	AttemptsStepSchema node.Hash = "0RXS7QWMG3KNV"

	// The workflows of the later generations: with $START's new and resume, as builds
	// between 0.3.0 and 0.4.0 had them (they are read, and written as WorkflowSchema), and
	// with version: 1, whose templates are Liquid.
	ResumeWorkflowSchema node.Hash = "73WN2ZCV9037P"
	LiquidWorkflowSchema node.Hash = "A601PEKX2SPSS"

	// OwnWorkflowSchema holds the workflows that fit none of the peers': with
	// conditions, lists of edges, system prompts, limits, approvals or checks, in the
	// author's dialect.
	OwnWorkflowSchema node.Hash = "8BD4NE2XPXHYB"

	// OwnStartSchema is StartSchema with trigger, base, title, by and digests,
	// OwnStepSchema is StepSchema with body, usage, work, previousAttempts, run, by,
	// answer, patch, prepare, checks, notes, counts and digests, all optional. uncountedStepSchema
	// is that without counts and the usage's model: it is read, and no longer written.
	OwnStartSchema      node.Hash = "28GHNM9HYB36F"
	OwnStepSchema       node.Hash = "2MRMBBEZV8DCD"
	uncountedStepSchema node.Hash = "0MCP85914EWV0"

	// AnswerSchema holds what people said to a thread between two steps.
	AnswerSchema node.Hash = "7CB91S4B0KBQ8"

	// PatchSchema holds what a step changed on the work branch.
	PatchSchema node.Hash = "8YGYDSW5A0BXT"
)

//go:embed schemas/*.json
var schemaFiles embed.FS

// Schemas are the schema nodes of all records here, by hash, with timestamp 0.
// Their payloads are shared; don't change them.
func Schemas() map[node.Hash]node.Node { return maps.Clone(schemas()) }

// schemas reads the embedded files once. They are part of the binary, and the
// tests read every one, so a file that can't be read only leaves its schema out.
var schemas = sync.OnceValue(func() map[node.Hash]node.Node {
	out := map[node.Hash]node.Node{}
	files, err := fs.Glob(schemaFiles, "schemas/*.json")
	if err != nil {
		return out
	}
	for _, f := range files {
		b, err := schemaFiles.ReadFile(path.Clean(f))
		if err != nil {
			continue
		}
		p, err := node.ParseJSON(b)
		if err != nil {
			continue
		}
		if h, err := node.HashOf(node.MetaSchema, p); err == nil {
			out[h] = node.Node{Type: node.MetaSchema, Payload: p}
		}
	}
	return out
})

// IsWorkflow reports whether a node of this type is a workflow.
func IsWorkflow(typ node.Hash) bool {
	return typ == WorkflowSchema || typ == ResumeWorkflowSchema || typ == LiquidWorkflowSchema || typ == OwnWorkflowSchema
}

// IsStart reports whether a node of this type is a StartNode.
func IsStart(typ node.Hash) bool { return typ == StartSchema || typ == OwnStartSchema }

// IsStep reports whether a node of this type is a StepNode.
func IsStep(typ node.Hash) bool { return typ == StepSchema || IsOwnStep(typ) || isLaterStep(typ) }

// IsOwnStep reports whether it is that of a StepNode with fields of our own.
func IsOwnStep(typ node.Hash) bool { return typ == OwnStepSchema || typ == uncountedStepSchema }

// isLaterStep reports whether it is that of a StepNode of the peers' later generations.
func isLaterStep(typ node.Hash) bool { return typ == UsageStepSchema || typ == AttemptsStepSchema }
