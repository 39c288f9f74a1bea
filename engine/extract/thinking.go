package extract

import (
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// thoughtTag begins what a model thinks aloud, as many of them print it.
var thoughtTag = lazyregexp.New(`^\s*<(think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad)>`)

// hideThoughts marks the lines of what a model tries out: it is not its answer. A thought
// that is never closed is none; where the answer goes on behind the closing tag, the line
// becomes that.
func hideThoughts(lines []string) []bool {
	hidden := make([]bool, len(lines))
	lastEnd := map[string]int{}
	for i, line := range lines {
		if !strings.Contains(line, "</") { // spares the rest
			continue
		}
		for tag := range strings.SplitSeq(line, "</") {
			name, _, _ := strings.Cut(tag, ">")
			lastEnd[name] = i
		}
	}
	for i := 0; i < len(lines); i++ {
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
				i-- // it may begin with another one
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
	return slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) != "" })
}

func lastText(lines []string) int {
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.TrimSpace(lines[i]) != "" {
			return i
		}
	}
	return -1
}
