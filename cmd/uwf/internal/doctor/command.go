package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/hosted"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// CommandOptions are what `uwf doctor` works with.
type CommandOptions struct {
	Options
	Factory *app.Factory
	Client  hosted.Client
}

// NewCmdDoctor makes `uwf doctor`, which knows the action's inputs by their names and a
// check of their values. A runF that is not nil replaces the run.
func NewCmdDoctor(f *app.Factory, inputs []string, check func(map[string]string) error, runF func(context.Context, *CommandOptions) error) *cobra.Command {
	o := &CommandOptions{Factory: f, Options: Options{Inputs: inputs, CheckInputs: check}}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what uwf's jobs need in this repository, and how to mend what is missing",
		Long: `Check what uwf's jobs need in this repository: the files, and whether jobs get them as they
lie here, the permissions, the labels, the secrets, branch rules, on Gitea whether anybody
may start a thread, the model, what confines agents on this machine, and whether the
toolchains here work when they are confined. Each permission
is tested by its real call or setting: a ref below refs/uwf/doctor is pushed and removed
again, and the labels are made where they are missing. For each check it says ok, missing
or unknown, and for what is missing the click or the command that mends it.

The token is the one of GITHUB_TOKEN or GH_TOKEN, else what gh or git's credential helpers
have for the forge; without one it checks what it can. Where the key of the model is set
here, the model is asked for one word.

Exit code 1 if something is missing without which nothing works.`,
		Example: `  uwf doctor --offline
  uwf doctor --offline --jq '.findings[] | select(.state != "ok") | .fix'`,
		Args: cobra.NoArgs,
		RunE: app.Run(o, runF, doctorRun, func([]string) {
			f.AtOnce = true // it tells how things are now
			o.Client = hosted.NewClient(f)
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&o.Label, "label", DefaultLabel, "the `LABEL` that starts a thread")
	fl.StringVar(&o.Workflow, "workflow", "", "the workflow `FILE` that uses uwf (default: the one that does)")
	fl.BoolVar(&o.Offline, "offline", false, "check the files only, and ask nobody")
	fl.BoolVar(&o.ReadOnly, "read-only", false, "push nothing, and make no labels")
	return cmd
}

// result is what `uwf doctor` prints.
type result struct {
	Repository string    `json:"repository"` // the folder, or owner/name where it is known
	OK         bool      `json:"ok"`
	Findings   []Finding `json:"findings"`
}

func doctorRun(ctx context.Context, o *CommandOptions) (err error) {
	if err := Ready(ctx, o.Factory); err != nil {
		return err
	}
	root, err := os.OpenRoot(o.Factory.RepoRoot())
	if err != nil {
		return fmt.Errorf("look into the repository: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	o.Files = root.FS()
	name := o.gatherOptions(ctx)
	found := Check(ctx, o.Options)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i, f := range found { // servers say what they like
		found[i].Detail, found[i].Fix = o.Factory.CleanMessage(f.Detail), o.Factory.CleanMessage(f.Fix)
	}
	out := result{Repository: name, OK: !Failed(found), Findings: found}
	return app.ExitAfter(o.Factory.Printer().Print(out, func(w *output.Writer) { Text(w, found) }), out.OK, 1)
}

// Ready refuses what is no repository, or one without a commit.
func Ready(ctx context.Context, f *app.Factory) error {
	root := f.RepoRoot()
	if root == "" {
		return app.Usagef("%s is in no git repository: go into the one that uwf is to work in (or: git init)", f.Dir)
	}
	_, err := app.GitHere(ctx, f, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil || errors.Is(err, exec.ErrNotFound):
		return err
	}
	return app.Usagef("%s has no commits yet: jobs run files of the default branch, and there is none; commit something first (git commit)", root)
}

// Text prints findings for people.
func Text(w *output.Writer, found []Finding) {
	for _, f := range found {
		line := fmt.Sprintf("%-8s %-14s %s\n", f.State, f.Check, f.Detail)
		switch {
		case f.State == OK:
			w.Good(line)
		case f.State == Missing && f.Required:
			w.Bad(line)
		default:
			w.Warn(line)
		}
		if f.Fix != "" && f.State != OK {
			w.Printf("%-23s → %s\n", "", f.Fix)
		}
	}
}

// gatherOptions gathers what can be known from here, and says what the repository is called.
func (o *CommandOptions) gatherOptions(ctx context.Context) (name string) {
	f := o.Factory
	o.Rand, o.InJob, o.RemoteName, o.Below = f.Rand, f.Getenv("GITHUB_ACTIONS") == "true", "origin", f.Dir != f.RepoRoot()
	c, err := f.Config()
	if err == nil {
		o.Branch, o.StateRemote, o.Warnings = c.State.Branch, c.State.Remote != "", slices.Concat(c.Warnings, c.Policies.Held())
		o.Policies, o.Prepares = c.Policies.ListBounds(), c.Workspace.Prepare != nil
		o.Submodules = c.Workspace.Submodules
		o.Refused = lists.Map(c.Policies.Refusals(), config.Problem.String)
		o.RemoteName = cmp.Or(c.State.Remote, o.RemoteName)
	} else {
		o.NoSettings = err.Error()
	}
	Known(&o.Options, c)
	if c != nil && c.Sandbox != config.SandboxOff && o.SandboxOK {
		o.TryTool = func(ctx context.Context, program string, words ...string) (string, string, error) {
			return tryConfined(ctx, f, c, program, words)
		}
	}
	if c != nil {
		o.Agents = findAgents(f, c)
	}
	if !o.InJob { // a job reads the default branch's files
		o.Commits = ReadCommits(ctx, f, o.RemoteName)
		o.Branches, o.Unreadable = ReadBranches(ctx, f, o.RemoteName)
	}
	if address, err := f.RemoteURL(ctx, o.RemoteName); err == nil {
		if at, err := hosted.Find(ctx, f, address); err == nil {
			o.Other = at.Other()
		}
	}
	if o.Offline {
		return f.RepoRoot()
	}
	AskModel(&o.Options, f, c)
	return o.findForge(ctx)
}

// findAgents looks for the programs of somebody else's that the agents in use run.
func findAgents(f *app.Factory, c *config.Config) (out []Agent) {
	self, err := f.Self()
	if err != nil {
		return nil
	}
	spawner := agents.NewSpawner(worker.SpawnerOptions(f, c, self))
	for _, name := range c.AgentsInUse() {
		foreign, p, ok, err := spawner.FindForeign(name)
		var missing *agents.CommandError
		switch {
		case errors.As(err, &missing):
			out = append(out, Agent{Name: name, Missing: missing.Why, Install: foreign.Install})
		case err != nil:
			out = append(out, Agent{Name: name, Missing: err.Error(), Install: foreign.Install})
		case ok:
			found := Agent{Name: name, Program: p.Path, Version: p.Version}
			for _, at := range c.PlacesOf(name) {
				if m, err := c.ResolveModel(at.Workflow, at.Role); err == nil && c.Agents[name].Login == "" {
					if small := foreign.CheckWindow(m.Alias, m.Model.Window); small != nil {
						found.Missing = small.Error()
					}
				}
			}
			out = append(out, found)
		}
	}
	return out
}

// Known adds which providers there are by these settings (nil: they can't be used), and
// what confines agents on this machine.
func Known(out *Options, c *config.Config) {
	machine := sandbox.Probe()
	out.Sandbox, out.SandboxOK = machine.Lines(), machine.Usable()
	if c != nil {
		out.Providers = append(config.PresetNames(), slices.Sorted(maps.Keys(c.Providers))...)
	}
}

// findForge finds the remote and the forge that it is on.
func (o *CommandOptions) findForge(ctx context.Context) (name string) {
	address, err := o.Factory.RemoteURL(ctx, o.RemoteName)
	if err != nil {
		o.NoRemote = fmt.Sprintf("there is no git remote %s, so nothing can be said of the forge", o.RemoteName)
		o.NoForge = o.NoRemote
		return o.Factory.RepoRoot()
	}
	if o.Remote, err = o.Factory.Dial(address); err != nil {
		o.NoRemote = err.Error()
	}
	at, err := hosted.Find(ctx, o.Factory, address)
	if err != nil {
		o.NoForge = err.Error()
		return o.Factory.RepoRoot()
	}
	o.Server, o.Other = at.URL(), at.FindOther(ctx, o.Client.HTTP)
	if o.Other != "" {
		return at.Repository
	}
	o.Forge, err = o.Client.Forge(ctx, at)
	if err != nil {
		o.NoForge = err.Error()
	}
	if errors.Is(err, hosted.ErrNoToken) {
		o.ForgeFix = loginFix(at.Server)
		o.Gitea, _ = at.IsGitea(ctx, o.Client.HTTP) // that it does not answer is said of the repository
	}
	return at.Repository
}

// loginFix says how a token gets to a forge: it goes to its own server alone.
func loginFix(server *url.URL) string {
	if server.Host == "github.com" {
		return "set GITHUB_TOKEN, or log in with gh auth login; then run uwf doctor again"
	}
	return fmt.Sprintf("let git keep a token for %s (git push asks for it once, and a credential helper keeps it), or set GITHUB_SERVER_URL=%s beside GITHUB_TOKEN where the token is that server's; then run uwf doctor again", server.Host, server)
}

// keyOf is the variable with the default model's key.
func keyOf(c *config.Config) string { return c.Providers[c.Models[c.DefaultModel].Provider].APIKeyEnv }

// AskModel prepares the request to the model, where its key is known here.
func AskModel(out *Options, f *app.Factory, c *config.Config) {
	if c == nil {
		return
	}
	m, err := c.FindModel(c.DefaultModel)
	var withheld *config.WithheldError
	switch {
	case c.DefaultModel == "":
		out.NoModel = "no model is configured (uwf setup)"
	case errors.Is(err, config.ErrNoKey) && slices.Contains(f.Environ, keyOf(c)+"="):
		out.NoModel = keyOf(c) + " is set here, and empty: the model can't be tried"
	case errors.Is(err, config.ErrNoKey):
		out.NoModel = "the model can't be tried from here: its key is a secret of the repository; jobs try it when they run"
	case errors.As(err, &withheld):
		out.NoModel, out.ModelFix = "the model can't be tried from here, only in jobs: "+withheld.Message, withheld.Fix
	case err != nil:
		out.NoModel = err.Error()
	default:
		target := setup.Target{
			Provider: m.Model.Provider, Kind: m.Provider.Kind, BaseURL: m.Provider.BaseURL, Model: m.Model.Name,
			Key: m.Provider.APIKey.Reveal(), KeyName: m.Provider.APIKeyEnv, Chat: !slices.Contains(m.Provider.Wires, "messages"),
		}
		provider := config.Path{"providers", m.Model.Provider}
		target.AddressBy, _ = nameIn(f, c, provider, "baseUrl")
		target.KeyBy, _ = nameIn(f, c, provider, "apiKeyEnv")
		_, target.ModelBy = nameIn(f, c, config.Path{"models", c.DefaultModel}, "name")
		out.Model = func(ctx context.Context) error { return setup.NewProber(f).Test(ctx, target) }
	}
}

// nameIn is what a setting of a provider or a model is called for people: its path, or the
// variable for it where the environment is all that says anything; command is what changes it.
func nameIn(f *app.Factory, c *config.Config, entry config.Path, key string) (name, command string) {
	origin := c.Origins[entry.String()]
	if strings.HasPrefix(origin, "$") {
		name = map[string]string{"baseUrl": "UWF_BASE_URL", "apiKeyEnv": "UWF_API_KEY", "name": "UWF_MODEL"}[key]
		return name, name
	}
	name, command = append(entry, key).String(), "uwf config set "
	if repo := f.ConfigSources().RepoFile; repo != "" && strings.HasPrefix(origin, repo+":") {
		command += "--repo "
	}
	return name, command + text.ShellWord(name)
}
