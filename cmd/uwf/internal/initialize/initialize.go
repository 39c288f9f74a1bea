// Package initialize is `uwf init`: it writes the files that make a repository's CI
// run uwf, says what each is for, and what to do next. It overwrites nothing without
// being told to, never takes a key, and commits and pushes nothing.
package initialize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents/cli"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/doctor"
	"github.com/united-workforce/uwf/cmd/uwf/internal/hosted"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/examples"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
)

// Options are what `uwf init` works with.
type Options struct {
	Factory *app.Factory
	// Ask asks questions on a terminal; nil: there is none.
	Ask func(context.Context, []setup.Question) error
	// Client asks the remote's server what it is, and with a token that is here already what is
	// done.
	Client hosted.Client

	Provider, Model, BaseURL string
	Agent                    string   // of agents/cli; empty: uwf's own
	Secret                   string   // the name of the repository's secret
	Gitea                    *bool    // nil: the server is asked
	Allow                    []string // who may start and steer where a job can't look it up
	TwoJobs                  bool
	Reusable                 string // the workflow elsewhere that has the jobs; empty: this repository has them
	Host, Container          bool   // neither: what the repository's files ask for
	Yes, Force, Keep         bool

	allowAnswer string // the answer to who may start and steer
}

// NewCmdInit makes `uwf init`. A runF that is not nil replaces the run.
func NewCmdInit(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	gitea := false
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:   "init",
		Short: "Write the files that let this repository's CI work on issues",
		Long: `Write the files that let this repository's CI work on issues: the workflow file for the
forge, uwf's settings, and a first workflow for agents. Then check them, and say what to do
next. Nothing is committed or pushed.

On a terminal it asks for what no flag says, and before it overwrites a file that differs.
Elsewhere, and with --yes, the flags must say it: --force overwrites files that differ,
--keep leaves them as they are.

A key is never asked for: --secret is the name of the repository's secret that will hold it.
Without any key, --provider github-models is a trial on GitHub: models answer the job's own
token, free of charge, but a request takes about 8,000 tokens in and 4,000 out, and there
are few a day: enough to see a small issue solved, not for daily work.

Whether the repository is on Gitea or Forgejo the remote's server is asked, unless --gitea or
--gitea=false says it. A job can't look up there who may write: the owner of a personal
repository may start and steer, and whom --allow names.

uwf's own agent works, unless --agent names another one: the job that runs agents then
installs its program, of the version that uwf was tried with, and the agent asks the provider
through uwf, without a login of its own. Where --provider is left out, claude-code has
anthropic, codex openai, and gemini-cli gemini. Such an agent works on the runner itself.

Agents work in uwf's container, which has bash, git, curl, jq and ripgrep, or on the runner
itself, which has Go, Node, Python, Java and more. The second is chosen where the repository
has a file such as go.mod or package.json, whose tests need that,
at its top or below; --host and --container say it yourself.

On GitLab and Bitbucket uwf has no jobs: no workflow file is written, and what works there
is said. What is left to do is numbered; what is done already is ticked, as far as the
checkout, and a token that is here, tell it.`,
		Example: `  uwf init --provider openai --secret OPENAI_API_KEY --keep
  uwf init --provider github-models --yes --force
  uwf init --agent claude-code --yes --force
  uwf init --provider anthropic --gitea --allow alice,bob --yes --force
  uwf init --provider custom --base-url https://models.example.com/v1 --model qwen3 --secret MODELS_KEY --two-jobs --yes --force`,
		Args: cobra.NoArgs,
		RunE: app.Run(o, runF, initRun, func([]string) {
			o.Client = hosted.NewClient(f)
			if cmd.Flags().Changed("gitea") {
				o.Gitea = &gitea
			}
			if !o.Yes {
				o.Ask = setup.Asker(f)
			}
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&o.Provider, "provider", "", "the `PROVIDER` that runs the models: "+strings.Join(reachableProviders(), ", "))
	fl.StringVar(&o.Agent, "agent", "", "the `AGENT` that works, where it is not uwf's own: "+strings.Join(agentNames(), ", "))
	fl.StringVar(&o.Model, "model", "", "the `MODEL`, as the provider calls it")
	fl.StringVar(&o.BaseURL, "base-url", "", "the provider's `ADDRESS`, where it is another than the usual one")
	fl.StringVar(&o.Secret, "secret", "", "the `NAME` of the repository's secret that holds the key (OPENAI_API_KEY)")
	fl.BoolVar(&gitea, "gitea", false, "the repository is on Gitea or Forgejo (default: the remote's server is asked)")
	fl.StringSliceVar(&o.Allow, "allow", nil, "the `NAMES` of who may start and steer where a job can't look it up: people on Gitea, and bots")
	fl.BoolVar(&o.TwoJobs, "two-jobs", false, "two jobs a step, for public repositories: agents run in one that can write nothing")
	fl.StringVar(&o.Reusable, "reusable", "", "let the jobs of the organisation's `WORKFLOW` do it, OWNER/REPO/.github/workflows/FILE@REF: the file written here only calls it")
	fl.BoolVar(&o.Host, "host", false, "agents work on the runner, with its toolchains")
	fl.BoolVar(&o.Container, "container", false, "agents work in uwf's container, whatever the repository holds")
	fl.BoolVarP(&o.Yes, "yes", "y", false, "ask nothing")
	fl.BoolVar(&o.Force, "force", false, "overwrite files that differ")
	fl.BoolVar(&o.Keep, "keep", false, "leave files that differ as they are")
	cmd.MarkFlagsMutuallyExclusive("force", "keep")
	cmd.MarkFlagsMutuallyExclusive("host", "container")
	for _, flag := range []string{"two-jobs", "host", "container", "agent", "allow"} {
		cmd.MarkFlagsMutuallyExclusive("reusable", flag)
	}
	app.CompleteFlag(cmd, "provider", reachableProviders()...)
	app.CompleteFlag(cmd, "agent", agentNames()...)
	return cmd
}

// agentNames are the agents that run a program which a job has to install.
func agentNames() []string { return lists.Map(cli.All(), func(c cli.CLI) string { return c.Name }) }

// nativeProvider is the provider whose API is the agent's own; empty: any will do.
func nativeProvider(agent string) string {
	c, _ := cli.Find(agent)
	for _, wire := range c.Wires {
		switch wire {
		case "messages":
			return "anthropic"
		case "responses":
			return "openai"
		case "gemini":
			return "gemini"
		}
	}
	return ""
}

// checkAgent finds what is wrong with the choice of an agent.
func (o *Options) checkAgent() error {
	if o.Agent == "" {
		return nil
	}
	c, ok := cli.Find(o.Agent)
	switch {
	case !ok:
		return &app.UnknownError{What: "agent", ID: o.Agent, Near: app.SuggestNames(o.Agent, agentNames()),
			Hint: "there are " + strings.Join(agentNames(), ", ") + "; uwf's own works where --agent is left out"}
	case o.Container:
		return app.Usagef("--agent %s --container: uwf's container has neither %s nor Node.js, which it runs on: leave --container out, so that the job installs it on the runner", c.Name, c.Program)
	}
	return nil
}

// reachableProviders are those that a job can reach: a model on one's own machine is none.
func reachableProviders() []string {
	return slices.DeleteFunc(setup.ProviderNames(), func(name string) bool { return name == "ollama" })
}

// result is what `uwf init` prints.
type result struct {
	Files    []*file          `json:"files"`
	Provider string           `json:"provider"`
	Model    string           `json:"model"`
	Agent    string           `json:"agent,omitempty"`
	Secret   string           `json:"secret,omitempty"`
	Forge    forge.Flavour    `json:"forge"` // what the files were written for
	Allow    []string         `json:"allow,omitempty"`
	Findings []doctor.Finding `json:"findings"`
	Next     []next           `json:"next"`
}

// next is one thing that is left to do.
type next struct {
	Do      string `json:"do"`
	Command string `json:"command,omitempty"`
	Done    bool   `json:"done"` // as far as it can be known here
}

func initRun(ctx context.Context, o *Options) (err error) {
	f := o.Factory
	if err := doctor.Ready(ctx, f); err != nil {
		return err
	}
	where, err := surveyPlace(ctx, o)
	if err != nil {
		return err
	}
	answers, err := o.findAnswers(ctx, where)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(f.RepoRoot())
	if err != nil {
		return fmt.Errorf("look into the repository: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	where.tools = findToolchains(ctx, f, root)
	files, err := planFiles(root, o, where, answers)
	if err != nil {
		return err
	}
	if err := o.decideFiles(ctx, files); err != nil {
		return err
	}
	for _, x := range files {
		if x.State == written || x.State == overwritten {
			if err := x.writeFile(root); err != nil {
				return err
			}
		}
	}
	out := result{Files: files, Provider: answers.Provider, Model: answers.Model, Agent: o.Agent, Secret: o.Secret, Forge: where.forgeFlavour(), Allow: o.Allow}
	examine := doctor.Options{Files: root.FS(), StateRemote: true, Prepares: true, Submodules: true, Offline: true, Other: where.other}
	examine.Branches, examine.Unreadable = doctor.ReadBranches(ctx, f, where.remote)
	out.Findings = doctor.Check(ctx, examine)
	out.Next = where.nextSteps(o, answers, where.lookDone(ctx, o, root, files), root)
	where.printWarnings(ctx, o, files)
	return o.Factory.Printer().Print(out, out.writeText)
}

// place is what is known of the repository.
type place struct {
	root, dir string
	branch    string // the one that is checked out; empty: HEAD is detached
	remote    string // the name of the remote that threads are kept on
	address   string // its address; empty: there is none yet
	forge     hosted.Place
	known     bool   // the remote is on a forge
	folder    string // of workflow files
	gitea     bool
	other     string   // another forge, on which uwf has no jobs; empty: none
	usual     string   // the remote's default branch, as it was fetched last; empty: unknown
	tools     []string // the toolchains' files, see findToolchains
	taken     bool     // for GitHub's own server, though its name does not say so
	unsure    error    // why the remote's server could not be asked what it is
}

// forgeFlavour is what the files are written for.
func (p *place) forgeFlavour() forge.Flavour {
	switch {
	case p.other != "":
		return forge.Flavour(strings.ToLower(strings.ReplaceAll(p.other, " ", "-")))
	case p.gitea:
		return forge.Gitea
	}
	return forge.GitHub
}

func surveyPlace(ctx context.Context, o *Options) (*place, error) {
	f := o.Factory
	p := &place{root: f.RepoRoot(), dir: f.Dir, remote: "origin", folder: ".github/workflows"}
	git := func(args ...string) string {
		out, _ := app.GitHere(ctx, f, args...) // nothing, where it does not know
		return out
	}
	p.branch = git("symbolic-ref", "--quiet", "--short", "HEAD")
	if names := strings.Fields(git("remote")); len(names) == 1 {
		p.remote = names[0]
	}
	p.address = git("remote", "get-url", p.remote)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var err error
	p.forge, err = hosted.Find(ctx, f, p.address)
	p.known = err == nil
	// Gitea reads a folder of its own if it is there, and then not the other one.
	own, err := os.Stat(filepath.Join(p.root, ".gitea", "workflows"))
	hasOwn := err == nil && own.IsDir()
	switch {
	case o.Gitea != nil:
		p.gitea = *o.Gitea
	case hasOwn, forge.Detect(f.Getenv("GITHUB_API_URL"), f.Getenv("GITEA_ACTIONS")) == forge.Gitea:
		p.gitea = true
	case p.known && p.forge.Other() != "":
		p.other = p.forge.Other()
	case p.known:
		if p.gitea, p.unsure = p.forge.IsGitea(ctx, o.Client.HTTP); !p.gitea {
			p.taken = p.unsure == nil && !p.forge.IsGitHub()
		}
	}
	p.usual = strings.TrimPrefix(git("symbolic-ref", "--quiet", "--short", "refs/remotes/"+p.remote+"/HEAD"), p.remote+"/")
	if hasOwn && p.gitea {
		p.folder = ".gitea/workflows"
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return p, nil
}

// findAnswers are the provider and the model, from flags and from whom can be asked.
func (o *Options) findAnswers(ctx context.Context, where *place) (setup.Answers, error) {
	if err := o.checkFlags(where); err != nil {
		return setup.Answers{}, err
	}
	if o.Ask != nil && o.Agent == "" && !o.Container && o.Reusable == "" {
		if err := o.Ask(ctx, []setup.Question{o.askAgent()}); err != nil {
			return setup.Answers{}, err
		}
	}
	o.Provider = cmp.Or(o.Provider, nativeProvider(o.Agent))
	if o.Ask != nil {
		questions, address, secret := o.openQuestions(where), o.BaseURL, o.Secret
		if err := o.Ask(ctx, questions); err != nil {
			return setup.Answers{}, err
		}
		o.Allow = append(o.Allow, splitNames(o.allowAnswer)...)
		// A person who went back may have answered what is not asked any more.
		if p, _ := setup.ProviderNamed(o.Provider); p.BaseURL != "" {
			o.BaseURL = address
		}
		if o.Provider == githubModels {
			o.Secret = secret
		}
	}
	a := setup.Answers{Provider: o.Provider, BaseURL: strings.TrimSpace(o.BaseURL), Model: strings.TrimSpace(o.Model), Agent: o.Agent}
	if err := setup.CheckComplete("init", reachableProviders(), a); err != nil {
		return setup.Answers{}, err
	}
	if err := o.checkFlags(where); err != nil {
		return setup.Answers{}, err
	}
	if o.Provider == "custom" {
		a.APIKeyEnv = customKey
	}
	a.Complete()
	if o.Provider == githubModels || where.other != "" {
		o.Secret = ""
	} else if o.Secret == "" {
		o.Secret = a.APIKeyEnv
	}
	return a, nil
}

// customKey is the variable that holds the key of a provider that uwf does not know.
const customKey = "UWF_CUSTOM_API_KEY"

// secretName is what GitHub and Gitea allow as the name of a secret.
var secretName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// checkFlags finds what no answer could make right.
func (o *Options) checkFlags(where *place) error {
	if o.Provider != "" && !slices.Contains(reachableProviders(), o.Provider) {
		hint := "there are " + strings.Join(reachableProviders(), ", ")
		if o.Provider == "ollama" {
			hint = "jobs don't run on this machine; for a server that they reach: --provider custom --base-url ADDRESS"
		}
		return &app.UnknownError{What: "provider", ID: o.Provider, Near: app.SuggestNames(o.Provider, reachableProviders()), Hint: hint}
	}
	if err := o.checkAgent(); err != nil {
		return err
	}
	if err := o.checkReusable(where); err != nil {
		return err
	}
	if err := o.checkNames(o.Allow); err != nil {
		return app.Usagef("--allow: %w", err)
	}
	if where.other != "" && (o.Secret != "" || len(o.Allow) > 0 || o.TwoJobs || o.Host || o.Container || o.Reusable != "") {
		return app.Usagef("%s is on %s, where uwf has no jobs: leave --secret, --allow, --two-jobs, --host, --container and --reusable out, which are for jobs; if it is GitHub or Gitea: --gitea=false, or --gitea", where.remote, where.other)
	}
	if o.Provider == githubModels && where.gitea {
		return app.Usagef("--provider github-models works on GitHub only: its models answer GitHub's tokens; choose another provider")
	}
	if o.Provider == githubModels && o.Secret != "" {
		return app.Usagef("github-models needs no secret, for the job's own token is its key: leave --secret out")
	}
	if o.BaseURL != "" {
		if err := setup.CheckAddress(o.BaseURL); err != nil {
			return app.Usagef("--base-url: %w", err)
		}
	}
	if o.Secret == "" {
		return nil
	}
	return o.checkSecret(o.Secret)
}

// splitNames are the names in a text, separated by commas or spaces.
func splitNames(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return c == ',' || c == ' ' || c == '\t' })
}

// checkNames finds what no account is called.
func (o *Options) checkNames(list []string) error {
	for _, name := range list {
		if !accountName.MatchString(name) {
			return fmt.Errorf("%q is no name of an account: write the names as the forge has them, separated by commas", o.Factory.CleanMessage(name))
		}
	}
	return nil
}

// accountName is what GitHub and Gitea allow as the name of an account, and GitHub as that
// of an app's.
var accountName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}(\[bot\])?$`)

func (o *Options) checkSecret(name string) error {
	switch {
	case o.Factory.CleanMessage(name) != name || !secretName.MatchString(name):
		return app.Usagef("--secret: this is no name of a secret (letters, digits and _): give the name, never the key itself")
	case strings.HasPrefix(strings.ToUpper(name), "GITHUB_") || strings.HasPrefix(strings.ToUpper(name), "GITEA_"):
		return app.Usagef("--secret %s: forges allow no secret whose name begins with GITHUB_ or GITEA_: choose another name", name)
	}
	return nil
}

// planFiles are the files, and what becomes of them.
func planFiles(root *os.Root, o *Options, where *place, a setup.Answers) ([]*file, error) {
	shipped := oneJob
	if o.TwoJobs {
		shipped = twoJobs
	}
	files := []*file{
		{Path: where.folder + "/uwf.yml", What: "when CI starts a job of uwf, with which rights and which key"},
		{Path: ".uwf/config.yaml", What: "which model works, and where threads are kept"},
		{Path: ".uwf/workflows/solve-issue.yaml", What: "who the agents are and what they do: plan, fix, review"},
	}
	var err error
	for _, x := range files {
		if x.old, err = readExisting(root, x.Path); err != nil {
			return nil, err
		}
	}
	c, foreign := cli.Find(o.Agent)
	host, install := o.Host || foreign, ""
	if foreign {
		install = installSteps(c)
		files[0].What += fmt.Sprintf("; %s, which the job installs, works on the runner", c.Title)
	}
	if len(where.tools) > 0 && !host && !o.Container && o.Reusable == "" {
		host = true
		files[0].What += "; agents have the runner's toolchains, because " + nameTools(where.tools) + " (--container: they don't)"
	}
	if o.Reusable != "" {
		files[0].text, err = callerFile(o.Reusable, o.Secret)
	} else {
		files[0].text, err = workflowFile(shipped, ownLines{provider: a.Provider, secret: o.Secret, host: host, gitea: where.gitea, allow: o.Allow, install: install})
	}
	if err != nil {
		return nil, err
	}
	var prepares []string
	if found, ok := checks.FindInstall(worker.ReadTop(root.FS())); ok && !o.Container { // which has no such tools
		prepares = found.Safe
		files[1].What += "; and how what " + strings.Join(found.Locks, ", ") + " names is installed before agents work (workspace.prepare)"
	}
	if files[1].text, err = renderSettings(files[1].old, where.remote, a, prepares); err != nil {
		return nil, app.Usagef("%s: %w; mend it or move it away, then run uwf init again", files[1].Path, err)
	}
	if files[2].text, err = examples.Files.ReadFile(solveIssue); err != nil {
		return nil, err
	}
	if where.other != "" {
		files = files[1:]
	}
	for _, x := range files {
		x.compareFile()
	}
	return files, nil
}

// shown is how many lines of a difference are shown.
const shown = 40

// decideFiles settles what becomes of files that differ: by the flags, or by asking.
func (o *Options) decideFiles(ctx context.Context, files []*file) error {
	var different []string
	for _, x := range files {
		if x.State != differs {
			continue
		}
		if o.Keep {
			x.State = kept
			continue
		}
		o.Factory.Notes().Printf("%s is there, and differs from what uwf would write:\n", x.Path)
		for _, l := range x.changedLines(shown) {
			o.Factory.Notes().Printf("  %s\n", l)
		}
		switch {
		case o.Force:
			x.State = overwritten
		case o.Ask != nil:
			if err := o.askOverwrite(ctx, x); err != nil {
				return err
			}
		default:
			different = append(different, x.Path)
		}
	}
	if len(different) > 0 {
		return app.Usagef("nothing was written: %s would change; overwrite with --force, or leave as it is with --keep", strings.Join(different, ", "))
	}
	return nil
}

// linkTo is where something is set: an address of the forge where it is known, else
// the way there.
func (p *place) linkTo(path, way string) string {
	if !p.known {
		return "on the repository's page, " + way
	}
	return p.forge.URL() + "/" + path
}
