package workflow

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
)

// ShowOptions are what `uwf workflow show` works with.
type ShowOptions struct {
	Printer  output.Printer
	Resolver *Resolver
	Ref      string
}

// NewCmdShow makes `uwf workflow show`. A runF that is not nil replaces the run.
func NewCmdShow(f *app.Factory, runF func(context.Context, *ShowOptions) error) *cobra.Command {
	o := &ShowOptions{}
	return &cobra.Command{
		Use:     "show HASH|FILE|NAME",
		Short:   "Show a workflow: its roles and its graph",
		Long:    "Show a workflow as it was understood: its roles, what they deliver, and who is next after which result.",
		Example: "  uwf workflow show solve-issue\n  uwf workflow show ./solve-issue.yaml --format json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Ref, o.Printer, o.Resolver = args[0], f.Printer(), NewResolver(f)
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return showRun(cmd.Context(), o)
		},
	}
}

// shownWorkflow is what is printed.
type shownWorkflow struct {
	Name        string                 `json:"name"`
	Hash        node.Hash              `json:"hash"`
	From        string                 `json:"from"`
	Description string                 `json:"description"`
	Roles       []shownRole            `json:"roles"`
	Graph       map[string][]shownEdge `json:"graph"`
}

type shownRole struct {
	Name         string    `json:"name"`
	Description  string    `json:"description"`
	Goal         string    `json:"goal"`
	Capabilities []string  `json:"capabilities"`
	Procedure    string    `json:"procedure"`
	Output       string    `json:"output"`
	Frontmatter  node.Hash `json:"frontmatter"`
	Schema       any       `json:"schema"`
}

type shownEdge struct {
	When     string `json:"when"`
	To       string `json:"to"`
	Prompt   string `json:"prompt"`
	Location string `json:"location,omitempty"`
}

func showRun(ctx context.Context, o *ShowOptions) error {
	w, err := o.Resolver.Resolve(ctx, o.Ref)
	if err != nil {
		return err
	}
	s := shownOf(w)
	return o.Printer.Print(s, s.text)
}

func shownOf(w *Resolved) shownWorkflow {
	d := w.Definition
	s := shownWorkflow{Name: d.Name, Hash: w.Hash, From: w.From, Description: d.Description, Roles: []shownRole{}, Graph: map[string][]shownEdge{}}
	for _, name := range d.RoleNames() {
		r := d.Roles[name]
		s.Roles = append(s.Roles, shownRole{
			Name: name, Description: r.Description, Goal: r.Goal, Capabilities: append([]string{}, r.Capabilities...),
			Procedure: r.Procedure, Output: r.Output, Frontmatter: r.Frontmatter, Schema: r.Schema,
		})
	}
	for from, edges := range d.Graph {
		s.Graph[from] = []shownEdge{}
		for _, e := range edges {
			s.Graph[from] = append(s.Graph[from], shownEdge{When: e.When.String(), To: e.To, Prompt: e.Prompt, Location: e.Location})
		}
	}
	return s
}

func (s shownWorkflow) text(w *output.Writer) {
	w.Bold(s.Name)
	w.Faint("  " + string(s.Hash) + "  " + s.From)
	w.Printf("\n%s\n", s.Description)
	w.Printf("\n%s\n", workflow.Start)
	s.edges(w, workflow.Start)
	for _, r := range s.Roles {
		w.Printf("\n")
		w.Bold(r.Name)
		w.Printf("  %s\n", output.Line(r.Description, 200))
		s.edges(w, r.Name)
	}
}

// edges writes who is next: one line for each result.
func (s shownWorkflow) edges(w *output.Writer, from string) {
	var rows [][]string
	for _, e := range s.Graph[from] {
		rows = append(rows, []string{"", e.When, "→ " + e.To, e.Prompt})
	}
	w.Table(nil, rows)
}
