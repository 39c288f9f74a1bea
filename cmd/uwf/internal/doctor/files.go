package doctor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/yamlline"
)

// maxFile is the largest file that is read, in bytes.
const maxFile = 1 << 20

// workflowFolders are where workflow files lie. Gitea reads its own folder if it is there,
// and then not GitHub's.
func workflowFolders() []string { return []string{".gitea/workflows", ".github/workflows"} }

// checkFiles are the checks of what lies in the repository.
func (e *examination) checkFiles() {
	e.workflowFile()
	e.checkSettings()
	e.checkDefinitions()
	e.checkCommitted()
	e.checkSandbox()
}

// flow is what is looked at in a workflow file.
type flow struct {
	path        string
	root        *yaml.Node     // the file's mapping
	On          yaml.Node      `yaml:"on"`
	Permissions yaml.Node      `yaml:"permissions"`
	Jobs        map[string]job `yaml:"jobs"`
}

type job struct {
	Permissions yaml.Node `yaml:"permissions"`
	Steps       []struct {
		Uses string            `yaml:"uses"`
		With map[string]string `yaml:"with"`
	} `yaml:"steps"`
}

// actionStep is what a job gives to the action; false: it does not use it.
func (j job) actionStep() (with map[string]string, ok bool) {
	for _, s := range j.Steps {
		if usesUwf.MatchString(s.Uses) {
			return s.With, true
		}
	}
	return nil, false
}

// usesUwf matches the action, wherever it is kept, and its host variant.
var usesUwf = lazyregexp.New(`(^|/)uwf(/\.github/actions/host)?@|^\./(\.github/actions/host)?$`)

func (e *examination) workflowFile() {
	f, err := e.findFlow()
	switch {
	case err != nil:
		e.addFinding("workflow", true, Missing, err.Error(), "mend the file, or have it written anew: uwf init --force")
		return
	case f == nil && e.o.Workflow != "":
		e.addFinding("workflow", true, Missing, fmt.Sprintf("there is no workflow file %s", e.o.Workflow), "uwf init")
		return
	case f == nil:
		e.addFinding("workflow", true, Missing, "no file below .github/workflows uses uwf", "uwf init")
		return
	}
	e.flow = f
	e.addOK("workflow", f.path+" uses uwf")
	e.checkSyntax(f.root)
	e.checkTriggers()
	e.checkPermissions()
}

// findFlow finds the workflow file that uses uwf; nil: there is none.
func (e *examination) findFlow() (*flow, error) {
	for _, dir := range workflowFolders() {
		entries, err := fs.ReadDir(e.o.Files, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look into %s: %w", dir, err)
		}
		for _, entry := range entries {
			name := entry.Name()
			if ext := path.Ext(name); ext != ".yml" && ext != ".yaml" || e.o.Workflow != "" && name != e.o.Workflow {
				continue
			}
			f, err := e.readFlow(path.Join(dir, name))
			if err != nil && (e.o.Workflow != "" || strings.HasPrefix(name, "uwf.")) {
				return nil, err
			}
			if f != nil {
				return f, nil
			}
		}
	}
	return nil, nil //nolint:nilnil // no file is an answer
}

// readFlow reads a workflow file; nil: it does not use uwf.
func (e *examination) readFlow(name string) (*flow, error) {
	data, err := e.readFile(name)
	if err != nil {
		return nil, err
	}
	f := &flow{path: name}
	var document yaml.Node
	err = yaml.Unmarshal(data, &document)
	if err == nil && len(document.Content) > 0 {
		f.root = document.Content[0]
		err = f.root.Decode(f)
	}
	if err != nil {
		line, message := yamlline.Find(string(data), err)
		if line > 0 {
			message = fmt.Sprintf("line %d: %s", line, message)
		}
		return nil, fmt.Errorf("%s can't be read: %s", name, message)
	}
	for _, j := range f.Jobs {
		if _, ok := j.actionStep(); ok {
			return f, nil
		}
	}
	return nil, nil //nolint:nilnil // a file of others
}

func (e *examination) readFile(name string) ([]byte, error) {
	info, err := fs.Stat(e.o.Files, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	file, err := e.o.Files.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err = errors.Join(err, file.Close()); err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return data, err
}

// dispatchInputs are the inputs that uwf gives the next job. GitHub refuses a dispatch
// with an input that the file does not declare.
func (e *examination) dispatchInputs() []string {
	names := []string{"thread", "head", "store", "comment", "pull-request"}
	for _, j := range e.flow.Jobs {
		with, _ := j.actionStep()
		switch with["command"] {
		case "rescue":
			names = append(names, "rescued")
		case "commit":
			names = append(names, "claim")
		}
	}
	return names
}

func (e *examination) checkTriggers() {
	const check = "triggers"
	var on map[string]yaml.Node
	if e.flow.On.Decode(&on) != nil {
		on = nil
	}
	var dispatch struct {
		Inputs map[string]yaml.Node `yaml:"inputs"`
	}
	node, ok := on["workflow_dispatch"]
	if ok && node.Decode(&dispatch) != nil {
		ok = false
	}
	if !ok {
		e.addFinding(check, true, Missing, e.flow.path+" can't be started by the job before: it has no workflow_dispatch", "add what the shipped file has below on.workflow_dispatch, or: uwf init --force")
		return
	}
	var lacks []string
	for _, name := range e.dispatchInputs() {
		if _, ok := dispatch.Inputs[name]; !ok {
			lacks = append(lacks, name)
		}
	}
	if len(lacks) > 0 {
		e.addFinding(check, true, Missing, fmt.Sprintf("%s does not declare the inputs %s, so no next job can be started", e.flow.path, strings.Join(lacks, ", ")), "add them below on.workflow_dispatch.inputs, or: uwf init --force")
		return
	}
	if _, ok := on["schedule"]; !ok {
		e.addFinding(check, false, Missing, e.flow.path+" has no schedule: threads whose job died wait for the next event", "add a schedule, as the shipped file has it")
		return
	}
	e.addOK(check, "the next job can be started")
}

// checkPermissions compares the rights that the file gives its jobs with those that they
// need.
func (e *examination) checkPermissions() {
	const check = "permissions"
	var lacks, unsaid []string
	for name, j := range e.flow.Jobs {
		with, ok := j.actionStep()
		if !ok {
			continue
		}
		node := j.Permissions
		if node.IsZero() {
			node = e.flow.Permissions
		}
		if node.IsZero() {
			unsaid = append(unsaid, name)
			continue
		}
		for _, need := range neededRights(with) {
			if !isGranted(node, need.scope, need.level) {
				lacks = append(lacks, fmt.Sprintf("%s: %s (job %s)", need.scope, need.level, name))
			}
		}
	}
	slices.Sort(lacks)
	switch {
	case len(lacks) > 0:
		e.addFinding(check, true, Missing, fmt.Sprintf("%s does not give %s", e.flow.path, strings.Join(lacks, ", ")), "add it below permissions: of that job")
	case len(unsaid) > 0:
		e.addFinding(check, true, Unknown, fmt.Sprintf("%s says nothing about permissions, so the repository's setting counts", e.flow.path), "write down what the job needs: permissions: {contents: write, issues: write, pull-requests: write, actions: write}")
	default:
		e.addOK(check, e.flow.path+" gives its jobs what they need")
	}
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

func (e *examination) checkSettings() {
	const check = "settings"
	data, err := e.readFile(configFile)
	if errors.Is(err, fs.ErrNotExist) && e.o.NoSettings == "" {
		e.addFinding(check, false, Missing, "there is no "+configFile+": uwf works with what it finds in the environment", "uwf init")
		return
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.addFinding(check, true, Missing, err.Error(), "mend "+configFile)
		return
	}
	if problems := config.Check(configFile, data); len(problems) > 0 {
		e.addFinding(check, true, Missing, problems[0].String(), "mend "+configFile+"; see them all: uwf config validate")
		return
	}
	if e.o.NoSettings != "" {
		e.addFinding(check, true, Missing, e.o.NoSettings, "mend what it names; see all settings and where they come from: uwf config show")
		return
	}
	e.addOK(check, configFile+" can be used")
	for _, w := range e.o.Warnings {
		e.addFinding(check, false, Missing, w, "see them all: uwf config validate")
	}
	if !e.o.InJob && !e.o.StateRemote {
		e.addFinding("state", false, Missing, "state.remote is not set: threads that are started here stay in this repository, and no job sees them", "uwf config set --repo state.remote origin")
	}
}

func (e *examination) checkDefinitions() {
	const check = "definitions"
	var names, broken []string
	for _, dir := range definitionFolders() {
		entries, err := fs.ReadDir(e.o.Files, dir)
		if err != nil {
			continue // that it is missing is said below
		}
		for _, entry := range entries {
			ext := path.Ext(entry.Name())
			if ext != ".yaml" && ext != ".yml" || entry.IsDir() {
				continue
			}
			file := path.Join(dir, entry.Name())
			if err := e.checkDefinition(file); err != nil {
				broken = append(broken, err.Error())
				continue
			}
			names = append(names, strings.TrimSuffix(entry.Name(), ext))
		}
	}
	switch {
	case len(broken) > 0:
		e.addFinding(check, true, Missing, broken[0], "see all that is wrong: uwf workflow validate")
	case len(names) == 0:
		e.addFinding(check, true, Missing, "there is no workflow in .uwf/workflows: nobody knows what agents should do", "uwf init")
	default:
		e.addOK(check, "agents can work by "+strings.Join(names, ", "))
	}
}

func (e *examination) checkDefinition(file string) error {
	data, err := e.readFile(file)
	if err != nil {
		return err
	}
	schemas := &elsewhere{}
	_, err = workflow.Parse(file, data, workflow.Options{Nodes: schemas, Include: func(name string) ([]byte, error) {
		return e.readFile(path.Join(path.Dir(file), name))
	}})
	if schemas.asked {
		return nil
	}
	var invalid *workflow.InvalidError
	if errors.As(err, &invalid) && len(invalid.Problems) > 0 {
		return errors.New(invalid.Problems[0].String())
	}
	return err
}

// elsewhere stands for schemas that a definition names by their hash. They lie on the
// state branch, so such a definition can't be judged by the files alone.
type elsewhere struct{ asked bool }

// Get gives none.
func (e *elsewhere) Get(node.Hash) (node.Node, error) {
	e.asked = true
	return node.Node{}, errors.New("it lies on the state branch")
}

// secretName finds the secret in an expression.
var secretName = lazyregexp.New(`^\s*\$\{\{\s*secrets\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}\s*$`)

// secretNames are the names of the secrets that the action is given as its key. literal:
// a key itself stands there.
func (f *flow) secretNames() (names []string, literal bool) {
	for _, j := range f.Jobs {
		with, ok := j.actionStep()
		key := with["api-key"]
		if !ok || key == "" {
			continue
		}
		m := secretName.FindStringSubmatch(key)
		switch {
		case m == nil && !strings.Contains(key, "${{"):
			return nil, true
		case m != nil && !slices.Contains(names, m[1]):
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return names, false
}
