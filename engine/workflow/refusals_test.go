package workflow_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
)

// smallDefinition is the text that refusals are made from, each by another word.
const smallDefinition = "name: n\ndescription: d\nroles:\n  a: {description: d, systemPrompt: s, outputSchema: {type: object}}\ngraph:\n  $START: {_: {role: a}}\n  a: {_: {role: $END}}\n"

// Each row is smallDefinition with one thing wrong, and the problem that says so.
func TestParseRefuses(t *testing.T) {
	var conditions, edges strings.Builder
	for i := range 501 {
		fmt.Fprintf(&conditions, "  c%d: \"1\"\n", i)
	}
	for i := range 2001 {
		fmt.Fprintf(&edges, "    s%d: {role: $END}\n", i)
	}
	nested := func(inside string) string { return strings.Repeat("{not: ", 55) + inside + strings.Repeat("}", 55) }
	names := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprint("c", i))
		}
		return strings.Join(list, ", ")
	}
	longCheck := strings.Repeat("a", 32)
	opts := workflow.Options{
		Include: func(name string) ([]byte, error) {
			return []byte(map[string]string{"a.yaml": nested("!include b.yaml"), "b.yaml": nested("{}")}[name]), nil
		},
		Nodes: node.Map{
			"0000000000001": {Type: node.MetaSchema, Payload: true},
			"0000000000002": {Type: node.MetaSchema, Payload: map[string]any{"minimum": math.NaN()}},
		},
	}
	for _, tt := range []struct{ old, text, want string }{
		{"name: n", `name: ""`, "x.yaml:1:7: the workflow's name is empty"},
		{"{type: object}", `"0000000000001"`, `x.yaml:4:54: the schema of role "a" is no map`},
		{"{type: object}", `"0000000000002"`, `x.yaml:4:54: schema of role "a": check a schema: not a JSON value: the number NaN`},
		{"{type: object}", "!include a.yaml", `x.yaml:4:40: the schema of role "a" can't be stored: too large: nested deeper than 100 levels`},
		{"$START: {_: {role: a}}", "$START: {_: {role: $SUSPEND}}", "x.yaml:6:22: $START leads to $SUSPEND: no role would run"},
		{"role: $END", `role: ""`, "x.yaml:7:17: edge a → _ leads to an empty name"},
		{"role: $END", `role: $END, location: \src`, "x.yaml:7:33: `location` of edge a → _ leads out of the work tree"},
		{"role: $END", "role: $END, location: a/../..", "x.yaml:7:33: `location` of edge a → _ leads out of the work tree"},
		{"role: $END", `role: $END, location: c:\src`, "x.yaml:7:33: `location` of edge a → _ leads out of the work tree"},
		{"role: $END", `role: $END, location: " "`, "x.yaml:7:23: `location` of edge a → _ is blank"},
		{"$START: {_: {role: a}}", "$START: {_: {role: a, approval: true}}", "x.yaml:6:25: edge $START → _ can't need an approval: nobody has asked anything there"},
		{"$START: {_: {role: a}}", "$START: [{role: a, approval: true}]", "x.yaml:6:22: edge $START → #1 can't need an approval: nobody has asked anything there"},
		{"$START: {_: {role: a}}", "$START: {_: {role: a}, resume: {role: a, prompt: p, approval: true}}", "x.yaml:6:55: edge $START → resume can't need an approval: nobody has asked anything there"},
		{"$START: {_: {role: a}}", "$START: {new: {role: a, approval: true}}", "x.yaml:6:27: edge $START → new can't need an approval: nobody has asked anything there"},
		{"role: $END", "role: $SUSPEND, prompt: p, approval: true", "x.yaml:7:38: edge a → _ can't need an approval: it is what asks for one"},
		{"role: $END", "role: $END, approval: true", `x.yaml:7:23: edge a → _ can't be approved: role "a" never asks a person`},
		{"role: $END", "role: $END, approval: false", "x.yaml:7:23: `approval` of edge a → _ is false"},
		{"role: $END", "role: $END, approval: 1", "x.yaml:7:23: `approval` of edge a → _ must be true or a map, this is \"1\""},
		{"role: $END", `role: $END, approval: "true"`, "x.yaml:7:23: `approval` of edge a → _ must be true or a map, this is \"true\""},
		{"role: $END", "role: $END, approval: null", "x.yaml:7:23: `approval` of edge a → _ must be true or a map, this is \"null\""},
		{"role: $END", "role: $END, approval: [true]", "x.yaml:7:23: `approval` of edge a → _ must be true or a map, this is a list"},
		{"role: $END", "role: $END, approval: {}", "x.yaml:7:23: `approval` of edge a → _ is an empty map"},
		{"role: $END", "role: $END, approval: {only: [author]}", "x.yaml:7:34: `approval` of edge a → _ has an unknown key \"only\""},
		{"role: $END", "role: $END, approval: {not: author}", "x.yaml:7:34: `not` of `approval` of edge a → _ must be a list, this is \"author\""},
		{"role: $END", "role: $END, approval: {not: null}", "x.yaml:7:34: `not` of `approval` of edge a → _ must be a list, this is \"null\""},
		{"role: $END", "role: $END, approval: {not: []}", "x.yaml:7:34: `not` of `approval` of edge a → _ is empty"},
		{"role: $END", "role: $END, approval: {not: [startr]}", "x.yaml:7:40: `not` of `approval` of edge a → _ names \"startr\", which is not known (did you mean \"starter\"?)"},
		{"role: $END", "role: $END, approval: {not: [me]}", "x.yaml:7:40: `not` of `approval` of edge a → _ names \"me\", which is not known (known are: starter, author)"},
		{"role: $END", "role: $END, approval: {not: [7]}", "x.yaml:7:40: `not` of `approval` of edge a → _ names \"7\", which is not known"},
		{"role: $END", "role: $END, approval: {not: [author, author]}", "x.yaml:7:48: `not` of `approval` of edge a → _ names \"author\" twice"},
		{"{type: object}", "{properties: {x: {}}, required: [x, y], additionalProperties: false}", `x.yaml:4:90: schema of role "a": it requires "y", and additionalProperties: false refuses it, since the properties beside that do not list it: nothing fits there (add "y" to these properties, or take it out of ` + "`required`)"},
		{"systemPrompt: s", "systemPrompt: s, checks: test", "x.yaml:4:40: `checks` of role \"a\" must be a list, this is text (write a list of names, such as [test, lint])"},
		{"systemPrompt: s", "systemPrompt: s, checks: null", "x.yaml:4:40: `checks` of role \"a\" must be a list, this is nothing"},
		{"systemPrompt: s", "systemPrompt: s, checks: {test: go test}", "x.yaml:4:40: `checks` of role \"a\" must be a list, this is a map"},
		{"systemPrompt: s", "systemPrompt: s, checks: []", "x.yaml:4:40: `checks` of role \"a\" is empty (leave it out)"},
		{"systemPrompt: s", "systemPrompt: s, checks: [test, lint, test]", "x.yaml:4:61: `checks` of role \"a\" names \"test\" twice (remove one of the two)"},
		{"systemPrompt: s", "systemPrompt: s, checks: [test, Lint]", "x.yaml:4:55: `checks` of role \"a\" names \"Lint\", which is no name of a check (write lower-case letters, digits and -, at most 32, a letter first)"},
		{"systemPrompt: s", "systemPrompt: s, checks: [2nd]", "x.yaml:4:49: `checks` of role \"a\" names \"2nd\", which is no name of a check"},
		{"systemPrompt: s", "systemPrompt: s, checks: [a_b]", "x.yaml:4:49: `checks` of role \"a\" names \"a_b\", which is no name of a check"},
		{"systemPrompt: s", "systemPrompt: s, checks: [\"test\\n\"]", "which is no name of a check"},
		{"systemPrompt: s", "systemPrompt: s, checks: [" + longCheck + "]", ""},
		{"systemPrompt: s", "systemPrompt: s, checks: [" + longCheck + "a]", "which is no name of a check"},
		{"systemPrompt: s", "systemPrompt: s, checks: [7]", "x.yaml:4:49: `checks` of role \"a\" names \"7\", which is no name of a check"},
		{"systemPrompt: s", "systemPrompt: s, checks: [{run: go test}]", "x.yaml:4:49: `checks` of role \"a\" names a map, which is no name of a check"},
		{"systemPrompt: s", "systemPrompt: s, checks: [null]", "x.yaml:4:49: `checks` of role \"a\" names \"null\", which is no name of a check"},
		{"systemPrompt: s", "systemPrompt: s, checks: [strict]", "x.yaml:4:49: `checks` of role \"a\" names \"strict\", which is reserved: configuration has another use for it (give the check another name)"},
		{"systemPrompt: s", "systemPrompt: s, checks: [time]", "x.yaml:4:49: `checks` of role \"a\" names \"time\", which is reserved: configuration has another use for it (give the check another name)"},
		{"systemPrompt: s", "systemPrompt: s, checks: [test, protect]", "x.yaml:4:55: `checks` of role \"a\" names \"protect\", which is reserved: configuration has another use for it (give the check another name)"},
		{"systemPrompt: s", "systemPrompt: s, checks: [" + names(16) + "]", ""},
		{"systemPrompt: s", "systemPrompt: s, checks: [" + names(17) + "]", "x.yaml:4:40: `checks` of role \"a\" has 17 names; the limit is 16 (let one check run several commands)"},
		{"systemPrompt: s", "systemPrompt: s, check: [test]", "x.yaml:4:40: role \"a\" has an unknown key \"check\" (did you mean `checks`?)"},
		{"graph:", "conditions: steps\ngraph:", "x.yaml:5:1: `conditions` must be a map, this is text"},
		{"graph:", "conditions:\n" + conditions.String() + "graph:", "x.yaml:5:1: the definition has 501 conditions; the limit is 500"},
		{"a: {_: {role: $END}}", "a:\n" + edges.String(), "x.yaml:5:1: the graph has more than 2000 edges"},
		{"graph:", "limits: 20\ngraph:", "x.yaml:5:1: `limits` must be a map, this is the number 20"},
		{"", "", ""},
	} {
		_, err := workflow.Parse("x.yaml", []byte(strings.Replace(smallDefinition, tt.old, tt.text, 1)), opts)
		var invalid *workflow.InvalidError
		got := ""
		if errors.As(err, &invalid) {
			got = strings.Join(strings.Split(err.Error(), "\n  ")[1:], "; ")
		}
		if !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%.60s: %.1000s, want %s", tt.text, got, tt.want)
		}
	}
}

// Each row is smallDefinition with another schema, status and prompt, and what is warned of.
func TestParseWarns(t *testing.T) {
	const headng = "headng: {type: string}"
	for _, tt := range []struct{ schema, edge, want string }{
		{"{type: object}", `_: {role: $END}`, ""},
		{"{properties: {" + headng + "}, required: [headng]}", `_: {role: $END, prompt: "{{headng}}"}`, ""},
		{"{properties: {" + headng + "}, required: [heading]}", `_: {role: $END}`,
			`x.yaml:4:104: schema of role "a": it requires "heading", and its properties do not list it: no agent is asked for it (did you mean "headng"? Else add "heading" to these properties, or take it out of ` + "`required`)"},
		{"{oneOf: [{properties: {$status: {const: done}, x: {}}, required: [$status, x]}, {properties: {$status: {const: failed}}, required: [$status, x]}]}",
			`done: {role: $END, prompt: "{{x}}"}, failed: {role: $END}`, `x.yaml:4:195: schema of role "a": it requires "x", and the properties of some alternatives do not list it`},
		{"{anyOf: [{properties: {$status: {const: done}}}, {properties: {$status: {const: failed}}, required: [y], additionalProperties: false}]}",
			`done: {role: $END}, failed: {role: $END}`, `x.yaml:4:155: schema of role "a": it requires "y", and additionalProperties: false refuses it, since the properties beside that do not list it: nothing fits there`},
		{"{properties: {list: {items: {properties: {x: {}}, required: [x, z]}}}}", `_: {role: $END}`, `x.yaml:4:118: schema of role "a": it requires "z"`},
		{"{properties: {" + headng + "}}", `_: {role: $END, prompt: "Ha: {{{headng}}}"}`,
			`x.yaml:7:36: prompt of edge a → _: {{headng}} may come out empty: the output of a fits without "headng" (write {{#headng}}…{{/headng}} around what needs it, or add "headng" to the ` + "`required` of its object)"},
		{"{properties: {" + headng + "}}", `_: {role: $END, prompt: "{{#headng}}Ha: {{headng}}{{/headng}}"}`, ""},
		{"{properties: {$status: {enum: [done, failed]}, x: {}, y: {}}, required: [$status], if: {properties: {$status: {const: done}}}, then: {required: [x]}}",
			`done: {role: $END, prompt: "{{$status}} {{x}}"}, failed: {role: $SUSPEND, prompt: "{{y}}", location: "{{y}}"}`,
			`x.yaml:7:90: prompt of edge a → failed: {{y}} may come out empty: the output of a with status "failed" fits without "y" (write {{#y}}…{{/y}} around what needs it, or add "y" to the ` + "`required` of its object); x.yaml:7:109: location of edge a → failed: {{y}}"},
	} {
		text := strings.Replace(strings.Replace(smallDefinition, "{type: object}", tt.schema, 1), "_: {role: $END}", tt.edge, 1)
		var got []string
		if _, err := workflow.Parse("x.yaml", []byte(text), workflow.Options{Warn: func(p workflow.Problem) { got = append(got, p.String()) }}); err != nil {
			t.Error(err)
		}
		if all := strings.Join(got, "; "); !strings.Contains(all, tt.want) || (all == "") != (tt.want == "") {
			t.Errorf("%s %s: %s, want %s", tt.schema, tt.edge, all, tt.want)
		}
	}
	// On edges with conditions more than the status decides; after them it does not.
	list := strings.Replace(smallDefinition, "{type: object}", "{properties: {x: {}}}", 1)
	list = strings.Replace(list, "a: {_: {role: $END}}", `a: [{role: a, prompt: "{{x}}", condition: has}, {role: $END, prompt: "{{x}}"}]`, 1) + "conditions: {has: '$exists(steps[-1].output.x)'}\n"
	var got []string
	if _, err := workflow.Parse("x.yaml", []byte(list), workflow.Options{Warn: func(p workflow.Problem) { got = append(got, p.String()) }}); err != nil {
		t.Error(err)
	}
	if len(got) != 1 || !strings.Contains(got[0], "prompt of edge a → #2: {{x}} may come out empty") {
		t.Errorf("conditions: %q", got)
	}
}

// What is compiled by a program may hold what no file does.
func TestMaterializeRefuses(t *testing.T) {
	for want, change := range map[string]func(d *workflow.Definition, r *workflow.Role){
		`storing the schema of role "a" of workflow n: make a node of type ` + string(node.MetaSchema): func(_ *workflow.Definition, r *workflow.Role) { r.Schema = math.NaN() },
		`storing the schema of role "a" of workflow n: it is named as 0000000000000 and hashes to`:     func(_ *workflow.Definition, r *workflow.Role) { r.Frontmatter = "0000000000000" },
		"storing workflow n: make a node of type":                                                      func(d *workflow.Definition, _ *workflow.Role) { d.Description = strings.Repeat("x", node.MaxSize) },
		"": func(*workflow.Definition, *workflow.Role) {},
	} {
		d := mustParse(t, smallDefinition)
		r := d.Roles["a"]
		change(d, &r)
		d.Roles["a"] = r
		if _, _, err := workflow.Materialize(d, time.UnixMilli(0)); (err != nil) != (want != "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
