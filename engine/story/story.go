// Package story writes what people read of a thread: its pages on the state branch, and the
// messages of its commits. All of it is derived, and none is read back.
package story

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/summary"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/markdown"
	"github.com/united-workforce/uwf/internal/text"
)

// Story is what the pages about a whole thread are made of.
type Story struct {
	reading.Thread
	steps []stepLine
	Took  gitcas.Cost // with tries that failed before these steps
}

// stepLine is one step of it.
type stepLine struct {
	role, result, says string
	usage              record.Usage
	words              []record.Word // what people said before it
}

// AddPages adds to a change the index page of each thread whose entry it sets, and the
// task's page of those that begin with it, where it has none. A page that can't be made
// stays as it was: it tells what is on record, and nothing depends on it.
func AddPages(ctx context.Context, v *gitcas.View, c *gitcas.Change) {
	for id, entry := range c.Threads {
		if entry == nil || c.Readable[layout.IndexPath(id)] != nil {
			continue
		}
		r, err := reading.ReadAfter(ctx, v, c, id, *entry)
		if err != nil {
			continue
		}
		tale := WithTries(ctx, r, *entry)
		AddPage(c, layout.IndexPath(id), tale.WriteIndex())
		if _, alive := v.Entry(id); !alive {
			AddPage(c, layout.TaskPath(id), tale.WriteTask(""))
		}
	}
}

// CostOf is what was used, for the record.
func CostOf(t moderator.Totals) gitcas.Cost {
	return gitcas.Cost{Tokens: t.Tokens, CostUSD: t.CostUSD, Unpriced: t.Unpriced, DurationMs: t.Wall.Milliseconds()}
}

// AddPage adds a page to a change.
func AddPage(c *gitcas.Change, path string, text []byte) {
	if c.Readable == nil {
		c.Readable = map[string][]byte{}
	}
	c.Readable[path] = text
}

// Of is that of the thread's steps, with this entry.
func Of(r *reading.Thread, entry gitcas.Entry) Story {
	s := Story{Thread: *r}
	s.Entry = entry
	results := r.Results()
	for i, step := range r.Chain.Steps {
		words, err := r.WordsBefore(step.Hash, step.Step)
		if err != nil {
			words = nil // the page of that step has them
		}
		s.AddStep(r.Past[i].Output, results[i], step.Step, words)
	}
	return s
}

// WithTries is story with what the tries took that failed before these steps.
func WithTries(ctx context.Context, r *reading.Thread, entry gitcas.Entry) Story {
	r.Entry = entry
	s := Of(r, entry)
	if used, err := attempt.NewLedger(nil, r, "").CountUsed(ctx, nil); err == nil {
		s.Took = CostOf(used)
	}
	return s
}

// AddStep adds a step, with what it put out and decided.
func (s *Story) AddStep(output map[string]any, result string, step record.Step, words []record.Word) {
	st := stepLine{role: step.Role, result: result, says: summary.Line(output), words: words}
	if u := step.Usage; u != nil {
		st.usage = *u
		s.Took.Tokens += u.InputTokens + u.OutputTokens
		s.Took.CostUSD += u.CostUSD
		s.Took.Unpriced = s.Took.Unpriced || u.Unpriced
		s.Took.DurationMs += u.DurationMs
	}
	s.steps = append(s.steps, st)
}

// countSteps is how many steps the thread has.
func (s Story) countSteps() int { return s.Chain.Skipped() + len(s.steps) }

// titleLine heads the pages.
func (s Story) titleLine() string {
	return cmp.Or(text.OneLine(s.Title()), "Thread "+string(s.ID))
}

// WriteTask writes the page with what the thread is to do. from is the thread and the step that it
// was forked from.
func (s Story) WriteTask(from string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s.\n", markdown.Escape(s.titleLine()), s.describeStart(from))
	if s.Chain.Start.Base != "" {
		fmt.Fprintf(&b, "The work began from commit `%s`.\n", text.OneLine(s.Chain.Start.Base))
	}
	fmt.Fprintf(&b, "\n## Task\n\n%s\n", indentText(s.Chain.Start.Prompt))
	return []byte(text.Lines(b.String()))
}

// describeStart says who began the thread, when, and about what.
func (s Story) describeStart(from string) string {
	did, by := "Started", s.Entry.By
	switch {
	case from != "":
		did = "Forked from " + from
	case !reflect.DeepEqual(s.Entry.By, s.Chain.Start.By): // the StartNode is that of the thread it was forked from
		did = "Forked"
	}
	out := did + " " + text.Time(s.ID.Time())
	if by != nil {
		out += " by " + markdown.Escape(reading.Name(*by)) + addressSuffix(by)
	}
	if about, _ := s.Chain.Start.Trigger["url"].(string); about != "" && (by == nil || about != by.URL) {
		out += ", about " + text.OneLine(about)
	}
	return out
}

// maxIndexSteps is how many steps the index has, the newest: the page is written with
// every step.
const maxIndexSteps = 200

// WriteIndex writes the thread in a page: how it stands, who had a part in it, what it took, and
// where to read on.
func (s Story) WriteIndex() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", markdown.Escape(s.titleLine()))
	s.writeState(&b)
	fmt.Fprintf(&b, "\n- Workflow %s, thread `%s`\n- %s\n- The task: [00-task.md](00-task.md)\n", markdown.Escape(text.OneLine(s.Def.Name)), s.ID, s.describeStart(""))
	if w := s.Entry.Work; w.Commit != "" {
		fmt.Fprintf(&b, "- Work: branch `%s` at commit `%s`\n", w.Branch, w.Commit)
	}
	if s.Entry.PR != 0 {
		fmt.Fprintf(&b, "- Pull request: #%d\n", s.Entry.PR)
	}
	fmt.Fprintf(&b, "- %s took %s, %d tokens, %s, with tries that failed before\n", text.Plural(s.countSteps(), "step"), roundTime(s.Took.DurationMs),
		s.Took.Tokens, text.Dollars(s.Took.CostUSD, s.Took.Unpriced))
	s.writeSteps(&b)
	return []byte(text.Lines(b.String()))
}

// writeState writes how the thread stands.
func (s Story) writeState(b *strings.Builder) {
	e := s.Entry
	switch e.Status {
	case gitcas.StatusSuspended:
		b.WriteString("**Waits for a person**")
		sus := *cmp.Or(e.Suspended, &gitcas.Suspended{})
		if sus.Role != "" {
			b.WriteString(", at role " + markdown.Escape(text.OneLine(sus.Role)))
		}
		if sus.By != nil {
			b.WriteString("; " + markdown.Escape(reading.Name(*sus.By)) + " made it wait")
		}
		if strings.TrimSpace(sus.Reason) == "" {
			b.WriteString(".\n")
		} else {
			b.WriteString(":\n\n" + indentText(sus.Reason) + "\n")
		}
	case gitcas.StatusEnded:
		fmt.Fprintf(b, "**Ended** after %s", text.Plural(s.countSteps(), "step"))
		if n := len(s.steps); n > 0 && s.steps[n-1].result != "" {
			b.WriteString(": " + markdown.Escape(text.OneLine(s.steps[n-1].result)))
		}
		b.WriteString(".\n")
	default:
		fmt.Fprintf(b, "**Under way**: step %d is next", s.countSteps()+1)
		if n := e.Next; n != nil {
			b.WriteString(", by role " + markdown.Escape(text.OneLine(n.Role)))
			if n.By != nil {
				b.WriteString("; " + markdown.Escape(reading.Name(*n.By)) + " let it go on")
			}
		}
		b.WriteString(".\n")
		if n := life.CountAttempts(e, s.ID, nil); n > 0 {
			fmt.Fprintf(b, "%s at it failed.\n", text.Plural(n, "attempt"))
		}
		if e.Pause != nil {
			b.WriteString("It is to wait before that:\n\n" + indentText(e.Pause.Reason) + "\n")
		}
	}
}

// writeSteps writes a table of the steps, and what people said.
func (s Story) writeSteps(b *strings.Builder) {
	if len(s.steps) == 0 {
		return
	}
	skipped := s.Chain.Skipped()
	first := max(s.countSteps()-maxIndexSteps, skipped)
	b.WriteString("\n| step | role | result | what it says | tokens | cost |\n|--:|:--|:--|:--|--:|--:|\n")
	if first > 0 {
		fmt.Fprintf(b, "| 1–%d | | | see their pages | | |\n", first)
	}
	var people strings.Builder
	for i, st := range s.steps {
		n := skipped + i + 1
		if n <= first {
			continue
		}
		page := layout.PageLink(n, s.countSteps(), st.role)
		fmt.Fprintf(b, "| [%d](%s) | %s | %s | %s | %d | %s |\n", n, page, markdown.Escape(text.OneLine(st.role)), markdown.Escape(text.OneLine(st.result)),
			markdown.Escape(text.OneLine(st.says)), st.usage.InputTokens+st.usage.OutputTokens, text.Dollars(st.usage.CostUSD, st.usage.Unpriced))
		for _, w := range st.words {
			fmt.Fprintf(&people, "- Before step %d: %s %s, %s%s\n", n, markdown.Escape(reading.NameOf(w.By)), w.Did(), text.Time(time.UnixMilli(w.AtMs)), addressSuffix(w.By))
		}
	}
	if people.Len() > 0 {
		b.WriteString("\nWhat people said is on the pages of these steps:\n\n" + people.String())
	}
}

// roundTime is a time for readers.
func roundTime(ms int64) string {
	d, to := time.Duration(ms)*time.Millisecond, time.Second
	if d < 10*time.Second {
		to = 100 * time.Millisecond
	}
	return d.Round(to).String()
}
