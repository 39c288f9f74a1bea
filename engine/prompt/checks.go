package prompt

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/text"
)

// maxChecks is the most that the outputs of checks take of a prompt, in bytes. Of a small model's
// window it is a sixteenth.
const maxChecks = 8 << 10

// writeChecks says what uwf's own checks said last, so that a role does not have to believe what
// another agent says of tests. It shows the end of what a check printed that did not pass, as data.
func writeChecks(in Input) string {
	results := checks.Latest(in.Steps, func(s Step) (string, []record.Check) { return s.Role, s.Checks })
	if len(results) == 0 {
		return ""
	}
	room := maxChecks
	if in.Window > 0 {
		room = min(room, in.Window/4)
	}
	unproven := checks.Unproven(results)
	var b strings.Builder
	b.WriteString("# What the checks said\n\nuwf runs these commands on what a role made. If an agent says something else of them, believe these results.\n\n")
	for _, r := range results {
		fmt.Fprintf(&b, "- %s (on the work of step %d, %s)\n", r.Describe(), in.countSkipped()+r.Step, r.Role)
	}
	for _, r := range unproven {
		if r.Output != "" {
			fmt.Fprintf(&b, "\nThe end of what %s printed:\n\n%s\n", r.Name, text.Fence(checks.CutHead(r.Output, room/len(unproven))))
		}
	}
	return b.String()
}
