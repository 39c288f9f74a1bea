package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow"
)

// result is what came out of the thread: the last output, where it has ended. It is
// at most a little more than limit bytes.
func (p page) result(limit int) string {
	if p.Last == nil || p.State != Delivered && p.State != NoChanges {
		return ""
	}
	return join(p.verdict(*p.Last), p.output(*p.Last, limit))
}

// said is the last output of a thread that goes on, behind a click.
func (p page) said() string {
	if p.Last == nil || p.State == Delivered || p.State == NoChanges {
		return ""
	}
	return details("What "+escape(name(p.Last.Role))+" said last", p.output(*p.Last, 4_000))
}

func (p page) verdict(o Output) string {
	if o.Status == "" || o.Status == workflow.Unit {
		return bold(o.Role) + ":"
	}
	return bold(o.Role) + " says " + code(name(o.Status)) + ":"
}

// escape is a name in HTML, in which Markdown finds nothing.
func escape(s string) string {
	if plainName.MatchString(s) {
		return s
	}
	return "<code>" + literal(s) + "</code>"
}

// output is the fields and the text of an output. Short fields are a list, long
// ones have a heading; half of limit is for the fields.
func (p page) output(o Output, limit int) string {
	var short, long []string
	left := limit / 2
	for _, key := range fieldNames(o.Fields) {
		if left <= 0 {
			long = append(long, "… _(more fields are left out)_")
			break
		}
		text, isLong := p.field(key, o.Fields[key], left)
		if left -= len(text); isLong {
			long = append(long, text)
		} else if text != "" {
			short = append(short, text)
		}
	}
	fields := join(strings.Join(short, "\n"), join(long...))
	return join(fields, p.markdown(o.Body, "", limit-min(len(fields), limit/2)))
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

// field is a field's name and value. Long: it needs a place of its own.
func (p page) field(key string, value any, limit int) (text string, long bool) {
	title := bold(key)
	switch v := value.(type) {
	case nil:
		return "", false
	case string:
		v = strings.TrimSpace(v)
		if v == "" {
			return "", false
		}
		if strings.ContainsAny(v, "\n\r") || len(v) > 300 {
			return title + "\n\n" + p.markdown(v, "", limit), true
		}
		return "- " + title + ": " + p.phrase(v, limit), false
	case []any:
		if len(v) == 0 {
			return "", false
		}
		if lines, ok := p.list(v, limit); ok {
			return title + "\n\n" + lines, true
		}
	case bool, float64, int64, int, json.Number:
		return "- " + title + ": " + code(fmt.Sprint(v)), false
	}
	return title + "\n\n" + p.data(value, limit), true
}

// list is a list of texts on one line each; ok is false for any other.
func (p page) list(items []any, limit int) (text string, ok bool) {
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
		if s = p.phrase(s, 600); s != "" {
			lines = append(lines, "- "+s)
		}
		limit -= len(s) + 3
	}
	return strings.Join(lines, "\n"), true
}

// data is a value that is neither text nor a list of texts.
func (p page) data(value any, limit int) string {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return "_(can't be shown)_"
	}
	return p.markdown("~~~json\n"+string(raw)+"\n~~~", "", limit)
}
