package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/engine/workflow"
)

// The keys of a workflow file, from GitHub's "Workflow syntax for GitHub Actions". Gitea
// knows no others. A file with another key is refused whole by GitHub, and half read by
// Gitea.
func fileKeys() []string {
	return []string{"name", "run-name", "on", "permissions", "env", "defaults", "concurrency", "jobs"}
}

func jobKeys() []string {
	return []string{"name", "permissions", "needs", "if", "runs-on", "snapshot", "environment", "concurrency", "outputs", "env", "defaults", "steps",
		"timeout-minutes", "strategy", "continue-on-error", "container", "services", "uses", "with", "secrets"}
}

// callKeys are those of a job that calls a workflow.
func callKeys() []string {
	return []string{"name", "permissions", "needs", "if", "concurrency", "strategy", "uses", "with", "secrets"}
}

func stepKeys() []string {
	return []string{"id", "if", "name", "uses", "run", "working-directory", "shell", "with", "env", "continue-on-error", "timeout-minutes"}
}

// triggerEvents are those that start workflows, from GitHub's "Events that trigger workflows".
func triggerEvents() []string {
	return []string{"branch_protection_rule", "check_run", "check_suite", "create", "delete", "deployment", "deployment_status", "discussion",
		"discussion_comment", "fork", "gollum", "image_version", "issue_comment", "issues", "label", "merge_group", "milestone", "page_build", "public",
		"pull_request", "pull_request_review", "pull_request_review_comment", "pull_request_target", "push", "registry_package", "release",
		"repository_dispatch", "schedule", "status", "watch", "workflow_call", "workflow_dispatch", "workflow_run"}
}

// eventTypes are the types of the events that uwf hears.
func eventTypes(event string) []string {
	switch event {
	case "issues":
		return []string{"opened", "edited", "deleted", "transferred", "pinned", "unpinned", "closed", "reopened", "assigned", "unassigned", "labeled",
			"unlabeled", "locked", "unlocked", "milestoned", "demilestoned", "typed", "untyped"}
	case "issue_comment":
		return []string{"created", "edited", "deleted"}
	case "pull_request":
		return []string{"assigned", "unassigned", "labeled", "unlabeled", "opened", "edited", "closed", "reopened", "synchronize", "converted_to_draft",
			"locked", "unlocked", "enqueued", "dequeued", "milestoned", "demilestoned", "ready_for_review", "review_requested",
			"review_request_removed", "auto_merge_enabled", "auto_merge_disabled"}
	}
	return nil
}

// checkSyntax looks for names in the workflow file that mean nothing: those of keys, events,
// inputs and providers. The forge refuses some and passes over others in silence.
func (e *examination) checkSyntax() []Finding {
	s := syntax{file: e.flow.path, again: e.flow.adviseRewrite()}
	s.checkNames(e.flow.root, "key", fileKeys())
	on := valueOf(e.flow.root, "on")
	s.checkNames(on, "event", triggerEvents())
	for _, p := range mappingPairs(on) {
		if known := eventTypes(p.key.Value); known != nil {
			s.checkNames(valueOf(p.value, "types"), "type of "+p.key.Value, known)
		}
	}
	for _, job := range mappingPairs(valueOf(e.flow.root, "jobs")) {
		if uses := valueOf(job.value, "uses"); uses != nil && e.flow.callsUwf(uses.Value) {
			s.checkNames(job.value, "key of a job that calls a workflow", callKeys())
		}
		s.checkJob(job.key.Value, job.value, e.o)
	}
	return s.found
}

// syntax collects what is wrong with the names of one file.
type syntax struct {
	file  string
	again string // how the file is had as it should be
	found []Finding
}

func (s *syntax) addComplaint(n *yaml.Node, format string, args ...any) {
	wrong := fmt.Sprintf("%s:%d: %s", path.Base(s.file), n.Line, fmt.Sprintf(format, args...))
	s.found = append(s.found, findMissing(wrong, "mend "+s.file+", "+s.again))
}

// checkName complains of a name that is none of those.
func (s *syntax) checkName(n *yaml.Node, what string, known []string) {
	if slices.Contains(known, n.Value) {
		return
	}
	meant := ""
	if near := workflow.Suggest(n.Value, known); near != "" {
		meant = "; did you mean " + near + "?"
	}
	s.addComplaint(n, "there is no %s %q%s", what, n.Value, meant)
}

// checkNames complains of the keys of a mapping, of the texts of a list, or of a text.
func (s *syntax) checkNames(n *yaml.Node, what string, known []string) {
	for _, p := range mappingPairs(n) {
		s.checkName(p.key, what, known)
	}
	switch {
	case n == nil:
	case n.Kind == yaml.ScalarNode:
		s.checkName(n, what, known)
	case n.Kind == yaml.SequenceNode:
		for _, name := range n.Content {
			s.checkName(name, what, known)
		}
	}
}

// checkJob looks into a job, where it uses uwf.
func (s *syntax) checkJob(name string, n *yaml.Node, o Options) {
	steps := valueOf(n, "steps")
	if steps == nil || !slices.ContainsFunc(steps.Content, usesAction) {
		return
	}
	s.checkNames(n, "key of a job", jobKeys())
	for _, step := range steps.Content {
		s.checkNames(step, "key of a step", stepKeys())
		if usesAction(step) {
			s.checkInputs(name, valueOf(step, "with"), o)
		}
	}
}

func usesAction(step *yaml.Node) bool {
	uses := valueOf(step, "uses")
	return uses != nil && usesUwf.MatchString(uses.Value)
}

// checkInputs looks at what a step gives to the action. What an expression gives is not known.
func (s *syntax) checkInputs(job string, with *yaml.Node, o Options) {
	given := map[string]string{}
	for _, p := range mappingPairs(with) {
		if len(o.Inputs) > 0 {
			s.checkName(p.key, "input", o.Inputs)
		}
		if strings.Contains(p.value.Value, "${{") {
			continue
		}
		given[p.key.Value] = p.value.Value
		// An address brings a provider that nothing else names.
		if p.key.Value == "provider" && len(o.Providers) > 0 && valueOf(with, "base-url") == nil {
			s.checkName(p.value, "provider", o.Providers)
		}
	}
	if o.CheckInputs == nil || len(given) == 0 {
		return
	}
	if err := o.CheckInputs(given); err != nil {
		s.addComplaint(with, "job %s: %v", job, err)
	}
}

// pair is a key of a mapping and its value.
type pair struct{ key, value *yaml.Node }

// mappingPairs are a mapping's; of anything else there are none.
func mappingPairs(n *yaml.Node) (out []pair) {
	if n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		out = append(out, pair{n.Content[i], n.Content[i+1]})
	}
	return out
}

// valueOf is what a mapping has under a key; nil: nothing.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	for _, p := range mappingPairs(n) {
		if p.key.Value == key {
			return p.value
		}
	}
	return nil
}
