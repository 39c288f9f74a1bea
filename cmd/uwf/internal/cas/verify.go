package cas

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

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
	v := verdict{Hash: cmp.Or(f.Hash, h)}
	var schemas node.Schemas
	check := func(at gitcas.Place, h node.Hash, n node.Node) error {
		v.Checked++
		if err := errors.Join(node.Verify(h, n), schemas.CheckNode(f.getterIn(ctx, at), n)); err != nil {
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

// walkNodes visits the node and all that it reaches.
func (f found) walkNodes(ctx context.Context, visit func(gitcas.Place, node.Hash, node.Node) error) error {
	if f.view != nil {
		return f.view.Walk(ctx, f.Place, f.Hash, visit)
	}
	return node.Walk(f.getterIn(ctx, f.Place), f.Hash, func(h node.Hash, n node.Node) error { return visit(f.Place, h, n) })
}
