package cli

import (
	"cmp"
	"encoding/json"

	"github.com/united-workforce/uwf/agents/program"
)

// newOpenCode is a CLI whose plugins in a workspace run inside of it whatever its flags and
// variables say: only that they are out of the way keeps them from it.
func newOpenCode() CLI {
	return CLI{
		Name: "opencode", Program: "opencode", Title: "opencode", Package: "opencode-ai",
		Versions: program.Range{Min: "1.18.33", Tested: "1.18.33"}, Wires: []string{"chat"},
		Credential: ".local/share/opencode/auth.json",
		argv:       openCodeArgs, environ: openCodeEnviron, read: readOpenCode,
	}
}

func openCodeArgs(c call) []string {
	args := []string{"run", "--format", "json", "--auto", "--pure", "--title", "uwf"} // without a title it asks the model for one
	if c.Model != "" {
		args = append(args, "-m", "uwf/"+c.Model)
	}
	if c.Resume {
		args = append(args, "--session", c.Session)
	}
	return args
}

func openCodeEnviron(c call) []string {
	env := []string{"OPENAI_API_KEY=" + c.Key, "OPENCODE_CONFIG_CONTENT=" + writeJSON(openCodeConfig(c))}
	for _, name := range []string{"PROJECT_CONFIG", "CLAUDE_CODE", "EXTERNAL_SKILLS", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "MODELS_FETCH", "AUTOUPDATE", "FILEWATCHER"} {
		env = append(env, "OPENCODE_DISABLE_"+name+"=1")
	}
	return env
}

func openCodeConfig(c call) map[string]any {
	config := map[string]any{"autoupdate": false, "share": "disabled", "snapshot": false, "permission": map[string]any{"*": "allow"}}
	if c.URL != "" {
		config["model"], config["small_model"], config["enabled_providers"] = "uwf/"+c.Model, "uwf/"+c.Model, []string{"uwf"}
		config["provider"] = map[string]any{"uwf": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "name": "uwf", "options": map[string]any{"baseURL": c.openAIBase(), "apiKey": "{env:OPENAI_API_KEY}"},
			"models": map[string]any{c.Model: map[string]any{"limit": map[string]any{
				"context": cmp.Or(c.Window, usualWindow), "output": cmp.Or(c.Output, usualOutput)}}},
		}}
	}
	servers := map[string]any{}
	for _, m := range c.MCP {
		servers[m.Name] = map[string]any{"type": "remote", "url": m.URL, "enabled": true, "headers": map[string]string{"Authorization": "Bearer {env:OPENAI_API_KEY}"}}
	}
	if len(servers) > 0 {
		config["mcp"] = servers
	}
	return config
}

// usualWindow and usualOutput are what is said of a model of which nothing is known, where a CLI
// wants to know. In tokens.
const usualWindow, usualOutput = 128_000, 8_192

type openCodeLine struct {
	Type      string `json:"type"`
	SessionID string `json:"sessionID"`
	Part      struct {
		Reason string `json:"reason"` // why a step ended
		Text   string `json:"text"`
		Tool   string `json:"tool"`
		State  struct {
			Input  json.RawMessage `json:"input"`
			Output string          `json:"output"`
			Error  string          `json:"error"`
		} `json:"state"`
	} `json:"part"`
	Error struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
		} `json:"data"`
	} `json:"error"`
}

func readOpenCode(r *report, raw []byte) {
	var line openCodeLine
	if !r.decodeLine(raw, &line) {
		return
	}
	r.Session = cmp.Or(line.SessionID, r.Session)
	switch line.Type {
	case "step_start":
		r.last, r.Over = "", false
	case "text":
		r.addText(line.Part.Text)
		r.last += line.Part.Text
	case "step_finish":
		if line.Part.Reason != "tool-calls" {
			r.endTurn(r.last)
		}
	case "tool_use":
		r.addCall(line.Part.Tool, string(line.Part.State.Input))
		r.addResult(cmp.Or(line.Part.State.Output, line.Part.State.Error))
	case "error":
		r.failTurn(cmp.Or(line.Error.Data.Message, line.Error.Name, "it says no reason"))
	}
}
