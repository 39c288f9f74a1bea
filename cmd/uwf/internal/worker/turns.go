package worker

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/internal/text"
)

// maxDoing is how much is told of what a model wants done, in characters.
const maxDoing = 300

// tellTurn tells people what a model answered: the tool that is to run now with its file or
// command, else the first line of what it said. Secrets are taken out; the debug log gets none
// of it.
func tellTurn(w *Worker, t task.Task, turn int, c gateway.Call) {
	doing := describeCalls(c.Answer.Calls)
	if doing == "" {
		doing = text.OneLine(c.Answer.Text)
	}
	doing, _ = w.redact.String(doing)
	doing = text.Cut(doing, maxDoing)
	w.logEvent(thread.Event{Kind: "turn", Thread: t.Thread, Step: t.Step, Role: t.Role, Turn: turn, Text: doing})
}

// describeCalls says in a line what a model wants done.
func describeCalls(calls []dialect.Call) string {
	if len(calls) == 0 {
		return ""
	}
	out := calls[0].Name
	if about := subjectOf(calls[0]); about != "" {
		out += " " + about
	}
	if n := len(calls) - 1; n > 0 {
		out += fmt.Sprintf(" (and %d more)", n)
	}
	return text.OneLine(out)
}

// subjectNames are the arguments that say what a tool is about, by the names that the tools of
// uwf and of coding agents give them, the most telling first.
func subjectNames() []string {
	return []string{"command", "cmd", "file_path", "filePath", "absolute_path", "path", "file", "url", "pattern", "query", "description", "prompt"}
}

// subjectOf is the file or the command of a tool call; empty: it has none that is known.
func subjectOf(c dialect.Call) string {
	if c.Custom { // a patch, most likely: the first file that it names
		for line := range strings.Lines(string(c.Args)) {
			for _, verb := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: "} {
				if file, ok := strings.CutPrefix(line, verb); ok {
					return strings.TrimSpace(file)
				}
			}
		}
		return ""
	}
	var args map[string]any
	if json.Unmarshal([]byte(c.Args), &args) != nil {
		return ""
	}
	for _, name := range subjectNames() {
		switch v := args[name].(type) {
		case string:
			if v != "" {
				return v
			}
		case []any: // a command line in words
			words := make([]string, len(v))
			for i, word := range v {
				words[i] = fmt.Sprint(word)
			}
			return strings.Join(words, " ")
		}
	}
	return ""
}
