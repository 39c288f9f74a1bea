package acp

import (
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// opening is the "---" that opens the fields: a line of its own, or, where a server's own
// words run into it ("Model metadata not found.---"), the end of one before a line "key:".
var opening = lazyregexp.New(`(?m)(?:^|[^-|\s])(---)[ \t]*\r?\n["']?[$\w.-]+["']?[ \t]*:|^(---)[ \t]*\r?$`)

// cutPreamble cuts what stands before the fields: servers put words of their own there, and
// they would become part of the report. Where the fields may stand in code or in what a model
// thought aloud the whole answer stays: its reader knows about these.
func cutPreamble(said string) string {
	found := opening.FindAllStringSubmatchIndex(said, 1)
	if found == nil {
		return said
	}
	at := max(found[0][2], found[0][4])
	if before := said[:at]; strings.Contains(before, "```") || strings.Contains(before, "~~~") || strings.Contains(before, "<") {
		return said
	}
	return said[at:]
}
