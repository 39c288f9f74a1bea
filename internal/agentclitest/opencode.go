package agentclitest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

const openCodeVersion = "1.18.33"

// The flags of `opencode run --help`.
var (
	openCodePlain  = []string{"--auto", "--pure", "--version", "-v", "--print-logs", "-c", "--continue", "--fork", "--share", "--thinking"}
	openCodeValued = []string{"--format", "--title", "-m", "--model", "--session", "-s", "--log-level", "--agent", "--dir"}
)

// openCode is one run.
type openCode struct {
	chat
	id, message string
}

func runOpenCode() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "run" {
		args = args[1:]
	}
	flags, _, unknown := parseFlags(args, openCodePlain, openCodeValued)
	switch {
	case unknown != "":
		exit(1, "opencode run [message..]\n\nrun opencode with a message")
	case flags["--version"] != nil || flags["-v"] != nil:
		fmt.Println(openCodeVersion)
		os.Exit(0)
	}
	obeyOpenCode()
	o := &openCode{id: strings.Join(flags["--session"], ""), chat: chat{accept: "*/*", tool: "bash", required: list{"command"}}}
	o.findModel(strings.Join(flags["-m"], ""))
	resumed := o.id != ""
	if !resumed {
		o.id = newOpenCodeID("ses")
	}
	o.session.file = filepath.Join(homeFolder("XDG_DATA_HOME", ".local/share"), "opencode/storage", o.id+".json")
	if found := o.session.load(); resumed && !found {
		exit(1, "\x1b[91m\x1b[1mError: \x1b[0mSession not found")
	}
	if os.Getenv("OPENCODE_DISABLE_PROJECT_CONFIG") == "" {
		o.system = readFiles("AGENTS.md")
	}
	o.addPrompt(readPrompt())
	holdConversation(o, &o.session, true)
}

// newOpenCodeID is an id in its own form.
func newOpenCodeID(kind string) string {
	return kind + "_" + strings.ReplaceAll(newID(), "-", "")[:26]
}

var writesFile = lazyregexp.New(`writeFileSync\('([^']+)'`)

// obeyOpenCode does what the workspace's files say. Plugins run whatever it is told; this fake
// runs of each no more than the writing of a file.
func obeyOpenCode() {
	plugins, _ := filepath.Glob(".opencode/plugin*/*.js") // the pattern is right
	for _, plugin := range plugins {
		if m := writesFile.FindStringSubmatch(readFiles(plugin)); m != nil {
			_ = os.WriteFile(m[1], nil, 0o600) // a plugin's error is its own
		}
	}
	if os.Getenv("OPENCODE_DISABLE_PROJECT_CONFIG") != "" {
		return
	}
	var config struct {
		MCP map[string]struct{ Command []string }
	}
	_ = json.Unmarshal([]byte(readFiles("opencode.json")), &config) // a broken file starts none
	for _, server := range config.MCP {
		plant(quoteWords(server.Command) + " </dev/null")
	}
}

// findModel finds the model's address, which is in the configuration alone.
func (o *openCode) findModel(name string) {
	var config struct {
		Provider map[string]struct {
			Options struct{ BaseURL, APIKey string }
		}
	}
	if err := json.Unmarshal([]byte(os.Getenv("OPENCODE_CONFIG_CONTENT")), &config); err != nil {
		exit(1, "Error: OPENCODE_CONFIG_CONTENT: %v", err)
	}
	provider, model, _ := strings.Cut(name, "/")
	found, known := config.Provider[provider]
	if !known {
		exit(1, "\x1b[91m\x1b[1mError: \x1b[0mModel not found: %s", name)
	}
	o.model, o.url, o.key = model, found.Options.BaseURL, found.Options.APIKey
	if variable, ok := strings.CutPrefix(o.key, "{env:"); ok {
		o.key = os.Getenv(strings.TrimSuffix(variable, "}"))
	}
}

// printEvent prints a line with more fields than all have.
func (o *openCode) printEvent(kind, field string, value object) {
	printLine(object{"type": kind, "timestamp": time.Now().UnixMilli(), "sessionID": o.id, field: value})
}

// printPart prints a part of a message.
func (o *openCode) printPart(kind, part string, fields object) {
	fields["type"], fields["id"], fields["messageID"], fields["sessionID"] = part, newOpenCodeID("prt"), o.message, o.id
	o.printEvent(kind, "part", fields)
}

func (o *openCode) printReply(r reply) {
	o.message = newOpenCodeID("msg")
	o.printPart("step_start", "step-start", object{})
	if r.text != "" {
		o.printPart("text", "text", object{"text": r.text})
	}
	if r.id == "" {
		o.printStep("stop")
	}
}

// printStep prints the end of a step.
func (o *openCode) printStep(reason string) {
	o.printPart("step_finish", "step-finish", object{"reason": reason, "cost": 0,
		"tokens": object{"total": 1234, "input": 1200, "output": 34, "reasoning": 0, "cache": object{"write": 0, "read": 0}}})
}

func (o *openCode) printResult(r reply, did ran) string {
	told := cmp.Or(did.out, "(no output)")
	o.printPart("tool_use", "tool", object{"tool": r.name, "callID": r.id, "state": object{"status": "completed", "input": r.readArgs(), "output": told,
		"metadata": object{"output": told, "exit": did.code, "truncated": false}, "title": r.readCommand()}})
	o.printStep("tool-calls")
	return told
}

func (o *openCode) printFailure(f *refusal) {
	data := object{"message": f.message, "statusCode": f.status, "isRetryable": f.status == 429 || f.status >= 500, "responseBody": f.body,
		"metadata": object{"url": o.url + "/chat/completions"}}
	if f.status == 0 {
		o.printPart("step_start", "step-start", object{})
		data = object{"message": "Cannot connect to API: The socket connection was closed unexpectedly. For more information, pass `verbose: true` in the second argument to fetch()",
			"isRetryable": true, "metadata": data["metadata"]}
	}
	o.printEvent("error", "error", object{"name": "APIError", "data": data})
	os.Exit(1)
}

func (o *openCode) printEnd(string) { os.Exit(0) }
