package paths

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/prompt"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/internal/lists"
)

// answer is one that a role can give, and where it leads.
type answer struct {
	edge   string // by its name
	text   string
	output moderator.Output
	to     string // a role, $END or $SUSPEND
}

// Make makes cases that take each edge of each role that a thread can come to: the shortest way
// there, the answer, and the shortest way on. Answers are made of the roles' schemas. An edge
// that none of these answers takes has no case: Untried names it.
func Make(d *workflow.Definition) []Case {
	first, err := moderator.Next(d, moderator.Thread{Start: map[string]any{}})
	if err != nil || first.Kind != moderator.Run {
		return nil
	}
	answers, there := exploreFrom(d, first.Role)
	on := waysToEnd(answers)
	var out []Case
	met := map[string]bool{} // by a case that was made for another edge
	for _, role := range d.RoleNames() {
		way, comes := there[role]
		if !comes {
			continue
		}
		for _, a := range answers[role] {
			if met[a.edge] {
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
			if c, ok := caseOf(d, a.edge, path); ok {
				out = append(out, c)
				for _, step := range path {
					met[step.edge] = true
				}
			}
		}
	}
	return out
}

// exploreFrom follows answers from the first role on: those of each role that a thread can come
// to, one for each edge, and the shortest way to the role.
func exploreFrom(d *workflow.Definition, first string) (answers, there map[string][]answer) {
	answers, there = map[string][]answer{}, map[string][]answer{first: {}}
	for queue := []string{first}; len(queue) > 0; queue = queue[1:] {
		role := queue[0]
		answers[role] = answersOf(d, role, there[role])
		for _, a := range answers[role] {
			if _, known := there[a.to]; known || a.to == workflow.End || a.to == workflow.Suspend {
				continue
			}
			there[a.to] = append(append([]answer{}, there[role]...), a)
			queue = append(queue, a.to)
		}
	}
	return answers, there
}

// answersOf are the answers of a role at the end of a way, one for each edge that any takes.
func answersOf(d *workflow.Definition, role string, way []answer) []answer {
	var out []answer
	steps := lists.Map(way, func(step answer) moderator.Output { return step.output })
	thread := moderator.Thread{Start: map[string]any{}, Steps: steps}
	met, key := map[string]bool{}, d.StatusKeyOf(role)
	for _, c := range candidatesOf(d, role) {
		if len(met) == len(d.Graph[role]) {
			break
		}
		a := answer{text: "---\n" + prompt.Example(c.Variant, key) + "---\n"}
		var err error
		if a.output, err = readAnswer(d, Step{Role: role, Output: a.text}); err != nil {
			continue
		}
		next, err := moderator.Next(d, moderator.Thread{Start: thread.Start, Steps: append(thread.Steps[:len(way):len(way)], a.output)})
		if err != nil || met[edgeName(role, next.Edge)] {
			continue
		}
		a.edge, a.to = edgeName(role, next.Edge), next.Edge.To
		met[a.edge] = true
		out = append(out, a)
	}
	return out
}

// edgeName is what an edge of a role is called: "reviewer approved", by its status or
// condition, otherwise "planner → developer".
func edgeName(role string, e workflow.Edge) string {
	return role + " " + moderator.Decision{Status: e.When.Value, Edge: e}.Result()
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
