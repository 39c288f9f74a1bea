package agentclitest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const copilotVersion = "1.0.102"

// The flags of `copilot --help` that have to do with runs without a terminal.
var (
	copilotPlain  = []string{"-s", "--silent", "--allow-all", "--no-ask-user", "--no-custom-instructions", "--disable-builtin-mcps", "--no-remote", "--no-auto-update", "--no-color", "--version", "-v"}
	copilotValued = []string{"--output-format", "--session-id", "--additional-mcp-config", "--model"}
)

// copilot is one run.
type copilot struct {
	chat
	id, parent string // of the last lasting event
	lines      bool   // it prints events, else the answers alone
}

func runCopilot() {
	flags, _, unknown := parseFlags(os.Args[1:], copilotPlain, copilotValued)
	if unknown != "" {
		exit(1, "error: unexpected argument '%s' found\n\nUsage: copilot [OPTIONS] [COMMAND]\n\nFor more information, try '--help'.", unknown)
	}
	unpackCopilot()
	if flags["--version"] != nil || flags["-v"] != nil {
		fmt.Printf("GitHub Copilot CLI %s.\nRun 'copilot update' to check for updates.\n", copilotVersion)
		os.Exit(0)
	}
	url := os.Getenv("COPILOT_PROVIDER_BASE_URL")
	if url == "" {
		exit(1, "Error: No authentication information found.")
	}
	id := newID()
	if given := flags["--session-id"]; given != nil {
		id = given[0]
	}
	c := &copilot{id: id, parent: id, lines: flags["--output-format"] != nil, chat: chat{
		model: os.Getenv("COPILOT_MODEL"), url: url, key: os.Getenv("COPILOT_PROVIDER_API_KEY"), accept: "application/json",
		tool: "bash", required: list{"command", "description"},
		optional: object{"mode": object{"type": "string", "enum": list{"sync", "async"}}},
		session:  session{file: filepath.Join(homeFolder("COPILOT_HOME", ".copilot"), "session-state", id, "events.json")},
	}}
	c.session.load() // an id that it does not know becomes a new session's
	if flags["--no-custom-instructions"] == nil {
		c.system = readFiles("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md")
	}
	prompt := readPrompt()
	transformed := "<current_datetime>" + time.Now().UTC().Format("2006-01-02T15:04:05.000-07:00") + "</current_datetime>\n\n" + prompt
	c.addPrompt(transformed)
	c.printEvent("user.message", object{"content": prompt, "transformedContent": transformed, "turnId": "0"}, false)
	holdConversation(c, &c.session, false)
}

// unpackCopilot puts into HOME what the program really runs, where it is not there yet.
func unpackCopilot() {
	file := filepath.Join(os.Getenv("HOME"), ".cache/copilot/pkg", copilotVersion, "app.js")
	if _, err := os.Stat(file); err == nil {
		return
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("// the program\n"), 0o600)); err != nil {
		exit(1, "Error: %v", err)
	}
}

// printEvent prints an event. Those that pass are no part of the session.
func (c *copilot) printEvent(kind string, data object, passes bool) {
	if !c.lines {
		return
	}
	id := newID()
	event := object{"type": kind, "data": data, "id": id, "timestamp": copilotTime(), "parentId": c.parent}
	if passes {
		event["ephemeral"] = true
	} else {
		c.parent = id
	}
	printLine(event)
}

func copilotTime() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

func (c *copilot) turnID() string { return strconv.Itoa(c.asked - 1) }

func (c *copilot) askModel() (reply, *refusal) {
	turn := strconv.Itoa(c.asked)
	c.printEvent("assistant.turn_start", object{"turnId": turn}, false)
	c.printEvent("model.call_start", object{"turnId": turn, "model": c.model}, true)
	return c.chat.askModel()
}

// printCallEnd tells how a request ended.
func (c *copilot) printCallEnd(result string) {
	c.printEvent("model.call_final_result", object{"model": c.model, "isByok": true, "result": result}, true)
}

func (c *copilot) printReply(r reply) {
	requests := list{}
	if r.id != "" {
		requests = append(requests, object{"toolCallId": r.id, "name": r.name, "arguments": r.readArgs(), "type": "function"})
	}
	c.printEvent("assistant.message", object{"model": c.model, "content": r.text, "toolRequests": requests, "turnId": c.turnID()}, false)
	if !c.lines {
		fmt.Println(r.text)
	}
	c.printCallEnd("success")
}

func (c *copilot) printResult(r reply, did ran) string {
	told := fmt.Sprintf("%s\n<shellId: 0 completed with exit code %d>", did.out, did.code)
	c.printEvent("tool.execution_start", object{"toolCallId": r.id, "toolName": r.name, "arguments": r.readArgs(), "turnId": c.turnID(), "model": c.model}, false)
	c.printEvent("tool.execution_complete", object{"toolCallId": r.id, "model": c.model, "turnId": c.turnID(), "success": true,
		"shellExecution": object{"exitCode": did.code}, "result": object{"content": told, "detailedContent": told}}, false)
	c.printEvent("assistant.turn_end", object{"turnId": c.turnID()}, false)
	return told
}

func (c *copilot) printFailure(f *refusal) {
	kind, message, result := "query", fmt.Sprintf("%d %s", f.status, f.message), fmt.Sprintf("http_%dxx", f.status/100)
	data := object{"statusCode": f.status}
	switch f.status {
	case 0:
		message = "Failed to get response from the AI model; retried 5 times (total retry wait time: 5.00 seconds) Last error: " +
			"Failed native model HTTP request: error decoding response body: error reading a body from connection: unexpected EOF during chunk size line"
		result, data = "transport_error", object{}
	case 400:
		result = "http_400"
	case 401, 403:
		kind, message = "authentication", fmt.Sprintf("Authentication failed with provider at %s (HTTP %d).\n"+
			"  Check your COPILOT_PROVIDER_API_KEY, COPILOT_PROVIDER_API_KEY_COMMAND, or COPILOT_PROVIDER_BEARER_TOKEN.", c.url, f.status)
	}
	data["errorType"], data["message"] = kind, message
	c.printCallEnd(result)
	c.printEvent("assistant.turn_end", object{"turnId": c.turnID()}, false)
	c.printEvent("session.error", data, false)
	if !c.lines {
		fmt.Fprintln(os.Stderr, message)
	}
	c.printExit(1)
}

func (c *copilot) printEnd(string) {
	c.printEvent("assistant.turn_end", object{"turnId": c.turnID()}, false)
	c.printExit(0)
}

// printExit ends the process.
func (c *copilot) printExit(code int) {
	c.printEvent("assistant.idle", object{}, true)
	c.session.awaitBackground()
	if c.lines {
		printLine(object{"type": "result", "timestamp": copilotTime(), "sessionId": c.id, "exitCode": code, "usage": object{"premiumRequests": 0}})
	}
	os.Exit(code)
}
