package action

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sethvargo/go-githubactions"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
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
	r := reader{ask: ask}
	in := inputs{
		Inputs: ci.Inputs{
			Workflow: ask("workflow"), Prompt: ask("prompt"), Thread: r.readThread("thread"), Head: r.readHead("head"),
			Agent: ask("agent"), MaxSteps: r.readCount("max-steps", 0), StepsPerJob: r.readCount("steps-per-job", 1),
			Label: cmp.Or(ask("label"), defaultLabel), Allow: r.readList("allow"),
			Comment: r.readWanted("comment"), PullRequest: r.readWanted("pull-request"), Draft: r.readYes("draft"),
			Dispatch: ask("dispatch"), Artifact: cmp.Or(ask("artifact"), defaultArtifact), Needs: r.readNeeds("needs"),
		},
		Store: ask("store"), StateBranch: ask("state-branch"), Config: cmp.Or(ask("config"), defaultConfig),
		Model: ask("model"), Provider: ask("provider"), BaseURL: ask("base-url"), APIKey: ask("api-key"), Token: ask("token"),
		Timeout: r.readDuration("timeout"), Sandbox: r.readSandbox("sandbox"),
	}
	if ask("allow-shell") != "" {
		v := r.readYes("allow-shell")
		in.AllowShell = &v
	}
	r.readCommand(&in)
	r.checkAddresses(in)
	r.checkDispatch(in.Dispatch)
	if len(r.wrong) > 0 {
		return in, &app.UsageError{Err: fmt.Errorf("the action's inputs: %s", strings.Join(r.wrong, "; "))}
	}
	return in, nil
}

// reader reads inputs of one kind each, and notes what is wrong.
type reader struct {
	ask   Ask
	wrong []string
}

// addProblem notes what is wrong with an input. Values are repeated only where they can
// be no secret that somebody put into the wrong input.
func (r *reader) addProblem(name, format string, args ...any) {
	r.wrong = append(r.wrong, name+" "+fmt.Sprintf(format, args...))
}

func (r *reader) readCommand(in *inputs) {
	switch v := r.ask("command"); v {
	case "", commandStep:
	case ci.CommandRun, ci.CommandCommit, ci.CommandRescue, ci.CommandStopped:
		in.Command = v
	case commandDoctor:
		in.Doctor = true
	default:
		r.addProblem("command", "is %.40q: write step, run, commit, rescue, stopped or doctor", v)
	}
}

func (r *reader) readThread(name string) gitcas.ThreadID {
	id := gitcas.ThreadID(strings.ToUpper(r.ask(name)))
	if id != "" && !id.Valid() {
		r.addProblem(name, "is %.40q, which is no thread's id: 26 characters, such as 01JY0000000000000000000000", id)
	}
	return id
}

func (r *reader) readHead(name string) node.Pin {
	v := r.ask(name)
	if v == "" {
		return node.Pin{}
	}
	h, err := node.ParsePin(v)
	if err != nil {
		r.addProblem(name, "is %.100q: %v", v, err)
	}
	return h
}

// readCount reads a whole number from 1.
func (r *reader) readCount(name string, otherwise int) int {
	v := r.ask(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		r.addProblem(name, "is %.40q: write a whole number from 1, such as 20", v)
	}
	return n
}

func (r *reader) readYes(name string) bool {
	switch v := strings.ToLower(r.ask(name)); v {
	case "", "false":
		return false
	case "true":
		return true
	default:
		r.addProblem(name, "is %.40q: write true or false", v)
		return false
	}
}

func (r *reader) readDuration(name string) time.Duration {
	v := r.ask(name)
	if v == "" {
		return 0
	}
	d, _ := time.ParseDuration(v) // 0 where it is none
	if d <= 0 {
		r.addProblem(name, "is %.40q: write a time with its unit, such as 90s, 20m or 2h", v)
	}
	return d
}

func (r *reader) readWanted(name string) ci.Wanted {
	w, err := ci.ParseWanted(r.ask(name))
	if err != nil {
		r.addProblem(name, "is %v", err)
	}
	return w
}

func (r *reader) readNeeds(name string) []ci.Needed {
	n, err := ci.ParseNeeds(r.ask(name))
	if err != nil {
		r.addProblem(name, "is %v", err)
	}
	return n
}

func (r *reader) readSandbox(name string) config.Sandbox {
	switch v := config.Sandbox(strings.ToLower(r.ask(name))); v {
	case "", config.SandboxOff, config.SandboxAuto, config.SandboxRequire:
		return v
	default:
		r.addProblem(name, "is %.40q: write require, auto or off", v)
		return ""
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
