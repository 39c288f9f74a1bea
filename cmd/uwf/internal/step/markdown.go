package step

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/text"
)

// writeHeading writes a heading of Markdown.
func writeHeading(w *output.Writer, level int, format string, args ...any) {
	w.Bold(strings.Repeat("#", level) + " " + output.Line(fmt.Sprintf(format, args...), 200))
	w.Println()
}

// writeFacts writes names and values on one line; without those that have no value.
func writeFacts(w *output.Writer, pairs ...[2]string) {
	var all []string
	for _, p := range pairs {
		if p[1] != "" {
			all = append(all, "**"+p[0]+":** "+output.Line(p[1], 300))
		}
	}
	if len(all) > 0 {
		w.FaintLine(strings.Join(all, " | "))
	}
}

// writeQuote writes what others wrote as a quotation, so that none of it is taken for what uwf
// says, such as the heading of a step.
func writeQuote(w *output.Writer, indent, text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		w.Printf("%s", strings.TrimRight(indent+"> "+line, " \n")+"\n")
	}
}

// writePassage writes the facts of what others wrote, and quotes it.
func writePassage(w *output.Writer, text string, facts ...[2]string) {
	writeFacts(w, facts...)
	w.Println()
	if strings.TrimSpace(text) != "" {
		writeQuote(w, "", text)
		w.Println()
	}
}

// writeHint writes what is left out, and how to read it.
func writeHint(w *output.Writer, format string, args ...any) {
	w.Println()
	w.FaintLine("*(" + fmt.Sprintf(format, args...) + ")*")
}

// writeMarkdown writes one step as a reader wants it: what went before, what came of it.
func (s shown) writeMarkdown(w *output.Writer) {
	for _, f := range s.Failed {
		what := outcome(f)
		if what != "failed" {
			what = "was " + what
		}
		writeHeading(w, 2, "An attempt at step %d %s", s.Step, what)
		writePassage(w, f.Error, [2]string{"Role", f.Role}, [2]string{"Agent", f.Agent}, [2]string{"Time", text.TimeIn(f.At, w.Zone)})
	}
	for _, said := range s.Said {
		said.writeMarkdown(w)
	}
	s.writeHead(w)
	for _, c := range s.Checks {
		if c.Output != "" && c.Status != record.CheckPassed {
			w.Println()
			writeHeading(w, 3, "The end of what %s printed", c.Name)
			w.Println()
			writeQuote(w, "", c.Output)
		}
	}
	s.writeFields(w)
	if body := strings.TrimSpace(s.Body); body != "" {
		w.Println()
		writeQuote(w, "", body)
	}
}

// writeHead writes which step it is, and what came of it.
func (s shown) writeHead(w *output.Writer) {
	writeHeading(w, 2, "Step %d: %s `%s`", s.Step, s.Role, s.Hash)
	writeFacts(w, [2]string{"Agent", s.Agent}, [2]string{"Time", text.TimeIn(s.CompletedAt, w.Zone)},
		[2]string{"Duration", (time.Duration(s.DurationMs) * time.Millisecond).String()}, [2]string{"Result", s.Result})
	for _, c := range s.Checks {
		writeFacts(w, [2]string{"Check", c.Describe()})
	}
	for _, note := range s.Notes {
		writeFacts(w, [2]string{"Note", note})
	}
}

// writeFields writes the fields of an output, without the one that says what came of the step.
func (s shown) writeFields(w *output.Writer) {
	fields, ok := s.Output.(map[string]any)
	if !ok {
		fields = map[string]any{"output": s.Output} // of another system: ours are always objects
	}
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(fields)), func(k string) bool { return k == workflow.StatusField || k == workflow.LegacyStatusField })
	if len(keys) > 0 {
		w.Println()
	}
	for _, k := range keys {
		writeField(w, k, fields[k])
	}
}

// writeField writes one field of an output.
func writeField(w *output.Writer, name string, value any) {
	text, isText := value.(string)
	if !isText {
		b, err := node.FormatJSON(value)
		if err != nil {
			w.Fail(err)
			return
		}
		text = string(b)
	}
	if text = strings.TrimRight(text, "\n"); !strings.Contains(text, "\n") {
		w.Printf("- %s: %s\n", output.Line(name, 200), text)
		return
	}
	w.Printf("- %s:\n", output.Line(name, 200))
	writeQuote(w, "  ", text)
}

// writeMarkdown writes what somebody said, and what they were asked.
func (s spoken) writeMarkdown(w *output.Writer) {
	if s.Question != "" {
		writeHeading(w, 2, "%s asked", s.Role)
		writePassage(w, s.Question)
	}
	writeHeading(w, 2, "%s %s", nameOf(s.By), s.did)
	url := ""
	if s.By != nil {
		url = s.By.URL
	}
	writePassage(w, s.Text, [2]string{"Time", text.TimeIn(s.At, w.Zone)}, [2]string{"At", url})
}

// nameOf names somebody; nobody knows who where there is none.
func nameOf(by *record.By) string {
	if by == nil {
		return "somebody"
	}
	return reading.Name(*by)
}

// writeMarkdown writes a step with its agent's turns, what prepared its workspace, and what the
// agent changed.
func (d details) writeMarkdown(w *output.Writer) {
	d.shown.writeMarkdown(w)
	for i, t := range d.Turns {
		w.Println()
		writeHeading(w, 3, "Turn %d", i+1)
		writeTurn(w, t)
	}
	if d.Prepare != "" {
		w.Println()
		writeHeading(w, 3, "Prepared")
		w.Println()
		writeQuote(w, "", d.Prepare)
	}
	p, _ := d.Patch.(map[string]any)
	if p == nil {
		return
	}
	w.Println()
	writeHeading(w, 3, "What it changed")
	w.Println()
	if diff, _ := p["diff"].(string); diff != "" {
		writeQuote(w, "", diff)
	} else {
		writeField(w, "files", p["files"]) // too much for a diff
	}
}

// writeTurn writes what an agent kept of a turn, as far as it is what agents keep.
func writeTurn(w *output.Writer, turn any) {
	m, ok := turn.(map[string]any)
	if !ok {
		m = map[string]any{"content": node.Text(turn)}
	}
	role, _ := m["role"].(string)
	writeFacts(w, [2]string{"Turn role", role})
	calls, _ := m["toolCalls"].([]any)
	for _, c := range calls {
		if call, ok := c.(map[string]any); ok {
			w.FaintLine("- " + output.Line("**"+node.Text(call["name"])+"** "+node.Text(call["args"]), 2000))
		}
	}
	if content, _ := m["content"].(string); strings.TrimSpace(content) != "" {
		w.Println()
		writeQuote(w, "", content)
	}
}

// writePrompt writes what the agent was told.
func (d details) writePrompt(w *output.Writer) {
	writeHeading(w, 3, "Prompt")
	w.Println()
	if d.Prompt == "" {
		w.Println("No prompt was kept.")
		return
	}
	writeQuote(w, "", d.Prompt)
}
