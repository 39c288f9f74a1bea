// Package summary finds in an output what it says of itself: a title, and a text that
// tells what was done. It knows the names that people give to such fields, and nothing of
// what they hold. It is pure.
package summary

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/united-workforce/uwf/internal/text"
)

// titleFields and textFields are the fields of outputs that titles and texts are taken
// from, the best first.
func titleFields() []string {
	return []string{"pullrequesttitle", "pulltitle", "prtitle", "title", "subject"}
}

func textFields() []string {
	return []string{"pullrequestbody", "pullbody", "prbody", "description", "summary", "changes", "changelog"}
}

// GoodTitle is how long a title may be, in characters, that nobody wrote as one.
const GoodTitle = 72

// Written is the title that an output has a field for; empty: it has none.
func Written(output map[string]any) string { return firstField(output, titleFields()) }

// Text is what an output says was done; empty: it has no field for that.
func Text(output map[string]any) string { return firstField(output, textFields()) }

// Title is a title for an output on one line: the one that it has a field for, else the
// first sentence of its text, cut between two words where it is too long for a title;
// empty: it has neither.
func Title(output map[string]any) string {
	if title := oneLine(Written(output)); title != "" {
		return title
	}
	return shortenToTitle(FirstSentence(oneLine(Text(output))))
}

// shortenToTitle is a text of a title's length, cut between two words.
func shortenToTitle(s string) string {
	runes := []rune(s)
	if len(runes) <= GoodTitle {
		return s
	}
	s = string(runes[:GoodTitle-1])
	if i := strings.LastIndexByte(s, ' '); i > len(s)/2 {
		s = s[:i]
	}
	return s + "…"
}

// Line is what an output says, on one line of about a title's length: its title, else the
// beginning of the first of its other texts in the order of their names; empty: it has no
// texts.
func Line(output map[string]any) string {
	if title := Title(output); title != "" {
		return title
	}
	for _, name := range slices.Sorted(maps.Keys(output)) {
		if text, ok := output[name].(string); ok && !strings.HasSuffix(strings.ToLower(name), "status") && strings.TrimSpace(text) != "" {
			return shortenToTitle(FirstSentence(oneLine(text)))
		}
	}
	return ""
}

// oneLine is the beginning of a text on one line: of a megabyte not all has to be looked at.
func oneLine(s string) string {
	return text.Line(text.Cut(s, maxBeginning))
}

// maxBeginning is how much of a text may become a title, in bytes.
const maxBeginning = 2_000

// FirstSentence is a text up to its first full stop, without it.
func FirstSentence(s string) string {
	runes := []rune(s)
	for i, r := range runes {
		if strings.ContainsRune(".!?。", r) && (i+1 == len(runes) || unicode.IsSpace(runes[i+1])) {
			return strings.TrimSpace(string(runes[:i]))
		}
	}
	return s
}

// firstField is the first of the fields that holds text. Case, dashes and underscores in
// names don't matter.
func firstField(output map[string]any, fields []string) string {
	found := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(output)) {
		name := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(key))
		if s, ok := output[key].(string); ok && strings.TrimSpace(s) != "" && found[name] == "" {
			found[name] = s
		}
	}
	for _, f := range fields {
		if s := found[f]; s != "" {
			return s
		}
	}
	return ""
}
