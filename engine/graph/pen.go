package graph

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// pen is what lines are drawn with.
type pen struct {
	frame, double             frame
	across, down, tee, corner string
	tip, arrow, back, here    string
	// Where lines meet: one that another crosses, ends at; the ends of a line.
	cross, join, top, bottom string
}

// frame is what a box is drawn with.
type frame struct {
	corners      [4]string // top left, top right, bottom left, bottom right
	across, down string
	joint        string // where a line leaves at the bottom
}

func unicodePen() pen {
	return pen{
		frame:  frame{[4]string{"┌", "┐", "└", "┘"}, "─", "│", "┬"},
		double: frame{[4]string{"╔", "╗", "╚", "╝"}, "═", "║", "╤"},
		across: "─", down: "│", tee: "├", corner: "└", tip: "▼", arrow: "──▶", back: "◀", here: "◀ here",
		cross: "┼", join: "┤", top: "┐", bottom: "┘",
	}
}

func asciiPen() pen {
	return pen{
		frame:  frame{[4]string{"+", "+", "+", "+"}, "-", "|", "+"},
		double: frame{[4]string{"#", "#", "#", "#"}, "=", "#", "+"},
		across: "-", down: "|", tee: "+", corner: "+", tip: "v", arrow: "-->", back: "<", here: "<- here",
		cross: "|", join: "+", top: "+", bottom: "+",
	}
}

// columnsOf is how wide a text is shown.
func columnsOf(s string) int { return displaywidth.String(s) }

// wrapText breaks a text into lines of at most width columns: at spaces, else after
// separators, else anywhere. There is always a line.
func wrapText(text string, width int) []string {
	var out []string
	line := ""
	for _, word := range strings.SplitAfter(text, " ") {
		for columnsOf(line)+columnsOf(strings.TrimRight(word, " ")) > width {
			if line != "" && columnsOf(strings.TrimRight(word, " ")) <= width {
				out, line = append(out, strings.TrimRight(line, " ")), ""
				continue
			}
			head := firstPart(word, width-columnsOf(line))
			if head == "" && line != "" {
				out, line = append(out, strings.TrimRight(line, " ")), ""
				continue
			}
			out, line = append(out, line+head), ""
			word = word[len(head):]
		}
		line += word
	}
	if line = strings.TrimRight(line, " "); line != "" || len(out) == 0 {
		out = append(out, line)
	}
	return out
}

// firstPart is what of a word fits into width columns, up to a separator if there is
// one in its second half; at least one character where width allows none and the
// line is empty.
func firstPart(word string, width int) string {
	end, separator, used := 0, 0, 0
	clusters := displaywidth.StringGraphemes(word)
	for clusters.Next() {
		if used += clusters.Width(); used > width {
			break
		}
		end += len(clusters.Value())
		if strings.ContainsAny(clusters.Value(), "-_./,") {
			separator = end
		}
	}
	if separator > end/2 {
		return word[:separator]
	}
	return word[:end]
}
