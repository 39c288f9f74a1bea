package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// action is what the model does with a conversation.
type action struct {
	refuse    int // the status
	hang, cut bool
	say       string
	call      *call
	ends      string // endLength or endFilter: before its end; empty: whole
}

// What ends an answer before it is whole: the limit of its length, and the provider's filter.
const (
	endLength = "length"
	endFilter = "filter"
)

// call is the call of a tool.
type call struct {
	name, space string
	args        object
}

// The names that coding agents give to tools that run a command, or write a file.
var (
	shellNames = lazyregexp.New(`(?i)^(bash|shell|shell_command|exec_command|run_shell_command|execute_command|run_commands?|run_command|run_terminal_command|terminal|execute|local_shell)$`)
	writeNames = lazyregexp.New(`(?i)^(write|create|write_file|write_to_file|create_file|editor|edit_file)$`)
)

var (
	runMark  = lazyregexp.New(`\[\[(?:run|background) ([^\]]+)\]\]`)
	editMark = lazyregexp.New(`\[\[edit ([^=\]]+)=("(?:[^"\\]|\\.)*")\]\]`)
	// workFolder is how agents tell a model where it works.
	workFolder = lazyregexp.New(`(?:cwd|[Ww]orking directory|workspace|WORKDIR|CWD)[^\n]*?[:> ]+[` + "`" + `"']?(/[^\s` + "`" + `"'<]+)`)
	// yourRole is the heading of uwf's prompts that names the role.
	yourRole = lazyregexp.New(`(?m)^# Your role: (\S+)$`)
	// example is an answer as uwf's prompts show it.
	example = lazyregexp.New("(?s)\nAn answer[^\n]*:\n\n`{3,}\n(---\n.*?\n---\n)")
)

// Edit is the mark that has the model write a file.
func Edit(name, content string) string {
	quoted := strings.ReplaceAll(string(marshal(content)), "]", `\u005d`)
	return "[[edit " + name + "=" + quoted + "]]"
}

const badFinal = "All done, the file is written."

func decide(c conversation) action {
	said := c.joinText("user")
	has := func(mark string) bool { return strings.Contains(said, "[["+mark+"]]") }
	for _, status := range []int{500, 429, 400, 401, 403, 529} {
		if has("err" + strconv.Itoa(status)) {
			return action{refuse: status}
		}
	}
	if has("hang") || has("stall") && c.hasResult() {
		return action{hang: true}
	}
	act := action{cut: has("cut")}
	shell, write := c.findTool(shellNames), c.findTool(writeNames)
	useless := shell == nil && write == nil
	switch {
	case !c.hasResult() && !useless && c.countAnswers("$status") == 0 && !has("plain"):
		t := shell
		if t == nil || write != nil && has("write") {
			t = write
		}
		act.say = "I will write the file."
		act.call = &call{name: t.name, space: t.space, args: fill(t.schema, command(said, has), workPath(c, "hello.txt"), "hello\n")}
		if strings.Contains(said, "[[background ") {
			sendToBackground(act.call.args, field[object](t.schema, "properties"))
		}
		if has("impatient") {
			shortenTimeout(act.call.args, field[object](t.schema, "properties"))
		}
	case useless && !c.hasResult() && !strings.Contains(said, "status"):
		act.say = "Short title" // what agents ask for on the side
	case has("empty"):
	case has("garbage"), has("badfinal") && c.countAnswers(badFinal) == 0:
		act.say = badFinal
	case has("halves") && c.countAnswers("$status") > 0 && c.countAnswers(theRest) == 0:
		act.say = theRest
	default:
		act.say = finalAnswer(said, c.countAnswers("$status")+1)
		act.ends = endOf(has, c.countAnswers("$status") == 0)
		if has("halves") {
			act.say = strings.TrimSuffix(act.say, theRest)
		}
	}
	return act
}

// theRest is the second half of an answer in two.
const theRest = "hello.txt.\n"

// endOf is what ends an answer before its end; first says that it is the conversation's first.
func endOf(has func(mark string) bool, first bool) string {
	for _, end := range []string{endLength, endFilter} {
		if has(end) || first && (has(end+"-once") || end == endLength && has("halves")) {
			return end
		}
	}
	return ""
}

// sendToBackground has a tool run its command in the background, by the tool's own way where it
// has one.
func sendToBackground(args, properties object) {
	for _, name := range []string{"run_in_background", "is_background"} {
		if properties[name] != nil {
			args[name] = true
			return
		}
	}
	if mode := field[object](properties, "mode"); slices.Contains(field[list](mode, "enum"), any("async")) {
		args["mode"] = "async"
		return
	}
	for _, name := range []string{"command", "cmd"} {
		if said, ok := args[name].(string); ok {
			args[name] = said + " &"
		}
	}
}

// shortenTimeout gives a command three seconds, by the tool's own parameter.
func shortenTimeout(args, properties object) {
	for name, value := range map[string]int{"timeout": 3000, "timeout_ms": 3000, "yield_time_ms": 3000, "timeout_seconds": 3, "initial_wait": 5} {
		if properties[name] != nil {
			args[name] = value
		}
	}
}

func finalAnswer(said string, n int) string {
	fields := fmt.Sprintf("---\n$status: done\nsummary: Wrote hello.txt (answer %d)\n---\n", n)
	if m := example.FindStringSubmatch(said); m != nil {
		fields = m[1]
	}
	return fields + "I wrote hello.txt.\n"
}

// command is the command that the marks ask for.
func command(said string, has func(string) bool) string {
	if m := runMark.FindStringSubmatch(said); m != nil {
		return m[1]
	}
	var edits []string
	for _, at := range editMark.FindAllStringSubmatchIndex(said, -1) {
		name, quoted := said[at[2]:at[3]], said[at[4]:at[5]]
		var content string
		if err := json.Unmarshal([]byte(quoted), &content); err != nil {
			return "echo " + strconv.Quote(err.Error()) + "; false"
		}
		// Coded, so that no shell and no schema changes it.
		edit := fmt.Sprintf("mkdir -p '%s' && echo %s | base64 -d > '%s'", path.Dir(name), base64.StdEncoding.EncodeToString([]byte(content)), name)
		if !slices.Contains(edits, edit) {
			edits = append(edits, edit)
		}
	}
	switch {
	case edits != nil:
		return strings.Join(edits, " && ")
	case has("sleep"):
		return "touch started; tail -f /dev/null"
	case has("env"):
		return "env | sort > env.txt; id > id.txt"
	}
	return "echo hello > hello.txt"
}

// workPath is a file in the folder in which the agent says that it works.
func workPath(c conversation, name string) string {
	if m := workFolder.FindStringSubmatch(c.joinText("")); m != nil {
		return strings.TrimRight(m[1], ".,;") + "/" + name
	}
	return name
}

// fill fills a tool's schema: the command, the file and its content where a property is
// called so, the rest where it is required, with anything that fits.
func fill(schema object, command, file, content string) object {
	required := field[list](schema, "required")
	args := object{}
	for name, v := range field[object](schema, "properties") {
		property, _ := v.(object)
		kind, _ := property["type"].(string)
		if kinds := field[list](property, "type"); len(kinds) > 0 {
			kind, _ = kinds[0].(string)
		}
		kind = strings.ToLower(kind)
		options := field[list](property, "enum")
		switch name {
		case "command", "cmd", "commands", "script":
			args[name] = fillCommand(name, kind, options, command)
		case "file_path", "filePath", "filepath", "path", "absolute_path", "target_file":
			args[name] = file
		case "content", "contents", "file_text":
			args[name] = content
		default:
			if slices.Contains(required, any(name)) {
				args[name] = fillOther(kind, options)
			}
		}
	}
	return args
}

func fillCommand(name, kind string, options list, command string) any {
	switch {
	case slices.Contains(options, any("create")): // an editor's deeds
		return "create"
	case len(options) > 0:
		return options[0]
	case kind == "array" && name == "commands":
		return list{command}
	case kind == "array":
		return list{"bash", "-lc", command}
	}
	return command
}

func fillOther(kind string, options list) any {
	if len(options) > 0 {
		return options[0]
	}
	switch kind {
	case "boolean":
		return false
	case "integer", "number":
		return 30_000 // milliseconds, most often
	case "array":
		return list{}
	case "object":
		return object{}
	}
	return "write the file"
}
