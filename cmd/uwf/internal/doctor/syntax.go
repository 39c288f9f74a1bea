package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rhysd/actionlint"
	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
)

// checkSyntax judges the workflow file as GitHub reads it, by actionlint, and what it gives to
// uwf's action. GitHub refuses a wrong file whole, and Gitea reads half of it.
func (e *examination) checkSyntax() []Finding {
	s := syntax{file: e.flow.path, again: e.flow.adviseRewrite()}
	jobs := mappingPairs(valueOf(e.flow.root, "jobs"))
	for _, wrong := range lintFile(e.flow.data) {
		if !isNewer(wrong, jobs) {
			s.addComplaint(wrong.Line, wrong.Column, "%s", suggestMeant(wrong.Message))
		}
	}
	for _, job := range jobs {
		s.checkJob(job.key.Value, job.value, e.o)
	}
	return s.found
}

// lintFile returns what actionlint has to say of a workflow file, in the order of its lines. It
// asks no network, starts no program, and reads no other file. Left out are the rules for runners'
// labels, which each organisation names as it likes, and those for what actions and shells take.
func lintFile(data []byte) []*actionlint.Error {
	file, found := actionlint.Parse(data)
	if file == nil {
		return found
	}
	visitor := actionlint.NewVisitor()
	rules := []actionlint.Rule{
		actionlint.NewRuleExpression(actionlint.NewLocalActionsCache(nil, nil), actionlint.NewLocalReusableWorkflowCache(nil, "", nil)),
		actionlint.NewRuleJobNeeds(), actionlint.NewRuleEvents(), actionlint.NewRulePermissions(), actionlint.NewRuleIfCond(), actionlint.NewRuleID(),
	}
	for _, rule := range rules {
		visitor.AddPass(rule)
	}
	if err := visitor.Visit(file); err != nil {
		found = append(found, &actionlint.Error{Message: err.Error()})
	}

	for _, rule := range rules {
		found = append(found, rule.Errs()...)
	}
	slices.SortStableFunc(found, func(a, b *actionlint.Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	// A script that is open to injection is a danger, but no mistake in the file.
	return slices.DeleteFunc(found, func(wrong *actionlint.Error) bool {
		return strings.Contains(wrong.Message, "potentially untrusted")
	})
}

// newerParts begin the complaints of actionlint 1.7.12 about parts that GitHub's own schema has
// (workflow-v1.0 in @actions/workflow-parser 0.3.61), and it does not know yet.
func newerParts() []string {
	return []string{
		`unexpected key "description" for "workflow" section`,
		`unexpected key "cancel-timeout-minutes" for "job" section`,
		`unexpected key "queue" for "concurrency" section`,
		`unexpected key "background" for step`,
		`unknown permission scope "code-quality"`,
		`unknown permission scope "copilot-requests"`,
		`unknown permission scope "drives"`,
		`unknown permission scope "vulnerability-alerts"`,
		`invalid activity type "field_added" for "issues"`,
		`invalid activity type "field_removed" for "issues"`,
		`invalid activity type "stacked" for "pull_request`,
	}
}

// isNewer reports whether a complaint is about a part that actionlint does not know yet. It takes
// the newer kinds of steps for steps that do nothing.
func isNewer(wrong *actionlint.Error, jobs []pair) bool {
	if slices.ContainsFunc(newerParts(), func(part string) bool { return strings.HasPrefix(wrong.Message, part) }) {
		return true
	}
	if !strings.HasPrefix(wrong.Message, "step must run script") {
		return false
	}
	for _, job := range jobs {
		for _, step := range stepsOf(job.value) {
			isKind := slices.ContainsFunc(mappingPairs(step), func(p pair) bool {
				return slices.Contains([]string{"parallel", "wait", "wait-all", "cancel"}, p.key.Value)
			})
			if isKind && step.Line == wrong.Line {
				return true
			}
		}
	}
	return false
}

func stepsOf(job *yaml.Node) []*yaml.Node {
	if steps := valueOf(job, "steps"); steps != nil {
		return steps.Content
	}
	return nil
}

// quotedWord matches what a message of actionlint names.
var quotedWord = lazyregexp.New(`"[^"]+"`)

// suggestMeant says what was probably meant, in the place of the list of all that is known.
func suggestMeant(message string) string {
	first, list, _ := strings.Cut(message, ". ")
	known := quotedWord.FindAllString(list, -1)
	known = lists.Map(known, func(word string) string { return strings.Trim(word, `"`) })
	if strings.HasPrefix(message, "unknown Webhook event") {
		known = slices.Sorted(maps.Keys(actionlint.AllWebhookTypes))
	}
	if near := workflow.Suggest(strings.Trim(quotedWord.FindString(first), `"`), known); near != "" {
		return first + "; did you mean " + near + "?"
	}
	return message
}

// syntax collects what is wrong with the names of one file.
type syntax struct {
	file  string
	again string // how the file is had as it should be
	found []Finding
}

func (s *syntax) addComplaint(line, column int, format string, args ...any) {
	wrong := fmt.Sprintf("%s:%d:%d: %s", path.Base(s.file), line, column, fmt.Sprintf(format, args...))
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
	s.addComplaint(n.Line, n.Column, "there is no %s %q%s", what, n.Value, meant)
}

// checkJob looks at the actions that a job uses, and at what it gives to uwf's.
func (s *syntax) checkJob(name string, n *yaml.Node, o Options) {
	for _, step := range stepsOf(n) {
		if uses := valueOf(step, "uses"); uses != nil && !hasVersion.MatchString(uses.Value) {
			s.addComplaint(uses.Line, uses.Column, "%q has no version: write OWNER/REPO@REF", uses.Value)
		}
		if usesAction(step) {
			s.checkInputs(name, valueOf(step, "with"), o)
		}
	}
}

// hasVersion matches the action of a step that says which version, or that can have none.
var hasVersion = lazyregexp.New(`@|^\./|^docker://|\$\{\{`)

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
		s.addComplaint(with.Line, with.Column, "job %s: %v", job, err)
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
