package forgetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

func workflowRoutes() []route {
	const doc = "actions/workflows#"
	return []route{
		{pattern: "GET actions/workflows", need: "actions=read", doc: doc + "list-repository-workflows", do: (*Server).listWorkflows},
		{pattern: "GET actions/workflows/{file}", need: "actions=read", doc: doc + "get-a-workflow", do: (*Server).getWorkflow},
		{pattern: "POST actions/workflows/{file}/dispatches", need: "actions=write", doc: doc + "create-a-workflow-dispatch-event", do: (*Server).dispatch, only: "github"},
		{pattern: "POST actions/workflows/{file}/dispatches", need: "actions=write", do: (*Server).giteaDispatch, only: "gitea", denied: noWriter},
		{pattern: "GET actions/runs/{run}/attempts/{attempt}/jobs", need: "actions=read", doc: "actions/workflow-jobs#list-jobs-for-a-workflow-run-attempt", do: (*Server).listJobs, only: "github"},
		{pattern: "GET actions/runs/{run}", need: "actions=read", doc: "actions/workflow-runs#get-a-workflow-run", do: (*Server).getRun},
		{pattern: "GET check-runs/{id}/annotations", need: "checks=read", doc: "checks/runs#list-check-run-annotations", do: (*Server).listNotes, only: "github"},
		{pattern: "POST dispatches", need: "contents=write", doc: "repos/repos#create-a-repository-dispatch-event", do: (*Server).dispatchRepository, only: "github"},
	}
}

// Dispatch is a workflow_dispatch or repository_dispatch that was asked for.
type Dispatch struct {
	// Workflow is the file's base name; empty for repository_dispatch.
	Workflow string
	Ref      string
	Inputs   map[string]string
	// Type and Payload are repository_dispatch's.
	Type    string
	Payload map[string]any
	Run     int64
	By      string
}

// job is a job of a run that is over.
type job struct {
	run        string
	attempt    string
	conclusion string
	notes      []string
}

// AddJob adds a job that is over, with what the forge noted at it.
func (s *Server) AddJob(run string, attempt int, conclusion string, notes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.jobs = append(s.state.jobs, job{run, strconv.Itoa(attempt), conclusion, notes})
}

func (s *Server) listJobs(q *request) reply {
	list := []map[string]any{}
	for i, j := range s.state.jobs {
		if j.run == q.PathValue("run") && j.attempt == q.PathValue("attempt") {
			list = append(list, map[string]any{"id": i + 1, "run_id": j.run, "status": "completed", "conclusion": j.conclusion})
		}
	}
	return reply{status: http.StatusOK, body: map[string]any{"total_count": len(list), "jobs": list}}
}

// getRun is a run that AddJob told of.
func (s *Server) getRun(q *request) reply {
	for _, j := range slices.Backward(s.state.jobs) {
		if j.run == q.PathValue("run") {
			return reply{status: http.StatusOK, body: map[string]any{"id": q.number("run"), "status": "completed", "conclusion": j.conclusion}}
		}
	}
	return s.notFound(q)
}

func (s *Server) listNotes(q *request) reply {
	i, err := strconv.Atoi(q.PathValue("id"))
	if err != nil || i < 1 || i > len(s.state.jobs) {
		return s.notFound(q)
	}
	list := []map[string]any{}
	for _, n := range s.state.jobs[i-1].notes {
		list = append(list, map[string]any{"path": ".github", "start_line": 1, "end_line": 1, "annotation_level": "failure", "message": n})
	}
	return reply{status: http.StatusOK, body: list}
}

// Dispatches are all so far, oldest first.
func (s *Server) Dispatches() []Dispatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.state.sent)
}

// TakeDispatches are those that were not taken yet, oldest first.
func (s *Server) TakeDispatches() []Dispatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.state.sent[s.state.taken:])
	s.state.taken = len(s.state.sent)
	return list
}

// workflowFiles are the workflow files of the default branch by their paths. Gitea
// prefers its own folder.
func (s *Server) workflowFiles() []string {
	dirs := []string{".github/workflows"}
	if s.o.Gitea {
		dirs = []string{".gitea/workflows", ".github/workflows"}
	}
	tip := s.rev(s.state.branch)
	for _, dir := range dirs {
		out, err := s.gitOnce("ls-tree", "--name-only", tip, dir+"/")
		if err != nil || out == "" {
			continue
		}
		return slices.DeleteFunc(strings.Split(out, "\n"), func(f string) bool { return path.Ext(f) != ".yml" && path.Ext(f) != ".yaml" })
	}
	return nil
}

func (s *Server) workflowFile(name string) string {
	for _, f := range s.workflowFiles() {
		if path.Base(f) == name {
			return f
		}
	}
	return ""
}

func (s *Server) showWorkflow(id int, file string) map[string]any {
	state := "active"
	if s.state.disabled[path.Base(file)] {
		state = "disabled_manually"
	}
	m := map[string]any{
		"id": id, "node_id": "W_kwDOAAAAAQ", "name": s.nameOf(file), "path": file, "state": state,
		"created_at": s.stamp(s.now()), "updated_at": s.stamp(s.now()),
		"url":      fmt.Sprintf("%s/repos/%s/actions/workflows/%d", s.APIURL, s.Repository(), id),
		"html_url": fmt.Sprintf("%s/%s/blob/%s/%s", s.URL, s.Repository(), s.state.branch, file), "badge_url": "",
	}
	if s.o.Gitea {
		m["id"] = path.Base(file)
		m["url"] = fmt.Sprintf("%s/repos/%s/actions/workflows/%s", s.APIURL, s.Repository(), path.Base(file))
		m["html_url"] = fmt.Sprintf("%s/%s/src/branch/%s/%s", s.URL, s.Repository(), s.state.branch, file)
		m["badge_url"] = fmt.Sprintf("%s/%s/actions/workflows/%s/badge.svg?branch=%s", s.URL, s.Repository(), path.Base(file), s.state.branch)
		delete(m, "node_id")
	}
	return m
}

// nameOf is the name of a workflow file of the default branch, which it may leave out.
func (s *Server) nameOf(file string) string {
	var w struct{ Name string }
	text, err := s.File(s.state.branch, file)
	if err != nil || yaml.Unmarshal([]byte(text), &w) != nil || w.Name == "" {
		return path.Base(file)
	}
	return w.Name
}

func (s *Server) listWorkflows(q *request) reply {
	all := s.workflowFiles()
	part, header := page(s, q, all)
	if s.o.Gitea {
		part, header = all, nil
	}
	list := []map[string]any{}
	for n, f := range part {
		list = append(list, s.showWorkflow(n+1, f))
	}
	return reply{status: http.StatusOK, body: map[string]any{"total_count": len(all), "workflows": list}, header: header}
}

func (s *Server) getWorkflow(q *request) reply {
	f := s.workflowFile(q.PathValue("file"))
	if f == "" {
		return s.noWorkflow(q)
	}
	return reply{status: http.StatusOK, body: s.showWorkflow(1, f)}
}

func (s *Server) noWorkflow(q *request) reply {
	if s.o.Gitea {
		return s.fail(q, http.StatusNotFound, fmt.Sprintf("workflow %q doesn't exist", q.PathValue("file")))
	}
	return s.notFound(q)
}

// trigger is what a workflow file says about workflow_dispatch.
type trigger struct {
	there  bool
	inputs map[string]input
}

type input struct {
	Required bool
	Default  any
}

// triggerOf reads the file as a commit has it.
func (s *Server) triggerOf(commit, file string) (trigger, error) {
	text, err := s.gitOnce("show", commit+":"+file)
	if err != nil {
		return trigger{}, err
	}
	var w struct {
		On yaml.Node `yaml:"on"`
	}
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		return trigger{}, fmt.Errorf("read %s: %w", file, err)
	}
	switch w.On.Kind {
	case yaml.ScalarNode:
		return trigger{there: w.On.Value == "workflow_dispatch"}, nil
	case yaml.SequenceNode:
		for _, n := range w.On.Content {
			if n.Value == "workflow_dispatch" {
				return trigger{there: true}, nil
			}
		}
		return trigger{}, nil
	}
	var on map[string]yaml.Node
	if err := w.On.Decode(&on); err != nil {
		return trigger{}, fmt.Errorf("read %s: %w", file, err)
	}
	n, there := on["workflow_dispatch"]
	var d struct{ Inputs map[string]input }
	if err := n.Decode(&d); there && err != nil {
		return trigger{}, fmt.Errorf("read %s: %w", file, err)
	}
	return trigger{there: there, inputs: d.Inputs}, nil
}

func (s *Server) dispatch(q *request) reply {
	var in struct {
		Ref     string         `json:"ref"`
		Inputs  map[string]any `json:"inputs"`
		Details *bool          `json:"return_run_details"`
	}
	if no, ok := s.decode(q, &in); !ok {
		return no
	}
	file := s.workflowFile(q.PathValue("file"))
	if file == "" {
		return s.noWorkflow(q)
	}
	if in.Details != nil && s.o.RunDetails == DetailsRefused {
		return s.unprocessable(q, "Invalid request.\n\n\"return_run_details\" is not a permitted key.")
	}
	inputs := map[string]string{}
	for k, v := range in.Inputs {
		text, ok := v.(string)
		if !ok {
			return s.unprocessable(q, fmt.Sprintf("Invalid request.\n\nFor 'inputs/%s', %v is not a string.", k, v))
		}
		inputs[k] = text
	}
	if why := s.refuses(in.Ref, file, inputs); why != "" {
		return s.unprocessable(q, why)
	}
	return s.send(q, file, in.Ref, inputs, in.Details != nil && *in.Details)
}

// giteaDispatch: Gitea takes the file as the branch has it, whatever starts it. It
// drops inputs that the file doesn't name, and adds those that were left out.
func (s *Server) giteaDispatch(q *request) reply {
	var in struct {
		Ref    string            `json:"ref"`
		Inputs map[string]string `json:"inputs"`
	}
	if no, ok := s.decode(q, &in); !ok {
		return no
	}
	file := s.workflowFile(q.PathValue("file"))
	branch := strings.TrimPrefix(in.Ref, "refs/heads/")
	switch {
	case in.Ref == "":
		return s.unprocessable(q, "[Ref]: Required")
	case s.state.disabled[q.PathValue("file")]:
		return s.fail(q, http.StatusForbidden, "workflow is disabled")
	case s.rev(branch) == "":
		return s.fail(q, http.StatusNotFound, fmt.Sprintf("ref %q doesn't exist", in.Ref))
	case file == "":
		return s.noWorkflow(q)
	}
	t, err := s.triggerOf("refs/heads/"+branch, file)
	if err != nil {
		return s.noWorkflow(q)
	}
	inputs := map[string]string{}
	for name, config := range t.inputs {
		value, given := in.Inputs[name]
		if !given && config.Default != nil {
			value = fmt.Sprint(config.Default)
		}
		inputs[name] = value
	}
	return s.send(q, file, in.Ref, inputs, q.URL.Query().Get("return_run_details") == "true")
}

// send takes a dispatch. Its run is told where the request asks and the forge is one
// that answers.
func (s *Server) send(q *request, file, ref string, inputs map[string]string, details bool) reply {
	d := Dispatch{Workflow: path.Base(file), Ref: ref, Inputs: inputs, Run: s.id(), By: q.token.login}
	s.state.sent = append(s.state.sent, d)
	if !details || s.o.RunDetails != DetailsGiven {
		return reply{status: http.StatusNoContent}
	}
	return reply{status: http.StatusOK, body: map[string]any{
		"workflow_run_id": d.Run,
		"run_url":         fmt.Sprintf("%s/repos/%s/actions/runs/%d", s.APIURL, s.Repository(), d.Run),
		"html_url":        fmt.Sprintf("%s/%s/actions/runs/%d", s.URL, s.Repository(), d.Run),
	}}
}

func (s *Server) unprocessable(q *request, why string) reply {
	return s.fail(q, http.StatusUnprocessableEntity, why)
}

// The most inputs of a dispatch, and the most characters in all of them.
const (
	maxInputs     = 25
	maxInputsSize = 65535
)

// refuses says why GitHub does not take a dispatch; empty where it does.
func (s *Server) refuses(ref, file string, inputs map[string]string) string {
	branch := strings.TrimPrefix(ref, "refs/heads/")
	if s.rev(branch) == "" {
		return "No ref found for: " + ref
	}
	if s.state.disabled[path.Base(file)] {
		return "Cannot trigger a 'workflow_dispatch' on a disabled workflow"
	}
	t, err := s.triggerOf(s.rev(branch), file)
	if err != nil || !t.there {
		return "Workflow does not have 'workflow_dispatch' trigger"
	}
	if len(inputs) > maxInputs {
		return fmt.Sprintf("Invalid request.\n\nNo more than %d properties are allowed; %d were supplied.", maxInputs, len(inputs))
	}
	var unknown []string
	size := 0
	for _, k := range slices.Sorted(maps.Keys(inputs)) {
		size += len(k) + len(inputs[k])
		if _, ok := t.inputs[k]; !ok {
			unknown = append(unknown, k)
		}
	}
	if len(unknown) > 0 {
		list, err := json.Marshal(unknown)
		if err != nil {
			return err.Error()
		}
		return "Unexpected inputs provided: " + string(list)
	}
	if size > maxInputsSize {
		return "inputs are too large."
	}
	for _, k := range slices.Sorted(maps.Keys(t.inputs)) {
		if in := t.inputs[k]; in.Required && in.Default == nil && inputs[k] == "" {
			return fmt.Sprintf("Required input '%s' not provided", k)
		}
	}
	return ""
}

func (s *Server) dispatchRepository(q *request) reply {
	var in struct {
		Type    string         `json:"event_type"`
		Payload map[string]any `json:"client_payload"`
	}
	if no, ok := s.decode(q, &in); !ok {
		return no
	}
	switch {
	case in.Type == "":
		return s.unprocessable(q, "Invalid request.\n\n\"event_type\" wasn't supplied.")
	case len(in.Type) > 100:
		return s.unprocessable(q, "Invalid request.\n\nevent_type is too long (maximum is 100 characters).")
	case len(in.Payload) > 10:
		return s.unprocessable(q, fmt.Sprintf("Invalid request.\n\nNo more than 10 properties are allowed; %d were supplied.", len(in.Payload)))
	}
	s.state.sent = append(s.state.sent, Dispatch{Type: in.Type, Payload: in.Payload, Ref: s.state.branch, Run: s.id(), By: q.token.login})
	return reply{status: http.StatusNoContent}
}
