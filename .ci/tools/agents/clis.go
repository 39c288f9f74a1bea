package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// cli is how one of them is run.
type cli struct {
	program, pkg string
	// flagsAt is where in argv flags begin.
	flagsAt int
	// argv is the command line of the first run, or of one that goes on with a session.
	argv func(r *run, session string) []string
	env  func(r *run) []string
	// session finds the id of the session that a run made.
	session func(r *run, stdout string) string
	more    []record
}

const chosen = "11111111-2222-4333-8444-555555555555"

func dropEnv(r *run, name string) {
	for i, v := range r.env {
		if len(v) > len(name) && v[:len(name)+1] == name+"=" {
			r.env = append(r.env[:i:i], r.env[i+1:]...)
			return
		}
	}
}

func sessionIn(expr string) func(*run, string) string {
	return func(_ *run, stdout string) string {
		if m := regexp.MustCompile(expr).FindStringSubmatch(stdout); m != nil {
			return m[1]
		}
		return ""
	}
}

func sessionChosen(*run, string) string { return chosen }

var clis = []cli{
	{
		program: "claude", pkg: "@anthropic-ai/claude-code", flagsAt: 1, session: sessionChosen,
		argv: func(_ *run, session string) []string {
			argv := []string{"claude", "-p", "--output-format", "stream-json", "--verbose", "--model", "m", "--dangerously-skip-permissions", "--setting-sources", "user", "--strict-mcp-config"}
			if session != "" {
				return append(argv, "--resume", session)
			}
			return append(argv, "--session-id", chosen)
		},
		env: func(r *run) []string {
			return []string{"ANTHROPIC_BASE_URL=" + r.url, "ANTHROPIC_API_KEY=key", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_MAX_RETRIES=0",
				"CLAUDE_CODE_MAX_CONTEXT_TOKENS=200000", "CLAUDE_CODE_MAX_OUTPUT_TOKENS=8192", "DISABLE_AUTOUPDATER=1"}
		},
		more: []record{
			{name: "as-root", prompt: "Do it.", change: func(r *run) { dropEnv(r, "IS_SANDBOX") }},
			{name: "json", prompt: "Do it.", change: func(r *run) {
				r.argv = slices.DeleteFunc(r.argv, func(a string) bool { return a == "--verbose" })
				r.argv[slices.Index(r.argv, "stream-json")] = "json"
			}},
			{name: "max-turns", prompt: "Do it.", change: func(r *run) { r.argv = append(r.argv, "--max-turns", "1") }},
			{name: "session-taken", prompt: "Do it.", after: "tool", change: func(r *run) { r.argv = r.cli.argv(r, "") }},
		},
	},
	{
		program: "codex", pkg: "@openai/codex", flagsAt: 2, session: sessionIn(`"thread_id":"([^"]+)"`),
		argv: func(r *run, session string) []string {
			argv := []string{"codex", "exec"}
			if session != "" {
				argv = append(argv, "resume")
			}
			argv = append(argv, "--json", "-m", "m", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "-o", filepath.Join(r.dir, "last.md"))
			for _, c := range []string{"model_provider=uwf", "model_providers.uwf.name=uwf", `model_providers.uwf.base_url="` + r.url + `/v1"`,
				"model_providers.uwf.env_key=OPENAI_API_KEY", "model_providers.uwf.wire_api=responses", "model_providers.uwf.request_max_retries=0",
				"model_providers.uwf.stream_max_retries=0", "project_doc_max_bytes=0", "skills.include_instructions=false", "analytics.enabled=false", "check_for_update_on_startup=false"} {
				argv = append(argv, "-c", c)
			}
			argv = append(argv, "--ignore-rules", "--disable", "hooks")
			if session != "" {
				argv = append(argv, session)
			}
			return append(argv, "-")
		},
		env: func(*run) []string { return []string{"OPENAI_API_KEY=key"} },
	},
	{
		program: "copilot", pkg: "@github/copilot", flagsAt: 1, session: sessionChosen,
		argv: func(r *run, session string) []string {
			if session == "" {
				session = chosen
			}
			return []string{"copilot", "--output-format", "json", "--allow-all", "--no-ask-user", "--no-custom-instructions", "--disable-builtin-mcps",
				"--no-remote", "--no-auto-update", "--no-color", "--session-id", session}
		},
		env: func(r *run) []string {
			return []string{"COPILOT_PROVIDER_BASE_URL=" + r.url + "/v1", "COPILOT_PROVIDER_API_KEY=key", "COPILOT_MODEL=m", "COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false"}
		},
	},
	{
		program: "opencode", pkg: "opencode-ai", flagsAt: 2, session: sessionIn(`"sessionID":"([^"]+)"`),
		argv: func(_ *run, session string) []string {
			argv := []string{"opencode", "run", "--format", "json", "--auto", "--pure", "--title", "uwf", "-m", "uwf/m"}
			if session != "" {
				argv = append(argv, "--session", session)
			}
			return argv
		},
		env: func(r *run) []string {
			env := []string{"OPENAI_API_KEY=key", `OPENCODE_CONFIG_CONTENT={"model":"uwf/m","small_model":"uwf/m","enabled_providers":["uwf"],"autoupdate":false,"share":"disabled","snapshot":false,"permission":{"*":"allow"},` +
				`"provider":{"uwf":{"npm":"@ai-sdk/openai-compatible","name":"uwf","options":{"baseURL":"` + r.url + `/v1","apiKey":"{env:OPENAI_API_KEY}"},"models":{"m":{"limit":{"context":200000,"output":8192}}}}}}`}
			for _, what := range []string{"PROJECT_CONFIG", "CLAUDE_CODE", "EXTERNAL_SKILLS", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "MODELS_FETCH", "AUTOUPDATE", "FILEWATCHER"} {
				env = append(env, "OPENCODE_DISABLE_"+what+"=1")
			}
			return env
		},
	},
	{
		program: "qwen", pkg: "@qwen-code/qwen-code", flagsAt: 1, session: sessionIn(`"session_id":"([^"]+)"`),
		argv: func(_ *run, session string) []string {
			argv := []string{"qwen", "--output-format", "json", "--yolo", "--bare", "--auth-type", "openai", "-m", "m"}
			if session != "" {
				argv = append(argv, "--resume", session)
			}
			return argv
		},
		env: func(r *run) []string {
			return []string{"OPENAI_API_KEY=key", "OPENAI_BASE_URL=" + r.url + "/v1", "OPENAI_MODEL=m", "QWEN_CODE_SUPPRESS_YOLO_WARNING=1"}
		},
	},
	{
		program: "gemini", pkg: "@google/gemini-cli", flagsAt: 1, session: sessionChosen,
		argv: func(_ *run, session string) []string {
			argv := []string{"gemini", "--output-format", "json", "--yolo", "--skip-trust", "-m", "m"}
			if session != "" {
				return append(argv, "--resume", session)
			}
			return append(argv, "--session-id", chosen)
		},
		env: func(r *run) []string {
			settings := `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"general":{"enableAutoUpdate":false,"enableAutoUpdateNotification":false}}`
			if err := os.WriteFile(filepath.Join(r.home, ".gemini/settings.json"), []byte(settings), 0o600); err != nil {
				panic(err)
			}
			return []string{"GEMINI_API_KEY=key", "GOOGLE_GEMINI_BASE_URL=" + r.url}
		},
		more: []record{
			{name: "untrusted", prompt: "Do it.", change: func(r *run) {
				r.argv = r.argv[:0:0]
				r.argv = append(r.argv, "gemini", "--output-format", "json", "--yolo", "-m", "m")
			}},
		},
	},
}
