package config

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	engine "github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/config/edit"
)

// SetOptions are what `uwf config set` and `uwf config unset` work with.
type SetOptions struct {
	Factory *app.Factory
	User    bool
	Repo    bool
	Args    []string // set: path, value, path, value, …; unset: paths
	Unset   bool
}

// NewCmdSet makes `uwf config set`. A runF that is not nil replaces the run.
func NewCmdSet(f *app.Factory, runF func(context.Context, *SetOptions) error) *cobra.Command {
	cmd := newChange(f, runF, false)
	cmd.Use = "set PATH VALUE [PATH VALUE]..."
	cmd.Short = "Change settings in your own file, or in the repository's"
	cmd.Long = `Change settings in your own file (~/.uwf/config.yaml), or with --repo in the repository's
(.uwf/config.yaml). Comments, order and formatting of the file stay as they are. What is
wrong afterwards is refused, and nothing is written.

Numbers, times (90s, 2h) and true or false are written as such; lists and mappings are
given as JSON. A VALUE of - is read from stdin: so are keys, which other processes could
read on a command line. A key never goes into the repository's file.`
	cmd.Example = `  uwf config set limits.maxSteps 20
  uwf config set --repo state.remote origin sandbox require
  uwf config set agents.own.command ./agent agents.own.args '["-v", "two words"]'`
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 || len(args)%2 != 0 {
			return fmt.Errorf("give a path and a value, or several of both; %d arguments are there", len(args))
		}
		return nil
	}
	return cmd
}

// NewCmdUnset makes `uwf config unset`. A runF that is not nil replaces the run.
func NewCmdUnset(f *app.Factory, runF func(context.Context, *SetOptions) error) *cobra.Command {
	cmd := newChange(f, runF, true)
	cmd.Use = "unset PATH..."
	cmd.Short = "Take settings out of your own file, or out of the repository's"
	cmd.Long = `Take settings, with all that is below them, out of your own file (~/.uwf/config.yaml), or
with --repo out of the repository's (.uwf/config.yaml). What is not there stays away.`
	cmd.Example = "  uwf config unset limits.maxSteps\n  uwf config unset --repo agentOverrides"
	cmd.Args = cobra.MinimumNArgs(1)
	return cmd
}

func newChange(f *app.Factory, runF func(context.Context, *SetOptions) error, unset bool) *cobra.Command {
	o := &SetOptions{Factory: f, Unset: unset}
	cmd := &cobra.Command{RunE: app.Run(o, runF, setRun, func(args []string) { o.Args = args })}
	cmd.Flags().BoolVar(&o.User, "user", false, "change your own file (the default)")
	cmd.Flags().BoolVar(&o.Repo, "repo", false, "change the repository's file")
	cmd.MarkFlagsMutuallyExclusive("user", "repo")
	return cmd
}

// changeResult is the result of `uwf config set` and `uwf config unset`.
type changeResult struct {
	// Key and Value are what was set, where it was one setting.
	Key      string          `json:"key,omitempty"`
	Value    any             `json:"value,omitempty"` // missing for secrets and where it was taken out
	File     string          `json:"file"`
	Scope    Scope           `json:"scope"`
	Changed  bool            `json:"changed"`
	Settings []changeSetting `json:"settings"`
}

type changeSetting struct {
	Path   string `json:"path"`
	Value  any    `json:"value,omitempty"` // missing for secrets and where it was taken out
	Secret bool   `json:"secret,omitempty"`
}

func setRun(ctx context.Context, o *SetOptions) error {
	scope := User
	if o.Repo {
		scope = Repo
	}
	file, err := OpenFile(o.Factory, scope)
	if err != nil {
		return err
	}
	changes, settings, err := o.readChanges(scope)
	if err != nil {
		return err
	}
	out := changeResult{File: file.Path, Scope: scope, Settings: settings}
	if len(settings) == 1 {
		out.Key, out.Value = settings[0].Path, settings[0].Value
	}
	if out.Changed, err = file.Apply(ctx, func(old []byte) ([]byte, error) { return edit.Apply(old, changes...) }); err != nil {
		return err
	}
	o.remarkEffects(file, changes)
	return o.Factory.Printer().Print(out, func(w *output.Writer) {
		if !out.Changed {
			w.Printf("%s says that already\n", out.File)
			return
		}
		w.Printf("changed %s\n", out.File)
	})
}

// readChanges reads the arguments.
func (o *SetOptions) readChanges(scope Scope) ([]edit.Change, []changeSetting, error) {
	var changes []edit.Change
	var settings []changeSetting
	step := 2
	if o.Unset {
		step = 1
	}
	stdin := false
	for i := 0; i < len(o.Args); i += step {
		p, info, err := parsePath(o.Args[i])
		if err != nil {
			return nil, nil, err
		}
		c, s := edit.Change{Path: p}, changeSetting{Path: p.String(), Secret: info.Secret}
		if !o.Unset {
			value := o.Args[i+1]
			if value == "-" {
				if stdin {
					return nil, nil, app.Usagef("stdin can be the value of one setting only")
				}
				stdin = true
				b, err := o.Factory.ReadInput("-", maxFile)
				if err != nil {
					return nil, nil, err
				}
				value = strings.TrimRight(string(b), "\r\n")
			}
			if err := o.refuseSecret(scope, p, info, value); err != nil {
				return nil, nil, err
			}
			if c.Value, err = engine.ParseValue(p, value); err != nil {
				return nil, nil, &app.UsageError{Err: err}
			}
			if text, err := edit.Apply(nil, c); err == nil {
				inside, holds := engine.HasSecret(text)
				if holds && o.Args[i+1] != "-" {
					return nil, nil, app.Usagef("%s is secret: others can read it on a command line, and shells remember it; give - and the value on stdin", inside)
				}
				s.Secret = s.Secret || holds
			}
			if !s.Secret && o.Factory.CleanMessage(value) == value {
				if err := c.Value.Decode(&s.Value); err != nil {
					return nil, nil, app.Usagef("set %s: %w", p, err)
				}
			}
		}
		changes, settings = append(changes, c), append(settings, s)
	}
	return changes, settings, nil
}

// refuseSecret refuses values that look like a secret where none belongs.
func (o *SetOptions) refuseSecret(scope Scope, p engine.Path, info engine.Info, value string) error {
	if info.Secret && value == "" {
		return app.Usagef("%s: nothing came on stdin", p)
	}
	if info.Secret || o.Factory.CleanMessage(value) == value {
		return nil
	}
	switch {
	case p[len(p)-1] == "apiKeyEnv":
		return app.Usagef("%s: this looks like a key: give the name of the variable that holds it", p)
	case scope == Repo:
		return app.Usagef("%s: the value holds something secret, and the repository's file is for everybody who can read the repository", p)
	}
	return nil
}

// remarkEffects says what the settings warn of now, and where a change in one file has no
// effect because another source goes before it.
func (o *SetOptions) remarkEffects(file *File, changes []edit.Change) {
	c, err := engine.Load(o.Factory.ConfigSources())
	if err != nil {
		return // what is wrong was wrong before: the next command says it
	}
	notes := o.Factory.Notes()
	writeWarnings(notes, allWarnings(o.Factory, c))
	for _, v := range c.Values() {
		for _, x := range changes {
			if v.Path.String() != engine.Path(x.Path).String() || v.Origin.File == file.Path {
				continue
			}
			if v.Origin.File != "" || v.Origin.Variable != "" && !v.Secret {
				notes.Printf("%s: in effect is what %s says\n", v.Path, v.Origin)
			}
		}
	}
}
