package paths

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/prompt"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/engine/workflow/shape"
)

// answer is one that a role can give, and where it leads.
type answer struct {
	status string
	text   string
	output moderator.Output
	to     string // a role, $END or $SUSPEND
}

// Make makes cases that meet each status of each role that a thread can come to: the shortest way
// there, the answer, and the shortest way on. Answers are made of the roles' schemas. What can't
// be met by such answers alone, as conditions over other fields, is left out.
func Make(d *workflow.Definition) []Case {
	answers := map[string][]answer{}
	for _, role := range d.RoleNames() {
		answers[role] = answersOf(d, role)
	}
	first, err := moderator.Next(d, moderator.Thread{Start: map[string]any{}})
	if err != nil || first.Kind != moderator.Run {
		return nil
	}
	there, on := waysFrom(answers, first.Role), waysToEnd(answers)
	var out []Case
	met := map[string]bool{} // by a case that was made for another status
	nameOf := func(role string, a answer) string { return strings.TrimSpace(role + " " + a.status) }
	for _, role := range d.RoleNames() {
		way, comes := there[role]
		if !comes {
			continue
		}
		for _, a := range answers[role] {
			if met[nameOf(role, a)] {
				continue
			}
			path := append(append([]answer{}, way...), a)
			for at := a.to; at != workflow.End && at != workflow.Suspend && len(path) < maxSteps; {
				next, ends := on[at]
				if !ends {
					break
				}
				path = append(path, next)
				at = next.to
			}
			if c, ok := caseOf(d, nameOf(role, a), path); ok {
				out = append(out, c)
				for _, step := range path {
					met[nameOf(step.output.Role, step)] = true
				}
			}
		}
	}
	return out
}

// answersOf are the answers of a role, one for each of its statuses.
func answersOf(d *workflow.Definition, role string) []answer {
	var out []answer
	key := d.StatusKeyOf(role)
	for _, v := range shape.Variants(d.Roles[role].Schema, key) {
		a := answer{status: v.Status, text: "---\n" + prompt.Example(v, key) + "---\n"}
		read, err := readAnswer(d, Step{Role: role, Output: a.text})
		if err != nil {
			continue
		}
		next, err := moderator.Next(d, moderator.Thread{Start: map[string]any{}, Steps: []moderator.Output{read}})
		if err != nil {
			continue
		}
		switch a.output = read; next.Kind {
		case moderator.End:
			a.to = workflow.End
		case moderator.Suspend:
			a.to = workflow.Suspend
		default:
			a.to = next.Role
		}
		out = append(out, a)
	}
	return out
}

// waysFrom are the shortest ways from a role to each other one.
func waysFrom(answers map[string][]answer, first string) map[string][]answer {
	ways := map[string][]answer{first: {}}
	for queue := []string{first}; len(queue) > 0; queue = queue[1:] {
		role := queue[0]
		for _, a := range answers[role] {
			if _, known := ways[a.to]; known || a.to == workflow.End || a.to == workflow.Suspend {
				continue
			}
			ways[a.to] = append(append([]answer{}, ways[role]...), a)
			queue = append(queue, a.to)
		}
	}
	return ways
}

// waysToEnd are the answers that lead from each role to the end by the shortest way.
func waysToEnd(answers map[string][]answer) map[string]answer {
	out := map[string]answer{}
	ends := map[string]bool{workflow.End: true}
	for grown := true; grown; {
		grown = false
		reached := map[string]bool{}
		for role, list := range answers {
			if _, known := out[role]; known {
				continue
			}
			for _, a := range list {
				if ends[a.to] {
					out[role], reached[role], grown = a, true, true
					break
				}
			}
		}
		for role := range reached {
			ends[role] = true
		}
	}
	return out
}

// caseOf is the case of a path, with what each role is told as it is now.
func caseOf(d *workflow.Definition, name string, path []answer) (Case, bool) {
	c := Case{Name: name}
	thread := moderator.Thread{Start: map[string]any{}}
	for i := 0; ; i++ {
		next, err := moderator.Next(d, thread)
		if err != nil {
			return c, false
		}
		switch next.Kind {
		case moderator.End:
			c.Ends, c.Says = workflow.End, next.Prompt
			return c, i == len(path)
		case moderator.Suspend:
			c.Ends, c.Says = workflow.Suspend, next.Reason
			return c, i == len(path)
		}
		if i == len(path) || path[i].output.Role != next.Role {
			return c, false
		}
		c.Steps = append(c.Steps, Step{Role: next.Role, Prompt: next.Prompt, Output: path[i].text})
		thread.Steps = append(thread.Steps, path[i].output)
	}
}

// Format writes cases as Parse reads them.
func Format(workflow string, cases []Case) ([]byte, error) {
	type step struct {
		Role   string `yaml:"role"`
		Prompt string `yaml:"prompt,omitempty"`
		Output string `yaml:"output"`
	}
	type one struct {
		Name  string `yaml:"name"`
		Steps []step `yaml:"steps"`
		Ends  string `yaml:"ends"`
		Says  string `yaml:"says,omitempty"`
	}
	doc := struct {
		Cases []one `yaml:"cases"`
	}{}
	for _, c := range cases {
		o := one{Name: c.Name, Ends: c.Ends, Says: c.Says}
		for _, s := range c.Steps {
			o.Steps = append(o.Steps, step{s.Role, s.Prompt, s.Output})
		}
		doc.Cases = append(doc.Cases, o)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# yaml-language-server: $schema="+SchemaID+"\n# Paths through %s: what each role answers, what it is told, and where that ends.\n# Try them: uwf workflow test %s. A prompt that is left out is not compared.\n", workflow, workflow)
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("write the paths: %w", err)
	}
	return []byte(b.String()), e.Close()
}
