package output

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// Writer writes text for people. Everything that is written is cleaned, so a
// caller can't forget it; only the methods named after styles add escapes.
type Writer struct {
	Zone *time.Location // for text.TimeIn; never nil

	out   io.Writer
	color bool
	err   error
}

// Printf writes formatted text.
func (w *Writer) Printf(format string, args ...any) {
	w.writeRaw(Clean(fmt.Sprintf(format, args...)))
}

// Println writes its operands, and a line break, like fmt.Println.
func (w *Writer) Println(args ...any) { w.writeRaw(Clean(fmt.Sprintln(args...))) }

// Bold writes text that stands out.
func (w *Writer) Bold(s string) { w.styleText("1", s) }

// Faint writes text that steps back.
func (w *Writer) Faint(s string) { w.styleText("2", s) }

// FaintLine writes a line that steps back.
func (w *Writer) FaintLine(s string) {
	w.Faint(s)
	w.Println()
}

// Good writes text in the colour of success, Warn in that of doubt, Bad in that
// of failure.
func (w *Writer) Good(s string) { w.styleText("32", s) }

// Warn, see Good.
func (w *Writer) Warn(s string) { w.styleText("33", s) }

// Bad, see Good.
func (w *Writer) Bad(s string) { w.styleText("31", s) }

func (w *Writer) styleText(code, s string) {
	if s = Clean(s); w.color && s != "" {
		s = "\x1b[" + code + "m" + s + "\x1b[0m"
	}
	w.writeRaw(s)
}

// Table writes rows in columns, the first row as headings where head is set.
// Cells are cut to one line.
func (w *Writer) Table(head []string, rows [][]string) {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	if head != nil {
		rows = append([][]string{head}, rows...)
	}
	for _, row := range rows {
		cells := lists.Map(row, func(c string) string { return Line(c, maxCell) })
		// A strings.Builder doesn't fail.
		_, _ = fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	_ = t.Flush()
	for line := range strings.Lines(b.String()) {
		w.writeRaw(strings.TrimRight(line, " \n") + "\n")
	}
}

// WriteTable writes a table with a row for each of a list.
func WriteTable[T any](w *Writer, head []string, list []T, row func(T) []string) {
	w.Table(head, lists.Map(list, row))
}

// maxCell is the longest cell of a table, in characters.
const maxCell = 80

// Fail makes Flush report an error, as if writing had failed.
func (w *Writer) Fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Flush reports the first error of writing.
func (w *Writer) Flush() error {
	if w.err != nil {
		return fmt.Errorf("print: %w", w.err)
	}
	return nil
}

func (w *Writer) writeRaw(s string) {
	if w.err == nil {
		_, w.err = io.WriteString(w.out, s)
	}
}

// Clean makes text safe to print: control characters other than line break and
// tab, invalid UTF-8, and characters that reorder a line are shown as \xNN or
// \uNNNN. A carriage return before a line break is dropped.
func Clean(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return text.IsUnsafe(r) && r != '\n' && r != '\t' }) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < 0x80 && text.IsUnsafe(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case text.IsUnsafe(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// Line is Clean text on one line of at most limit characters.
func Line(s string, limit int) string {
	s = strings.Join(strings.Fields(Clean(s)), " ")
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := []rune(s)
	return string(runes[:limit-1]) + "…"
}
