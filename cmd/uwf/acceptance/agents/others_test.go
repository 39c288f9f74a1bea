package agents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/acp"
	"github.com/united-workforce/uwf/agents/cli"
	"github.com/united-workforce/uwf/internal/testmode"
)

// TestOthers runs agents that are no command lines through the rows that have to do with them:
// uwf's own, and the servers of the Agent Client Protocol that are real here; and servers and
// clients of the Model Context Protocol, and the SDKs of models, through theirs.
func TestOthers(t *testing.T) {
	others := []cli.CLI{{Name: "builtin", Wires: []string{"messages"}}}
	real := os.Getenv("UWF_AGENTS_BIN") != ""
	if real {
		for _, s := range acp.All() {
			if !s.Untested() {
				others = append(others, cli.CLI{Name: s.Name, Program: s.Program, Wires: s.Wires})
			}
		}
	}
	for _, agent := range others {
		t.Run(agent.Name, func(t *testing.T) {
			for _, row := range rows {
				if slices.Contains([]string{"no program", "other version", "planted"}, row.name) || agent.Program == "" && row.name == "crash" {
					continue // of command lines; a control, and a program that could crash, there is none
				}
				t.Run(row.name, func(t *testing.T) {
					switch {
					case real:
					case row.real && (row.name != "confined" || !testmode.HasProcesses()):
						t.Skip("takes half a minute: .ci/run agents")
					default:
						t.Parallel()
					}
					h := newHouse(t, agent, row.files)
					h.acp = agent.Program != ""
					row.run(h)
					h.keepsNoKey()
				})
			}
		})
	}
	t.Run("modelcontextprotocol", func(t *testing.T) {
		if !real {
			t.Skip("with the real servers and clients only: .ci/run agents")
		}
		testMCP(t, os.Getenv("UWF_AGENTS_BIN"))
	})
	t.Run("sdk", func(t *testing.T) {
		if !real {
			t.Skip("with the real SDKs only: .ci/run agents")
		}
		testSDKs(t, os.Getenv("UWF_AGENTS_BIN"))
	})
}

// TestSmallWindow: a model whose window a program fills at once is refused by name, before there is
// a thread.
func TestSmallWindow(t *testing.T) {
	t.Parallel()
	claude, _ := cli.Find("claude-code")
	h := newHouse(t, claude, nil)
	h.write("uwf-home/config.yaml", strings.Replace(h.config("", ""), "window: 200000", "window: 16000", 1))
	h.start("thread", "start", "flow", "-p", "Do it.", "--agent", "claude-code").ends(2).says("agent claude-code", "16000 tokens", "needs 32000")
	h.start("run", "flow", "-p", "Do it.").ends(2).says("needs 32000")
	h.start("doctor", "--offline").ends(0, 1).says("needs 32000")
	if refs := h.git("for-each-ref", "refs/uwf"); refs != "" || len(h.asked()) != 0 {
		t.Errorf("there is %q, and %d requests", refs, len(h.asked()))
	}
}

// TestKilledWithParent: a tool's processes end with uwf, even where it is killed.
func TestKilledWithParent(t *testing.T) {
	claude, _ := cli.Find("claude-code")
	for _, agent := range []cli.CLI{claude, {Name: "builtin", Wires: []string{"messages"}}} {
		t.Run(agent.Name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, agent, nil)
			word := h.word()
			j := h.step("Do it. [[run touch " + h.dir + "/started; sleep " + word + "]]")
			h.await(filepath.Join(h.dir, "started"), j)
			h.check(j.cmd.Process.Kill())
			j.ends(-1)
			h.awaitNone(word)
		})
	}
}
