package cas

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// NewCmdHas makes `uwf cas has`. A runF that is not nil replaces the run.
func NewCmdHas(f *app.Factory, runF func(context.Context, *LookOptions) error) *cobra.Command {
	return newLookCmd(f, "has", "Tell whether a node is there", "Tell whether a node is there: exit code 0 if it is, 1 if it is not.",
		[]string{"9W3MGR3184QYE", "9W3MGR3184QYE && echo there"}, hasRun, runF)
}

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
