package cli

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/agents/program"
)

// newClaudeCode is Anthropic's CLI. Its own settings flags are no boundary but for one pair:
// --setting-sources user with --strict-mcp-config keeps a project's hooks, MCP servers,
// apiKeyHelper and env out, where --safe-mode and --bare let the env redirect the model.
func newClaudeCode() CLI {
	return CLI{
		Name: "claude-code", Program: "claude", Title: "Claude Code", Package: "@anthropic-ai/claude-code",
		Versions: program.Range{Min: "2.1.197", Tested: "2.1.332"}, Wires: []string{"messages"},
		Credential: ".claude/.credentials.json", Window: claudeWindow,
		argv: claudeArgs, environ: claudeEnviron, files: func(c call) map[string]string { return serverFile(c, "url") }, read: readClaude,
	}
}

func claudeArgs(c call) []string {
	args := []string{"-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions", "--setting-sources", "user", "--strict-mcp-config"}
	if c.Model != "" {
		args = append(args, "--model", c.Model)
	}
	if len(c.MCP) > 0 {
		args = append(args, "--mcp-config", c.Home+"/"+mcpFile)
	}
	if c.Resume {
		return append(args, "--resume", c.Session)
	}
	return append(args, "--session-id", c.Session)
}

func claudeEnviron(c call) []string {
	env := []string{
		"CLAUDE_CONFIG_DIR=" + c.Home + "/.claude", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		// It stays as long as such a task runs, and then asks its model again, by itself.
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1",
	}
	if c.Root { // as root it refuses to skip its questions otherwise; uwf's own sandbox is around it
		env = append(env, "IS_SANDBOX=1")
	}
	if c.URL == "" {
		return env
	}
	env = append(env, "ANTHROPIC_BASE_URL="+c.URL, "ANTHROPIC_API_KEY="+c.Key, "CLAUDE_CODE_MAX_RETRIES=0") // the gateway retries
	// All names for models lead to the one that is allowed: side tasks ask smaller ones.
	for _, name := range []string{"ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL",
		"ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_FABLE_MODEL", "CLAUDE_CODE_SUBAGENT_MODEL"} {
		env = append(env, name+"="+c.Model)
	}
	if c.Window > 0 { // of a model that it does not know it believes a million tokens
		env = append(env, "CLAUDE_CODE_MAX_CONTEXT_TOKENS="+strconv.Itoa(c.Window))
	}
	return append(env, "CLAUDE_CODE_MAX_OUTPUT_TOKENS="+strconv.Itoa(claudeOutput(c)))
}

const (
	// claudeUsualOutput is what it asks for without being told; after a cut it asks for four times as
	// much, which a provider may refuse and a budget not hold.
	claudeUsualOutput = 32_000
	// claudeReserve is the most that it keeps free of a window for an answer, in tokens. It compacts a
	// conversation at the window less that and 13,000; its own prompt has about 12,000.
	claudeReserve = 20_000
	// claudeWindow is the least window with which work is left to do before it compacts.
	claudeWindow = 32_000
)

// claudeOutput is the limit of an answer, which leaves room for a conversation in a small window.
func claudeOutput(c call) int {
	output := cmp.Or(c.Output, claudeUsualOutput)
	if room := c.Window / 8; c.Window > 0 && room < claudeReserve {
		return min(output, room)
	}
	return output
}

// claudeLine is a line of stream-json, as far as it is read. An answer that failed says so in
// is_error alone: its subtype is "success" all the same.
type claudeLine struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	Parent    string `json:"parent_tool_use_id"` // of a sub-agent's message
	Message   struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	IsError bool     `json:"is_error"`
	Result  *string  `json:"result"`
	Subtype string   `json:"subtype"`
	Errors  []any    `json:"errors"`
	Error   struct { // qwen's
		Message string `json:"message"`
	} `json:"error"`
}

func readClaude(r *report, raw []byte) {
	var line claudeLine
	if !r.decodeLine(raw, &line) {
		return
	}
	if line.SessionID != "" && line.Parent == "" {
		r.Session = line.SessionID
	}
	switch line.Type {
	case "assistant", "user":
		r.Over = false
		for _, b := range readBlocks(line.Message.Content) {
			b.addTo(r)
		}
	case "result":
		switch {
		case line.IsError && line.Result != nil && *line.Result != "":
			// It names what people can't set: it is uwf's.
			r.failTurn(strings.Replace(*line.Result, "set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable", "set models.NAME.maxOutput of the model", 1))
		case line.IsError:
			r.failTurn(cmp.Or(line.Error.Message, strings.TrimSpace(line.Subtype+" "+writeJSON(line.Errors))))
		case line.Result != nil:
			r.endTurn(*line.Result)
		}
	}
}

// block is a part of a message in Anthropic's form.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	Content json.RawMessage `json:"content"`
}

func (b block) addTo(r *report) {
	switch b.Type {
	case "text":
		r.addText(b.Text)
	case "tool_use":
		r.addCall(b.Name, string(b.Input))
	case "tool_result":
		r.addResult(joinText(b.Content))
	}
}

// readBlocks reads a message's content: blocks, or a text.
func readBlocks(content json.RawMessage) []block {
	var blocks []block
	if json.Unmarshal(content, &blocks) == nil {
		return blocks
	}
	var said string
	if json.Unmarshal(content, &said) == nil {
		return []block{{Type: "text", Text: said}}
	}
	return nil
}

// joinText is the text of a tool's result, which is one or a list of blocks.
func joinText(content json.RawMessage) string {
	var parts []string
	for _, b := range readBlocks(content) {
		if b.Text != "" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}
