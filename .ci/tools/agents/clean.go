package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// substitutions make of what differs from run to run what doesn't. Ids stay different
// from each other where a parser compares them: they are numbered.
var substitutions = []struct {
	expr *regexp.Regexp
	with string // %d is the number of the value, in the order of appearance
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "00000000-0000-4000-8000-%012d"},
	{regexp.MustCompile(`\b(ses|msg|prt)_[0-9a-z]{6}[0-9A-Za-z]{18,}`), "${1}_%026d"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "2026-11-26T12:00:00.000Z"},
	{regexp.MustCompile(`("[A-Za-z_]*(?:[dD]uration|[lL]atency|ttft|[tT]ime|_ms)[A-Za-z_]*": *)\d+(?:\.\d+)?`), "${1}1000"},
	{regexp.MustCompile(`("(?:timestamp|created|updated|start|end|completed|sessionStartTime)": *)1[789]\d{11}`), "${1}1795694400000"},
	{regexp.MustCompile(`Chunk ID: [0-9a-f]{6}`), "Chunk ID: 000000"},
	{regexp.MustCompile(`Wall time: [0-9.]+ seconds`), "Wall time: 0.0000 seconds"},
	{regexp.MustCompile(`(Process Group PGID|PID|pid|pgid): *\d+`), "${1}: 4711"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\+00:00`), "2026-11-26T12:00:00.000+00:00"},
	{regexp.MustCompile(`[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT`), "Thu, 26 Nov 2026 12:00:00 GMT"},
	{regexp.MustCompile(`Package extraction took \d+ms`), "Package extraction took 1000ms"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:4000"},
}

// longList is a list of names that no parser cares for.
var longList = regexp.MustCompile(`("(?:tools|slash_commands|skills|agents|plugins|capabilities)": *)\[[^\[\]]{200,}\]`)

const tasksChanged = `{"type":"session.background_tasks_changed"`

const maxFile = 20_000

// clean makes a recording the same from run to run, and small.
func clean(r *run, bin, text string) string {
	for _, p := range []struct{ path, name string }{
		{r.work, "/WORK"}, {r.home, "/HOME"}, {r.dir, "/DIR"}, {strings.TrimSuffix(bin, "/.bin"), "/BIN/node_modules"}, {os.TempDir() + "/", "/TMP/"},
	} {
		text = strings.ReplaceAll(text, p.path, p.name)
		// As claude and gemini make a folder's name of one.
		text = strings.ReplaceAll(text, regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(p.path, "-"), strings.ReplaceAll(p.name, "/", "-"))
	}
	for _, s := range substitutions {
		seen := map[string]int{chosen: 0}
		text = s.expr.ReplaceAllStringFunc(text, func(found string) string {
			n, ok := seen[found]
			if !ok {
				n = len(seen)
				seen[found] = n
			}
			with := s.expr.ReplaceAllString(found, s.with)
			if strings.Contains(with, "%0") {
				with = fmt.Sprintf(with, n)
			}
			return with
		})
	}
	// copilot says this once, or ten times.
	if first, rest, ok := strings.Cut(text, tasksChanged); ok {
		text = first + tasksChanged + regexp.MustCompile(tasksChanged+`[^\n]*\n`).ReplaceAllString(rest, "")
	}
	text = longList.ReplaceAllString(text, `${1}["(cut)"]`)
	if len(text) > maxFile {
		text = text[:maxFile/2] + "\n(cut)\n" + text[len(text)-maxFile/2:]
	}
	return text
}
