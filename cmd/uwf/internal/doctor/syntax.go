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

func stepKeys() []string {
	return []string{"id", "if", "name", "uses", "run", "working-directory", "shell", "with", "env", "continue-on-error", "timeout-minutes"}
}

// events are those that start workflows, from GitHub's "Events that trigger workflows".
func events() []string {
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

// syntax looks for names in the workflow file that mean nothing: those of keys, events,
// inputs and providers. The forge refuses some and passes over others in silence.
func (e *examination) syntax(root *yaml.Node) {
	s := syntax{file: path.Base(e.flow.path)}
	s.keys(root, "", fileKeys())
	s.on(valueOf(root, "on"))
	for _, job := range pairs(valueOf(root, "jobs")) {
		s.job(job.key.Value, job.value, e.o)
	}
	for _, wrong := range s.found {
		e.add("syntax", true, Missing, wrong, "mend "+e.flow.path+", or have it written anew: uwf init --force")
	}
}

// syntax collects what is wrong with the names of one file.
type syntax struct {
	file  string
	found []string
}

func (s *syntax) complain(n *yaml.Node, format string, args ...any) {
	s.found = append(s.found, fmt.Sprintf("%s:%d: %s", s.file, n.Line, fmt.Sprintf(format, args...)))
}

// unknown complains of a name that is none of those.
func (s *syntax) unknown(n *yaml.Node, what string, known []string) {
	if slices.Contains(known, n.Value) {
		return
	}
	meant := ""
	if near := workflow.Suggest(n.Value, known); near != "" {
		meant = "; did you mean " + near + "?"
	}
	s.complain(n, "there is no %s %q%s", what, n.Value, meant)
}

func (s *syntax) keys(n *yaml.Node, of string, known []string) {
	for _, p := range pairs(n) {
		s.unknown(p.key, "key"+of, known)
	}
}

func (s *syntax) on(n *yaml.Node) {
	switch {
	case n == nil:
	case n.Kind == yaml.ScalarNode:
		s.unknown(n, "event", events())
	case n.Kind == yaml.SequenceNode:
		for _, name := range n.Content {
			s.unknown(name, "event", events())
		}
	default:
		for _, p := range pairs(n) {
			s.unknown(p.key, "event", events())
			known := eventTypes(p.key.Value)
			if types := valueOf(p.value, "types"); types != nil && known != nil {
				list := types.Content
				if types.Kind == yaml.ScalarNode {
					list = []*yaml.Node{types}
				}
				for _, name := range list {
					s.unknown(name, "type of "+p.key.Value, known)
				}
			}
		}
	}
}

// job looks into a job, where it uses uwf.
func (s *syntax) job(name string, n *yaml.Node, o Options) {
	steps := valueOf(n, "steps")
	if steps == nil || !slices.ContainsFunc(steps.Content, usesAction) {
		return
	}
	s.keys(n, " of a job", jobKeys())
	for _, step := range steps.Content {
		s.keys(step, " of a step", stepKeys())
		if usesAction(step) {
			s.inputs(name, valueOf(step, "with"), o)
		}
	}
}

func usesAction(step *yaml.Node) bool {
	uses := valueOf(step, "uses")
	return uses != nil && usesUwf.MatchString(uses.Value)
}

// inputs looks at what a step gives to the action. What an expression gives is not known.
func (s *syntax) inputs(job string, with *yaml.Node, o Options) {
	given := map[string]string{}
	for _, p := range pairs(with) {
		if len(o.Inputs) > 0 {
			s.unknown(p.key, "input", o.Inputs)
		}
		if strings.Contains(p.value.Value, "${{") {
			continue
		}
		given[p.key.Value] = p.value.Value
		// An address brings a provider that nothing else names.
		if p.key.Value == "provider" && len(o.Providers) > 0 && valueOf(with, "base-url") == nil {
			s.unknown(p.value, "provider", o.Providers)
		}
	}
	if o.CheckInputs == nil || len(given) == 0 {
		return
	}
	if err := o.CheckInputs(given); err != nil {
		s.complain(with, "job %s: %v", job, err)
	}
}

// pair is a key of a mapping and its value.
type pair struct{ key, value *yaml.Node }

// pairs are a mapping's; of anything else there are none.
func pairs(n *yaml.Node) (out []pair) {
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
	for _, p := range pairs(n) {
		if p.key.Value == key {
			return p.value
		}
	}
	return nil
}
