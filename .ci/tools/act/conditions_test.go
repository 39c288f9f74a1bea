package act

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nektos/act/pkg/exprparser"
	"github.com/nektos/act/pkg/model"
	"gopkg.in/yaml.v3"
)

// Where the shipped files lie, and those that uwf init writes.
const (
	examples = "../../../examples/github"
	written  = "../../../cmd/uwf/internal/initialize/testdata"
)

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

// assignedOnGitea is a new assignee as Gitea tells of one: by the list of all of them.
func assignedOnGitea(logins ...string) event {
	var all []any
	for _, l := range logins {
		all = append(all, map[string]any{"login": l})
	}
	return event{"issues", map[string]any{"action": "assigned", "issue": map[string]any{"number": 7, "assignee": all[0], "assignees": all}}}
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
		"assigned on Gitea":    {assignedOnGitea("uwf-bot"), true},
		"as the second one":    {assignedOnGitea("alice", "uwf-bot"), true},
		"two others":           {assignedOnGitea("alice", "not-uwf"), false},
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
			condition := condition
			if e.data["changes"] != nil {
				condition = onGitea(condition)
			}
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

// onGitea is a condition as examples/README.md says that it has to be on Gitea.
func onGitea(condition string) string {
	return regexp.MustCompile(`github\.event\.label\.name == ('\w+')`).
		ReplaceAllString(condition, "(github.event.label.name == $1 || contains(github.event.changes.added_labels.*.name, $1))")
}

// uwf init writes for Gitea what examples/README.md says.
func TestWrittenForGitea(t *testing.T) {
	for file, from := range map[string][2]string{
		"gitea.yml": {"uwf.yml", "step"}, "gitea-allow.yml": {"uwf.yml", "step"}, "gitea-two-jobs-anthropic.yml": {"two-jobs.yml", "agent"},
	} {
		got := workflowOf(t, filepath.Join(written, file)).Jobs[from[1]].If
		if want := onGitea(conditionOf(t, from[0], from[1])); got != want {
			t.Errorf("%s: the condition is\n%s\nwant\n%s", file, got, want)
		}
	}
}

// Two jobs share a group only if they are the next steps of one thread: Gitea drops a job
// that waits when another one joins its group, before it looks at a condition.
func TestGroups(t *testing.T) {
	events := map[string]event{
		"uwf's label": labeled("issues", "uwf"), "another label": labeled("issues", "bug"), "a label on Gitea": updated("issues", "bug"),
		"a label on a pull": labeled("pull_request", "uwf"), "a comment": comment("/uwf status", "OWNER"), "an assignment": assigned("alice"),
		"the schedule": {"schedule", nil}, "a start by hand": dispatched(""),
		"a thread": dispatched("T"), "the same thread": dispatched("T"), "another thread": dispatched("U"),
	}
	prefixes := map[string]string{}
	for _, path := range workflowFiles(t) {
		file := workflowOf(t, path)
		if filepath.Base(path) == "plain-uses.yml" { // it is about no issue, and has no steps to hand on
			continue
		}
		for job, template := range file.groups() {
			seen := map[string]string{}
			run := 0
			for name, e := range events {
				run++
				group := groupOf(t, template, e, strconv.Itoa(run))
				if other, both := seen[group]; both && !strings.Contains(name+other, "the same thread") {
					t.Errorf("%s, %s: %s and %s share the group %s", path, job, name, other, group)
				}
				seen[group] = name
			}
			if _, called := file.On["workflow_dispatch"]; called && len(seen) != len(events)-1 {
				t.Errorf("%s, %s: two steps of one thread don't share a group", path, job)
			}
			prefix, _, _ := strings.Cut(template, "${{")
			if other := prefixes[prefix]; other != "" && filepath.Dir(path) == examples {
				t.Errorf("%s, %s and %s share the groups %s", path, job, other, prefix)
			}
			if filepath.Dir(path) == examples {
				prefixes[prefix] = path
			}
		}
	}
	if want := 7; len(prefixes) != want { // uwf, two-jobs (2), reusable, approval, review-pr, triage
		t.Errorf("the shipped files have %d groups, want %d: %v", len(prefixes), want, prefixes)
	}
}

func dispatched(thread string) event {
	return event{"workflow_dispatch", map[string]any{"inputs": map[string]any{"thread": thread}}}
}

// workflowFiles are all that are shipped or written.
func workflowFiles(t *testing.T) (all []string) {
	t.Helper()
	for _, dir := range []string{examples, written} {
		found, err := filepath.Glob(filepath.Join(dir, "*.yml"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s has no workflow files: %v", dir, err)
		}
		all = append(all, found...)
	}
	return all
}

// workflowFile is what the tests read of a workflow file.
type workflowFile struct {
	On          map[string]any
	Concurrency concurrency
	Jobs        map[string]struct {
		If          string
		Concurrency concurrency
	}
}

// concurrency is a group, by its name alone or as a mapping.
type concurrency struct{ Group string }

func (c *concurrency) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		c.Group = n.Value
		return nil
	}
	type mapping concurrency
	return n.Decode((*mapping)(c))
}

// groups are the file's own and those of its jobs.
func (f workflowFile) groups() map[string]string {
	all := map[string]string{}
	if f.Concurrency.Group != "" {
		all["the whole run"] = f.Concurrency.Group
	}
	for name, job := range f.Jobs {
		if job.Concurrency.Group != "" {
			all[name] = job.Concurrency.Group
		}
	}
	return all
}

// groupOf evaluates a group: a prefix and one expression.
func groupOf(t *testing.T, template string, e event, run string) string {
	t.Helper()
	prefix, expression, found := strings.Cut(strings.TrimSuffix(template, "}}"), "${{")
	if !found {
		t.Fatalf("the group %s is the same for all", template)
	}
	inputs, _ := e.data["inputs"].(map[string]any)
	env := &exprparser.EvaluationEnvironment{Github: &model.GithubContext{EventName: e.name, Event: e.data, Repository: "o/r", RunID: run}, Inputs: inputs}
	v, err := exprparser.NewInterpeter(env, exprparser.Config{Context: "job"}).Evaluate(expression, exprparser.DefaultStatusCheckNone)
	if err != nil {
		t.Fatalf("%s: %v", template, err)
	}
	return fmt.Sprint(prefix, v)
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
	condition := workflowOf(t, filepath.Join(examples, file)).Jobs[job].If
	if condition == "" {
		t.Fatalf("%s has no condition for job %s", file, job)
	}
	return condition
}

func workflowOf(t *testing.T, path string) (w workflowFile) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(raw, &w)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return w
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
