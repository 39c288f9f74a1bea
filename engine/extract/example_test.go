package extract_test

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/extract"
)

var verdict = map[string]any{
	"type":     "object",
	"required": []any{"$status", "files"},
	"properties": map[string]any{
		"$status": map[string]any{"enum": []any{"approved", "rejected"}},
		"files":   map[string]any{"type": "integer"},
	},
}

// The fields stand above the Markdown of an answer. Prose before them is left out, and text
// is taken for a number where the schema wants one.
func ExampleFrontmatter() {
	r, err := extract.Frontmatter(`Here is my verdict.

---
$status: approved
files: "3"
---
The tests pass.
`, verdict)
	fmt.Println(r.Status, r.Output["files"], r.Body, err)
	// Output: approved 3 The tests pass. <nil>
}

// What does not fit becomes the message that asks the agent to answer again.
func ExampleComplaint() {
	_, err := extract.Frontmatter("The tests pass, so: approved.", verdict)
	complaint := extract.Complaint(err, verdict, []string{"approved", "rejected"})
	for _, line := range strings.Split(complaint, "\n")[:3] {
		fmt.Println(line)
	}
	// Output:
	// Your answer could not be used: no frontmatter: no line of the answer is --- alone.
	//
	// Allowed values of $status: approved, rejected.
}
