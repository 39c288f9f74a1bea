package cli

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/united-workforce/uwf/agents/program"
)

// newGeminiCLI is Google's CLI. It works in a folder that is declared trusted alone, and then
// obeys the settings in it: only that they are out of the way keeps them from it.
func newGeminiCLI() CLI {
	return CLI{
		Name: "gemini-cli", Program: "gemini", Title: "Gemini CLI", Package: "@google/gemini-cli",
		Versions: program.Range{Min: "0.61.0", Tested: "0.61.0"}, Wires: []string{"gemini"},
		Credential: ".gemini/oauth_creds.json", Hide: []string{"GEMINI.md"}, // which it reads beside context.fileName
		argv: geminiArgs, environ: geminiEnviron, files: geminiFiles, read: readGemini, whole: true, finish: finishGemini,
	}
}

func geminiArgs(c call) []string {
	args := []string{"--output-format", "json", "--yolo"}
	if c.Model != "" {
		args = append(args, "-m", c.Model)
	}
	if c.Resume {
		return append(args, "--resume", c.Session)
	}
	return append(args, "--session-id", c.Session)
}

func geminiEnviron(c call) []string {
	env := []string{"GEMINI_CLI_TRUST_WORKSPACE=true"}
	if c.URL != "" {
		env = append(env, "GEMINI_API_KEY="+c.Key, "GOOGLE_GEMINI_BASE_URL="+c.URL)
	}
	return env
}

// geminiFiles are its settings: with the environment alone it finds no way to log in (exit 41).
func geminiFiles(c call) map[string]string {
	auth := "oauth-personal"
	if c.URL != "" {
		auth = "gemini-api-key"
	}
	settings := map[string]any{
		"security": map[string]any{"auth": map[string]any{"selectedType": auth}}, "privacy": map[string]any{"usageStatisticsEnabled": false},
		"telemetry": map[string]any{"enabled": false}, "general": map[string]any{"enableAutoUpdate": false},
	}
	servers := map[string]any{}
	for _, m := range c.MCP {
		servers[m.Name] = map[string]any{"httpUrl": m.URL, "headers": map[string]string{"Authorization": "Bearer " + c.Key}}
	}
	if len(servers) > 0 {
		settings["mcpServers"] = servers
	}
	return map[string]string{".gemini/settings.json": writeJSON(settings)}
}

type geminiAnswer struct {
	SessionID string          `json:"session_id"`
	Response  string          `json:"response"`
	Error     json.RawMessage `json:"error"`
}

func readGemini(r *report, raw []byte) {
	var a geminiAnswer
	if !r.decodeLine(raw, &a) {
		return
	}
	r.Session = cmp.Or(a.SessionID, r.Session)
	r.addText(a.Response)
	r.endTurn(a.Response)
	if reason := strings.TrimSpace(string(a.Error)); reason != "" && reason != "null" {
		r.failTurn(errorText(`{"error":` + reason + `}`))
	}
}

// finishGemini takes the reason of a failure from where it stands: at the end of stderr, as JSON
// on lines of its own.
func finishGemini(r *report, _ call, stderr string) {
	at := strings.LastIndex("\n"+stderr, "\n{")
	if r.Text != "" || at < 0 {
		return
	}
	var a struct {
		Error struct{ Message string } `json:"error"`
	}
	if json.NewDecoder(strings.NewReader(stderr[at:])).Decode(&a) == nil && a.Error.Message != "" {
		r.Failure = errorText(a.Error.Message)
	}
}
