package moderator_test

import (
	"fmt"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
)

const reviewed = `
name: reviewed
description: A developer works until the reviewer is content.
roles:
  developer:
    description: Changes the code.
    goal: Do what is asked.
    capabilities: []
    procedure: Write the test first.
    output: What changed.
    frontmatter:
      type: object
      required: [$status, summary]
      properties:
        $status: {enum: [done, unclear]}
        summary: {type: string}
  reviewer:
    description: Reads the change.
    goal: Say whether it can be merged.
    capabilities: []
    procedure: Read the diff.
    output: The verdict.
    frontmatter:
      type: object
      required: [$status]
      properties: {$status: {enum: [approved]}}
graph:
  $START: {_: {role: developer, prompt: Do what the task says.}}
  developer:
    done: {role: reviewer, prompt: "Review this: {{{summary}}}"}
    unclear: {role: $SUSPEND, prompt: "{{{summary}}}"}
  reviewer: {approved: {role: $END, prompt: ""}}
`

// The last output and the graph say who is next. A status without an edge is an error, which
// is why Next is asked before an output is committed.
func ExampleNext() {
	d, err := workflow.Parse("reviewed.yaml", []byte(reviewed), workflow.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	say := func(steps ...moderator.Output) {
		next, err := moderator.Next(d, moderator.Thread{Steps: steps})
		switch {
		case err != nil:
			fmt.Println("error:", err)
		case next.Kind == moderator.Run:
			fmt.Printf("%s is told: %s\n", next.Role, next.Prompt)
		case next.Kind == moderator.Suspend:
			fmt.Printf("%s asks: %s\n", next.Role, next.Reason)
		case next.Kind == moderator.End:
			fmt.Println("the end")
		}
	}
	output := func(role, status, summary string) moderator.Output {
		return moderator.Output{Role: role, Output: map[string]any{"$status": status, "summary": summary}}
	}
	done := output("developer", "done", "Pop keeps the last element.")
	say()
	say(done)
	say(output("developer", "unclear", "Which limit is right?"))
	say(done, output("reviewer", "approved", ""))
	say(output("developer", "finished", ""))
	// Output:
	// developer is told: Do what the task says.
	// reviewer is told: Review this: Pop keeps the last element.
	// developer asks: Which limit is right?
	// the end
	// error: the output of role developer has $status "finished", which leads nowhere; the workflow waits for one of done, unclear
}
