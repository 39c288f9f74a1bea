package extract

import (
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// thoughtTag begins what a model thinks aloud, as many of them print it.
var thoughtTag = lazyregexp.New(`^\s*<(think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad)>`)

// skipThought is the index of the first line after a leading thought: what a
// model tries out there is not its answer.
func skipThought(lines []string) int {
	start := 0
	for start < len(lines) && strings.TrimSpace(lines[start]) == "" {
		start++
	}
	if start == len(lines) {
		return 0
	}
	m := thoughtTag.FindStringSubmatch(lines[start])
	if m == nil {
		return 0
	}
	for i := start; i < len(lines); i++ {
		_, rest, ok := strings.Cut(lines[i], "</"+m[1]+">")
		if !ok {
			continue
		}
		if rest = strings.TrimSpace(rest); rest == "" {
			return i + 1
		}
		lines[i] = rest // the answer begins behind the tag
		return i
	}
	return 0
}

// hideThoughts marks the lines of thoughts further down. One that is never closed
// is none.
func hideThoughts(lines []string, first int) []bool {
	hidden := make([]bool, len(lines))
	lastEnd := map[string]int{}
	for i := first; i < len(lines); i++ {
		if !strings.Contains(lines[i], "</") { // spares the rest
			continue
		}
		for tag := range strings.SplitSeq(lines[i], "</") {
			name, _, _ := strings.Cut(tag, ">")
			lastEnd[name] = i
		}
	}
	for i := first; i < len(lines); i++ {
		if !strings.Contains(lines[i], "<") {
			continue
		}
		m := thoughtTag.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		if end, closed := lastEnd[m[1]]; !closed || end < i {
			continue
		}
		for ; i < len(lines); i++ {
			hidden[i] = true
			_, rest, ok := strings.Cut(lines[i], "</"+m[1]+">")
			if !ok {
				continue
			}
			if rest = strings.TrimSpace(rest); rest != "" {
				lines[i], hidden[i] = rest, false
			}
			break
		}
	}
	return hidden
}

// visibleLines leaves hidden lines out of those before the frontmatter.
func (d *document) visibleLines(before []string) []string {
	var out []string
	for i, l := range before {
		if !d.hidden[d.first+i] {
			out = append(out, l)
		}
	}
	return out
}

// answerTag is what some models put around an answer.
var answerTag = lazyregexp.New(`^<(answer|final|final_answer|frontmatter|output|response|result)>$`)

// unwrapTags takes away a tag, or an HTML comment, that was opened right before
// the frontmatter and is closed right after it or at the end of the answer.
func unwrapTags(before, after []string) (b, a []string) {
	open, first, last := lastText(before), firstText(after), lastText(after)
	if open < 0 || first < 0 {
		return before, after
	}
	end := "-->"
	if tag := strings.TrimSpace(before[open]); tag != "<!--" {
		m := answerTag.FindStringSubmatch(tag)
		if m == nil {
			return before, after
		}
		end = "</" + m[1] + ">"
	}
	switch end {
	case strings.TrimSpace(after[first]):
		return before[:open], after[first+1:]
	case strings.TrimSpace(after[last]):
		return before[:open], after[:last]
	}
	return before, after
}

func firstText(lines []string) int {
	for i, l := range lines {
		if strings.TrimSpace(l) != "" {
			return i
		}
	}
	return -1
}

func lastText(lines []string) int {
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.TrimSpace(lines[i]) != "" {
			return i
		}
	}
	return -1
}
