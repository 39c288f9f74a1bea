package cli

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/program"
)

// newCopilot is GitHub's CLI. With a provider of its own it needs no login at GitHub, and asks
// nothing of GitHub's servers.
func newCopilot() CLI {
	return CLI{
		Name: "copilot", Program: "copilot", Title: "GitHub Copilot CLI", Package: "@github/copilot",
		Versions: program.Range{Min: "1.0.102", Tested: "1.0.102"}, Wires: []string{"chat"}, Token: "COPILOT_GITHUB_TOKEN",
		Seed: &agents.Seed{Args: []string{"--version"}, Folder: ".cache/copilot"},
		argv: copilotArgs, environ: copilotEnviron, files: func(c call) map[string]string { return serverFile(c, "url") }, read: readCopilot,
	}
}

func copilotArgs(c call) []string {
	args := []string{"--output-format", "json", "--allow-all", "--no-ask-user", "--no-custom-instructions", "--disable-builtin-mcps",
		"--no-remote", "--no-auto-update", "--no-color", "--session-id", c.Session} // resumes one that is there
	if len(c.MCP) > 0 {
		args = append(args, "--additional-mcp-config", "@"+c.Home+"/"+mcpFile)
	}
	return args
}

func copilotEnviron(c call) []string {
	env := []string{"COPILOT_AUTO_UPDATE=false", "COPILOT_HOME=" + c.Home + "/.copilot"}
	if c.URL == "" {
		return env
	}
	env = append(env, "COPILOT_PROVIDER_TYPE=openai", "COPILOT_PROVIDER_WIRE_API=completions", "COPILOT_PROVIDER_BASE_URL="+c.openAIBase(),
		"COPILOT_PROVIDER_API_KEY="+c.Key, "COPILOT_MODEL="+c.Model, "COPILOT_OFFLINE=true")
	if c.Window > 0 {
		env = append(env, "COPILOT_PROVIDER_MAX_PROMPT_TOKENS="+strconv.Itoa(max(c.Window-c.Output, 1)))
	}
	if c.Output > 0 {
		env = append(env, "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS="+strconv.Itoa(c.Output))
	}
	return env
}

type copilotLine struct {
	Type string `json:"type"`
	Data struct {
		Content      string `json:"content"`
		Delta        string `json:"deltaContent"`
		Message      string `json:"message"`
		ToolRequests []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolRequests"`
		Result struct {
			Content string `json:"content"`
		} `json:"result"`
	} `json:"data"`
}

func readCopilot(r *report, raw []byte) {
	var line copilotLine
	if !r.decodeLine(raw, &line) {
		return
	}
	switch line.Type {
	case "assistant.turn_start":
		r.Over = false
	case "assistant.message_delta": // of a message that was cut there is nothing more
		r.said += line.Data.Delta
	case "assistant.message":
		said := cmp.Or(r.said, line.Data.Content) // the deltas of this message are in it
		r.addText(line.Data.Content)
		r.said = said
		for _, t := range line.Data.ToolRequests {
			r.addCall(t.Name, string(t.Arguments))
		}
		r.last, r.Failure = "", "" // of a try before
		if len(line.Data.ToolRequests) == 0 {
			r.last = line.Data.Content
		}
	case "assistant.idle":
		r.endTurn(r.last)
	case "tool.execution_complete":
		r.addResult(line.Data.Result.Content)
	case "session.error":
		r.failTurn(errorText(line.Data.Message))
	}
}
