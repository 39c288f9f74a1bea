package config

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	engine "github.com/united-workforce/uwf/engine/config"
)

// ShowOptions are what `uwf config show` works with.
type ShowOptions struct{ Factory *app.Factory }

// NewCmdShow makes `uwf config show`. A runF that is not nil replaces the run.
func NewCmdShow(f *app.Factory, runF func(context.Context, *ShowOptions) error) *cobra.Command {
	o := &ShowOptions{f}
	return &cobra.Command{
		Use:     "show",
		Aliases: []string{"list"},
		Short:   "Show every setting and where it comes from",
		Long: `Show every setting that is in effect and where it comes from: file and line, variable, or
uwf's default; and what other sources say that it overrides. Of keys it is only said
whether they are set, and where.`,
		Example: "  uwf config show\n  uwf config show --format json",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, showRun, func([]string) {}),
	}
}

// shown is the result of `uwf config show`.
type shown struct {
	Settings []shownSetting `json:"settings"`
	Warnings []string       `json:"warnings"`
}

type shownSetting struct {
	Path   string       `json:"path"`
	Value  any          `json:"value,omitempty"` // missing for secrets
	Secret bool         `json:"secret,omitempty"`
	Set    bool         `json:"set"`
	Source source       `json:"source"`
	Note   string       `json:"note,omitempty"`
	Others []shownOther `json:"others,omitempty"`
}

type shownOther struct {
	Value  any    `json:"value,omitempty"`
	Source source `json:"source"`
}

// source is where a value comes from.
type source struct {
	Kind     string `json:"kind"` // file, environment or default
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Variable string `json:"variable,omitempty"`

	text string
}

func showRun(_ context.Context, o *ShowOptions) error {
	c, err := o.Factory.Config()
	if err != nil {
		return err
	}
	out := shown{Settings: []shownSetting{}, Warnings: []string{}}
	for _, v := range c.Values() {
		out.Settings = append(out.Settings, o.showSetting(v))
	}
	out.Warnings = append(out.Warnings, allWarnings(o.Factory, c)...)
	return o.Factory.Printer().Print(out, out.writeText)
}

func (o *ShowOptions) showSetting(v engine.Value) shownSetting {
	s := shownSetting{Path: v.Path.String(), Value: cleanValue(o.Factory.CleanMessage, v.Value), Secret: v.Secret, Set: v.Set, Source: o.showSource(v.Origin), Note: v.Note}
	for _, other := range v.Others {
		s.Others = append(s.Others, shownOther{Value: cleanValue(o.Factory.CleanMessage, other.Value), Source: o.showSource(other.Origin)})
	}
	return s
}

func (o *ShowOptions) showSource(at engine.Origin) source {
	s := source{Kind: "default", File: at.File, Line: at.Line, Column: at.Col, Variable: at.Variable}
	switch {
	case at.Variable != "":
		s.Kind = "environment"
		if at.Source != engine.Environment {
			s.File = at.Source
		}
	case at.File != "":
		s.Kind = "file"
	}
	at.File = shortenPath(o.Factory, at.File)
	if at.Source != engine.Environment {
		at.Source = shortenPath(o.Factory, at.Source)
	}
	s.text = at.String()
	return s
}

// cleanValue takes secrets out of texts that are not meant to hold any.
func cleanValue(clean func(string) string, v any) any {
	switch v := v.(type) {
	case string:
		return clean(v)
	case []string:
		out := make([]string, len(v))
		for i, s := range v {
			out[i] = clean(s)
		}
		return out
	}
	return v
}

func (s shown) writeText(w *output.Writer) {
	var rows [][]string
	for _, x := range s.Settings {
		rows = append(rows, []string{x.Path, x.plainValue(), x.Source.text})
		for _, other := range x.Others {
			said := engine.Plain(other.Value)
			if x.Secret {
				said = "a key"
			}
			rows = append(rows, []string{"↳ " + x.Note, said, other.Source.text})
		}
	}
	w.Table([]string{"SETTING", "VALUE", "FROM"}, rows)
	writeWarnings(w, s.Warnings)
}

// plainValue is a value for people: never one of a secret.
func (s shownSetting) plainValue() string {
	switch {
	case s.Secret && s.Set:
		return "set"
	case s.Secret:
		return "not set"
	}
	return engine.Plain(s.Value)
}

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

// putValue sets a value below a tree of mappings and returns the tree.
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
