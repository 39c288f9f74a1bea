package forge

import (
	"strings"
	"testing"
)

// architectureFile is the architecture page's own workflow, which has no statuses.
const architectureFile = `name: "solve-issue"
description: "End-to-end issue resolution"
roles:
  planner:
    description: "Creates implementation plan"
    goal: "You are a planning agent. Analyze the issue and create a step-by-step plan."
    capabilities:
      - issue-analysis
      - planning
    procedure: "Analyze the issue and create a detailed, actionable implementation plan."
    output: "Output the plan summary and list of concrete steps."
    meta:
      type: object
      properties:
        plan: { type: string }
        steps: { type: array, items: { type: string } }
      required: [plan, steps]
  developer:
    description: "Implements code changes"
    goal: "You are a developer agent. Implement the plan."
    capabilities:
      - file-edit
      - shell
    procedure: "Implement the plan. Write code, tests, and ensure existing tests pass."
    output: "List all files changed and provide a summary of the implementation."
    meta:
      type: object
      properties:
        filesChanged: { type: array, items: { type: string } }
        summary: { type: string }
      required: [filesChanged, summary]
  reviewer:
    description: "Reviews code changes"
    goal: "You are a code reviewer. Review the implementation."
    capabilities:
      - code-review
    procedure: "Review the implementation against the plan."
    output: "Approve or reject with detailed comments."
    meta:
      type: object
      properties:
        approved: { type: boolean }
        comments: { type: string }
      required: [approved, comments]
conditions:
  notApproved:
    description: "Reviewer rejected the implementation"
    expression: "steps[-1].output.approved = false"
graph:
  $START:
    - role: "planner"
      condition: null
  planner:
    - role: "developer"
      condition: null
  developer:
    - role: "reviewer"
      condition: null
  reviewer:
    - role: "developer"
      condition: "notApproved"
    - role: "$END"
      condition: null
`

// architectureScript has the reviewer refuse once.
const architectureScript = `steps:
  - {role: planner, output: "---\nplan: Fix MaxLen.\nsteps: [fix]\n---\n"}
  - {role: developer, write: {a.txt: x}, output: "---\nfilesChanged: [a.txt]\nsummary: Fixed it\n---\n"}
  - {role: reviewer, visit: 1, output: "---\napproved: false\ncomments: A test is missing.\n---\n"}
  - {role: reviewer, output: "---\napproved: true\ncomments: Good.\n---\n"}
`

// TestEdgesAreShown: without statuses the comment, the summary, the pull request and the
// outputs show which edge each step took.
func TestEdgesAreShown(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{script: architectureScript, files: map[string]string{".uwf/workflows/solve-issue.yaml": architectureFile}})
	n := c.issue()
	c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
	c.green(c.settle()...)

	last := c.jobs[len(c.jobs)-1]
	if last.outputs["result"] != "→ end" || last.outputs["done"] != "true" {
		t.Errorf("outputs: %v", last.outputs)
	}
	for what, text := range map[string]string{"comment": c.sticky(n).Body, "summary": last.summary, "pull request": c.pull(n).Body} {
		for _, row := range []string{"| 1 | planner | `→ developer` |", "| 3 | reviewer | notApproved |", "| 5 | reviewer | `→ end` |"} {
			if !strings.Contains(text, row) {
				t.Errorf("the %s doesn't say %q:\n%s", what, row, text)
			}
		}
		if strings.Contains(text, "| _ |") {
			t.Errorf("the %s has a step without a result:\n%s", what, text)
		}
	}
}
