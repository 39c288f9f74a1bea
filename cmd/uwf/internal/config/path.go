package config

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
)

// PathOptions are what `uwf config path` works with.
type PathOptions struct{ Factory *app.Factory }

type sourceFile struct {
	Kind   string `json:"kind"` // policy, repo, user or env
	File   string `json:"file"`
	Exists bool   `json:"exists"`
}

// NewCmdPath makes `uwf config path`. A runF that is not nil replaces the run.
func NewCmdPath(f *app.Factory, runF func(context.Context, *PathOptions) error) *cobra.Command {
	o := &PathOptions{f}
	return &cobra.Command{
		Use:   "path",
		Short: "Name the files that settings are read from",
		Long: `Name the files that settings are read from, in the order in which they are asked, and
whether each is there: the organisation's policy, which goes before all, the repository's, the
user's, and the user's variables.`,
		Example: "  uwf config path\n  uwf config path --format json",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, pathRun, func([]string) {}),
	}
}

func sourceFiles(f *app.Factory) []sourceFile {
	s := f.ConfigSources()
	out := []sourceFile{}
	for _, x := range []sourceFile{{Kind: "policy", File: s.PolicyFile}, {Kind: "repo", File: s.RepoFile}, {Kind: "user", File: s.HomeFile}, {Kind: "env", File: s.EnvFile}} {
		if x.File != "" {
			x.Exists = fileExists(x.File)
			out = append(out, x)
		}
	}
	return out
}

func pathRun(_ context.Context, o *PathOptions) error {
	files := sourceFiles(o.Factory)
	return o.Factory.Printer().Print(files, func(w *output.Writer) {
		for _, x := range files {
			note := ""
			if !x.Exists {
				note = "  (not there)"
			}
			w.Printf("%-6s  %s", x.Kind, x.File)
			w.Faint(note + "\n")
		}
	})
}
