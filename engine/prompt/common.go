package prompt

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/text"
)

// AssembleCommonFirst writes the whole prompt for agents whose provider keeps what requests
// begin with: first what is equal for all roles of a thread (task, conventions, map of the
// repository), so that the next role reads the last one's cache; then deliverable, role, history,
// progress and what to do now; and the deliverable once more, since it is far away by then. The
// prompt's first common bytes are the part for all roles.
func AssembleCommonFirst(in Input) (prompt string, common int) {
	first := joinParts(writeTask(in), writeConventions(in), writeLeftOut(in), writeMap(in))
	deliverable := writeDeliverable(in)
	rest := joinParts(deliverable, writeRole(in), writeHistory(in), writeChecks(in), writeProgress(in), writeNow(in), "# Once more: your deliverable\n\n"+strings.TrimPrefix(deliverable, deliverableTitle+"\n\n"))
	if first == "" {
		return rest, 0
	}
	return first + "\n" + rest, len(first) + 1
}

const (
	// maxMap is the most that the map of a repository takes, in bytes; of a small model's window
	// it is an eighth.
	maxMap = 16 << 10
	// maxMapDepth is how many levels of folders a map shows at most.
	maxMapDepth = 32
)

// writeMap shows which files the repository had when the thread's work began, as deep as there
// is room for. The same files give the same text.
func writeMap(in Input) string {
	if len(in.Files) == 0 {
		return ""
	}
	room := maxMap
	if in.Window > 0 {
		room = min(room, in.Window/2)
	}
	shown, whole := drawMap(in.Files, maxMapDepth), true
	for depth := maxMapDepth; len(shown) > room && depth > 0; {
		whole = false
		depth /= 2
		shown = drawMap(in.Files, depth)
	}
	note := "."
	if len(shown) > room {
		shown = cutText(shown, budget{chars: room, bytes: room}) + "\n…"
	}
	if !whole {
		note = ", as far as there is room: of some folders only the number of files is shown."
	}
	return "# Files of the repository\n\nThe " + text.Plural(len(in.Files), "file") + " of the commit that the thread's work began from" + note +
		" Roles before you may have changed them.\n\n" + text.Fence(shown)
}

// drawMap writes a line for each folder with its files; what lies deeper than depth is counted
// at the folder of that depth.
func drawMap(files []string, depth int) string {
	names, below := map[string][]string{}, map[string]int{}
	for _, f := range files {
		dir, name := path.Split(f)
		if parts := strings.SplitAfter(dir, "/"); len(parts) > depth+1 {
			below[strings.Join(parts[:depth], "")]++
			continue
		}
		names[dir] = append(names[dir], text.Line(name))
	}
	dirs := slices.Collect(maps.Keys(names))
	for dir := range below {
		if names[dir] == nil {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	var b strings.Builder
	for _, dir := range dirs {
		slices.Sort(names[dir])
		line := append([]string{}, names[dir]...)
		if n := below[dir]; n > 0 {
			line = append(line, fmt.Sprintf("(%s below)", text.Plural(n, "file")))
		}
		fmt.Fprintf(&b, "%s: %s\n", strings.TrimSuffix("./"+text.Line(dir), "/"), strings.Join(line, " "))
	}
	return strings.TrimRight(b.String(), "\n")
}
