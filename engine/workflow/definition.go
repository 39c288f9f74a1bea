package workflow

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/workflow/shape"
	"github.com/united-workforce/uwf/engine/workflow/variables"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lists"
)

// The names in a graph that are no roles.
const (
	Start   = "$START"   // where a thread begins
	End     = "$END"     // the target that ends a thread
	Suspend = "$SUSPEND" // the target that hands a thread to a person
)

// Unit is the status of an output that has none, as it is written in a graph. A schema
// may ask for it by that name, too.
const Unit = "_"

// The output fields that may hold a status. The second is the architecture
// page's.
const (
	StatusField       = "$status"
	LegacyStatusField = "status"
)

// BodyVariable is the template variable with the markdown under an output's
// frontmatter.
const BodyVariable = variables.Body

// Condition is a named JSONata expression that edges refer to.
type Condition struct {
	Description string
	Expression  string
}

// Limits is how far a thread of the workflow may go. Zero means no limit.
type Limits struct {
	MaxSteps, MaxStepsPerRole int
	Tokens                    int64 // input and output together
	CostUSD                   float64
	Wall                      time.Duration // agents' running time
}

// Definition is a workflow, compiled from whatever dialect it was written in.
type Definition struct {
	Dialect     Dialect
	Name        string
	Description string
	Roles       map[string]Role
	// Conditions are the named conditions. Nil where there are none.
	Conditions map[string]Condition
	// Graph holds the edges that leave $START and each role. Status edges come
	// sorted by status, an Always edge last: their order doesn't say which matches.
	// Edges of a list, with conditions, keep their order: the first that matches is
	// taken.
	Graph map[string][]Edge
	// Lists are the names whose edges are a list: the first that matches is taken,
	// whatever the output's status. Nil where there are none.
	Lists map[string]bool
	// Resume is the edge that a thread takes which has ended and goes on. Nil: it
	// can't.
	Resume *Edge
	// Limits are the workflow's own. Nil: none.
	Limits *Limits
	// StatusKey is the output field with the status, for roles whose schema
	// doesn't say. See StatusKeyOf.
	StatusKey string
	// AgentSuspends says that any role may answer with the status $SUSPEND and a
	// reason: in Liquid workflows, and where $START has a `new` edge. Elsewhere the
	// graph says when to suspend.
	AgentSuspends bool
}

// Role is what one kind of agent is told to be.
type Role struct {
	Name         string
	Description  string
	Goal         string
	Capabilities []string
	Procedure    string
	Output       string
	// SystemPrompt stands in the place of the four above, in the dialect of
	// 2026-05-18.
	SystemPrompt string
	// Checks are the names of what is run on the role's work after its answer, in this
	// order; which commands they are is configuration. Nil: none.
	Checks []string
	// Frontmatter is the hash of Schema, as it is stored.
	Frontmatter node.Hash
	// Schema is the JSON schema of the role's output, normalised.
	Schema any
}

// Edge leads from a role to the next one.
type Edge struct {
	When   When
	To     string // a role, $END or $SUSPEND
	Prompt string // a template
	// Location is a template for the folder to work in; empty: where the thread
	// was started.
	Location string
	// Approval guards the edge. Nil: it needs none.
	Approval *Approval
}

// Approval lets an edge be taken only where the role that it leaves was just
// answered, after a question of its own, by a person with the right to.
type Approval struct {
	// Not is who that person must not be: ApprovalStarter, ApprovalAuthor or both, in
	// this order. Empty: whoever has the right may approve.
	Not []string
}

// Who can be kept from giving an approval.
const (
	ApprovalStarter = "starter" // who started the thread
	ApprovalAuthor  = "author"  // who wrote the issue or pull request that the thread is about
)

// When says which outputs take an edge.
type When struct {
	Kind  Kind
	Value string // the status, or the condition's name; empty for Always
}

// Kind is how an edge chooses.
type Kind uint8

// The kinds of edges.
const (
	Always      Kind = iota // any output without a status; in a list, any output
	OnStatus                // outputs with the status in Value
	OnCondition             // any output, where the condition named in Value holds
)

// String is the edge's key in a graph: the status, or "_".
func (w When) String() string {
	if w.Kind == Always {
		return Unit
	}
	return w.Value
}

// RoleNames lists the roles in alphabetical order.
func (d *Definition) RoleNames() []string { return sortedKeys(d.Roles) }

// StatusKeyOf is the field of role's output that holds its status: the one that
// its schema declares, else the definition's.
func (d *Definition) StatusKeyOf(role string) string {
	return cmp.Or(declaredKey(d.Roles[role].Schema), d.StatusKey)
}

// StatusOptional reports whether an output of role without a status has a way on, by
// an Always edge, though others have one.
func (d *Definition) StatusOptional(role string) bool {
	return slices.ContainsFunc(d.Graph[role], func(e Edge) bool { return e.When.Kind == Always })
}

// Declares reports whether role's schema has a status field at all. Where it has
// none, an output takes the role's Always edge whatever else it holds.
func (d *Definition) Declares(role string) bool {
	return declaredKey(d.Roles[role].Schema) != ""
}

// Statuses lists the statuses that role's edges wait for, in the order of the
// role's schema, then alphabetically. A role with nothing but an Always edge has
// none.
func (d *Definition) Statuses(role string) []string {
	var waits, out []string
	for _, e := range d.Graph[role] {
		if e.When.Kind == OnStatus {
			waits = append(waits, e.When.Value)
		}
	}
	for _, name := range slices.Concat(shape.StatusesOf(d.Roles[role].Schema, d.StatusKeyOf(role)).Names(), waits) {
		if slices.Contains(waits, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// statusFields are the fields that may hold a status, in the order in which they count.
func statusFields() []string { return []string{StatusField, LegacyStatusField} }

// declaredKey is the status field that a schema declares; empty: it has none.
func declaredKey(schema any) string {
	for _, key := range statusFields() {
		if shape.StatusesOf(schema, key).Declared {
			return key
		}
	}
	return ""
}

// StatusIn is the status of an output whose schema declares that field for it (empty: none,
// so that it is in the first field there is); empty where it has none, or says so by Unit.
func StatusIn(output map[string]any, declared string) string {
	for _, key := range statusFields() {
		if s, _ := output[key].(string); s != "" && s != Unit && (key == declared || declared == "") {
			return s
		}
	}
	return ""
}

// AsksForPerson reports an output that suspends its thread by itself, whatever field the
// role's own schema has for statuses.
func AsksForPerson(output map[string]any) bool {
	return output[StatusField] == Suspend || output[LegacyStatusField] == Suspend
}

// Guarded are the edges of a role that only a person's approval opens.
func (d *Definition) Guarded(role string) []Edge {
	return lists.Filter(d.Graph[role], func(e Edge) bool { return e.Approval != nil })
}

// NeedsApproval reports whether any edge is one that only a person's approval opens.
func (d *Definition) NeedsApproval() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(d.Graph)), func(role string) bool { return len(d.Guarded(role)) > 0 })
}

// hasChecks reports whether any role names checks.
func (d *Definition) hasChecks() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(d.Roles)), func(r Role) bool { return len(r.Checks) > 0 })
}

// sortEdges brings edges into the one order that both YAML and payloads give.
func sortEdges(edges []Edge) {
	last := func(e Edge) int {
		if e.When.Kind == Always {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(edges, func(a, b Edge) int {
		return cmp.Or(last(a)-last(b), strings.Compare(a.When.Value, b.When.Value))
	})
}
