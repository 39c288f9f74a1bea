package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/runner/sanitize"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/internal/text"
)

// writeResult is what came out of the thread: the last output, where it has ended. It is
// at most a little more than limit bytes.
func (p page) writeResult(limit int) string {
	if p.Last == nil || p.State != Delivered && p.State != NoChanges {
		return ""
	}
	return joinBlocks(p.writeVerdict(*p.Last), p.writeOutput(*p.Last, limit))
}

// writeLastOutput is the last output of a thread that goes on, behind a click.
func (p page) writeLastOutput() string {
	if p.Last == nil || p.State == Delivered || p.State == NoChanges {
		return ""
	}
	return foldBlock("What "+escapeName(cleanName(p.Last.Role))+" said last", p.writeOutput(*p.Last, 4_000, p.Question))
}

func (p page) writeVerdict(o Output) string {
	if o.Status == "" || o.Status == workflow.Unit {
		return boldName(o.Role) + ":"
	}
	return boldName(o.Role) + " says " + codeSpan(cleanName(o.Status)) + ":"
}

// escapeName is a name in HTML, in which Markdown finds nothing.
func escapeName(s string) string {
	if plainName.MatchString(s) {
		return s
	}
	return "<code>" + sanitize.Literal(s) + "</code>"
}

// writeOutput is the fields and the text of an output. A first field that speaks for
// itself stands alone, short ones are a list, long ones have a heading; half of
// limit is for the fields. Those whose text is known are left out.
func (p page) writeOutput(o Output, limit int, known ...string) string {
	f := fields{page: p, left: limit / 2, known: known}
	for i, key := range fieldNames(o.Fields) {
		if f.left <= 0 {
			f.long = append(f.long, "… _(more fields are left out)_")
			break
		}
		f.addField(key, o.Fields[key], i == 0)
	}
	text := f.String()
	return joinBlocks(text, sanitize.Outgoing(o.Body, "", limit-min(len(text), limit/2)))
}

// fields are those of an output as they are written.
type fields struct {
	page
	left  int // bytes
	known []string
	// said is the first field where it speaks for itself, short are lines of a list,
	// long have headings.
	said        string
	short, long []string
}

func (f *fields) String() string {
	return joinBlocks(f.said, strings.Join(f.short, "\n"), joinBlocks(f.long...))
}

func (f *fields) addField(key string, value any, first bool) {
	text, isText := value.(string)
	switch {
	case isText && (slices.Contains(f.known, text) || strings.TrimSpace(text) == ""), value == nil:
	case isText && first && slices.Contains([]string{"summary", "answer", "reply"}, strings.ToLower(key)):
		f.said = sanitize.Outgoing(text, "", f.left)
		f.left -= len(f.said)
	default:
		shown, long := f.writeField(key, value, f.left)
		if long {
			f.long = append(f.long, shown)
		} else {
			f.short = append(f.short, shown)
		}
		f.left -= len(shown)
	}
}

// firstFields stand before the others, in this order: they say what came out.
func firstFields() []string {
	return []string{"title", "verdict", "decision", "summary", "answer", "reply", "question", "reason"}
}

// fieldNames lists the fields that are shown. The status has its own place.
func fieldNames(fields map[string]any) []string {
	names := slices.Sorted(maps.Keys(fields))
	rank := func(s string) int {
		if i := slices.Index(firstFields(), strings.ToLower(s)); i >= 0 {
			return i
		}
		return len(firstFields())
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	return slices.DeleteFunc(names, func(s string) bool { return s == workflow.StatusField || s == workflow.LegacyStatusField })
}

// writeField is a field's name and value. Long: it needs a place of its own.
func (p page) writeField(key string, value any, limit int) (text string, long bool) {
	title := boldName(key)
	switch v := value.(type) {
	case string:
		v = strings.TrimSpace(v)
		if strings.ContainsAny(v, "\n\r") || len(v) > 300 {
			return title + "\n\n" + sanitize.Outgoing(v, "", limit), true
		}
		return "- " + title + ": " + sanitize.OutgoingLine(v, limit), false
	case []any:
		if len(v) == 0 {
			return "- " + title + ": none", false
		}
		lines, ok := p.writeList(v, limit)
		if words := strings.ReplaceAll(strings.TrimPrefix(lines, "- "), "\n- ", ", "); ok && len(words) <= 100 {
			return "- " + title + ": " + words, false
		}
		if ok {
			return title + "\n\n" + lines, true
		}
	case bool, float64, int64, int, json.Number:
		return "- " + title + ": " + codeSpan(fmt.Sprint(v)), false
	}
	return title + "\n\n" + p.writeData(value, limit), true
}

// writeList is a list of texts on one line each; ok is false for any other.
func (p page) writeList(items []any, limit int) (text string, ok bool) {
	var lines []string
	for i, item := range items {
		s, ok := item.(string)
		if !ok || strings.ContainsAny(strings.TrimSpace(s), "\n\r") {
			return "", false
		}
		if limit <= 0 {
			lines = append(lines, fmt.Sprintf("- … and %d more", len(items)-i))
			break
		}
		if s = sanitize.OutgoingLine(s, 600); s != "" {
			lines = append(lines, "- "+s)
		}
		limit -= len(s) + 3
	}
	return strings.Join(lines, "\n"), true
}

// writeData is a value that is neither text nor a list of texts.
func (p page) writeData(value any, limit int) string {
	raw, err := text.IndentJSON(value)
	if err != nil {
		return "_(can't be shown)_"
	}
	return sanitize.Outgoing("~~~json\n"+string(raw)+"\n~~~", "", limit)
}
