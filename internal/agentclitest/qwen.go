package agentclitest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const qwenVersion = "0.24.4"

// The flags of `qwen --help` that have to do with runs without a terminal.
var (
	qwenPlain  = []string{"--yolo", "-y", "--bare", "--safe-mode", "--version", "-v"}
	qwenValued = []string{"--output-format", "-o", "--auth-type", "-m", "--model", "--resume", "-r", "--session-id", "--max-session-turns", "--max-wall-time", "--mcp-config"}
)

// qwen is one run. What it prints is one list, at its end.
type qwen struct {
	chat
	id      string
	hooks   hooks
	printed list
}

func runQwen() {
	flags, _, unknown := parseFlags(os.Args[1:], qwenPlain, qwenValued)
	switch {
	case unknown != "":
		exitYargs("qwen", unknown)
	case flags["--version"] != nil || flags["-v"] != nil:
		fmt.Println(qwenVersion)
		os.Exit(0)
	}
	q := &qwen{id: strings.Join(flags["--resume"], "")}
	if flags["--bare"] == nil && flags["--safe-mode"] == nil {
		q.obeyWorkspace()
	}
	q.model, q.url, q.key = strings.Join(flags["-m"], ""), os.Getenv("OPENAI_BASE_URL"), os.Getenv("OPENAI_API_KEY")
	q.accept, q.tool, q.required = "application/json", "run_shell_command", list{"command"}
	resumed := q.id != ""
	if !resumed {
		q.id = newID()
	}
	q.session.file = filepath.Join(homeFolder("QWEN_HOME", ".qwen"), "projects", projectName(), "chats", q.id+".json")
	if found := q.session.load(); resumed && !found {
		exit(1, "No saved session found with ID %s. Run `qwen --resume` without an ID to choose from existing sessions.", q.id)
	}
	q.addPrompt(readPrompt())
	q.addElement(object{"type": "system", "subtype": "init", "cwd": workFolder(), "model": q.model, "permission_mode": "yolo", "qwen_code_version": qwenVersion})
	holdConversation(q, &q.session, true)
}

// exitYargs ends the process as those do that read their flags with yargs, for which --no-x is x
// denied.
func exitYargs(program, unknown string) {
	name := strings.TrimPrefix(strings.TrimLeft(unknown, "-"), "no-")
	camel := ""
	for i, word := range strings.Split(name, "-") {
		if i > 0 && word != "" {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		camel += word
	}
	exit(1, "Unknown arguments: %s, %s\nUsage: %s [options] [command]", name, camel, program)
}

// obeyWorkspace does what the workspace's files say.
func (q *qwen) obeyWorkspace() {
	loadDotenv()
	var settings struct{ Hooks hooks }
	_ = json.Unmarshal([]byte(readFiles(".qwen/settings.json")), &settings) // a broken one is ignored
	q.hooks = settings.Hooks
	startServers(".qwen/settings.json", "mcpServers")
	q.hooks.runHooks("SessionStart")
	q.system = readFiles("QWEN.md", "AGENTS.md")
}

func (q *qwen) addElement(v object) {
	v["uuid"], v["session_id"] = newID(), q.id
	q.printed = append(q.printed, v)
}

// printMessage prints a message of one block.
func (q *qwen) printMessage(role string, block object) {
	message := object{"role": role, "content": list{block}}
	if role == "assistant" {
		message["id"], message["type"], message["model"] = newID(), "message", q.model
	}
	q.addElement(object{"type": role, "parent_tool_use_id": nil, "message": message})
}

func (q *qwen) printReply(r reply) {
	if r.text != "" {
		q.printMessage("assistant", object{"type": "text", "text": r.text})
	}
	if r.id != "" {
		q.hooks.runHooks("PreToolUse")
		q.printMessage("assistant", object{"type": "tool_use", "id": r.id, "name": r.name, "input": r.readArgs()})
	}
}

func (q *qwen) printResult(r reply, did ran) string {
	told := fmt.Sprintf("Command: %s\nDirectory: (root)\nOutput: %s\nError: (none)\nExit Code: %d\nSignal: (none)\nProcess Group PGID: %d",
		r.readCommand(), cmp.Or(strings.TrimRight(did.out, "\n"), "(empty)"), did.code, did.pid)
	q.printMessage("user", object{"type": "tool_result", "tool_use_id": r.id, "is_error": false, "content": told})
	return told
}

func (q *qwen) printFailure(f *refusal) {
	message := fmt.Sprintf("[API Error: %d %s]", f.status, f.message)
	if f.status == 0 {
		message = "[API Error: terminated (cause: UND_ERR_SOCKET: other side closed)]"
	}
	q.printMessage("assistant", object{"type": "text", "text": message})
	printJSON(os.Stderr, "  ", object{"error": object{"type": "AlreadyReportedError", "message": message, "code": 1}})
	q.printList(1, object{"subtype": "error_during_execution", "is_error": true, "error": object{"message": message}})
}

func (q *qwen) printEnd(text string) {
	q.hooks.runHooks("Stop")
	q.printList(0, object{"subtype": "success", "is_error": false, "result": text})
}

// printList prints the list with its last element, and ends the process.
func (q *qwen) printList(code int, result object) {
	result["type"], result["num_turns"] = "result", q.asked
	q.addElement(result)
	printLine(q.printed)
	os.Exit(code)
}
