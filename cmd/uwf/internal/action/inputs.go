package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sethvargo/go-githubactions"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"gopkg.in/yaml.v3"
)

// What the input `command` may say. Those of ci.Inputs are steps of threads;
// doctor only looks.
const (
	commandStep   = "step"
	commandDoctor = "doctor"
)

// The default values of inputs, where nothing hands them on: action.yml has the same.
const (
	defaultConfig   = ".uwf/config.yaml"
	defaultArtifact = ".uwf-step"
	defaultLabel    = "uwf"
)

// inputs are the action's inputs.
type inputs struct {
	ci.Inputs
	Doctor bool // the command is doctor
	Gitea  bool // the job is one of Gitea's or Forgejo's

	Store       string // the id that the store must have; empty: any
	StateBranch string
	Config      string // path of the configuration on the default branch

	Model, Provider, BaseURL string
	APIKey, Token            string

	Policy     policyInput
	Timeout    time.Duration // of one agent; 0: the configured one
	Sandbox    config.Sandbox
	AllowShell *bool // nil: as configured
}

// Ask gives the value of an input; empty where it is not set.
type Ask func(name string) string

// newAsk reads inputs as the forge hands them on: INPUT_ and the name in capitals.
// The host variant writes "_" for "-", which bash on some systems takes out.
func newAsk(getenv func(string) string) Ask {
	a := githubactions.New(githubactions.WithGetenv(getenv))
	return func(name string) string {
		if v := a.GetInput(name); v != "" {
			return v
		}
		return a.GetInput(strings.ReplaceAll(name, "-", "_"))
	}
}

// InputNames are the names of all inputs, sorted.
func InputNames() []string {
	var names []string
	_, _ = readInputs(func(name string) string { names = append(names, name); return "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// CheckInputs says what is wrong with the values of inputs, of which others may be given
// too; nil: nothing is.
func CheckInputs(given map[string]string) error {
	_, err := readInputs(func(name string) string { return given[name] })
	return err
}

// readInputs reads all inputs. The error names everything that is wrong with them;
// what could be read is returned all the same.
func readInputs(ask Ask) (inputs, error) {
	r := &reader{ask: ask}
	in := inputs{
		Inputs: ci.Inputs{
			Workflow: ask("workflow"), Prompt: ask("prompt"), Thread: readInput(r, "thread", "", parseThread), Head: readInput(r, "head", node.Pin{}, node.ParsePin),
			Agent: ask("agent"), MaxSteps: readInput(r, "max-steps", 0, parseCount), StepsPerJob: readInput(r, "steps-per-job", 1, parseCount),
			Label: cmp.Or(ask("label"), defaultLabel), Allow: r.readList("allow"),
			Comment: readInput(r, "comment", ci.Wanted{}, ci.ParseWanted), PullRequest: readInput(r, "pull-request", ci.Wanted{}, ci.ParseWanted), Draft: readInput(r, "draft", false, parseYes),
			Dispatch: ask("dispatch"), Artifact: cmp.Or(ask("artifact"), defaultArtifact), Needs: readInput(r, "needs", nil, ci.ParseNeeds),
		},
		Store: ask("store"), StateBranch: ask("state-branch"), Config: cmp.Or(ask("config"), defaultConfig),
		Model: ask("model"), Provider: ask("provider"), BaseURL: ask("base-url"), APIKey: ask("api-key"), Token: ask("token"),
		Policy: readInput(r, "policy", policyInput{}, parsePolicy), Timeout: readInput(r, "timeout", 0, parseTime), Sandbox: readInput(r, "sandbox", "", oneOf(config.SandboxRequire, config.SandboxAuto, config.SandboxOff)),
	}
	if ask("allow-shell") != "" {
		v := readInput(r, "allow-shell", false, parseYes)
		in.AllowShell = &v
	}
	switch v := readInput(r, "command", commandStep, oneOf(commandStep, ci.CommandRun, ci.CommandCommit, ci.CommandRescue, ci.CommandStopped, commandDoctor)); v {
	case commandStep:
	case commandDoctor:
		in.Doctor = true
	default:
		in.Command = v
	}
	r.checkAddresses(in)
	r.checkDispatch(in.Dispatch)
	if len(r.wrong) > 0 {
		return in, &app.UsageError{Err: fmt.Errorf("the action's inputs: %s", strings.Join(r.wrong, "; "))}
	}
	return in, nil
}

// reader reads inputs, and notes what is wrong.
type reader struct {
	ask   Ask
	wrong []string
}

// addProblem notes what is wrong with an input. Values are repeated only where they can
// be no secret that somebody put into the wrong input.
func (r *reader) addProblem(name, format string, args ...any) {
	r.wrong = append(r.wrong, name+" "+fmt.Sprintf(format, args...))
}

// readInput reads an input that is more than a text; otherwise is its value where it is not set.
func readInput[T any](r *reader, name string, otherwise T, parse func(string) (T, error)) T {
	v := r.ask(name)
	if v == "" {
		return otherwise
	}
	got, err := parse(v)
	if err != nil {
		r.addProblem(name, "is %.100q: %v", v, err)
	}
	return got
}

func parseThread(s string) (gitcas.ThreadID, error) {
	id := gitcas.ThreadID(strings.ToUpper(s))
	if !id.Valid() {
		return "", errors.New("write a thread's id, of 26 characters, such as 01JY0000000000000000000000")
	}
	return id, nil
}

func parseCount(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, errors.New("write a whole number from 1, such as 20")
	}
	return n, nil
}

func parseTime(s string) (time.Duration, error) {
	d, _ := time.ParseDuration(s) // 0 where it is none
	if d <= 0 {
		return 0, errors.New("write a time with its unit, such as 90s, 20m or 2h")
	}
	return d, nil
}

func parseYes(s string) (bool, error) {
	v, err := oneOf("true", "false")(s)
	return v == "true", err
}

// oneOf reads one of some words, in any case.
func oneOf[T ~string](words ...T) func(string) (T, error) {
	return func(s string) (T, error) {
		v := T(strings.ToLower(s))
		if !slices.Contains(words, v) {
			return "", fmt.Errorf("write one of %s", strings.Trim(fmt.Sprint(words), "[]"))
		}
		return v, nil
	}
}

// checkDispatch checks what starts the next job.
func (r *reader) checkDispatch(v string) {
	switch v {
	case "", ci.DispatchAuto, ci.DispatchRepository, ci.DispatchOff:
		return
	}
	if !isPath(v) || strings.Contains(v, "/") || !isWorkflowFile(v) {
		r.addProblem("dispatch", "is %.80q: write auto, repository_dispatch, off, or the name of a workflow file, such as uwf.yml", v)
	}
}

// readList reads names that are separated by commas, spaces or line ends.
func (r *reader) readList(name string) []string {
	return strings.FieldsFunc(r.ask(name), func(c rune) bool { return strings.ContainsRune(", \t\r\n", c) })
}

// checkAddresses checks what is used as a path or as the name of a branch.
func (r *reader) checkAddresses(in inputs) {
	if !isPath(in.Config) {
		r.addProblem("config", "is %.80q: write a path in the repository, such as .uwf/config.yaml", in.Config)
	}
	if !isPath(in.Artifact) {
		r.addProblem("artifact", "is %.80q: write the name of a folder in the workspace, such as .uwf-step", in.Artifact)
	}
	if b := in.StateBranch; strings.HasPrefix(b, "refs/") || strings.ContainsAny(b, " ~^:?*[\\\x7f") || strings.Contains(b, "..") {
		r.addProblem("state-branch", "is %.80q: write the short name of a branch, such as uwf-state", b)
	}
}

// isPath reports whether a text is the path of something in a repository, as git
// writes it: relative, with slashes, not into .git and not out of it.
func isPath(p string) bool {
	if p == "" || p == "." || path.Clean(p) != p || !filepath.IsLocal(filepath.FromSlash(p)) || strings.ContainsAny(p, "\\\x00\n\r:") {
		return false
	}
	return !slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

// settingsEnviron is the environment that the settings are read with: the job's own, with what
// the inputs say of the model. The key goes into the variable that the provider's
// settings name, so that it leads to the address that they name.
func (in inputs) settingsEnviron(before []string, peek func(environ []string) (*config.Config, error)) ([]string, error) {
	env := withoutInputs(before)
	env = append(env, "GITHUB_TOKEN="+in.Token)
	set := func(name, value string) {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	provider, err := in.providerKey(env, peek, set)
	if err != nil {
		return nil, err
	}
	set("UWF_PROVIDER", provider)
	set("UWF_BASE_URL", in.BaseURL)
	set("UWF_MODEL", in.Model)
	return env, nil
}

// withoutInputs leaves out the variables that inputs came in: some are secret under
// names that don't say so.
func withoutInputs(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		return strings.HasPrefix(v, "INPUT_") || strings.HasPrefix(v, "GITHUB_TOKEN=")
	})
}

// providerKey hands the key to the provider that it is for, and returns the provider's
// name; empty: the configured one.
func (in inputs) providerKey(env []string, peek func([]string) (*config.Config, error), set func(name, value string)) (string, error) {
	if in.BaseURL != "" {
		set("UWF_API_KEY", in.APIKey)
		return in.Provider, nil
	}
	if in.Provider == "" && in.APIKey == "" {
		return "", nil
	}
	c, err := peek(env)
	if errors.Is(err, config.ErrInvalid) {
		return "", &app.UsageError{Err: err}
	} else if err != nil {
		return "", err
	}
	name := cmp.Or(in.Provider, c.Models[c.DefaultModel].Provider)
	if name == "" {
		return "", app.Usagef("the input api-key is set, but nothing says whose key it is: set provider too (%s), or base-url", strings.Join(config.PresetNames(), ", "))
	}
	configured, inFile := c.Providers[name]
	switch {
	case !inFile && !slices.Contains(config.PresetNames(), name):
		known := slices.Sorted(maps.Keys(c.Providers))
		return "", &app.UnknownError{What: "provider", ID: name, Near: app.SuggestNames(name, append(known, config.PresetNames()...)),
			Hint: "the input provider takes " + strings.Join(config.PresetNames(), ", ") + ", or a provider of the configuration"}
	case in.APIKey == "" && ci.RunsAgents(in.Command) && keyMissing(name, configured, inFile):
		return "", app.Usagef("there is no key for %s: the input api-key is empty, as the secret that the workflow file hands on is not set. %s", name, in.howToSetSecret())
	case in.APIKey == "":
	case inFile && configured.APIKeyEnv != "" && configured.APIKeyEnv != "GITHUB_TOKEN":
		set(configured.APIKeyEnv, in.APIKey)
	case inFile && !slices.Contains(config.PresetNames(), name):
		return "", app.Usagef("the input api-key is set, but provider %s of the configuration takes no key: set its apiKeyEnv", name)
	default:
		set("UWF_API_KEY", in.APIKey)
	}
	if in.Provider == "" && inFile {
		return "", nil // it is the default already
	}
	return name, nil
}

// howToSetSecret says where the secret is set that the workflow file names.
func (in inputs) howToSetSecret() string {
	if in.Gitea {
		return "Add it in the repository's settings (Actions → Secrets), with the name that stands behind api-key. Jobs that a fork started get no secrets"
	}
	return "Add it in the repository's settings (Secrets and variables → Actions), or type gh secret set NAME, with the name that stands behind api-key. " +
		"Jobs that Dependabot or a fork started get no secrets"
}

// keyMissing reports whether a provider needs a key, and nothing gives it one.
func keyMissing(name string, p config.Provider, known bool) bool {
	if known {
		return p.APIKeyEnv != "" && p.APIKey.Reveal() == ""
	}
	return slices.ContainsFunc(config.Presets(), func(v config.Preset) bool {
		return v.Name == name && v.APIKeyEnv != "" && v.APIKeyEnv != "GITHUB_TOKEN" // that one every job has
	})
}

// adjustConfig applies the inputs that stand beside the settings.
func (in inputs) adjustConfig(c *config.Config) {
	if !c.SaysSandbox() {
		c.Sandbox = ""
	}
	if strict := config.StricterSandbox(c.Sandbox, in.Sandbox); strict != c.Sandbox {
		c.Sandbox = strict
		c.Origins["sandbox"] = "the input sandbox"
	}
	if c.Sandbox == "" {
		c.Sandbox = config.SandboxAuto // agents of CI jobs read what strangers wrote
		c.Origins["sandbox"] = "the action's default"
	}
	if in.AllowShell != nil {
		c.AllowShell = *in.AllowShell
		c.Origins["allowShell"] = "the input allow-shell"
	}
}

// inheritInputs gives the job rescue the inputs about new threads that the jobs it looks after have
// in the workflow file: it may have to start their thread.
func (j *job) inheritInputs(ctx context.Context) error {
	theirs := inputsBefore(j.branch.workflowText(ctx, j.env.Flavour, j.env.WorkflowFile), j.in.Needs)
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if !strings.Contains(theirs[name], "${{") {
			continue
		}
		delete(theirs, name)
		if j.ask(name) == "" {
			j.in.Unread = name
		}
	}
	in, err := readInputs(func(name string) string { return cmp.Or(theirs[name], j.ask(name)) }) // label has a default
	j.in.Workflow, j.in.Label, j.in.Allow, j.in.Prompt, j.in.MaxSteps = in.Workflow, in.Label, in.Allow, in.Prompt, in.MaxSteps
	return err
}

// inputsBefore are those inputs about new threads that a workflow file gives to some of its jobs, in
// the steps that use what its job rescue uses.
func inputsBefore(file []byte, jobs []ci.Needed) map[string]string {
	var flow struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]string
			}
		}
	}
	out := map[string]string{}
	if yaml.Unmarshal(file, &flow) != nil {
		return out // the forge has read it, so this is our own mistake
	}
	uses := ""
	for _, job := range flow.Jobs {
		for _, s := range job.Steps {
			if s.With["command"] == ci.CommandRescue {
				uses = s.Uses
			}
		}
	}
	for _, needed := range jobs {
		for _, s := range flow.Jobs[needed.Name].Steps {
			for _, name := range []string{"workflow", "label", "allow", "prompt", "max-steps"} {
				if s.Uses == uses && s.With[name] != "" {
					out[name] = s.With[name]
				}
			}
		}
	}
	return out
}
