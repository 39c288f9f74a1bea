package workflow

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/engine/graph"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"golang.org/x/term"
)

// GraphOptions are what `uwf workflow graph` works with.
type GraphOptions struct {
	Printer  output.Printer
	Notes    *output.Writer
	Out      io.Writer
	Store    func(context.Context) (*gitcas.Store, error)
	Resolver *definition.Resolver
	Ref      string
	Thread   string
	Output   string // one of the outputs; empty: as suits stdout
	ASCII    bool
	Width    int // columns; 0: as many as there are
}

// The kinds of drawings.
const (
	drawText    = "text"
	drawMermaid = "mermaid"
	drawDOT     = "dot"
)

// NewCmdGraph makes `uwf workflow graph`. A runF that is not nil replaces the run.
func NewCmdGraph(f *app.Factory, runF func(context.Context, *GraphOptions) error) *cobra.Command {
	o := &GraphOptions{Store: f.Store}
	cmd := &cobra.Command{
		Use:   "graph [WORKFLOW]",
		Short: "Draw a workflow, and the way that a thread took through it",
		Long: `Draw a workflow: on a terminal as boxes and arrows, elsewhere as Mermaid, which
GitHub and others show as a picture. --output chooses: text, mermaid, or dot for
Graphviz; --format json gives nodes and edges.

With --thread, the way that the thread took is marked with how often each edge was
taken, and where it stands now has a double frame. The workflow is the one that the
thread was started with, whatever the name means today; it need not be named.`,
		Example: `  uwf workflow graph solve-issue
  uwf workflow graph ./solve-issue.yaml --output text
  uwf workflow graph solve-issue --output mermaid > graph.mmd
  uwf workflow graph solve-issue --format json
  uwf workflow graph --thread @latest`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Ref = args[0]
			}
			o.Printer, o.Notes, o.Resolver, o.Out = f.Printer(), f.Notes(), definition.New(f), f.IO.Out
			o.ASCII = o.ASCII || !speaksUTF8(f)
			if o.Width == 0 {
				o.Width = terminalWidth(f)
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return graphRun(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVarP(&o.Output, "output", "o", "", "draw as `KIND`: text, mermaid or dot (default: text on a terminal, else mermaid)")
	cmd.Flags().StringVar(&o.Thread, "thread", "", "mark the way of this `THREAD`")
	cmd.Flags().BoolVar(&o.ASCII, "ascii", false, "draw lines with - | + (default where the locale is not UTF-8)")
	cmd.Flags().IntVar(&o.Width, "width", 0, "draw in so many `COLUMNS` (default: the terminal's, else 80)")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{drawText, drawMermaid, drawDOT}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("thread", lookup.CompleteThread(f))
	return cmd
}

// terminalWidth is how wide the terminal is; 80 where there is none.
func terminalWidth(f *app.Factory) int {
	if file, ok := f.IO.Out.(*os.File); ok && f.IO.OutTTY {
		if w, _, err := term.GetSize(int(file.Fd())); err == nil && w > 0 {
			return w
		}
	}
	if n, err := strconv.Atoi(f.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return 80
}

// speaksUTF8 reports that nothing says otherwise.
func speaksUTF8(f *app.Factory) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(f.Getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}

// drawn is the JSON of `uwf workflow graph`.
type drawn struct {
	Name   string          `json:"name"`
	Hash   node.Hash       `json:"hash"`
	Thread gitcas.ThreadID `json:"thread,omitempty"`
	Status string          `json:"status,omitempty"`
	Nodes  []drawnNode     `json:"nodes"`
	Edges  []drawnEdge     `json:"edges"`
}

type drawnNode struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // start, role, end, suspend
	// Visits is how often the thread was here, Here whether it is now.
	Visits int  `json:"visits,omitempty"`
	Here   bool `json:"here,omitempty"`
}

type drawnEdge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Label string `json:"label,omitempty"`
	Taken int    `json:"taken,omitempty"` // how often the thread went this way
}

func graphRun(ctx context.Context, o *GraphOptions) error {
	switch o.Output {
	case "", drawText, drawMermaid, drawDOT:
	default:
		return app.Usagef("unknown output %q: use text, mermaid or dot", o.Output)
	}
	if o.Width < 0 {
		return app.Usagef("--width %d: say how many columns there are", o.Width)
	}
	if o.Output != "" && (o.Printer.Query != nil || o.Printer.Format == output.JSON || o.Printer.Format == output.YAML) {
		return app.Usagef("--output is for drawings: leave it out, or --format and --jq")
	}
	g, d, err := o.newGraph(ctx)
	if err != nil {
		return err
	}
	if o.Printer.Query != nil || o.Printer.Format == output.JSON || o.Printer.Format == output.YAML {
		return o.Printer.Print(d.fillDrawn(g), nil)
	}
	kind := o.Output
	if kind == "" {
		kind = drawMermaid
		if o.Printer.Chosen() == output.Text {
			kind = drawText
		}
	}
	w := o.Printer.Text()
	switch kind {
	case drawText:
		w.Printf("%s", g.Text(graph.TextOptions{Width: o.Width, ASCII: o.ASCII}))
		if d.Thread != "" {
			w.Printf("\n%s\n", d.describePlace(g))
		}
	case drawMermaid:
		w.Printf("%s", g.Mermaid(0))
	case drawDOT:
		w.Printf("%s", g.DOT())
	}
	return w.Flush()
}

// newGraph makes the drawing's subject: a workflow, with a thread's marks or without.
func (o *GraphOptions) newGraph(ctx context.Context) (*graph.Graph, drawn, error) {
	if o.Thread == "" {
		if o.Ref == "" {
			return nil, drawn{}, app.Usagef("name a workflow (see: uwf workflow list), or a thread with --thread")
		}
		w, err := o.Resolver.Resolve(ctx, o.Ref)
		if err != nil {
			return nil, drawn{}, err
		}
		return graph.Of(w.Definition), drawn{Name: w.Definition.Name, Hash: w.Hash}, nil
	}
	ref, err := lookup.Parse(o.Thread)
	if err != nil {
		return nil, drawn{}, err
	}
	store, err := o.Store(ctx)
	if err != nil {
		return nil, drawn{}, err
	}
	t, err := ref.Find(ctx, store)
	if err != nil {
		return nil, drawn{}, err
	}
	chain, err := t.View.Chain(ctx, t.ID)
	if err != nil {
		return nil, drawn{}, err
	}
	def, past, err := reading.Past(ctx, t.View, t.ID)
	if err != nil {
		return nil, drawn{}, err
	}
	g := graph.Of(def)
	g.Mark(def, past)
	d := drawn{Name: def.Name, Hash: chain.Start.Workflow, Thread: t.ID, Status: t.Status()}
	return g, d, o.compareVersions(ctx, d)
}

// compareVersions says when the workflow that was named is another one than the thread's.
func (o *GraphOptions) compareVersions(ctx context.Context, d drawn) error {
	if o.Ref == "" {
		return nil
	}
	w, err := o.Resolver.Resolve(ctx, o.Ref)
	if err != nil {
		return err
	}
	if w.Hash != d.Hash {
		o.Notes.Printf("note: %s is %s today; the thread was started with %s %s, which is drawn\n", o.Ref, w.Hash, d.Name, d.Hash)
	}
	return nil
}

func (d drawn) fillDrawn(g *graph.Graph) drawn {
	d.Nodes, d.Edges = []drawnNode{}, []drawnEdge{}
	kinds := map[graph.Kind]string{graph.Start: "start", graph.Role: "role", graph.End: "end", graph.Suspend: "suspend"}
	for _, n := range g.Nodes {
		d.Nodes = append(d.Nodes, drawnNode{n.Name, kinds[n.Kind], n.Visits, n.Here})
	}
	for _, e := range g.Edges {
		d.Edges = append(d.Edges, drawnEdge{g.Nodes[e.From].Name, g.Nodes[e.To].Name, e.Label, e.Taken})
	}
	return d
}

// describePlace says in words what the double frame shows.
func (d drawn) describePlace(g *graph.Graph) string {
	s := fmt.Sprintf("thread %s: %s", d.Thread, d.Status)
	switch here := g.Here(); here {
	case workflow.End, "":
		return s
	case workflow.Suspend:
		return s + "; waits for a person's answer"
	default:
		return s + "; next: " + here
	}
}
