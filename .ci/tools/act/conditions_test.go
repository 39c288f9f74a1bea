package act

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nektos/act/pkg/exprparser"
	"github.com/nektos/act/pkg/model"
	"gopkg.in/yaml.v3"
)

const examples = "../../../examples/github"

// event is what starts a workflow, as far as conditions ask for it.
type event struct {
	name string
	data map[string]any
}

// comment is a new comment on an issue of a public repository.
func comment(body, association string) event {
	return event{"issue_comment", map[string]any{
		"action": "created", "comment": map[string]any{"id": 5, "body": body, "author_association": association},
		"issue": map[string]any{"number": 7}, "repository": map[string]any{"private": false},
	}}
}

// with is the event with one thing more.
func (e event) with(key string, v any) event {
	data := map[string]any{key: v}
	for k, v := range e.data {
		if k != key {
			data[k] = v
		}
	}
	return event{e.name, data}
}

func labeled(name, label string) event {
	return event{name, map[string]any{"action": "labeled", "label": map[string]any{"name": label}, "issue": map[string]any{"number": 7}, "pull_request": pull("o/r")}}
}

// updated is a new label as Gitea tells of it.
func updated(name string, labels ...string) event {
	var added []any
	for _, l := range labels {
		added = append(added, map[string]any{"name": l})
	}
	return event{name, map[string]any{"action": "label_updated", "changes": map[string]any{"added_labels": added}, "issue": map[string]any{"number": 7}, "pull_request": pull("o/r")}}
}

func assigned(login string, labels ...string) event {
	var has []any
	for _, l := range labels {
		has = append(has, map[string]any{"name": l})
	}
	return event{"issues", map[string]any{"action": "assigned", "assignee": map[string]any{"login": login}, "issue": map[string]any{"number": 7, "labels": has}}}
}

func pull(repository string) map[string]any {
	return map[string]any{"number": 7, "head": map[string]any{"repo": map[string]any{"full_name": repository}}}
}

// TestConditions: which events get a job, by the files as they are shipped.
func TestConditions(t *testing.T) {
	private := map[string]any{"private": true}
	fork := map[string]any{"full_name": "stranger/r"}
	uwf := map[string]struct {
		event event
		runs  bool
	}{
		"the next step":        {event{"workflow_dispatch", nil}, true},
		"the sweep":            {event{"schedule", nil}, true},
		"a label":              {labeled("issues", "uwf"), true},
		"another label":        {labeled("issues", "bug"), false},
		"a label on Gitea":     {updated("issues", "bug", "uwf"), true},
		"another on Gitea":     {updated("issues", "bug"), false},
		"a label on a pull":    {labeled("pull_request", "uwf"), true},
		"one on Gitea":         {updated("pull_request", "uwf"), true},
		"a fork's":             {labeled("pull_request", "uwf").with("pull_request", map[string]any{"head": map[string]any{"repo": fork}}), false},
		"assigned":             {assigned("uwf-bot"), true},
		"assigned, labeled":    {assigned("alice", "uwf"), true},
		"assigned to somebody": {assigned("alice", "bug"), false},
	}
	commands := map[string]struct {
		event event
		runs  bool
	}{
		"a member":           {comment("/uwf status", "MEMBER"), true},
		"the owner":          {comment("/uwf status", "OWNER"), true},
		"a collaborator":     {comment("/uwf status", "COLLABORATOR"), true},
		"a private member":   {comment("/uwf status", "CONTRIBUTOR"), true},
		"a stranger":         {comment("/uwf status", "NONE"), false},
		"a first timer":      {comment("/uwf status", "FIRST_TIMER"), false},
		"a first pull":       {comment("/uwf status", "FIRST_TIME_CONTRIBUTOR"), false},
		"a mannequin":        {comment("/uwf status", "MANNEQUIN"), false},
		"privately":          {comment("/uwf status", "NONE").with("repository", private), true},
		"no association":     {comment("/uwf status", "").with("comment", map[string]any{"body": "/uwf status"}), true}, // Gitea has none
		"no command":         {comment("looks good", "OWNER"), false},
		"uwf's own":          {comment("<!-- uwf:thread=1 -->\n/uwf resume", "OWNER"), false},
		"its own, privately": {comment("<!-- uwf:thread=1 -->\n/uwf resume", "OWNER").with("repository", private), false},
	}
	onPull := map[string]any{"number": 7, "pull_request": map[string]any{"url": "x"}}
	for file, job := range map[string]string{"uwf.yml": "step", "two-jobs.yml": "agent", "approval.yml": "step", "review-pr.yml": "step", "triage.yml": "triage"} {
		condition := conditionOf(t, file, job)
		check := func(name string, e event, want bool) {
			t.Helper()
			if got := holds(t, condition, e); got != want {
				t.Errorf("%s: %s: a job runs: %v, want %v", file, name, got, want)
			}
		}
		if job == "step" || job == "agent" {
			for name, c := range commands {
				if file == "review-pr.yml" {
					check(name+", on an issue", c.event, false)
					c.event = c.event.with("issue", onPull)
				}
				check(name, c.event, c.runs)
			}
		}
		switch file {
		case "uwf.yml", "two-jobs.yml":
			for name, c := range uwf {
				check(name, c.event, c.runs)
			}
		case "review-pr.yml":
			check("a label", labeled("pull_request", "review"), true)
			check("another label", labeled("pull_request", "bug"), false)
			check("a label on Gitea", updated("pull_request", "bug", "review"), true)
			check("another on Gitea", updated("pull_request", "bug"), false)
			check("a fork's", updated("pull_request", "review").with("pull_request", map[string]any{"head": map[string]any{"repo": fork}}), false)
		default:
			label := map[string]string{"approval.yml": "deploy", "triage.yml": "triage"}[file]
			check("a label", labeled("issues", label), true)
			check("another label", labeled("issues", "bug"), false)
			check("a label on Gitea", updated("issues", "bug", label), true)
			check("another on Gitea", updated("issues", "bug"), false)
		}
	}
}

// TestRescueConditions: when the jobs run that look after those that died, or that a
// person cancelled.
func TestRescueConditions(t *testing.T) {
	for file, jobs := range map[string][]string{"uwf.yml": {"step"}, "approval.yml": {"step"}, "review-pr.yml": {"step"}, "two-jobs.yml": {"agent", "commit"}} {
		for _, c := range []struct {
			result          string // of the last of the jobs; those before it succeeded
			cancelled       bool   // the run was
			rescue, stopped bool
		}{
			{result: "success"},
			{result: "skipped"}, // another label
			{result: "failure", rescue: true},
			{result: "cancelled", rescue: true}, // its time was over, or another one took its place
			{result: "cancelled", cancelled: true, stopped: true},
			{result: "skipped", cancelled: true},
			{result: "failure", cancelled: true},
		} {
			for _, last := range jobs {
				needs := map[string]exprparser.Needs{}
				for _, name := range jobs {
					needs[name] = exprparser.Needs{Result: "success"}
				}
				needs[last] = exprparser.Needs{Result: c.result}
				for job, want := range map[string]bool{"rescue": c.rescue, "stopped": c.stopped} {
					if got := holdsAfter(t, conditionOf(t, file, job), needs, c.cancelled); got != want {
						t.Errorf("%s: %s was %s, the run cancelled %v: job %s runs: %v, want %v", file, last, c.result, c.cancelled, job, got, want)
					}
				}
			}
		}
	}
}

// holdsAfter evaluates the condition of a job that needs others.
func holdsAfter(t *testing.T, condition string, needs map[string]exprparser.Needs, cancelled bool) bool {
	t.Helper()
	status := "success"
	if cancelled {
		status = "cancelled"
	}
	env := &exprparser.EvaluationEnvironment{Github: &model.GithubContext{}, Job: &model.JobContext{Status: status}, Needs: needs}
	condition = strings.TrimSuffix(strings.TrimPrefix(condition, "${{"), "}}")
	v, err := exprparser.NewInterpeter(env, exprparser.Config{Context: "step"}).Evaluate(condition, exprparser.DefaultStatusCheckNone)
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	return exprparser.IsTruthy(v)
}

// conditionOf is the condition of a job.
func conditionOf(t *testing.T, file, job string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(examples, file))
	if err != nil {
		t.Fatal(err)
	}
	var w struct {
		Jobs map[string]struct{ If string }
	}
	if err := yaml.Unmarshal(raw, &w); err != nil || w.Jobs[job].If == "" {
		t.Fatalf("%s has no condition for job %s: %v", file, job, err)
	}
	return w.Jobs[job].If
}

// holds evaluates a condition.
func holds(t *testing.T, condition string, e event) bool {
	t.Helper()
	env := &exprparser.EvaluationEnvironment{Github: &model.GithubContext{EventName: e.name, Event: e.data, Repository: "o/r"}, Job: &model.JobContext{Status: "success"}}
	v, err := exprparser.NewInterpeter(env, exprparser.Config{Context: "job"}).Evaluate(condition, exprparser.DefaultStatusCheckNone)
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	return exprparser.IsTruthy(v)
}
