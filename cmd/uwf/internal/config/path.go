package config

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	engine "github.com/united-workforce/uwf/engine/config"
)

// PathOptions are what `uwf config path` works with.
type PathOptions struct{ Factory *app.Factory }

// sourceFile is one file that settings are read from.
type sourceFile struct {
	Kind   string `json:"kind"` // repo, user or env
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
whether each is there: the repository's, the user's, and the user's variables.`,
		Example: "  uwf config path\n  uwf config path --format json",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, pathRun, func([]string) {}),
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
	files := sourceFiles(o.Factory)
	return o.Factory.Printer().Print(files, func(w *output.Writer) {
		for _, x := range files {
			note := ""
			if !x.Exists {
				note = "  (not there)"
			}
			w.Printf("%-4s  %s", x.Kind, x.File)
			w.Faint(note + "\n")
		}
	})
}

// SchemaOptions are what `uwf config schema` works with.
type SchemaOptions struct{ Factory *app.Factory }

// NewCmdSchema makes `uwf config schema`. A runF that is not nil replaces the run.
func NewCmdSchema(f *app.Factory, runF func(context.Context, *SchemaOptions) error) *cobra.Command {
	o := &SchemaOptions{f}
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of config.yaml, for editors",
		Long: `Print the JSON Schema of config.yaml. Editors that know YAML take it from a first line:

  # yaml-language-server: $schema=` + engine.SchemaID + `

or from a file that this command has written.`,
		Example: "  uwf config schema > .uwf/config.schema.json",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, schemaRun, func([]string) {}),
	}
}

func schemaRun(_ context.Context, o *SchemaOptions) error {
	schema := engine.Schema()
	return o.Factory.Printer().Print(schema, func(w *output.Writer) {
		b, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			w.Fail(err)
			return
		}
		w.Println(string(b))
	})
}
