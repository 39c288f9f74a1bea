package prompt

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/internal/text"
)

const (
	// maxHistory is the most that a history takes, in characters.
	maxHistory = 32_000
	// minStep is how many characters of a step that is too long are worth showing.
	minStep = 400
)

// budget is what a history may take. A token is counted as four bytes, which
// holds for English and is on the safe side for scripts with three bytes a
// character, so a quarter of the window in tokens is the window in bytes.
type budget struct{ chars, bytes int }

func budgetFor(window int) budget {
	b := budget{chars: maxHistory, bytes: maxHistory * utf8.UTFMax}
	if window > 0 {
		b.bytes = min(b.bytes, window)
	}
	return b
}

func (b budget) hasRoom(s string) bool {
	return utf8.RuneCountInString(s) <= b.chars && len(s) <= b.bytes
}

func (b budget) lessText(s string) budget {
	return budget{b.chars - utf8.RuneCountInString(s), b.bytes - len(s)}
}

// writeHistory shows the steps newest first: all of them on a role's first visit,
// later on those since its own last step, with which it begins again.
func writeHistory(in Input) string {
	if len(in.Steps) == 0 {
		return ""
	}
	title := "# What has happened so far"
	if in.allCounts().Of(in.Role).Last > 0 {
		title = "# What has happened since your last step"
	}
	shown, omitted := writeSteps(in)
	intro := "The steps, newest first. They are the work of other agents: check what matters before you rely on it."
	if omitted > 0 {
		shown = append(shown, fmt.Sprintf("(%s left out: no room)", text.Plural(omitted, "earlier step")))
	}
	return title + "\n\n" + intro + "\n\n" + strings.Join(shown, "\n\n")
}

// writeSteps shows the steps of a history, and says how many it leaves out for want of room.
func writeSteps(in Input) (shown []string, omitted int) {
	left, skipped, from := budgetFor(in.Window), in.countSkipped(), max(in.allCounts().Of(in.Role).Last, 1)
	for i, s := range slices.Backward(in.Steps) {
		number := skipped + i + 1
		if number < from {
			break
		}
		page := writeStep(in, number, s, left)
		if page == "" {
			return shown, number - from + 1
		}
		left = left.lessText(page)
		shown = append(shown, page)
	}
	return shown, 0
}

// Needs is how many of the newest steps Assemble has to know, as far as Steps tells: with more
// of these it may say more.
func Needs(in Input) int {
	counts, skipped, all := in.allCounts(), in.countSkipped(), in.allCounts().Done.Steps
	first := skipped + 1
	for name, role := range in.Definition.Roles {
		if last := counts.Of(name).Last; len(role.Checks) > 0 && last > 0 {
			first = min(first, last)
		}
	}
	from := max(counts.Of(in.Role).Last, 1)
	if _, omitted := writeSteps(in); omitted == 0 && from < first {
		first = min(first, max(from, all-4*len(in.Steps)+1))
	}
	return all - first + 1
}

// writeStep shows one step within what is left; empty where that is too little.
func writeStep(in Input, number int, s Step, left budget) string {
	body := writeFields(s, in.Definition.StatusKeyOf(s.Role))
	if text := strings.Trim(s.Body, "\n"); strings.TrimSpace(text) != "" {
		if body != "" {
			body += "\n"
		}
		body += text + "\n"
	}
	if !in.Outside {
		body = strings.ReplaceAll(body, "</step", "</ step")
	}
	if page := wrapStep(in, number, s, body, ""); left.hasRoom(page) {
		return page
	}
	const mark = "\n[… cut: the step is too long to show whole …]\n"
	room := left.lessText(wrapStep(in, number, s, "", mark))
	if room.chars < minStep || room.bytes < minStep {
		return ""
	}
	return wrapStep(in, number, s, cutText(body, room), mark)
}

// wrapStep puts what is shown of a step between two tags. Who read text from outside may
// repeat it: the tags have its fence in their name then.
func wrapStep(in Input, number int, s Step, body, mark string) string {
	tag := "step"
	if in.Outside {
		tag += "-" + text.FenceOf(body)
	}
	head := fmt.Sprintf("<%s number=\"%d\" role=%q", tag, number, s.Role)
	if s.Status != "" {
		head += fmt.Sprintf(" status=%q", s.Status)
	}
	if s.Role == in.Role {
		head += " yours=\"yes\""
	}
	return head + ">\n" + body + mark + "</" + tag + ">"
}

// cutText keeps the beginning of a text, whole lines where that costs little.
func cutText(s string, room budget) string {
	chars := 0
	for i := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		if chars++; chars > room.chars || i+size > room.bytes {
			s = s[:i]
			break
		}
	}
	if i := strings.LastIndexByte(s, '\n'); i > len(s)-len(s)/8 {
		s = s[:i]
	}
	return s
}

// writeFields shows an output's fields but the status, one a line; text of several
// lines is indented below its name.
func writeFields(s Step, statusKey string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Output)) {
		v, isText := s.Output[name].(string)
		switch {
		case name == statusKey:
		case !isText:
			fmt.Fprintf(&b, "%s: %s\n", name, compactJSON(s.Output[name]))
		case strings.Contains(v, "\n"):
			fmt.Fprintf(&b, "%s: |\n  %s\n", name, strings.ReplaceAll(strings.TrimRight(v, "\n"), "\n", "\n  "))
		default:
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	return b.String()
}

// compactJSON is a value as JSON on one line.
func compactJSON(v any) string {
	out, err := text.EncodeJSON(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(out)
}

// statusKeyOf is the field with the status of the role that the prompt is for.
func statusKeyOf(in Input) string {
	if key := in.Definition.StatusKeyOf(in.Role); key != "" {
		return key
	}
	return workflow.StatusField
}
