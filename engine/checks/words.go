package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/text"
)

// MaxOutput bounds what is kept of a check's output, and what an error and a correction repeat
// of one, in bytes.
const MaxOutput = 4 << 10

// CutHead leaves the end of an output, at most so many bytes, from the beginning of a line where
// it has several.
func CutHead(s string, most int) string {
	s = strings.TrimRight(s, "\n")
	if len(s) <= most {
		return s
	}
	const mark = "…\n"
	end := s[min(len(s)-most+len(mark), len(s)):]
	if _, rest, ok := strings.Cut(end, "\n"); ok {
		end = rest
	}
	return mark + strings.ToValidUTF8(end, "")
}

// maxNamed is how many files a note names.
const maxNamed = 3

// NameSome names the first of some files, on one line, and how many more there are.
func NameSome(paths []string) string {
	named := text.Line(strings.Join(paths[:min(len(paths), maxNamed)], ", "))
	if more := len(paths) - maxNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return text.Cut(named, 150)
}

// JoinNotes puts what is to be said of a result one after the other; what is empty is left out.
func JoinNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(s string) bool { return s == "" }), "; ")
}
