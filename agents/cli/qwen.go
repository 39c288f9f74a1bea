package cli

import (
	"encoding/json"

	"github.com/united-workforce/uwf/agents/program"
)

// newQwenCode is Alibaba's CLI. --bare leaves out hooks, skills, the files that instruct it and
// all MCP servers but those of --mcp-config. What it prints has the form of Claude Code's lines, as one list.
func newQwenCode() CLI {
	return CLI{
		Name: "qwen-code", Program: "qwen", Title: "Qwen Code", Package: "@qwen-code/qwen-code",
		Versions: program.Range{Min: "0.24.4", Tested: "0.24.4"}, Wires: []string{"chat"},
		Credential: ".qwen/oauth_creds.json",
		argv:       qwenArgs, environ: qwenEnviron, read: readQwen, whole: true,
		files: func(c call) map[string]string { return serverFile(c, "httpUrl") },
	}
}

func qwenArgs(c call) []string {
	args := []string{"--output-format", "json", "--yolo", "--bare"}
	if c.URL != "" {
		args = append(args, "--auth-type", "openai", "-m", c.Model)
	}
	if len(c.MCP) > 0 {
		args = append(args, "--mcp-config", c.Home+"/"+mcpFile)
	}
	if c.Resume {
		args = append(args, "--resume", c.Session)
	}
	return args
}

func qwenEnviron(c call) []string {
	env := []string{"QWEN_CODE_SUPPRESS_YOLO_WARNING=1", "QWEN_HOME=" + c.Home + "/.qwen"}
	if c.URL != "" {
		env = append(env, "OPENAI_API_KEY="+c.Key, "OPENAI_BASE_URL="+c.openAIBase(), "OPENAI_MODEL="+c.Model)
	}
	return env
}

func readQwen(r *report, raw []byte) {
	var all []json.RawMessage
	if !r.decodeLine(raw, &all) {
		return
	}
	for _, line := range all {
		readClaude(r, line)
	}
}
