// Package cli runs the coding agents that people have as command lines: Claude Code, Codex and
// others. A CLI is data (command line, environment, files in HOME) and a parser of what it
// prints; one piece spawns it, resumes its session for a correction, and takes its answer. Facts
// about each CLI were seen in runs of the version that its Range ends with.
//
// It never gives a CLI a provider's key, a HOME that is a person's, or the workspace's own
// settings for such tools. What a run costs is counted by the gateway, never by the CLI.
package cli

import (
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/gateway/mcp"
	"github.com/united-workforce/uwf/agents/program"
	"github.com/united-workforce/uwf/engine/task"
)

// CLI is a coding agent with a command line.
type CLI struct {
	Name    string // of the agent, as in "claude-code"
	Program string // as in "claude"
	Title   string // as people know it
	// Package is that of npm, and Versions are those that were tried.
	Package  string
	Versions program.Range
	// Wires are the APIs that it speaks, the best first, by the names of providers' wires.
	Wires []string
	// Window is the least of a model in tokens with which it works; 0: it works with any.
	Window int
	// Credential is the file below HOME with its own login; empty: it has none that can be lent.
	Credential string
	// Token is the variable that takes a token in that file's place; empty: none does.
	Token string
	// Hide are names of files of a workspace that it obeys whatever it is told.
	Hide []string
	// Seed makes what a HOME needs that is slow to make, without a workspace; nil: nothing.
	Seed *agents.Seed

	argv    func(c call) []string                  // without the program
	environ func(c call) []string                  // NAME=value
	files   func(c call) map[string]string         // below HOME
	read    func(r *report, line []byte)           // one line of stdout
	whole   bool                                   // stdout is one JSON value, not a line each
	finish  func(r *report, c call, stderr string) // after its end; nil: nothing
}

// call is one run of a CLI.
type call struct {
	Session string // chosen by us; a CLI that chooses itself: as its first run said
	Resume  bool
	Model   string // as the gateway knows it; empty: the CLI's own choice
	Window  int    // tokens; 0: unknown
	Output  int    // tokens; 0: unknown
	URL     string // the gateway's, without a version; empty: the CLI's own login
	Key     string // for the gateway
	Home    string
	Temp    string
	MCP     []mcp.Address
	Root    bool // this process is root
}

// answerFile is the file that a CLI may put its last answer into.
func (c call) answerFile() string { return filepath.Join(c.Temp, "uwf-answer.md") }

// openAIBase is the gateway's address for OpenAI's clients.
func (c call) openAIBase() string { return c.URL + "/v1" }

// All are the CLIs, in the order in which people are shown them.
func All() []CLI {
	return []CLI{newClaudeCode(), newCodex(), newCopilot(), newOpenCode(), newQwenCode(), newGeminiCLI()}
}

// Find finds a CLI by its agent's name.
func Find(name string) (CLI, bool) {
	all := All()
	i := slices.IndexFunc(all, func(c CLI) bool { return c.Name == name })
	if i < 0 {
		return CLI{}, false
	}
	return all[i], true
}

// Install is the command that installs the version that was tried last.
func (c CLI) Install() string { return "npm install -g " + c.Package + "@" + c.Versions.Tested }

// Foreign is what the parent of such an agent has to know.
func (c CLI) Foreign() agents.Foreign {
	return agents.Foreign{Program: c.Program, Install: c.Install(), Tried: c.Versions, Window: c.Window, Credential: c.Credential, Token: c.Token, Hide: c.Hide, Seed: c.Seed}
}

// newCall is what is the same in each run of a step.
func newCall(s *agents.Session, root bool) call {
	c := call{
		URL: s.Getenv(envURL), Key: s.Getenv(envKey), Home: s.Getenv("HOME"), Temp: s.Getenv("TMPDIR"), Root: root,
		MCP: mcp.ReadAddresses(s.Getenv(mcp.EnvServers)),
	}
	if m := s.Task.Model; m != nil && c.URL != "" {
		c.useModel(m)
	}
	return c
}

func (c *call) useModel(m *task.Model) { c.Model, c.Window, c.Output = m.Alias, m.Window, m.MaxOutput }
