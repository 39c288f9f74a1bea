package workflow_test

import (
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/workflow"
)

// A definition is compiled to one form, whatever dialect it is written in: roles with their
// statuses, and the edges that leave each of them.
func ExampleParse() {
	d, err := workflow.Parse("greet.yaml", []byte(`
name: greet
description: One writer.
roles:
  writer:
    description: Writes a greeting.
    goal: Greet the reader.
    capabilities: []
    procedure: Write one line.
    output: The greeting.
    frontmatter:
      type: object
      required: [$status, line]
      properties:
        $status: {enum: [done]}
        line: {type: string}
graph:
  $START: {_: {role: writer, prompt: Write it.}}
  writer: {done: {role: $END, prompt: ""}}
`), workflow.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Name, d.RoleNames(), d.Statuses("writer"))
	for _, e := range d.Graph["writer"] {
		fmt.Println(e.When, "→", e.To)
	}
	// Output:
	// greet [writer] [done]
	// done → $END
}

// All that is wrong with a definition is said at once, with its place and a fix.
func ExampleParse_invalid() {
	_, err := workflow.Parse("greet.yaml", []byte(`
name: greet
description: One writer.
roles:
  writer:
    description: Writes a greeting.
    goal: Greet the reader.
    capabilities: []
    procedure: Write one line.
    output: The greeting.
    frontmatter:
      type: object
      required: [$status]
      properties: {$status: {enum: [done]}}
graph:
  $START: {_: {role: writter, prompt: Write it.}}
  writer: {done: {role: $END, prompt: ""}}
`), workflow.Options{})
	var invalid *workflow.InvalidError
	if errors.As(err, &invalid) {
		p := invalid.Problems[0]
		fmt.Printf("line %d: %s (%s)\n", p.Line, p.Message, p.Fix)
	}
	// Output:
	// line 16: edge $START → _ leads to "writter", which is no role (did you mean "writer"?)
}
