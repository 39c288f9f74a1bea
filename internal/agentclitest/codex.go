package agentclitest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const codexVersion = "0.171.0"

// The flags of `codex exec --help`.
var (
	codexPlain = []string{"--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "--ignore-rules", "--ignore-user-config", "--ephemeral", "--strict-config",
		"--trust", "--version", "-V"}
	codexValued = []string{"-c", "--config", "-m", "--model", "-o", "--output-last-message", "--enable", "--disable", "--output-schema", "-C", "--cd", "-s", "--sandbox", "--color",
		"-p", "--profile", "--add-dir"}
)

// codex is one run.
type codex struct {
	id, model, last string
	url, key        string
	session         session
	items           int
	input, output   int // tokens of the whole thread
}

func runCodex() {
	args := os.Args[1:]
	resume := false
	if len(args) > 0 && args[0] == "exec" {
		args = args[1:]
		if len(args) > 0 && args[0] == "resume" {
			args, resume = args[1:], true
		}
	}
	flags, rest, unknown := parseFlags(args, codexPlain, codexValued)
	if unknown != "" {
		exit(2, "error: unexpected argument '%s' found\n\n  tip: to pass '%[1]s' as a value, use '-- %[1]s'\n\nUsage: codex exec [OPTIONS] [PROMPT]\n"+
			"       codex exec [OPTIONS] <COMMAND> [ARGS]\n\nFor more information, try '--help'.", unknown)
	}
	if flags["--version"] != nil || flags["-V"] != nil {
		fmt.Println("codex-cli " + codexVersion)
		os.Exit(0)
	}
	c := &codex{model: strings.Join(flags["-m"], ""), last: strings.Join(flags["-o"], "")}
	settings := readSettings(flags["-c"])
	c.findProvider(settings)
	c.findSession(homeFolder("CODEX_HOME", ".codex"), resume, rest)
	prompt := readPrompt()
	if !resume && settings["project_doc_max_bytes"] != "0" {
		prompt = readFiles("AGENTS.override.md", "AGENTS.md") + prompt
	}
	printLine(object{"type": "thread.started", "thread_id": c.id})
	c.printItem(object{"type": "error", "message": "Model metadata for `" + c.model + "` not found. Defaulting to fallback metadata; this can degrade performance and cause issues."})
	printLine(object{"type": "turn.started"})
	c.session.Messages = append(c.session.Messages, object{"type": "message", "role": "user", "content": list{object{"type": "input_text", "text": prompt}}})
	c.holdConversation()
}

// readSettings reads -c key=value; values are TOML, or else the words themselves.
func readSettings(all []string) map[string]string {
	settings := map[string]string{}
	for _, kv := range all {
		key, value, _ := strings.Cut(kv, "=")
		if s, err := strconv.Unquote(value); err == nil {
			value = s
		}
		settings[key] = value
	}
	return settings
}

// findProvider finds the model's address, which is in the configuration alone:
// OPENAI_BASE_URL is ignored.
func (c *codex) findProvider(settings map[string]string) {
	provider := "model_providers." + settings["model_provider"] + "."
	switch {
	case settings["model_provider"] == "":
		exit(1, "this fake asks no model of OpenAI's own")
	case settings[provider+"wire_api"] != "responses":
		exit(1, "Error loading config.toml: `wire_api = \"%s\"` is no longer supported.", settings[provider+"wire_api"])
	}
	c.url, c.key = settings[provider+"base_url"], os.Getenv(settings[provider+"env_key"])
}

// findSession finds the session to go on with, or begins one.
func (c *codex) findSession(home string, resume bool, rest []string) {
	if !resume {
		c.id = newID()
		now := time.Now()
		c.session.file = filepath.Join(home, "sessions", now.Format("2006/01/02"), "rollout-"+now.Format("2006-01-02T15-04-05")+"-"+c.id+".jsonl")
		return
	}
	if len(rest) > 0 {
		c.id = rest[0]
	}
	found, _ := filepath.Glob(filepath.Join(home, "sessions/*/*/*/rollout-*-"+c.id+".jsonl")) // the pattern is right
	if len(found) == 0 {
		exit(1, "Error: thread/resume: thread/resume failed: no rollout found for thread id %s (code -32600)", c.id)
	}
	c.session.file = found[0]
	if !c.session.load() {
		exit(1, "Error: thread/resume: %s cannot be read", found[0])
	}
	// The usage of a thread is all of it.
	for _, m := range c.session.Messages {
		if o, ok := m.(object); ok && o["role"] == "assistant" {
			c.input, c.output = c.input+1200, c.output+34
		}
	}
}

func (c *codex) printItem(item object) {
	item["id"] = fmt.Sprintf("item_%d", c.items)
	c.items++
	printLine(object{"type": "item.completed", "item": item})
}

// holdConversation asks the model until it has an answer.
func (c *codex) holdConversation() {
	for {
		text, called := c.askModel()
		c.printItem(object{"type": "agent_message", "text": text})
		c.session.Messages = append(c.session.Messages, object{"type": "message", "role": "assistant", "content": list{object{"type": "output_text", "text": text}}})
		if called == nil {
			c.session.save()
			if c.last != "" {
				if err := os.WriteFile(c.last, []byte(text), 0o600); err != nil {
					exit(1, "%v", err)
				}
			}
			printLine(object{"type": "turn.completed", "usage": object{"input_tokens": c.input, "cached_input_tokens": 0, "output_tokens": c.output, "reasoning_output_tokens": 0}})
			os.Exit(0)
		}
		c.runCall(called)
		c.session.save()
	}
}

// runCall runs the command of a call. Its result has a random id, as there.
func (c *codex) runCall(called object) {
	var args struct{ Cmd string }
	_ = json.Unmarshal([]byte(field[string](called, "arguments")), &args) // an empty command, as there
	shown := "/bin/bash -lc '" + args.Cmd + "'"
	printLine(object{"type": "item.started", "item": object{"id": fmt.Sprintf("item_%d", c.items), "type": "command_execution", "command": shown, "aggregated_output": "", "exit_code": nil, "status": "in_progress"}})
	out := runTool(args.Cmd, false).out
	c.printItem(object{"type": "command_execution", "command": shown, "aggregated_output": out, "exit_code": 0, "status": "completed"})
	c.session.Messages = append(c.session.Messages,
		object{"type": "function_call", "name": called["name"], "arguments": called["arguments"], "call_id": called["call_id"]},
		object{"type": "function_call_output", "call_id": called["call_id"], "output": fmt.Sprintf("Chunk ID: %s\nWall time: 0.0000 seconds\nProcess exited with code 0\nOutput:\n%s", newID()[:6], out)})
}

// askModel asks once. A refusal ends the process.
func (c *codex) askModel() (text string, called object) {
	failed := ask(c.url+"/responses", map[string]string{"Authorization": "Bearer " + c.key, "Accept": "text/event-stream"}, object{
		"model": c.model, "stream": true, "store": false, "instructions": "Working directory: " + workFolder(), "input": c.session.Messages,
		"tools": list{object{"type": "function", "name": "exec_command", "description": "Runs a command", "parameters": object{"type": "object",
			"properties": object{"cmd": object{"type": "string"}}, "required": list{"cmd"}}}},
	}, func(e object) {
		item := field[object](e, "item")
		switch {
		case e["type"] == "response.output_text.done":
			text = field[string](e, "text")
		case e["type"] == "response.output_item.done" && item["type"] == "function_call":
			called = item
		}
	})
	if failed == nil {
		c.input, c.output = c.input+1200, c.output+34
		return text, called
	}
	var message string
	switch failed.status {
	case 0:
		message = "stream disconnected before completion: Transport error: network error: error decoding response body"
	case 400:
		message = failed.body
	case 429:
		message = "exceeded retry limit, last status: 429 Too Many Requests"
	case 500:
		message = "We’re currently experiencing high demand, which may cause temporary errors."
	default:
		message = fmt.Sprintf("unexpected status %d %s: %s, url: %s/responses", failed.status, cmp.Or(http.StatusText(failed.status), "<unknown status code>"), failed.message, c.url)
	}
	c.session.save()
	printLine(object{"type": "error", "message": message})
	printLine(object{"type": "turn.failed", "error": object{"message": message}})
	os.Exit(1)
	return "", nil
}
