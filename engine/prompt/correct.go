package prompt

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/internal/text"
)

// Complaint is a check that failed on what an agent made.
type Complaint struct {
	Check  string // its name
	End    string // how it ended: "exit code 1"
	Output string // the end of what it printed
}

// maxAnswer bounds what a correction repeats of an answer, in bytes: the whole prompt is sealed.
const maxAnswer = 64 << 10

// Correct is the prompt of an agent that has done its task, and whose work does not pass its
// checks. What it answered and what the checks printed is fenced, as data; n of most says
// which correction it is.
func Correct(prompt, answer string, complaints []Complaint, n, most int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n# Correction %d of %d\n\nYou have done this already, and your edits are in the workspace. Your answer was:\n\n", strings.TrimRight(prompt, "\n"), n, most)
	b.WriteString(text.Fence(text.Cut(strings.TrimRight(answer, "\n"), maxAnswer)))
	b.WriteString("\n\nIt is not taken yet, since checks fail on your work:\n")
	for _, c := range complaints {
		fmt.Fprintf(&b, "\n## %s: %s\n\n%s\n", c.Check, c.End, text.Fence(strings.TrimRight(c.Output, "\n")))
	}
	b.WriteString("\nMend the cause: a check is not to be weakened, skipped or taken out. Then give your whole answer again, in the form that is asked for above.\n")
	return b.String()
}
