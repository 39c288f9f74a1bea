package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
	"github.com/united-workforce/uwf/internal/yamlline"
)

// maxFile is the largest file that is read, in bytes.
const maxFile = 1 << 20

// workflowFolders are where workflow files lie. Gitea reads its own folder if it is there,
// and then not GitHub's.
func workflowFolders() []string { return []string{".gitea/workflows", ".github/workflows"} }

// checkFiles are the checks of what lies in the repository.
func (e *examination) checkFiles() {
	if e.o.Other == "" {
		e.addFindings("workflow", e.checkWorkflow())
	}
	if e.flow != nil {
		e.addFindings("syntax", e.checkSyntax()...)
		e.addFindings("triggers", e.checkTriggers())
		e.addFindings("permissions", e.checkPermissions())
	}
	settings := e.checkSettings()
	e.addFindings("settings", settings...)
	for _, policy := range e.o.Policies {
		e.addFindings("policy", findOK("%s", policy))
	}
	for _, refused := range e.o.Refused {
		e.addFindings("policy", findMissing(refused, "choose what the policy allows, or ask whose policy it is"))
	}
	if settings[0].State == OK && !e.o.InJob && !e.o.StateRemote {
		e.addFindings("state", findLacking("state.remote is not set: threads that are started here stay in this repository, and no job sees them", "uwf config set --repo state.remote origin"))
	}
	if found, ok := checks.FindInstall(worker.ReadTop(e.o.Files)); ok && !e.o.Prepares {
		e.addFindings("prepare", findLacking(worker.DescribeInstall(found.Locks), worker.AdviseInstall(found)))
	}
	if _, err := fs.Stat(e.o.Files, ".gitmodules"); err == nil && !e.o.Submodules {
		e.addFindings("submodules", findLacking("agents work without the files of the submodules in .gitmodules", "uwf config set --repo workspace.submodules true"))
	}
	if e.flow != nil && e.o.Prepares {
		e.addFindings("prepare", e.flow.checkStorage()...)
	}
	e.addFindings("definitions", e.checkDefinitions())
	e.addFindings("committed", e.checkCommitted())
	e.addFindings("sandbox", e.checkSandbox())
}

// flow is what is looked at in a workflow file.
type flow struct {
	path string
	data []byte
	root *yaml.Node // the file's mapping
	jobs []job      // those that use uwf
}

type job struct {
	name        string
	with        map[string]string // what it gives to the action
	permissions yaml.Node         // its own, else the file's
	calls       string            // the workflow elsewhere that uses the action; empty: it does
	secrets     yaml.Node         // what that is given
	runner      string            // what runs-on says
	keeps       bool              // UWF_HOME is set
}

// usesUwf matches the action, wherever it is kept, and its host variant.
var usesUwf = lazyregexp.New(`(^|/)uwf(/\.github/actions/host)?@|^\./(\.github/actions/host)?$`)

// checkWorkflow finds the workflow file that uses uwf.
func (e *examination) checkWorkflow() Finding {
	for _, file := range e.listFiles(workflowFolders()) {
		name := path.Base(file)
		if !isYAML(name) || e.o.Workflow != "" && name != e.o.Workflow {
			continue
		}
		f, err := e.readFlow(file)
		if err != nil && (e.o.Workflow != "" || strings.HasPrefix(name, "uwf.")) {
			return findMissing(err.Error(), "mend the file, or have it written anew: uwf init --force")
		}
		if f != nil {
			e.flow = f
			return findOK("%s uses uwf", file)
		}
	}
	if e.o.Workflow != "" {
		return findMissing("there is no workflow file "+e.o.Workflow, "uwf init")
	}
	return findMissing("no file below .github/workflows uses uwf", "uwf init")
}

// listFiles are the files in some folders, by name. A folder that can't be read has none.
func (e *examination) listFiles(folders []string) []string {
	var out []string
	for _, dir := range folders {
		found, _ := fs.Glob(e.o.Files, dir+"/*") // the pattern is right
		out = append(out, found...)
	}
	return out
}

func isYAML(name string) bool { return path.Ext(name) == ".yml" || path.Ext(name) == ".yaml" }

// readFlow reads a workflow file; nil: it does not use uwf.
func (e *examination) readFlow(name string) (*flow, error) {
	data, err := e.readFile(name)
	if err != nil {
		return nil, err
	}
	f := &flow{path: name, data: data, root: &yaml.Node{}}
	var said struct {
		Permissions yaml.Node `yaml:"permissions"`
		Env         yaml.Node `yaml:"env"`
		Jobs        map[string]struct {
			Permissions yaml.Node `yaml:"permissions"`
			RunsOn      yaml.Node `yaml:"runs-on"`
			Env         yaml.Node `yaml:"env"`
			Uses        string    `yaml:"uses"`
			Secrets     yaml.Node `yaml:"secrets"`
			Steps       []struct {
				Uses string            `yaml:"uses"`
				Env  yaml.Node         `yaml:"env"`
				With map[string]string `yaml:"with"`
			} `yaml:"steps"`
		} `yaml:"jobs"`
	}
	if err = yaml.Unmarshal(data, f.root); err == nil && len(f.root.Content) > 0 {
		f.root = f.root.Content[0]
		err = f.root.Decode(&said)
	}
	if err != nil {
		line, message := yamlline.Find(string(data), err)
		if line > 0 {
			message = fmt.Sprintf("line %d: %s", line, message)
		}
		return nil, fmt.Errorf("%s can't be read: %s", name, message)
	}
	for name, j := range said.Jobs {
		if j.Permissions.IsZero() {
			j.Permissions = said.Permissions
		}
		for _, s := range j.Steps {
			if usesUwf.MatchString(s.Uses) {
				keeps := slices.ContainsFunc([]*yaml.Node{&said.Env, &j.Env, &s.Env}, func(env *yaml.Node) bool { return valueOf(env, "UWF_HOME") != nil })
				runner, _ := yaml.Marshal(&j.RunsOn) // which was read from YAML
				f.jobs = append(f.jobs, job{name: name, with: s.With, permissions: j.Permissions, runner: strings.TrimSpace(string(runner)), keeps: keeps})
				break
			}
		}
		if f.callsUwf(j.Uses) {
			f.jobs = append(f.jobs, job{name: name, permissions: j.Permissions, calls: j.Uses, secrets: j.Secrets})
		}
	}
	on := valueOf(f.root, "on")
	isCalled := valueOf(on, "workflow_call") != nil && len(mappingPairs(on)) == 1 // by the file that starts the jobs
	if len(f.jobs) == 0 || isCalled {
		return nil, nil //nolint:nilnil // a file of others
	}
	return f, nil
}

// forgeRunner matches the labels of runners that a forge lends, which begin empty and have its
// cache, and labels that are known only when the job starts.
var forgeRunner = lazyregexp.New(`^\W*(ubuntu|windows|macos)-|\$\{\{`)

// checkStorage names a job that works on a runner of one's own and keeps nothing that it prepares.
func (f *flow) checkStorage() []Finding {
	for _, j := range f.jobs {
		works := j.calls == "" && slices.Contains([]string{"", "step", "run"}, j.with["command"])
		if works && !j.keeps && j.runner != "" && !forgeRunner.MatchString(j.runner) {
			return []Finding{findLacking(fmt.Sprintf("%s: each job on the runner %s installs what workspace.prepare names again", f.path, j.runner),
				"let job "+j.name+" use the action united-workforce/uwf/.github/actions/host, with UWF_HOME in env set to a folder that lasts on the runner")}
		}
	}
	return nil
}

// calledFile is the workflow elsewhere that has uwf's jobs; empty: this file has them.
func (f *flow) calledFile() string {
	for _, j := range f.jobs {
		if j.calls != "" {
			return j.calls
		}
	}
	return ""
}

// adviseRewrite says how the file is had as it should be. What uwf init writes has jobs of its own, which
// an organisation's policy does not reach.
func (f *flow) adviseRewrite() string {
	if calls := f.calledFile(); calls != "" {
		return "or have it written anew: uwf init --reusable " + text.ShellWord(calls) + " --force"
	}
	return "or have it written anew: uwf init --force"
}

// callsUwf tells a workflow that is called for uwf's jobs: by its name, or by what this file takes
// for the next job.
func (f *flow) callsUwf(uses string) bool {
	file, _, _ := strings.Cut(uses, "@")
	given := valueOf(valueOf(valueOf(f.root, "on"), "workflow_dispatch"), "inputs")
	return isYAML(file) && (strings.HasPrefix(path.Base(file), "uwf") || valueOf(given, "thread") != nil && valueOf(given, "head") != nil)
}

func (e *examination) readFile(name string) ([]byte, error) {
	info, err := fs.Stat(e.o.Files, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s is no regular file of at most %d bytes", name, maxFile)
	}
	return fs.ReadFile(e.o.Files, name)
}

// dispatchInputs are the inputs that uwf gives the next job. GitHub refuses a dispatch
// with an input that the file does not declare.
func (e *examination) dispatchInputs() []string {
	names := []string{"thread", "head", "store", "comment", "pull-request"}
	for _, j := range e.flow.jobs {
		switch {
		case j.with["command"] == "rescue", j.calls != "":
			names = append(names, "rescued")
		case j.with["command"] == "commit":
			names = append(names, "claim")
		}
	}
	return names
}

func (e *examination) checkTriggers() Finding {
	on := valueOf(e.flow.root, "on")
	dispatch := valueOf(on, "workflow_dispatch")
	inputs := valueOf(dispatch, "inputs")
	lacks := slices.DeleteFunc(e.dispatchInputs(), func(name string) bool { return valueOf(inputs, name) != nil })
	switch {
	case dispatch == nil:
		return findMissing(e.flow.path+" can't be started by the job before: it has no workflow_dispatch", "add what the shipped file has below on.workflow_dispatch, "+e.flow.adviseRewrite())
	case len(lacks) > 0:
		return findMissing(fmt.Sprintf("%s does not declare the inputs %s, so no next job can be started", e.flow.path, strings.Join(lacks, ", ")), "add them below on.workflow_dispatch.inputs, "+e.flow.adviseRewrite())
	case valueOf(on, "schedule") == nil:
		return findLacking(e.flow.path+" has no schedule: threads whose job died wait for the next event", "add a schedule, as the shipped file has it")
	}
	return findOK("the next job can be started")
}

// checkPermissions compares the rights that the file gives its jobs with those that they
// need.
func (e *examination) checkPermissions() Finding {
	var lacks []string
	unsaid := false
	for _, j := range e.flow.jobs {
		if j.permissions.IsZero() {
			unsaid = true
			continue
		}
		for _, need := range neededRights(j.with) {
			if !isGranted(j.permissions, need.scope, need.level) {
				lacks = append(lacks, fmt.Sprintf("%s: %s (job %s)", need.scope, need.level, j.name))
			}
		}
	}
	slices.Sort(lacks)
	switch {
	case len(lacks) > 0:
		return findMissing(fmt.Sprintf("%s does not give %s", e.flow.path, strings.Join(lacks, ", ")), "add it below permissions: of that job")
	case slices.ContainsFunc(e.flow.jobs, func(j job) bool {
		return j.calls != "" && !j.permissions.IsZero() && !isGranted(j.permissions, "checks", "read")
	}):
		return findLacking(e.flow.path+" does not give checks: read, which tells in a called workflow's job stopped who cancelled the run: where it asks for that, GitHub starts no job at all", "add it below permissions: of that job")
	case unsaid:
		return findUnknown(true, e.flow.path+" says nothing about permissions, so the repository's setting counts", "write down what the job needs: permissions: {contents: write, issues: write, pull-requests: write, actions: write}")
	}
	return findOK("%s gives its jobs what they need", e.flow.path)
}

type right struct{ scope, level string }

// neededRights are the rights of a job, by what it gives to the action.
func neededRights(with map[string]string) []right {
	out := []right{{"contents", "write"}, {"issues", "write"}, {"pull-requests", "write"}, {"actions", "write"}}
	switch with["command"] {
	case "run": // of two jobs the one that only works
		out = []right{{"contents", "read"}}
	case "rescue":
		out = []right{{"contents", "write"}, {"issues", "write"}, {"actions", "write"}}
	case "stopped":
		out = []right{{"contents", "write"}, {"issues", "write"}, {"actions", "read"}, {"checks", "read"}}
	}
	if with["provider"] == "github-models" && with["command"] != "commit" && with["api-key"] == "" {
		out = append(out, right{"models", "read"})
	}
	return out
}

// isGranted reads a permissions block: a mapping, or read-all or write-all.
func isGranted(node yaml.Node, scope, level string) bool {
	if node.Kind == yaml.ScalarNode {
		return node.Value == "write-all" || node.Value == "read-all" && level == "read"
	}
	var m map[string]string
	if node.Decode(&m) != nil {
		return false
	}
	return m[scope] == level || m[scope] == "write"
}

// configFile is the repository's settings file.
const configFile = ".uwf/config.yaml"

// checkSettings finds whether they can be used, and what they warn of.
func (e *examination) checkSettings() []Finding {
	data, err := e.readFile(configFile)
	problems := config.Check(configFile, data)
	switch {
	case errors.Is(err, fs.ErrNotExist) && e.o.NoSettings == "":
		return []Finding{findLacking("there is no "+configFile+": uwf works with what it finds in the environment", "uwf init")}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return []Finding{findMissing(err.Error(), "mend "+configFile)}
	case len(problems) > 0:
		return []Finding{findMissing(problems[0].String(), "mend "+configFile+"; see them all: uwf config validate")}
	case e.o.NoSettings != "":
		return []Finding{findMissing(e.o.NoSettings, "mend what it names; see all settings and where they come from: uwf config show")}
	}
	lacking := lists.Map(e.o.Warnings, func(w string) Finding { return findLacking(w, "see them all: uwf config validate") })
	return append([]Finding{findOK("%s can be used", configFile)}, lacking...)
}

func (e *examination) checkDefinitions() Finding {
	var names []string
	for _, file := range slices.DeleteFunc(e.listFiles(definitionFolders()), func(file string) bool { return !isYAML(file) }) {
		if err := e.checkDefinition(file); err != nil {
			return findMissing(err.Error(), "see all that is wrong: uwf workflow validate")
		}
		names = append(names, strings.TrimSuffix(path.Base(file), path.Ext(file)))
	}
	if len(names) == 0 {
		return findMissing("there is no workflow in .uwf/workflows: nobody knows what agents should do", "uwf init")
	}
	return findOK("agents can work by %s", strings.Join(names, ", "))
}

func (e *examination) checkDefinition(file string) error {
	data, err := e.readFile(file)
	if err != nil {
		return err
	}
	schemas := &unreadSchemas{}
	_, err = workflow.Parse(file, data, workflow.Options{Nodes: schemas, Include: func(name string) ([]byte, error) {
		return e.readFile(path.Join(path.Dir(file), name))
	}})
	if schemas.asked {
		return nil
	}
	if invalid, ok := errors.AsType[*workflow.InvalidError](err); ok && len(invalid.Problems) > 0 {
		return errors.New(invalid.Problems[0].String())
	}
	return err
}

// unreadSchemas stands for schemas that a definition names by their hash. They lie on the
// state branch, so such a definition can't be judged by the files alone.
type unreadSchemas struct{ asked bool }

// Get gives none.
func (e *unreadSchemas) Get(node.Hash) (node.Node, error) {
	e.asked = true
	return node.Node{}, errors.New("it lies on the state branch")
}

// secretName finds the secret in an expression.
var secretName = lazyregexp.New(`^\s*\$\{\{\s*secrets\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}\s*$`)

// secretNames are the names of the secrets that the action is given as its key. literal:
// a key itself stands there.
func (f *flow) secretNames() (names []string, literal bool) {
	var keys []string
	for _, j := range f.jobs {
		keys = append(keys, j.with["api-key"])
		for _, p := range mappingPairs(&j.secrets) {
			keys = append(keys, p.value.Value)
		}
	}
	for _, key := range keys {
		m := secretName.FindStringSubmatch(key)
		switch {
		case key == "":
		case m == nil && !strings.Contains(key, "${{"):
			return nil, true
		case m != nil && !slices.Contains(names, m[1]):
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return names, false
}
