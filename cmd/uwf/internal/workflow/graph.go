package workflow

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/engine/graph"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"golang.org/x/term"
)

// GraphOptions are what `uwf workflow graph` works with.
type GraphOptions struct {
	Factory *app.Factory
	Ref     string
	Thread  string
	Output  string // one of the outputs; empty: as suits stdout
	ASCII   bool
	Width   int // columns; 0: as many as there are
}

// The kinds of drawings.
const (
	drawText    = "text"
	drawMermaid = "mermaid"
)

// NewCmdGraph makes `uwf workflow graph`. A runF that is not nil replaces the run.
func NewCmdGraph(f *app.Factory, runF func(context.Context, *GraphOptions) error) *cobra.Command {
	o := &GraphOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "graph [WORKFLOW]",
		Short: "Draw a workflow, and the way that a thread took through it",
		Long: `Draw a workflow: on a terminal as boxes and arrows, elsewhere as Mermaid, which
GitHub and others show as a picture. --output chooses one of the two; --format json
gives nodes and edges.

With --thread, the way that the thread took is marked with how often each edge was
taken, and where it stands now has a double frame. The workflow is the one that the
thread was started with, whatever the name means today; it need not be named.`,
		Example: `  uwf workflow graph solve-issue
  uwf workflow graph ./solve-issue.yaml --output text
  uwf workflow graph solve-issue --output mermaid > graph.mmd
  uwf workflow graph solve-issue --format json
  uwf workflow graph --thread @latest`,
		Args: cobra.MaximumNArgs(1),
		RunE: app.Run(o, runF, graphRun, func(args []string) { o.Ref = strings.Join(args, "") }),
	}
	cmd.Flags().StringVarP(&o.Output, "output", "o", "", "draw as `KIND`: text or mermaid (default: text on a terminal, else mermaid)")
	cmd.Flags().StringVar(&o.Thread, "thread", "", "mark the way of this `THREAD`")
	cmd.Flags().BoolVar(&o.ASCII, "ascii", false, "draw lines with - | + (default where the locale is not UTF-8)")
	cmd.Flags().IntVar(&o.Width, "width", 0, "draw in so many `COLUMNS` (default: the terminal's, else 80)")
	app.RefuseNegative(cmd, "width")
	app.AllowValues(cmd, "output", drawText, drawMermaid)
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
	locale := strings.ToLower(cmp.Or(f.Getenv("LC_ALL"), f.Getenv("LC_CTYPE"), f.Getenv("LANG"), "utf-8"))
	return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
}

// drawn is the JSON of `uwf workflow graph`.
type drawn struct {
	Name   string          `json:"name"`
	Hash   node.Hash       `json:"hash"`
	Thread gitcas.ThreadID `json:"thread,omitempty"`
	Status string          `json:"status,omitempty"`
	Nodes  []graph.Node    `json:"nodes"`
	Edges  []drawnEdge     `json:"edges"`
}

type drawnEdge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Label string `json:"label,omitempty"`
	Taken int    `json:"taken,omitempty"` // how often the thread went this way
}

func graphRun(ctx context.Context, o *GraphOptions) error {
	p := o.Factory.Printer()
	asData := p.Query != nil || p.Format == output.JSON || p.Format == output.YAML
	if o.Output != "" && asData {
		return app.Usagef("--output is for drawings: leave it out, or --format and --jq")
	}
	g, d, err := o.newGraph(ctx)
	if err != nil {
		return err
	}
	if asData {
		d.Nodes, d.Edges = g.Nodes, []drawnEdge{}
		for _, e := range g.Edges {
			d.Edges = append(d.Edges, drawnEdge{g.Nodes[e.From].Name, g.Nodes[e.To].Name, e.Label, e.Taken})
		}
		return p.Print(d, nil)
	}
	w := p.Text()
	if o.Output == drawMermaid || o.Output == "" && p.Chosen() != output.Text {
		w.Printf("%s", g.Mermaid(0))
		return w.Flush()
	}

	w.Printf("%s", g.Text(graph.TextOptions{Width: cmp.Or(o.Width, terminalWidth(o.Factory)), ASCII: o.ASCII || !speaksUTF8(o.Factory)}))
	if d.Thread != "" {
		w.Printf("\n%s\n", d.describePlace(g))
	}
	return w.Flush()
}

// newGraph makes the drawing's subject: a workflow, with a thread's marks or without.
func (o *GraphOptions) newGraph(ctx context.Context) (*graph.Graph, drawn, error) {
	var named *definition.Resolved
	var err error
	switch {
	case o.Ref != "":
		if named, err = definition.New(o.Factory).Resolve(ctx, o.Ref); err != nil {
			return nil, drawn{}, err
		}
	case o.Thread == "":
		return nil, drawn{}, app.Usagef("name a workflow (see: uwf workflow list), or a thread with --thread")
	}
	if o.Thread == "" {
		return graph.Of(named.Definition), drawn{Name: named.Definition.Name, Hash: named.Hash}, nil
	}
	t, err := lookup.Find(ctx, o.Factory.Store, o.Thread)
	if err != nil {
		return nil, drawn{}, err
	}
	r, err := reading.Read(ctx, t.View, t.ID)
	if err != nil {
		return nil, drawn{}, err
	}
	past, err := r.ModeratorThread()
	if err != nil {
		return nil, drawn{}, err
	}
	g := graph.Of(r.Def)
	g.Mark(r.Def, past)
	d := drawn{Name: r.Def.Name, Hash: r.Chain.Start.Workflow, Thread: t.ID, Status: t.Status()}
	if named != nil && named.Hash != d.Hash {
		o.Factory.Notes().Printf("note: %s is %s today; the thread was started with %s %s, which is drawn\n", o.Ref, named.Hash, d.Name, d.Hash)
	}
	return g, d, nil
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
