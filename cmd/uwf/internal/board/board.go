// Package board shows a thread while it runs: on a terminal as lines that are written anew, with the
// way through the workflow, who works, on what and at what cost; elsewhere each thing that happens
// as a line. It reads no store.
package board

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// board is what is shown of a thread while it runs. It fits any width, and says more where there
// is room.
type board struct {
	workflow, title string
	roles           []string       // in the order in which work flows
	done            map[string]int // how many steps each has done

	step, turn         int
	role, agent, model string
	doing              string // what the model wants done now; empty: it is being asked
	checks             []string
	since              time.Time // when the step began

	tokens   int64 // of the thread
	cost     float64
	unpriced bool
	limits   moderator.Limits
	output   []string // the last lines of the agent's output
}

// maxOutput is how many of them are shown.
const maxOutput = 5

// renderLines are the board's lines, none longer than the terminal is wide.
func (b *board) renderLines(width int, now time.Time) []string {
	if b.role == "" {
		return nil
	}
	width = max(width-1, 10) // a full line would begin the next one on some terminals
	var out []string
	add := func(style, indent, line string) {
		line = ansi.Truncate(indent+output.Line(line, 4*width), width, "…")
		if style != "" {
			line = "\x1b[" + style + "m" + line + "\x1b[0m"
		}
		out = append(out, line)
	}
	add("2", "", joinWords(b.workflow, b.title))
	add("", "", b.renderPath(width))
	took := text.Took(now.Sub(b.since).Milliseconds())
	add("1", "", joinWords(b.role, b.describeTurn(), took, b.agent, b.model)) // what changes comes first
	doing := b.doing
	if doing == "" {
		doing = "the model is being asked"
	}
	add("36", "  ", doing)
	if len(b.checks) > 0 {
		add("", "  ", "checks: "+strings.Join(b.checks, ", "))
	}
	add("", "  ", b.describeSpent(width-2))
	for _, line := range b.output[max(len(b.output)-maxOutput, 0):] {
		add("2", "  │ ", line)
	}
	return out
}

// joinWords joins what is known.
func joinWords(words ...string) string {
	return strings.Join(lists.Filter(words, func(w string) bool { return w != "" }), " · ")
}

func (b *board) describeTurn() string {
	if b.turn == 0 {
		return fmt.Sprintf("step %d", b.step)
	}
	return fmt.Sprintf("step %d, turn %d", b.step, b.turn)
}

// renderPath is the way through the graph: the roles that were done with how often, the one at work,
// and those that may come. Where there is too little room, its beginning is left out.
func (b *board) renderPath(width int) string {
	words := make([]string, 0, len(b.roles)+1)
	here := 0
	for i, role := range b.roles {
		word := role
		switch n := b.done[role]; {
		case role == b.role:
			here = i
			word = "● " + role
			if n > 0 {
				word += fmt.Sprintf(" (again, %d before)", n)
			}
		case n > 1:
			word = fmt.Sprintf("✓ %s ×%d", role, n)
		case n == 1:
			word = "✓ " + role
		}
		words = append(words, word)
	}
	words = append(words, "end")
	const arrow = " → "
	line := strings.Join(words, arrow)
	for first := 1; ansi.StringWidth(line) > width && first <= here; first++ {
		line = "…" + arrow + strings.Join(words[first:], arrow)
	}
	return line
}

// barLength is the length of the bar that shows the budget, in characters.
const barLength = 20

// describeSpent is what the thread has used, of what it may: the budget that is nearest to its end as a
// bar.
func (b *board) describeSpent(width int) string {
	of := func(used, limit string) string {
		if limit == "" {
			return used
		}
		return used + " of " + limit
	}
	var tokenLimit, costLimit string
	share := 0.0
	if b.limits.Tokens > 0 {
		tokenLimit, share = fmt.Sprint(b.limits.Tokens), float64(b.tokens)/float64(b.limits.Tokens)
	}
	if b.limits.CostUSD > 0 {
		costLimit, share = fmt.Sprintf("$%.2f", b.limits.CostUSD), max(share, b.cost/b.limits.CostUSD)
	}
	line := of(text.Dollars(b.cost, b.unpriced), costLimit) + " · " + of(fmt.Sprint(b.tokens), tokenLimit) + " tokens"
	if tokenLimit+costLimit == "" {
		return line
	}
	share = min(share, 1)
	full := int(share*barLength + 0.5)
	bar := fmt.Sprintf("%s%s %d %%", strings.Repeat("█", full), strings.Repeat("░", barLength-full), int(share*100))
	if ansi.StringWidth(line)+2+ansi.StringWidth(bar) > width {
		return line
	}
	return line + "  " + bar
}
