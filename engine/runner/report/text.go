package report

import (
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/engine/runner/sanitize"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/markdown"
)

// maxName bounds what is written on one line.
const maxName = 60 // characters of a role, a result, a workflow

// cleanName is a role's name, a status or the like as plain text on one line.
func cleanName(s string) string {
	return cutRunes(oneLine(s), maxName)
}

// cutBeginning is so much of a text that a line can be made of it: of a megabyte not
// all has to be looked at.
func cutBeginning(s string) string { return strings.ToValidUTF8(s[:min(len(s), 2_000)], "\ufffd") }

// plainName is a name that Markdown, tables, HTML and forges leave as it is.
var plainName = lazyregexp.New(`^[\p{L}\p{N}]+([ .-]?[\p{L}\p{N}]+)*$`)

// boldName is a name in bold, where it is a plain one.
func boldName(s string) string { return markName(s, "**") }

// plainLabel is a name as it is, where it is a plain one.
func plainLabel(s string) string { return markName(s, "") }

func markName(s, marks string) string {
	if s = cleanName(s); plainName.MatchString(s) {
		return marks + s + marks
	}
	return codeSpan(s)
}

// codeSpan is a line of text as a code span that can stand in a cell of a table.
// Nothing in it means anything to Markdown or to the forge.
func codeSpan(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " ")
	s = strings.Trim(strings.NewReplacer("`", "'", "|", "¦", "\\", "⧵", "<!--", "<! --").Replace(s), " ")
	if s == "" {
		return "–"
	}
	return "`" + s + "`"
}

// cutRunes is the beginning of a text, in characters.
func cutRunes(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:limit-1])) + "…"
}

// embedPrinted is what an agent or a program printed, as a block of code of about limit
// bytes at most: its end, where the reason of a failure stands.
func (p page) embedPrinted(s string, limit int) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\ufffd"))
	if s == "" {
		return ""
	}
	if len(s) > limit {
		s = s[len(s)-limit:]
		for s != "" && !utf8.RuneStart(s[0]) {
			s = s[1:]
		}
		if i := strings.IndexByte(s, '\n'); i >= 0 && i < len(s)/2 {
			s = s[i+1:]
		}
		s = "…\n" + s
	}
	return sanitize.Outgoing(markdown.Fence(s, "text"), "", 2*limit)
}
