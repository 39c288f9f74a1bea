package workflow

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lists"
)

// ShowOptions are what `uwf workflow show` works with.
type ShowOptions struct {
	Factory *app.Factory
	Ref     string
}

// NewCmdShow makes `uwf workflow show`. A runF that is not nil replaces the run.
func NewCmdShow(f *app.Factory, runF func(context.Context, *ShowOptions) error) *cobra.Command {
	o := &ShowOptions{Factory: f}
	return &cobra.Command{
		Use:   "show HASH|FILE|NAME",
		Short: "Show a workflow: its roles and its graph",
		Long: `Show a workflow, of whatever dialect, as it was understood: its roles, what they
deliver, and who is next after which result or condition. An edge that only a
person's approval opens says so.`,
		Example: "  uwf workflow show solve-issue\n  uwf workflow show ./solve-issue.yaml --format json",
		Args:    cobra.ExactArgs(1),
		RunE:    app.Run(o, runF, showRun, func(args []string) { o.Ref = args[0] }),
	}
}

// shownWorkflow is what is printed.
type shownWorkflow struct {
	Name        string                 `json:"name"`
	Hash        node.Hash              `json:"hash"`
	Type        node.Hash              `json:"type"`
	Payload     any                    `json:"payload"`   // as it is stored
	Timestamp   int64                  `json:"timestamp"` // milliseconds
	From        string                 `json:"from"`
	Dialect     workflow.Dialect       `json:"dialect"`
	Description string                 `json:"description"`
	Roles       []shownRole            `json:"roles"`
	Graph       map[string][]shownEdge `json:"graph"`
	// Resume is where a thread goes on that has ended; nil: it can't.
	Resume     *shownEdge       `json:"resume,omitempty"`
	Conditions []shownCondition `json:"conditions,omitempty"`
	Limits     *shownLimits     `json:"limits,omitempty"`

	limits string // in words
}

type shownCondition struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Expression  string `json:"expression"`
}

// shownLimits has the names of a definition's limits.
type shownLimits struct {
	MaxSteps        int     `json:"maxSteps,omitempty"`
	MaxStepsPerRole int     `json:"maxStepsPerRole,omitempty"`
	Tokens          int64   `json:"tokens,omitempty"`
	CostUSD         float64 `json:"costUsd,omitempty"`
	Wall            string  `json:"wall,omitempty"`
}

// shownRole is a workflow.Role.
type shownRole struct {
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	Goal         string   `json:"goal"`
	Capabilities []string `json:"capabilities"`
	Procedure    string   `json:"procedure"`
	Output       string   `json:"output"`
	// SystemPrompt stands in the place of the four before, in the oldest dialect.
	SystemPrompt string `json:"systemPrompt,omitempty"`
	// Checks are the names of what is run on the role's work.
	Checks      []string  `json:"checks,omitempty"`
	Frontmatter node.Hash `json:"frontmatter"`
	Schema      any       `json:"schema"`
}

type shownEdge struct {
	// When is the status, the condition's name, or _.
	When string `json:"when"`
	// Kind says which of these it is: status, condition or always.
	Kind     string `json:"kind"`
	To       string `json:"to"`
	Prompt   string `json:"prompt"`
	Location string `json:"location,omitempty"`
	// Approval is what a person must have said before; nil: nothing.
	Approval *shownApproval `json:"approval,omitempty"`
}

type shownApproval struct {
	// Not is who the person must not be.
	Not []string `json:"not,omitempty"`
}

func showRun(ctx context.Context, o *ShowOptions) error {
	w, err := definition.New(o.Factory).Resolve(ctx, o.Ref)
	if err != nil {
		return err
	}
	s := shownOf(w)
	return o.Factory.Printer().Print(s, s.writeText)
}

func shownOf(w *definition.Resolved) shownWorkflow {
	d := w.Definition
	s := shownWorkflow{
		Name: d.Name, Hash: w.Hash, Type: w.Node.Type, Payload: w.Node.Payload, Timestamp: w.Node.Timestamp, From: w.From, Dialect: d.Dialect, Description: d.Description,
		Roles: []shownRole{}, Graph: map[string][]shownEdge{},
	}
	for _, name := range d.RoleNames() {
		r := d.Roles[name]
		r.Capabilities = append([]string{}, r.Capabilities...)
		s.Roles = append(s.Roles, shownRole(r))
	}
	for from, edges := range d.Graph {
		s.Graph[from] = []shownEdge{}
		for _, e := range edges {
			s.Graph[from] = append(s.Graph[from], shownEdgeOf(e))
		}
	}
	if d.Resume != nil {
		e := shownEdgeOf(*d.Resume)
		e.When = "resume"
		s.Resume = &e
	}
	for _, name := range slices.Sorted(maps.Keys(d.Conditions)) {
		c := d.Conditions[name]
		s.Conditions = append(s.Conditions, shownCondition{name, c.Description, c.Expression})
	}
	if l := d.Limits; l != nil {
		s.limits = limitsText(l)
		s.Limits = &shownLimits{MaxSteps: l.MaxSteps, MaxStepsPerRole: l.MaxStepsPerRole, Tokens: l.Tokens, CostUSD: l.CostUSD}
		if l.Wall > 0 {
			s.Limits.Wall = l.Wall.String()
		}
	}
	return s
}

func shownEdgeOf(e workflow.Edge) shownEdge {
	kinds := map[workflow.Kind]string{workflow.Always: "always", workflow.OnStatus: "status", workflow.OnCondition: "condition"}
	return shownEdge{When: e.When.String(), Kind: kinds[e.When.Kind], To: e.To, Prompt: e.Prompt, Location: e.Location, Approval: (*shownApproval)(e.Approval)}
}

// describeNeeds is the edge's status or condition, and what it needs besides.
func (e shownEdge) describeNeeds() string {
	switch {
	case e.Approval == nil:
		return e.When
	case len(e.Approval.Not) == 0:
		return e.When + " (approval)"
	}
	return e.When + " (approval, not by the " + strings.Join(e.Approval.Not, " or the ") + ")"
}

func (s shownWorkflow) writeText(w *output.Writer) {
	w.Bold(s.Name)
	w.Faint("  " + string(s.Hash) + "  " + s.From)
	w.Printf("\n%s\n", s.Description)
	w.Printf("\n%s\n", workflow.Start)
	s.writeEdges(w, workflow.Start)
	for _, r := range s.Roles {
		w.Printf("\n")
		w.Bold(r.Name)
		w.Printf("  %s\n", output.Line(r.Description, 200))
		if len(r.Checks) > 0 {
			w.Printf("  checks  %s\n", strings.Join(r.Checks, ", "))
		}
		s.writeEdges(w, r.Name)
	}
	if len(s.Conditions) > 0 {
		w.Printf("\nconditions\n")
		output.WriteTable(w, nil, s.Conditions, func(c shownCondition) []string { return []string{"", c.Name, c.Expression, c.Description} })
	}
	if s.Limits != nil {
		w.Printf("\nlimits  %s\n", s.limits)
	}
}

// writeEdges writes who is next: one line for each result.
func (s shownWorkflow) writeEdges(w *output.Writer, from string) {
	rows := lists.Map(s.Graph[from], func(e shownEdge) []string { return []string{"", e.describeNeeds(), "→ " + e.To, e.Prompt} })
	if e := s.Resume; e != nil && from == workflow.Start {
		rows = append(rows, []string{"", e.When, "→ " + e.To, e.Prompt})
	}
	w.Table(nil, rows)
}
