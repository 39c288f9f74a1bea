package agentclitest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const claudeVersion = "2.1.332"

// The flags of `claude --help` that have to do with runs without a terminal.
var (
	claudePlain = []string{"-p", "--print", "--verbose", "--dangerously-skip-permissions", "--strict-mcp-config", "--disable-slash-commands", "--bare", "--safe-mode",
		"--no-session-persistence", "--include-partial-messages", "--version", "-v"}
	claudeValued = []string{"--output-format", "--model", "--setting-sources", "--session-id", "--resume", "-r", "--append-system-prompt", "--mcp-config", "--max-turns",
		"--settings", "--permission-mode", "--allowedTools", "--disallowedTools", "--tools", "--fallback-model", "--add-dir"}
)

// claude is one run.
type claude struct {
	id, model string
	url, key  string
	hooks     hooks
	session   session
	stream    bool
	turns     int
}

func runClaude() {
	flags, _, unknown := parseFlags(os.Args[1:], claudePlain, claudeValued)
	one := func(name string) string { return strings.Join(flags[name], ",") }
	switch {
	case unknown != "":
		exit(1, "error: unknown option '%s'", unknown)
	case flags["--version"] != nil || flags["-v"] != nil:
		fmt.Println(claudeVersion + " (Claude Code)")
		os.Exit(0)
	case flags["--dangerously-skip-permissions"] != nil && os.Geteuid() == 0 && os.Getenv("IS_SANDBOX") == "":
		exit(1, "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons")
	case one("--output-format") == "stream-json" && flags["--verbose"] == nil:
		exit(1, "Error: When using --print, --output-format=stream-json requires --verbose")
	}
	c := &claude{id: one("--session-id"), model: one("--model"), stream: one("--output-format") == "stream-json"}
	c.obeyWorkspace(flags)
	c.url, c.key = os.Getenv("ANTHROPIC_BASE_URL"), os.Getenv("ANTHROPIC_API_KEY")
	resumed := one("--resume") + one("-r")
	if resumed != "" {
		c.id = resumed
	}
	if c.id == "" {
		c.id = newID()
	}
	c.session.file = filepath.Join(homeFolder("CLAUDE_CONFIG_DIR", ".claude"), "projects", projectName(), c.id+".jsonl")
	switch found := c.session.load(); {
	case resumed != "" && !found:
		c.printResult(object{"subtype": "error_during_execution", "is_error": true, "errors": list{"No conversation found with session ID: " + c.id}})
		exit(1, "No conversation found with session ID: %s", c.id)
	case resumed == "" && found:
		exit(1, "Error: Session ID %s is already in use.", c.id)
	}
	prompt := readPrompt()
	if resumed == "" && readsProject(flags) {
		prompt = claudeMemory() + prompt
	}
	c.session.Messages = append(c.session.Messages, object{"role": "user", "content": list{object{"type": "text", "text": prompt}}})
	c.print(object{"type": "system", "subtype": "init", "cwd": workFolder(), "model": c.model, "claude_code_version": claudeVersion})
	c.holdConversation()
}

// readsProject says whether a workspace's own settings count.
func readsProject(flags map[string][]string) bool {
	sources := flags["--setting-sources"]
	return sources == nil || slices.ContainsFunc(sources, func(s string) bool { return strings.Contains(s, "project") })
}

// claudeMemory is what it reads without being asked.
func claudeMemory() string {
	rules, _ := filepath.Glob(".claude/rules/*.md")
	text := readFiles(append([]string{"CLAUDE.md", "CLAUDE.local.md"}, rules...)...)
	if readFiles("CLAUDE.md") == "" {
		text += readFiles("AGENTS.md")
	}
	return "<system-reminder>\n" + text + "\n</system-reminder>\n"
}

// obeyWorkspace does what the workspace's settings say: the table of what which flags
// stop was measured with 2.1.330.
func (c *claude) obeyWorkspace(flags map[string][]string) {
	quiet := flags["--bare"] != nil || flags["--safe-mode"] != nil
	var settings struct {
		Env          map[string]string
		APIKeyHelper string
		Hooks        hooks
	}
	if readsProject(flags) {
		_ = json.Unmarshal([]byte(readFiles(".claude/settings.json")), &settings) // a broken one is ignored, as there
	}
	for name, value := range settings.Env {
		_ = os.Setenv(name, value) // cannot fail with a name from JSON that is set there
	}
	if settings.APIKeyHelper != "" && flags["--bare"] == nil {
		_ = os.Setenv("ANTHROPIC_API_KEY", plant(settings.APIKeyHelper))
	}
	if !quiet {
		c.hooks = settings.Hooks
	}
	c.hooks.runHooks("SessionStart")
	if flags["--strict-mcp-config"] == nil && !quiet {
		startServers(".mcp.json", "mcpServers")
	}
}

func (c *claude) print(v object) {
	if c.stream {
		v["session_id"], v["uuid"] = c.id, newID()
		printLine(v)
	}
}

func (c *claude) printResult(v object) {
	v["type"], v["session_id"], v["num_turns"] = "result", c.id, c.turns
	if v["subtype"] == nil {
		v["subtype"] = "success" // of a failure, too
	}
	printLine(v)
}

// holdConversation asks the model until it has an answer.
func (c *claude) holdConversation() {
	for empties := 0; ; {
		c.turns++
		text, use := c.askModel()
		content := list{}
		if text != "" {
			content = append(content, object{"type": "text", "text": text})
		}
		if use != nil {
			content = append(content, use)
		}
		if len(content) > 0 {
			c.session.Messages = append(c.session.Messages, object{"role": "assistant", "content": content})
			c.print(object{"type": "assistant", "message": object{"role": "assistant", "content": content}, "parent_tool_use_id": nil})
		}
		c.session.save()
		switch {
		case use != nil:
			c.hooks.runHooks("PreToolUse")
			input := field[object](use, "input")
			out := "Command running in background with ID: b1."
			if field[bool](input, "run_in_background") {
				c.session.background = startTool(field[string](input, "command"))
			} else {
				out = cmp.Or(runTool(field[string](input, "command"), false).out, "(Bash completed with no output)")
			}
			c.printUser(object{"type": "tool_result", "tool_use_id": use["id"], "content": out, "is_error": false})
		case text == "" && empties == 0:
			empties++ // it asks once more
			c.printUser(object{"type": "text", "text": "[Your previous response had no visible output. Please continue and produce a user-visible response.]"})
		default:
			c.hooks.runHooks("Stop")
			c.printResult(object{"is_error": false, "result": text, "api_error_status": nil, "terminal_reason": "completed"})
			c.session.awaitBackground()
			os.Exit(0)
		}
	}
}

// printUser adds and prints what is said to the model in the user's name.
func (c *claude) printUser(block object) {
	message := object{"role": "user", "content": list{block}}
	c.session.Messages = append(c.session.Messages, message)
	c.print(object{"type": "user", "message": message, "parent_tool_use_id": nil})
}

// askModel asks once. A refusal ends the process.
func (c *claude) askModel() (text string, use object) {
	var args string
	properties := object{"command": object{"type": "string"}}
	if os.Getenv("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS") != "1" {
		properties["run_in_background"] = object{"type": "boolean"}
	}
	failed := ask(c.url+"/v1/messages?beta=true", map[string]string{"X-Api-Key": c.key, "Anthropic-Version": "2023-06-01", "Accept": "application/json"}, object{
		"model": c.model, "max_tokens": 32000, "stream": true, "system": list{object{"type": "text", "text": "Working directory: " + workFolder() +
			"\nYour memory lies in " + filepath.Join(filepath.Dir(c.session.file), "memory") + "/."}}, "messages": c.session.Messages,
		"tools": list{object{"name": "Bash", "description": "Runs a command", "input_schema": object{"type": "object",
			"properties": properties, "required": list{"command"}}}},
	}, func(e object) {
		if block := field[object](e, "content_block"); block["type"] == "tool_use" {
			use = object{"type": "tool_use", "id": block["id"], "name": block["name"]}
		}
		delta := field[object](e, "delta")
		text += field[string](delta, "text")
		args += field[string](delta, "partial_json")
	})
	if failed != nil {
		c.printFailure(failed)
	}
	if use != nil {
		var input object
		_ = json.Unmarshal([]byte(args), &input) // empty where it is none, as there
		use["input"] = input
	}
	return text, use
}

// printFailure prints why there is no answer, and ends the process.
func (c *claude) printFailure(f *refusal) {
	message := fmt.Sprintf("API Error: %d %s", f.status, f.message)
	switch {
	case f.status == 0:
		message = "API Error: " + f.message
	case f.status == 401 || f.status == 403:
		message = "Failed to authenticate. " + message
	case f.status == 429:
		message = "API Error: Request rejected (429) · " + f.message
	case f.status >= 500:
		host := strings.TrimPrefix(c.url, "http://")
		message += ". This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (" + host + ")."
	}
	c.session.save()
	c.print(object{"type": "assistant", "message": object{"model": "<synthetic>", "role": "assistant", "content": list{object{"type": "text", "text": message}}}, "parent_tool_use_id": nil,
		"error": "unknown", "is_api_error_message": true, "api_error_status": f.status, "api_error_type": f.kind})
	c.printResult(object{"is_error": true, "api_error_status": f.status, "api_error_type": f.kind, "terminal_reason": "api_error", "result": message})
	os.Exit(1)
}
