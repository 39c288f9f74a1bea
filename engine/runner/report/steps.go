package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/markdown"
	"github.com/united-workforce/uwf/internal/text"
)

// recent is how many steps are shown at once; older ones open by a click.
const recent = 12

const stepsHead = "| | role | result | time | tokens | commit |\n|--:|:--|:--|--:|--:|:--|\n"

// writeSteps is the table of steps in at most limit bytes: the newest, the older ones
// behind a click as far as there is room, and how many were left out.
func (p page) writeSteps(limit int) string {
	now := p.writePresentRow()
	if len(p.Steps) == 0 && now == "" {
		return ""
	}
	rows := make([]string, 0, len(p.Steps))
	left := limit - 2*len(stepsHead) - len(now) - 500
	for i := len(p.Steps) - 1; i >= 0; i-- {
		row := p.writeRow(p.Steps[i])
		if left -= len(row); left < 0 {
			break
		}
		rows = append(rows, row)
	}
	dropped := len(p.Steps) - len(rows)
	newest := min(len(rows), recent)
	if len(rows) == recent+1 {
		newest++ // a click for one row is a waste
	}
	older := ""
	if n := len(rows) - newest; n > 0 {
		first := p.Steps[dropped]
		last := p.Steps[dropped+n-1]
		older = foldBlock(fmt.Sprintf("Steps %d–%d", first.N, last.N), p.writeOmitted(dropped)+strings.TrimRight(joinRows(rows[newest:]), "\n"))
	} else if dropped > 0 {
		older = strings.TrimSpace(p.writeOmitted(dropped))
	}
	return joinBlocks(older, joinRows(rows[:newest])+now)
}

// writeOmitted says how many steps aren't shown, and where they are.
func (p page) writeOmitted(n int) string {
	if n == 0 {
		return ""
	}
	return markdown.Link(text.Plural(n, "older step"), p.linkLog()) + " not shown here.\n\n"
}

// joinRows is the rows, which are newest first, oldest first.
func joinRows(rows []string) string {
	var b strings.Builder
	b.WriteString(stepsHead)
	for i := len(rows) - 1; i >= 0; i-- {
		b.WriteString(rows[i])
	}
	return b.String()
}

func (p page) writeRow(s Step) string {
	result := plainLabel(s.Result)
	if s.Attempts > 0 {
		result += fmt.Sprintf(", at the %s try", formatOrdinal(s.Attempts+1))
		if s.Unmetered {
			result += " (what a job that died used is not known)"
		}
	}
	for _, c := range s.Checks {
		result += " " + checkMarks[c.Status] + "\u00a0" + plainLabel(c.Name)
	}
	tokens := ""
	if s.Tokens > 0 {
		tokens = formatAmount(s.Tokens)
	}
	return fmt.Sprintf("| %d | %s | %s | %s | %s | %s |\n", s.N, plainLabel(s.Role), result, strings.ReplaceAll(formatDuration(s.Took), " ", "\u00a0"), tokens, p.linkCommit(s.Commit))
}

var checkMarks = map[string]string{record.CheckPassed: "✓", record.CheckFailed: "✗", record.CheckSkipped: "–"}

// latestChecks are the last results of the thread's checks.
func (p page) latestChecks() []checks.Result {
	return checks.Latest(p.Steps, func(s Step) (string, []record.Check) { return s.Role, s.Checks })
}

// writeChecks says how the checks ended.
func (p page) writeChecks() string {
	var b strings.Builder
	step := 0
	for _, r := range p.latestChecks() {
		if r.Step != step {
			fmt.Fprintf(&b, "\nChecks of step %d:\n\n", r.Step)
			step = r.Step
		}
		b.WriteString("- " + codeSpan(oneLine(r.Describe())) + "\n")
	}
	return b.String()
}

// writeUnproven warns of the checks that did not pass, with the end of what they printed: a thread
// can end well all the same.
func (p page) writeUnproven(limit int) string {
	unproven := checks.Unproven(p.latestChecks())
	var blocks []string
	for _, r := range unproven {
		blocks = append(blocks, "⚠️ Step "+strconv.Itoa(r.Step)+": "+codeSpan(oneLine(r.Describe())), p.embedPrinted(r.Output, limit/len(unproven)))
	}
	return joinBlocks(blocks...)
}

// maxNotes is how many notes of steps are shown, the newest.
const maxNotes = 10

// writeNotes shows the notes of steps, each where it was first said.
func (p page) writeNotes() string {
	var lines []string
	said := map[string]bool{}
	for _, s := range p.Steps {
		for _, note := range s.Notes {
			if !said[note] {
				lines = append(lines, fmt.Sprintf("- Step %d: %s", s.N, codeSpan(oneLine(note))))
			}
			said[note] = true
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "Notes:\n\n" + strings.Join(lines[max(len(lines)-maxNotes, 0):], "\n")
}

func (p page) linkCommit(sha string) string {
	if !commitID.MatchString(sha) {
		return ""
	}
	return markdown.Link("`"+sha[:7]+"`", p.Links.CommitURL(sha))
}

var commitID = lazyregexp.New(`^[0-9a-f]{7,64}$`)

// writePresentRow is the row of the step that isn't done yet.
func (p page) writePresentRow() string {
	doing := map[State]string{Running: "working …", Queued: "next", Held: "next", Failed: "failed", Lost: "its job was lost"}[p.State]
	if p.Role == "" || doing == "" { // that a question is asked is a step's result
		return ""
	}
	return fmt.Sprintf("| %d | %s | _%s_ | | | |\n", p.nextStep(), boldName(p.Role), doing)
}
