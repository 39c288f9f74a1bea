package cas

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// NewCmdGet makes `uwf cas get`. A runF that is not nil replaces the run.
func NewCmdGet(f *app.Factory, runF func(context.Context, *LookOptions) error) *cobra.Command {
	var payload, timestamp bool
	cmd := newLookCmd(f, "get", "Print a node", `Print a node: its type and payload, and with --timestamp when it was made, which its
hash doesn't tell.`, []string{"9W3MGR3184QYE", "--payload 9W3MGR3184QYE", "@latest:1 7VQ43ZSJTEWA7"},
		func(ctx context.Context, o *LookOptions) error { return getRun(ctx, o, payload, timestamp) }, runF)
	cmd.Flags().BoolVar(&timestamp, "timestamp", false, "print when the node was made, in milliseconds")
	cmd.Flags().BoolVar(&payload, "payload", false, "print the payload alone")
	return cmd
}

func getRun(ctx context.Context, o *LookOptions, payload, timestamp bool) error {
	f, err := o.readNode(ctx)
	if err != nil {
		return err
	}
	n := f.Node
	if payload {
		return o.Factory.Printer().Print(ordered{n.Payload}, func(w *output.Writer) {
			if s, ok := n.Payload.(string); ok {
				w.Println(s)
				return
			}
			printJSON(w, n.Payload)
		})
	}
	out := nodeJSON{Type: n.Type, Payload: ordered{n.Payload}}
	if timestamp {
		out.Timestamp = &n.Timestamp
	}
	p := o.Factory.Printer()
	if p.Chosen() == output.Text {
		p.Format = output.JSON // there is no better text of it
	}
	return p.Print(out, nil)
}

// ordered is a payload that is marshalled with its keys in canonical order.
type ordered struct{ payload any }

// MarshalJSON implements json.Marshaler.
func (o ordered) MarshalJSON() ([]byte, error) { return node.FormatJSON(o.payload) }

// nodeJSON is a node as it is printed: the keys of its file, in their order.
type nodeJSON struct {
	Type      node.Hash `json:"type"`
	Payload   ordered   `json:"payload"`
	Timestamp *int64    `json:"timestamp,omitempty"` // only where it was asked for
}

// printJSON writes a payload as indented JSON.
func printJSON(w *output.Writer, payload any) {
	b, err := node.FormatJSON(payload)
	if err != nil {
		w.Fail(err)
		return
	}
	w.Printf("%s", b)
}

// NewCmdHas makes `uwf cas has`. A runF that is not nil replaces the run.
func NewCmdHas(f *app.Factory, runF func(context.Context, *LookOptions) error) *cobra.Command {
	return newLookCmd(f, "has", "Tell whether a node is there", "Tell whether a node is there: exit code 0 if it is, 1 if it is not.",
		[]string{"9W3MGR3184QYE", "9W3MGR3184QYE && echo there"}, hasRun, runF)
}

// presence is the JSON of `uwf cas has`.
type presence struct {
	Exists bool `json:"exists"`
}

func hasRun(ctx context.Context, o *LookOptions) error {
	h, l, err := o.openHash(ctx)
	if err != nil {
		return err
	}
	_, err = l.Get(h)
	there := err == nil
	if errors.As(err, new(*gitcas.AmbiguousError)) {
		there, err = true, nil
	}
	if err != nil && !errors.Is(err, node.ErrNotFound) {
		return err // what can't be read is not "not there"
	}
	err = o.Factory.Printer().Print(presence{there}, func(w *output.Writer) { w.Println(there) })
	return app.ExitAfter(err, there, 1)
}

// NewCmdRefs makes `uwf cas refs`. A runF that is not nil replaces the run.
func NewCmdRefs(f *app.Factory, runF func(context.Context, *LookOptions) error) *cobra.Command {
	return newLookCmd(f, "refs", "List what a node refers to", "List the nodes that a node's payload refers to directly, without its type.",
		[]string{"9W3MGR3184QYE"}, refsRun, runF)
}

// references is the JSON of `uwf cas refs`.
type references struct {
	Refs []node.Hash `json:"refs"`
}

func refsRun(ctx context.Context, o *LookOptions) error {
	f, err := o.readNode(ctx)
	if err != nil {
		return err
	}
	var schemas node.Schemas
	refs, err := schemas.Refs(f.getterIn(ctx, f.Place), f.Node)
	if err != nil {
		return err
	}
	if refs == nil {
		refs = []node.Hash{}
	}
	return o.Factory.Printer().Print(references{refs}, func(w *output.Writer) {
		for _, r := range refs {
			w.Println(r)
		}
	})
}

// NewCmdWalk makes `uwf cas walk`. A runF that is not nil replaces the run.
func NewCmdWalk(f *app.Factory, runF func(context.Context, *LookOptions) error) *cobra.Command {
	return newLookCmd(f, "walk", "List everything that a node reaches", `List a node and everything that it reaches by references and types, each once,
parents before children. A node that is missing is an error.`, []string{"9W3MGR3184QYE"}, walkRun, runF)
}

// visited is one node of a walk.
type visited struct {
	Hash  node.Hash `json:"hash"`
	Type  node.Hash `json:"type"`
	Title string    `json:"title,omitempty"` // of its type
}

// reached is the JSON of `uwf cas walk`.
type reached struct {
	Hashes []node.Hash `json:"hashes"`
	Nodes  []visited   `json:"nodes"` // the same, with what they are
}

func walkRun(ctx context.Context, o *LookOptions) error {
	f, err := o.readNode(ctx)
	if err != nil {
		return err
	}
	var out reached
	err = f.walkNodes(ctx, func(at gitcas.Place, h node.Hash, n node.Node) error {
		out.Hashes = append(out.Hashes, h)
		out.Nodes = append(out.Nodes, visited{Hash: h, Type: n.Type, Title: schemaTitle(f.getterIn(ctx, at), n.Type)})
		return nil
	})
	if err != nil {
		return err
	}
	return o.Factory.Printer().Print(out, func(w *output.Writer) {
		for _, v := range out.Nodes {
			w.Printf("%s  %s", v.Hash, v.Type)
			w.Faint("  " + output.Line(v.Title, 60))
			w.Printf("\n")
		}
	})
}

// walkNodes visits the node and all that it reaches.
func (f found) walkNodes(ctx context.Context, visit func(gitcas.Place, node.Hash, node.Node) error) error {
	if f.view != nil {
		return f.view.Walk(ctx, f.Place, f.Hash, visit)
	}
	return node.Walk(f.getterIn(ctx, f.Place), f.Hash, func(h node.Hash, n node.Node) error { return visit(f.Place, h, n) })
}

// schemaTitle is a schema's title, for people.
func schemaTitle(g node.Getter, schema node.Hash) string {
	n, err := g.Get(schema)
	if err != nil {
		return "" // the walk itself reports it
	}
	return titleOf(schema, n)
}

// titleOf is what a schema calls itself: its title, else its type.
func titleOf(h node.Hash, n node.Node) string {
	if h == node.MetaSchema {
		return "schema"
	}
	m, _ := n.Payload.(map[string]any)
	if t, ok := m["title"].(string); ok {
		return t
	}
	t, _ := m["type"].(string)
	return t
}

// NewCmdVerify makes `uwf cas verify`. A runF that is not nil replaces the run.
func NewCmdVerify(f *app.Factory, runF func(context.Context, *LookOptions) error) *cobra.Command {
	var deep bool
	cmd := newLookCmd(f, "verify", "Check a node's hash and schema", `Check that a node's content hashes to its address and fits its schema, and that it is
the one that the record which refers to it means, by its SHA-256. With --deep, check
everything that it reaches too. Exit code 5 if something is wrong.`, []string{"9W3MGR3184QYE", "--deep 9W3MGR3184QYE"},
		func(ctx context.Context, o *LookOptions) error { return verifyRun(ctx, o, deep) }, runF)
	cmd.Flags().BoolVar(&deep, "deep", false, "check everything that the node reaches")
	return cmd
}

// verdict is the result of `uwf cas verify`.
type verdict struct {
	Hash    node.Hash `json:"hash"`
	OK      bool      `json:"ok"`
	Checked int       `json:"checked"`
	Problem string    `json:"problem,omitempty"`
}

func verifyRun(ctx context.Context, o *LookOptions, deep bool) error {
	h, l, err := o.openHash(ctx)
	if err != nil {
		return err
	}
	f, err := l.getNode(h)
	if errors.As(err, new(*app.UnknownError)) || errors.As(err, new(*app.UsageError)) {
		return err
	}
	v := verdict{Hash: h}
	var schemas node.Schemas
	check := func(at gitcas.Place, h node.Hash, n node.Node) error {
		v.Checked++
		if err := errors.Join(node.Verify(h, n), schemas.Check(f.getterIn(ctx, at), n)); err != nil {
			return err
		}
		if !deep {
			return node.ErrSkip
		}
		return nil
	}
	if err == nil {
		err = f.walkNodes(ctx, check)
	}
	if ctx.Err() != nil {
		return err
	}
	if v.OK = err == nil; !v.OK {
		v.Problem = err.Error()
	}
	err = o.Factory.Printer().Print(v, func(w *output.Writer) {
		if v.OK {
			w.Good("ok")
			w.Printf("  %s, %d checked\n", v.Hash, v.Checked)
			return
		}
		w.Bad("damaged")
		w.Printf("  %s: %s\n", v.Hash, v.Problem)
	})
	return app.ExitAfter(err, v.OK, app.CodeDamaged)
}
