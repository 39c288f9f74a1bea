package cli

import (
	"cmp"
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/agents/program"
	"github.com/united-workforce/uwf/internal/regular"
)

// newCodex is OpenAI's CLI. It takes the address of a model from its configuration alone: with
// OPENAI_BASE_URL it asks OpenAI all the same. A project's own configuration is off, since no
// folder is ever declared trusted here.
func newCodex() CLI {
	return CLI{
		Name: "codex", Program: "codex", Title: "Codex", Package: "@openai/codex",
		Versions: program.Range{Min: "0.169.0", Tested: "0.171.0"}, Wires: []string{"responses"},
		Credential: ".codex/auth.json",
		argv:       codexArgs, environ: codexEnviron, read: readCodex, finish: finishCodex,
		files: func(call) map[string]string { return map[string]string{".codex/.uwf": ""} }, // it wants the folder to be there
	}
}

func codexArgs(c call) []string {
	args := []string{"exec"}
	if c.Resume {
		args = append(args, "resume")
	}
	args = append(args, "--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "--ignore-rules", "--disable", "hooks", "-o", c.answerFile())
	set := func(key, value string) { args = append(args, "-c", key+"="+value) }
	if c.Model != "" {
		args = append(args, "-m", c.Model)
	}
	if c.URL != "" {
		set("model_provider", "uwf")
		for _, kv := range [][2]string{{"name", `"uwf"`}, {"base_url", strconv.Quote(c.openAIBase())}, {"env_key", `"OPENAI_API_KEY"`}, {"wire_api", `"responses"`},
			{"request_max_retries", "0"}, {"stream_max_retries", "0"}} { // the gateway retries
			set("model_providers.uwf."+kv[0], kv[1])
		}
	}
	if c.Window > 0 {
		set("model_context_window", strconv.Itoa(c.Window))
	}
	set("project_doc_max_bytes", "0") // AGENTS.md comes with the prompt, as data
	set("skills.include_instructions", "false")
	set("analytics.enabled", "false")
	set("check_for_update_on_startup", "false")
	for _, m := range c.MCP {
		set("mcp_servers."+m.Name+".url", strconv.Quote(m.URL))
		set("mcp_servers."+m.Name+".bearer_token_env_var", `"OPENAI_API_KEY"`)
	}
	if c.Resume {
		args = append(args, c.Session)
	}
	return append(args, "-")
}

func codexEnviron(c call) []string {
	env := []string{"CODEX_HOME=" + c.Home + "/.codex"}
	if c.URL != "" {
		env = append(env, "OPENAI_API_KEY="+c.Key)
	}
	return env
}

type codexLine struct {
	Type     string `json:"type"`
	ThreadID string `json:"thread_id"`
	Message  string `json:"message"`
	Error    struct {
		Message string `json:"message"`
	} `json:"error"`
	Item struct {
		Type    string          `json:"type"`
		Text    string          `json:"text"`
		Message string          `json:"message"`
		Command string          `json:"command"`
		Output  string          `json:"aggregated_output"`
		Changes json.RawMessage `json:"changes"`
		Server  string          `json:"server"`
		Tool    string          `json:"tool"`
		Query   string          `json:"query"`
	} `json:"item"`
}

func readCodex(r *report, raw []byte) {
	var line codexLine
	if !r.decodeLine(raw, &line) {
		return
	}
	switch line.Type {
	case "thread.started":
		r.Session = line.ThreadID
	case "turn.failed":
		r.Failure = cmp.Or(errorText(line.Error.Message), r.Failure, "it says no reason")
	case "error":
		r.Failure = errorText(line.Message)
	case "turn.completed":
		r.Failure = "" // of a try before
		r.endTurn(r.last)
	case "item.completed":
		readCodexItem(r, line)
	}
}

func readCodexItem(r *report, line codexLine) {
	switch i := line.Item; i.Type {
	case "agent_message":
		r.addText(i.Text)
		r.last = i.Text
	case "command_execution":
		r.addCall("shell", i.Command)
		r.addResult(i.Output)
	case "file_change":
		r.addCall("apply_patch", string(i.Changes))
	case "mcp_tool_call":
		r.addCall(i.Server+"."+i.Tool, "")
	case "web_search":
		r.addCall("web_search", i.Query)
	case "error": // a warning, as that it knows nothing of the model
		if r.tell != nil {
			r.tell(i.Message)
		}
	}
}

// finishCodex takes the answer from the file that codex writes its last message into; what came
// by lines is the same, where there is no file.
func finishCodex(r *report, c call, _ string) {
	root, err := os.OpenRoot(c.Temp)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	b, err := regular.Read(root, strings.TrimPrefix(c.answerFile(), c.Temp+"/"), maxOutput)
	if err == nil && r.Failure == "" {
		r.endTurn(string(b))
	}
}

// errorText is what a provider's error in JSON says, or the text itself.
func errorText(s string) string {
	code, message := dialect.ErrorMessage([]byte(s))
	if message == "" {
		return s
	}
	return strings.TrimSpace(code + " " + message)
}
