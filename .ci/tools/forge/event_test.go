package forge

import (
	"encoding/json"
	"fmt"
	"net/http"

	runnerv1 "code.gitea.io/actions-proto-go/runner/v1"
	"github.com/united-workforce/uwf/internal/forgetest"
)

var listeningFiles = map[string]string{
	"README.md": "# Demo\n",
	workflowFile: `name: uwf
on:
  issues: {types: [labeled, assigned]}
  issue_comment: {types: [created]}
  pull_request: {types: [labeled]}
  workflow_dispatch:
    inputs: {thread: {type: string}, head: {type: string}}
jobs: {step: {runs-on: ubuntu-latest, steps: [{run: "true"}]}}
`,
}

// events does the same on both forges and compares what their jobs are told of it.
func (s *site) events() {
	r := s.addRepository("octo", "events", true, listeningFiles)
	f := forgetest.Start(s.T, forgetest.Options{Gitea: true, Owner: "octo", Name: "events", Private: true})
	f.MustCommit(s, "main", "Begin", listeningFiles)
	r.allow("alice", "write")
	f.SetPermission("alice", "write")
	r.commit("octo", "work", "Work", map[string]string{"work.txt": "a\n"})
	_, err := f.Git("branch", "work", "main")
	mustDo(s, err)
	f.MustCommit(s, "work", "Work", map[string]string{"work.txt": "a\n"})
	n := r.openIssueSaying("alice", "It breaks", "Sometimes.")
	f.OpenIssue("alice", "It breaks", "Sometimes.")
	var p struct{ Number int }
	r.call("alice", http.MethodPost, r.path("pulls"), map[string]string{"title": "Fix it", "body": "Fixes #1", "head": "work", "base": "main"}, &p)
	f.OpenPull("alice", "Fix it", "Fixes #1", forgetest.Pull{Head: "work", Base: "main"})
	runs := r.addRunner()
	real, fake := &side{url: s.URL}, &side{url: f.URL}
	inputs := map[string]string{"thread": "T", "head": "H"}
	for _, e := range []struct {
		name string
		real func()
		fake func() forgetest.Event
	}{
		{"a label", func() { r.putLabel("alice", n, "uwf") }, func() forgetest.Event { return f.PutLabel("alice", n, "uwf") }},
		{"a comment", func() { r.comment("alice", n, "/uwf status") }, func() forgetest.Event { return f.PostComment("alice", n, "/uwf status") }},
		{"an assignment", func() {
			r.call("octo", http.MethodPatch, r.path(fmt.Sprintf("issues/%d", n)), map[string]any{"assignees": []string{"alice"}}, nil)
		}, func() forgetest.Event { return f.Assign("octo", n, "alice") }},
		{"a label on a pull request", func() { r.putLabel("alice", p.Number, "uwf") }, func() forgetest.Event { return f.PutLabel("alice", p.Number, "uwf") }},
		{"a comment on a pull request", func() { r.comment("alice", p.Number, "/uwf start") }, func() forgetest.Event { return f.PostComment("alice", p.Number, "/uwf start") }},
		{"a dispatch", func() {
			r.call("octo", http.MethodPost, r.path("actions/workflows/uwf.yml/dispatches"), map[string]any{"ref": "main", "inputs": inputs}, nil)
		}, func() forgetest.Event { return f.Manual("octo", "uwf.yml", inputs) }},
	} {
		r.after(e.real)
		var task *runnerv1.Task
		r.waitUntil("the job can be fetched", func() bool {
			task = runs.fetch()
			return task != nil
		})
		told := task.GetContext().AsMap()
		payload, err := json.Marshal(told["event"])
		mustDo(s, err)
		want := e.fake()
		if told["event_name"] != want.Name || told["actor"] != want.Actor {
			s.Errorf("%s: Gitea tells of %v by %v, the fake of %s by %s", e.name, told["event_name"], told["actor"], want.Name, want.Actor)
		}
		for _, d := range fieldDifferences(fake, real, want.Payload, payload) {
			s.Errorf("%s: %s", e.name, d)
		}
		runs.finish(task, &job{result: "success"})
	}
}
