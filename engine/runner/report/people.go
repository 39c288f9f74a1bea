package report

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/runner/sanitize"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/markdown"
)

// mostSaid is how many of people's words are shown, the newest ones.
const mostSaid = 10

// whoDecided says who decided: who started the thread, and who said what to it. The title
// names them, a click shows the words. Nobody is mentioned: whom it concerns wrote it.
func (p page) whoDecided() string {
	if p.Started == nil && len(p.Said) == 0 {
		return ""
	}
	var title, lines []string
	if p.Started != nil {
		title = append(title, "started by "+accountHTML(*p.Started))
		lines = append(lines, "- "+accountText(*p.Started)+" "+markdown.Link("started it", p.Started.URL)+".")
	}
	if n := len(p.Said); n > 0 {
		if by := p.Said[n-1].By; by != nil {
			title = append(title, doneBy(p.Said[n-1].Word)+" by "+accountHTML(*by))
		}
	}
	if n := len(p.Said) - mostSaid; n > 0 {
		lines = append(lines, fmt.Sprintf("- … %d more, see the thread's page", n))
	}
	lines = append(lines, lists.Map(p.Said[max(len(p.Said)-mostSaid, 0):], p.saidLine)...)
	if len(title) == 0 {
		title = []string{"who decided"}
	}
	return foldBlock(upperFirst(strings.Join(title, ", ")), strings.Join(lines, "\n"))
}

// saidLine is one entry of the list.
func (p page) saidLine(s Said) string {
	by, address := "Somebody", ""
	if s.By != nil {
		by, address = accountText(*s.By), s.By.URL
	}
	line := fmt.Sprintf("- %s %s before step %d", by, markdown.Link(s.Did(), address), s.Step)
	if strings.TrimSpace(s.Text) == "" {
		return line + ", without a word."
	}
	return line + ":\n\n" + sanitize.Outgoing(s.Text, "  > ", 1_000) + "\n"
}

// doneBy is what was done with a thread by words.
func doneBy(w record.Word) string {
	switch {
	case w.Do == record.DoPoke:
		return "poked"
	case w.Question != "":
		return "answered"
	}
	return "resumed"
}

// accountText names somebody in Markdown: an account by its login, which is only looked
// at, and its id; anybody else by what git says.
func accountText(by record.By) string {
	if by.Kind == record.ByLocal {
		return codeSpan(cleanName(by.Name)) + ", as git on their machine says,"
	}
	out := codeSpan("@" + cleanName(by.Login))
	if by.Kind == record.ByBot {
		out += ", a bot"
	}
	if by.ID != 0 {
		out += fmt.Sprintf(" (id %d)", by.ID)
	}
	return out
}

// closedBy names in a sentence who cancelled the thread.
func (t Thread) closedBy(who func(string) string) string {
	if t.Closed.Kind == record.ByLocal {
		return who(t.Closed.Name) + ", as git on their machine says"
	}
	return who(t.Closed.Login)
}

// accountHTML names somebody in the title of a block.
func accountHTML(by record.By) string {
	shown := by.Name
	if by.Kind != record.ByLocal {
		shown = "@" + by.Login
	}
	out := "<code>" + strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(strings.Trim(codeSpan(cleanName(shown)), "`")) + "</code>"
	if by.Kind == record.ByLocal {
		out += ", as git on their machine says"
	}
	return out
}

func upperFirst(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
