package config

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	engine "github.com/united-workforce/uwf/engine/config"
)

// GetOptions are what `uwf config get` works with.
type GetOptions struct {
	Factory *app.Factory
	Path    string
}

// NewCmdGet makes `uwf config get`. A runF that is not nil replaces the run.
func NewCmdGet(f *app.Factory, runF func(context.Context, *GetOptions) error) *cobra.Command {
	o := &GetOptions{Factory: f}
	return &cobra.Command{
		Use:   "get PATH",
		Short: "Print one setting as it is in effect",
		Long: `Print one setting as it is in effect, or all that are below a path. A setting that nobody
has set, and that has no default, prints null. Keys are never printed: of them it prints
"set" or "not set".`,
		Example: `  uwf config get limits.maxSteps
  uwf config get state
  uwf config get 'models."gpt-4.1".window'`,
		Args: cobra.ExactArgs(1),
		RunE: app.Run(o, runF, getRun, func(args []string) { o.Path = args[0] }),
	}
}

func getRun(_ context.Context, o *GetOptions) error {
	p, info, err := parsePath(o.Path)
	if err != nil {
		return err
	}
	c, err := o.Factory.Config()
	if err != nil {
		return err
	}
	var out any
	if info.Secret {
		out = keyState(false)
	}
	for _, v := range c.Values() {
		if len(v.Path) < len(p) || !slices.Equal(v.Path[:len(p)], p) {
			continue
		}
		x := cleanValue(o.Factory.CleanMessage, v.Value)
		if v.Secret {
			x = keyState(v.Set)
		}
		out = putValue(out, v.Path[len(p):], x)
	}
	return o.Factory.Printer().Print(out, func(w *output.Writer) {
		if out != nil {
			w.Println(engine.Plain(out))
		}
	})
}

func keyState(set bool) string {
	if set {
		return "set"
	}
	return "not set"
}

func putValue(tree any, p engine.Path, v any) any {
	if len(p) == 0 {
		return v
	}
	m, ok := tree.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	m[p[0]] = putValue(m[p[0]], p[1:], v)
	return m
}
