package report

import "strings"

// page is what is written about one thread.
type page struct {
	Thread
	// most bytes of a text in full, of the graph, and of everything.
	text, graph, all int
	// console: there is nowhere to comment, so commands are those of a terminal.
	console bool
}

func newPage(t Thread) page {
	return page{Thread: t, console: t.Subject <= 0}
}

// joinBlocks puts the blocks that aren't empty below each other.
func joinBlocks(blocks ...string) string {
	var out []string
	for _, b := range blocks {
		if b = strings.Trim(b, "\n"); b != "" {
			out = append(out, b)
		}
	}
	return strings.Join(out, "\n\n")
}

// foldBlock is a block that a click opens. The title is HTML.
func foldBlock(title, content string) string {
	if content == "" {
		return ""
	}
	return "<details><summary>" + title + "</summary>\n\n" + content + "\n\n</details>"
}
