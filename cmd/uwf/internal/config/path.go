package config

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
)

// PathOptions are what `uwf config path` works with.
type PathOptions struct {
	Printer output.Printer
	Files   []sourceFile
}

// sourceFile is one file that settings are read from.
type sourceFile struct {
	Kind   string `json:"kind"` // repo, user or env
	File   string `json:"file"`
	Exists bool   `json:"exists"`
}

// NewCmdPath makes `uwf config path`. A runF that is not nil replaces the run.
func NewCmdPath(f *app.Factory, runF func(context.Context, *PathOptions) error) *cobra.Command {
	return &cobra.Command{
		Use:   "path",
		Short: "Name the files that settings are read from",
		Long: `Name the files that settings are read from, in the order in which they are asked, and
whether each is there: the repository's, the user's, and the user's variables.`,
		Example: "  uwf config path\n  uwf config path --format json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := &PathOptions{Printer: f.Printer(), Files: sourceFiles(f)}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return pathRun(cmd.Context(), o)
		},
	}
}

func sourceFiles(f *app.Factory) []sourceFile {
	s := f.ConfigSources()
	out := []sourceFile{}
	for _, x := range []sourceFile{{Kind: "repo", File: s.RepoFile}, {Kind: "user", File: s.HomeFile}, {Kind: "env", File: s.EnvFile}} {
		if x.File != "" {
			x.Exists = fileExists(x.File)
			out = append(out, x)
		}
	}
	return out
}

func pathRun(_ context.Context, o *PathOptions) error {
	return o.Printer.Print(o.Files, func(w *output.Writer) {
		for _, x := range o.Files {
			note := ""
			if !x.Exists {
				note = "  (not there)"
			}
			w.Printf("%-4s  %s", x.Kind, x.File)
			w.Faint(note + "\n")
		}
	})
}
