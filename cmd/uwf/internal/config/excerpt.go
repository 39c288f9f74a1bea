package config

import (
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// maxExcerpt is how much of a line is shown, in characters.
const maxExcerpt = 120

// quoteLine is a line of a file and a caret below a column, without anything that
// may be a key: the line is shown because something is wrong with it, and a key in
// the wrong place is one of the things that can be wrong.
func quoteLine(text string, line, col int, clean func(string) string) (source, caret string) {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return "", ""
	}
	source = strings.TrimRight(strings.ReplaceAll(lines[line-1], "\t", " "), "\r")
	hidden := hideValues(source)
	if hidden == source {
		hidden = clean(source)
	}
	if hidden != source {
		// What was taken out may stand before the column: the caret goes to the
		// beginning of what is left.
		return shortLine(hidden), strings.Repeat(" ", len(hidden)-len(strings.TrimLeft(hidden, " "))) + "^"
	}
	if col < 1 || col > utf8.RuneCountInString(source)+1 || col > maxExcerpt {
		return shortLine(source), ""
	}
	return shortLine(source), strings.Repeat(" ", col-1) + "^"
}

func shortLine(s string) string {
	if r := []rune(s); len(r) > maxExcerpt {
		return string(r[:maxExcerpt]) + "…"
	}
	return s
}

var (
	keyValue = lazyregexp.New(`([A-Za-z_][A-Za-z0-9_-]*)["']?\s*:\s*("[^"]*"?|'[^']*'?|[^\s,{}\[\]#][^,}\]#]*)`)
	longWord = lazyregexp.New(`[A-Za-z0-9_+/=.~-]{20,}`)
)

// hideValues hides what stands after names that mean a secret, and long words of
// letters and digits, which keys are.
func hideValues(line string) string {
	line = keyValue.ReplaceAllStringFunc(line, func(s string) string {
		m := keyValue.FindStringSubmatch(s)
		if strings.HasPrefix(strings.ToLower(m[1]), "apikey") || redact.SecretName(m[1]) {
			return strings.TrimSuffix(s, m[2]) + "…"
		}
		return s
	})
	return longWord.ReplaceAllStringFunc(line, func(s string) string {
		if strings.ContainsAny(s, "0123456789") && strings.ContainsAny(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz") && !strings.HasPrefix(s, "//") {
			return "…"
		}
		return s
	})
}
