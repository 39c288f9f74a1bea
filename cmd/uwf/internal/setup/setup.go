// Package setup is `uwf setup`: it asks for a provider, a model and a key, tries
// them, and writes the settings. Every question has a flag, so that scripts and CI
// can do without questions. A key is never taken from a command line, never
// written into a repository, and never shown.
package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/agent"
	"github.com/united-workforce/uwf/cmd/uwf/internal/config"
	engine "github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/config/table"
	"github.com/united-workforce/uwf/engine/debuglog"
	"github.com/united-workforce/uwf/engine/redact"
)

// Options are what `uwf setup` works with.
type Options struct {
	Factory *app.Factory
	// Ask asks on a terminal; nil: there is none.
	Ask func(context.Context, []Question) error
	// Clean takes secrets out of texts, also the key that is given now.
	Clean   func(string) string
	Answers Answers
	KeyFrom string // the value of --api-key: only "-" is one
	User    bool
	NoTest  bool
	Yes     bool
}

// NewCmdSetup makes `uwf setup`. A runF that is not nil replaces the run.
func NewCmdSetup(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f, Clean: f.CleanMessage}
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Choose a provider, a model and a key, and try them",
		Long: `Choose a provider, a model and a key, try them with one tiny request, and write the
settings: into your own file (~/.uwf/config.yaml), or with --repo into the repository's.
A key goes into ~/.uwf/.env, for nobody else to read, and never into a repository.

On a terminal it asks for what no flag says; elsewhere, and with --yes, the flags must say
it. What fails is named (the host's name, the certificate, the key, the model, …) with what
to do; then nothing is written.

Providers:
` + providerHelp(),
		Example: `  uwf setup --provider openai --api-key-env OPENAI_API_KEY --no-test --yes
  uwf setup --provider ollama --model qwen3 --agent builtin --no-test --yes
  uwf setup --provider custom --base-url http://127.0.0.1:8000/v1 --model my-model --price 0 --no-test --yes
  uwf setup --repo --provider github-models --no-test --yes`,
		Args: cobra.NoArgs,
		RunE: app.Run(o, runF, setupRun, func([]string) { o.Ask = Asker(f) }),
	}
	fl := cmd.Flags()
	fl.StringVar(&o.Answers.Provider, "provider", "", "the `PROVIDER`: "+strings.Join(ProviderNames(), ", "))
	fl.StringVar(&o.Answers.BaseURL, "base-url", "", "its `ADDRESS`, where it is another than the usual one")
	fl.StringVar(&o.Answers.Model, "model", "", "the `MODEL`, as the provider calls it")
	fl.StringVar(&o.Answers.APIKeyEnv, "api-key-env", "", "the variable (`NAME`) that holds the key")
	fl.StringVar(&o.KeyFrom, "api-key", "", "`-`: read the key from stdin; a key itself is not taken here")
	fl.StringVar(&o.Answers.Price, "price", "", "what a million tokens cost in and out (`IN,OUT`), in US dollars, where uwf doesn't know it; 0: nothing")
	fl.StringVar(&o.Answers.Agent, "agent", "", "the `AGENT` that works where nothing else is said (builtin)")
	fl.BoolVar(&o.User, "user", false, "write your own file (the default)")
	fl.BoolVar(&o.Answers.Repo, "repo", false, "write the repository's file")
	fl.BoolVar(&o.NoTest, "no-test", false, "don't try the connection")
	fl.BoolVarP(&o.Yes, "yes", "y", false, "ask nothing")
	cmd.MarkFlagsMutuallyExclusive("user", "repo")
	return cmd
}

func providerHelp() string {
	var b strings.Builder
	for _, p := range engine.Presets() {
		fmt.Fprintf(&b, "  %-13s  %s, %s\n", p.Name, p.BaseURL, p.Model.Name)
		for _, line := range wrapText(p.Note, 74) {
			fmt.Fprintf(&b, "  %-13s  %s\n", "", line)
		}
	}
	fmt.Fprintf(&b, "  %-13s  any OpenAI-compatible address", custom)
	return b.String()
}

func wrapText(s string, width int) []string {
	var lines []string
	line := ""
	for _, w := range strings.Fields(s) {
		if line != "" && len(line)+1+len(w) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + w)
	}
	return append(lines, line)
}

const maxKey = 8 << 10

// lookupVariable finds a variable in the environment, else in ~/.uwf/.env.
func lookupVariable(f *app.Factory, name string) (value, where string, err error) {
	for _, kv := range slices.Backward(f.Environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return strings.TrimSpace(v), "the environment", nil // set to nothing, it hides the file's
		}
	}
	file := f.ConfigSources().EnvFile
	if file == "" {
		return "", "", nil
	}
	data, err := f.ConfigSources().ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("look for %s in %s: %w", name, file, err)
	}
	vars, err := engine.ParseEnv(data)
	if err != nil {
		return "", "", app.Usagef("%s is no file of NAME=value lines; repair it first", file)
	}
	return strings.TrimSpace(vars[name]), file, nil
}

// isAgentName tells whether a name is one of an agent: uwf's own, an alias of the
// settings, or a program uwf-NAME.
func isAgentName(f *app.Factory, name string) ([]string, bool) {
	known := agent.Names()
	if c, err := f.Config(); err == nil {
		known = slices.AppendSeq(known, maps.Keys(c.Agents))
	}
	if slices.Contains(known, name) {
		return known, true
	}
	_, err := exec.LookPath("uwf-" + name)
	return known, err == nil && envName.MatchString(strings.ReplaceAll(name, "-", "_"))
}

// result is what `uwf setup` prints.
type result struct {
	Provider    string       `json:"provider"`
	BaseURL     string       `json:"baseUrl"`
	Model       string       `json:"model"`
	KeyVariable string       `json:"keyVariable,omitempty"`
	Agent       string       `json:"agent,omitempty"`
	File        string       `json:"file"`
	Scope       config.Scope `json:"scope"`
	Changed     bool         `json:"changed"`
	KeyStored   bool         `json:"keyStored"` // in ~/.uwf/.env, by this run
	Tested      bool         `json:"tested"`
}

func setupRun(ctx context.Context, o *Options) error {
	a := o.Answers
	if err := o.checkFlags(&a); err != nil {
		return err
	}
	if err := o.fillAnswers(ctx, &a); err != nil {
		return err
	}
	if err := o.checkAnswers(a); err != nil {
		return err
	}
	key, name, err := o.findKey(a)
	if err != nil {
		return err
	}
	if err := o.hideKey(key); err != nil {
		return err
	}
	out := result{Provider: a.Provider, BaseURL: a.BaseURL, Model: a.Model, KeyVariable: a.APIKeyEnv, Agent: a.Agent, Scope: config.User}
	if a.Repo {
		out.Scope = config.Repo
	}
	if !o.NoTest {
		if err := o.testConnection(ctx, a, key, name); err != nil {
			return err
		}
		out.Tested = true
	}
	if err := o.writeSettings(ctx, a, key != "", &out); err != nil {
		return err
	}
	p := a.modelSettings().Price
	switch {
	case p.AsOf != "":
		o.Factory.Notes().Printf("the price of %s is that of %s: $%v for a million tokens in, $%v from a cache, $%v into one, $%v out; where yours is another, change models.%s.price\n",
			output.Line(a.Model, 80), p.AsOf, *p.Input, *p.CachedInput, *p.CacheWrite, *p.Output, a.Provider)
	case !a.tellsCost() && !o.knowsPrice(a):
		o.Factory.Notes().Printf("what %s costs is unknown, so no limit on cost can be kept: say it with uwf setup --price IN,OUT, or leave the limit out\n", output.Line(a.Model, 80))
	case p.Known() && engine.IsLocal(a.BaseURL) && a.Price == "":
		o.Factory.Notes().Printf("%s is on this machine: its price is written down as 0\n", output.Line(a.Model, 80))
	}
	o.tellOverrides(a)
	return o.Factory.Printer().Print(out, func(w *output.Writer) { out.writeText(w, app.ShortenPath(o.Factory, out.File)) })
}

// tellOverrides says what else goes before the settings that were written now.
func (o *Options) tellOverrides(a Answers) {
	f := o.Factory
	sources := f.ConfigSources()
	c, err := engine.Load(sources)
	if err != nil {
		return // every command says it
	}
	note := func(format string, args ...any) { f.Notes().Println(f.CleanMessage(fmt.Sprintf(format, args...))) }
	if c.DefaultModel != a.Provider {
		note("%s goes before this: by it the model %s works here", c.Origins["defaultModel"], c.DefaultModel)
	}
	if a.Repo {
		return
	}
	for _, kind := range []struct {
		path, flag string
		overrides  map[string]map[string]string
	}{{"modelOverrides", "--model", c.ModelOverrides}, {"agentOverrides", "--agent", c.AgentOverrides}} {
		for _, workflow := range slices.Sorted(maps.Keys(kind.overrides)) {
			for _, role := range slices.Sorted(maps.Keys(kind.overrides[workflow])) {
				at := table.Join(kind.path, workflow)
				at = cmp.Or(c.Origins[table.Join(at, role)], c.Origins[at])
				if strings.HasPrefix(at, sources.RepoFile+":") && sources.RepoFile != "" {
					note("this repository gives the role %s of %s to %s (%s); for a run of yours: %s '%s=NAME'", role, workflow, kind.overrides[workflow][role], at, kind.flag, role)
				}
			}
		}
	}
}

// checkFlags finds what no answer could make right.
func (o *Options) checkFlags(a *Answers) error {
	if a.Price != "" {
		if _, err := parsePrice(a.Price); err != nil {
			return app.Usagef("--price %.40q: %w", a.Price, err)
		}
	}
	if o.KeyFrom != "" && o.KeyFrom != "-" {
		return app.Usagef("--api-key takes no key: other processes can read it on a command line, and shells remember it; give --api-key - and the key on stdin")
	}
	if _, ok := ProviderNamed(a.Provider); a.Provider != "" && !ok {
		return &app.UnknownError{What: "provider", ID: a.Provider, Near: app.SuggestNames(a.Provider, ProviderNames()), Hint: "there are " + strings.Join(ProviderNames(), ", ")}
	}
	if a.APIKeyEnv != "" {
		if err := checkEnvName(a.APIKeyEnv); err != nil {
			return err
		}
		if o.Clean(a.APIKeyEnv) != a.APIKeyEnv {
			return app.Usagef("--api-key-env: this looks like a key: give the name of the variable that holds it")
		}
	}
	if a.Repo && o.Factory.RepoRoot() == "" {
		return app.Usagef("--repo: this is no git repository; leave --repo out to write your own settings")
	}
	return nil
}

// fillAnswers gets what is missing: from stdin, from questions, from what is known.
func (o *Options) fillAnswers(ctx context.Context, a *Answers) error {
	if o.Ask != nil && !o.Yes {
		if err := o.askAll(ctx, a); err != nil {
			return err
		}
	} else {
		if err := CheckComplete("setup", ProviderNames(), *a); err != nil {
			return err
		}
		if o.KeyFrom == "-" {
			key, err := o.Factory.ReadInput("-", maxKey)
			if err != nil {
				return err
			}
			a.Key = strings.TrimSpace(string(key))
			if err := checkKey(a.Key); err != nil {
				return err
			}
		}
	}
	a.Complete()
	return nil
}

// CheckComplete refuses answers that lack something, where nobody can be asked; names are
// the providers that there are.
func CheckComplete(command string, names []string, a Answers) error {
	var lacks []string
	p, known := ProviderNamed(a.Provider)
	if a.Provider == "" {
		lacks = append(lacks, "--provider NAME ("+strings.Join(names, ", ")+")")
	}
	if known && p.BaseURL == "" && a.BaseURL == "" {
		lacks = append(lacks, "--base-url ADDRESS")
	}
	if known && p.Model.Name == "" && a.Model == "" {
		lacks = append(lacks, "--model NAME")
	}
	if len(lacks) == 0 {
		return nil
	}
	return app.Usagef("nobody is here to be asked: say %s (see: uwf %s --help)", strings.Join(lacks, ", "), command)
}

func (o *Options) checkAnswers(a Answers) error {
	if p, _ := ProviderNamed(a.Provider); p.APIKeyEnv == "" && a.Provider != custom && (a.Key != "" || a.APIKeyEnv != "") {
		return app.Usagef("%s needs no key: leave --api-key and --api-key-env out", a.Provider)
	}
	if a.Agent == "" {
		return nil
	}
	if known, ok := isAgentName(o.Factory, a.Agent); !ok {
		return &app.UnknownError{What: "agent", ID: a.Agent, Near: app.SuggestNames(a.Agent, known),
			Hint: fmt.Sprintf("there are %s; or put a program uwf-%s on PATH", strings.Join(known, ", "), output.Line(a.Agent, 40))}
	}
	return nil
}

// findKey is the key to try, and what to call it.
func (o *Options) findKey(a Answers) (key, name string, err error) {
	if a.APIKeyEnv == "" {
		return "", "", nil
	}
	value, where, err := lookupVariable(o.Factory, a.APIKeyEnv)
	if err != nil {
		return "", "", err
	}
	if a.Key == "" {
		if value == "" && !o.NoTest {
			return "", "", app.Usagef("%s is not set: set it in the environment, or give --api-key - and the key on stdin; --no-test writes the settings all the same", a.APIKeyEnv)
		}
		if value == "" {
			o.Factory.Notes().Printf("%s is not set yet: set it before the first run\n", a.APIKeyEnv)
		}
		return value, a.APIKeyEnv + " (" + where + ")", nil
	}
	if where == engine.Environment && value != a.Key {
		o.Factory.Notes().Printf("%s is set in the environment to something else, which goes before the key that is stored now: unset it there\n", a.APIKeyEnv)
	}
	return a.Key, a.APIKeyEnv + " (the one given now)", nil
}

// hideKey makes Clean know the key.
func (o *Options) hideKey(key string) error {
	if key == "" {
		return nil
	}
	red, err := redact.New(redact.Options{Secrets: []redact.Secret{{Name: "key", Value: key}}})
	if err != nil {
		return fmt.Errorf("hide the key: %w", err)
	}
	before := o.Clean
	o.Clean = func(s string) string {
		s, _ = red.String(s)
		return before(s)
	}
	return nil
}

// testConnection tries the connection as the agent will use it.
func (o *Options) testConnection(ctx context.Context, a Answers, key, name string) error {
	p, _ := ProviderNamed(a.Provider)
	t := Target{Provider: a.Provider, Kind: p.Kind, BaseURL: a.BaseURL, Model: a.Model, Key: key, KeyName: name}
	began, prober := o.Factory.Now(), NewProber(o.Factory)
	prober.Clean = o.Clean // it knows the key by now
	err := prober.Test(ctx, t)
	var fail *Failure
	kind := "ok"
	if errors.As(err, &fail) {
		kind = fail.Kind
	}
	o.Factory.Log().Info("SET0PTST", "connection tested", slog.String("provider", a.Provider), slog.String("outcome", kind), debuglog.DurationAttr(o.Factory.Now().Sub(began)))
	if fail != nil {
		return fmt.Errorf("try the connection: %w\nnothing was written (--no-test writes without trying)", fail)
	}
	return err
}

// writeSettings stores the key first: settings that name a variable which nobody sets help
// nobody.
func (o *Options) writeSettings(ctx context.Context, a Answers, hasKey bool, out *result) error {
	file, err := config.OpenFile(o.Factory, out.Scope)
	if err != nil {
		return err
	}
	out.File = file.Path
	if a.Key != "" {
		env, err := config.OpenEnv(o.Factory)
		if err == nil {
			err = env.Private(ctx)
		}
		if err != nil {
			return err
		}
		out.KeyStored, err = env.Rewrite(ctx, func(old []byte) ([]byte, error) {
			text, err := withVariable(old, a.APIKeyEnv, a.Key)
			if err != nil {
				return nil, app.Usagef("%s: %w", env.Path, err)
			}
			return text, nil
		})
		if err != nil {
			return err
		}
	}
	out.Changed, err = file.Apply(ctx, func(old []byte) ([]byte, error) { return a.Apply(old, hasKey) })
	return err
}

func (r result) writeText(w *output.Writer, file string) {
	if r.Tested {
		w.Good(fmt.Sprintf("%s answers as %s\n", r.Provider, r.Model))
	}
	switch {
	case r.Changed:
		w.Printf("wrote %s\n", file)
	default:
		w.Printf("%s says that already\n", file)
	}
	if r.KeyStored {
		w.Printf("stored the key as %s\n", r.KeyVariable)
	}
	w.Printf("\nnext, in a repository: uwf run -p \"what is to be done\"\n")
}
