package story

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/markdown"
	"github.com/united-workforce/uwf/internal/text"
)

// WriteTakenBack is the page of a step that is not in the chain any more.
func WriteTakenBack(last gitcas.ChainStep, n int, instruction string, by *record.By) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Step %d: %s, taken back\n\n%s had this step done again%s. What it was is kept: `%s.json`.\n", n, text.OneLine(last.Role), reading.NameOf(by), addressSuffix(by), last.Hash)
	if instruction = strings.TrimSpace(instruction); instruction != "" {
		b.WriteString("\n## Instruction\n\n" + indentText(text.Lines(instruction)) + "\n")
	}
	return []byte(b.String())
}

// Told is what a step has to tell.
type Told struct {
	Output map[string]any
	Body   string
	Words  []record.Word // what people said before the step
	Patch  *record.Patch // what the step changed; nil: nothing
}

// Outcome is what follows from a step.
type Outcome struct {
	Result string // what the step decided
	Ends   bool   // the thread is over
	Waits  bool   // it waits for a person
	Role   string // else the one whose turn it is
}

// WriteStep is a step as a page: what a reviewer sees on the forge's web pages.
// It is derived from the nodes and never read back.
func WriteStep(t task.Task, s record.Step, told *Told, next Outcome) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Step %d: %s\n\n", t.Step, text.OneLine(t.Role+moderator.Arrow(next.Result)))
	fmt.Fprintf(&b, "Workflow %s, agent %s", text.OneLine(t.WorkflowName), text.OneLine(s.Agent))
	if m := ModelOf(t, s.Usage); m != "" {
		b.WriteString(", model " + m)
	}
	b.WriteString(", " + text.Time(time.UnixMilli(s.CompletedAtMs)))
	if u := s.Usage; u != nil {
		fmt.Fprintf(&b, ", %s, %d tokens in, %d out", (time.Duration(u.DurationMs) * time.Millisecond).Round(100*time.Millisecond), u.InputTokens, u.OutputTokens)
		if u.CostUSD > 0 || u.Unpriced {
			b.WriteString(", " + text.Dollars(u.CostUSD, u.Unpriced))
		}
	}
	b.WriteString(".\n")
	if s.Work != nil && s.Work.Commit != "" {
		fmt.Fprintf(&b, "Work: `%s` at `%s`.\n", s.Work.Branch, s.Work.Commit)
	}
	switch {
	case next.Ends:
		b.WriteString("The thread ends here.\n")
	case next.Waits:
		b.WriteString("The thread waits for a person.\n")
	default:
		fmt.Fprintf(&b, "Next: %s.\n", text.OneLine(next.Role))
	}
	writeWords(&b, told.Words)
	writeChecks(&b, s.Checks)
	writeNotes(&b, s.Notes)
	writePatch(&b, told.Patch)
	b.WriteString("\n## Output\n\n")
	writeFields(&b, "    ", told.Output)
	if body := strings.TrimSpace(told.Body); body != "" {
		b.WriteString("\n" + body + "\n")
	}
	return []byte(text.Lines(b.String()))
}

// Bounds of what a page shows of a step's changes.
const (
	maxPageFiles = 200
	maxPageDiff  = 32 << 10 // bytes
)

// writePatch writes what a step changed, as far as a page has room: before all that its
// agent wrote, which could hide or imitate it.
func writePatch(b *strings.Builder, p *record.Patch) {
	if p == nil {
		return
	}
	b.WriteString("\n## Changed\n\n")
	shown := p.Files[:min(len(p.Files), maxPageFiles)]
	for _, f := range shown {
		fmt.Fprintf(b, "- %s %s", f.Change, markdown.Escape(text.OneLine(f.Path)))
		if f.Counted {
			fmt.Fprintf(b, ": +%d −%d", f.Added, f.Removed)
		}
		b.WriteString("\n")
	}
	if more := len(p.Files) + p.More - len(shown); more > 0 {
		fmt.Fprintf(b, "- and %s more\n", text.Plural(more, "file"))
	}
	if len(p.Diff) > maxPageDiff {
		b.WriteString("\nThe diff is long: the step's details have it.\n")
	} else if p.Diff != "" {
		b.WriteString("\n" + indentText(p.Diff) + "\n")
	}
}

// writeChecks writes how the role's checks ended.
func writeChecks(b *strings.Builder, checks []record.Check) {
	if len(checks) == 0 {
		return
	}
	b.WriteString("\n## Checks\n\n")
	for _, c := range checks {
		fmt.Fprintf(b, "- %s\n", markdown.Escape(c.Describe()))
	}
	for _, c := range checks {
		if c.Output != "" {
			fmt.Fprintf(b, "\nThe end of what %s printed:\n\n%s\n", markdown.Escape(c.Name), indentText(c.Output))
		}
	}
}

// writeNotes writes what the step's folder did not have, and what was not kept of it.
func writeNotes(b *strings.Builder, notes []string) {
	if len(notes) == 0 {
		return
	}
	b.WriteString("\n## Notes\n\n")
	for _, note := range notes {
		fmt.Fprintf(b, "- %s\n", markdown.Escape(text.OneLine(note)))
	}
}

// writeWords writes what people said before a step, and what they were asked. Their
// texts are indented, like an output's.
func writeWords(b *strings.Builder, words []record.Word) {
	if len(words) == 0 {
		return
	}
	b.WriteString("\n## What people said\n")
	asked := ""
	for _, w := range words {
		if w.Question != "" && w.Question != asked {
			asked = w.Question
			fmt.Fprintf(b, "\nRole %s asked:\n\n%s\n", text.OneLine(w.Role), indentText(w.Question))
		}
		fmt.Fprintf(b, "\n%s %s, %s%s:\n", reading.NameOf(w.By), w.Did(), text.Time(time.UnixMilli(w.AtMs)), addressSuffix(w.By))
		if strings.TrimSpace(w.Text) != "" {
			fmt.Fprintf(b, "\n%s\n", indentText(w.Text))
		}
	}
}

func indentText(text string) string {
	return "    " + strings.ReplaceAll(strings.Trim(text, "\n"), "\n", "\n    ")
}

func addressSuffix(by *record.By) string {
	if by == nil || by.URL == "" {
		return ""
	}
	return ", " + text.OneLine(by.URL)
}

// writeFields writes an output's fields, one below the other. On a page they are
// indented, so that no text in them is taken for markup.
func writeFields(b *strings.Builder, indent string, output map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(output)) {
		text := strings.TrimRight(fieldText(output[k]), "\n")
		fmt.Fprintf(b, "%s%s: %s\n", indent, k, strings.ReplaceAll(text, "\n", "\n"+indent+"  "))
	}
}

func fieldText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := node.FormatJSON(v)
	if err != nil {
		return "(" + err.Error() + ")" // a normalised value always has a text
	}
	return string(b)
}

// CommitBody is what the commit message shows of the output.
func CommitBody(s *Told) string {
	var b strings.Builder
	writeFields(&b, "", s.Output)
	if body := strings.TrimSpace(s.Body); body != "" {
		b.WriteString("\n" + body + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
