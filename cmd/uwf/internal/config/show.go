package config

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	engine "github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/internal/lists"
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
whether they are set, and where. What the organisation's policy allows stands below them.`,
		Example: "  uwf config show\n  uwf config show --format json",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, showRun, func([]string) {}),
	}
}

// shown is the result of `uwf config show`.
type shown struct {
	Settings []shownSetting `json:"settings"`
	Policies []string       `json:"policies"` // what each allows
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
	out := shown{
		Settings: lists.Map(c.Values(), o.showSetting),
		Policies: append([]string{}, c.Policies.ListBounds()...),
		Warnings: allWarnings(o.Factory, c),
	}
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
	at.File = app.ShortenPath(o.Factory, at.File)
	if at.Source != engine.Environment {
		at.Source = app.ShortenPath(o.Factory, at.Source)
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
		return lists.Map(v, clean)
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
	for _, policy := range s.Policies {
		w.Println(policy)
	}
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
