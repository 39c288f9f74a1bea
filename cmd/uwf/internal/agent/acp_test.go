package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/agenttest"
)

// server answers each line of the client in order: a server of the protocol in shell.
const server = `#!/bin/sh
read -r line; echo '{"id":1,"result":{"protocolVersion":1}}'
read -r line; echo '{"id":2,"result":{"sessionId":"s"}}'
case $line in *'"_meta":{"a":1}'*) note="meta $ADDRESS $1";; esac
read -r line
case $line in *'"modeId":"yolo"'*) ;; *) exit 3;; esac
echo '{"id":3,"result":{}}'
read -r line
echo '{"id":0,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"yes","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]}}'
read -r line
case $line in *'"optionId":"yes"'*) note="$note allowed";; *'"optionId":"no"'*) note="$note rejected";; esac
printf '%s\n' '{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"---\n$status: done\nnote: '"$note"'\n---\n"}}}}'
echo '{"id":4,"result":{"stopReason":"end_turn"}}'
read -r line
`

func TestACP(t *testing.T) {
	program := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(program, []byte(server), 0o755); err != nil {
		t.Fatal(err)
	}
	task := agenttest.Task(t)
	flags := []string{"acp", "--mode", "yolo", "--meta", `{"a":1}`, "--env", "ADDRESS=$UWF_GATEWAY_URL/v1"}
	last := []string{"--", "server", "arg", agenttest.Thread, agenttest.Role}
	for _, tt := range []struct {
		args        []string
		note, fails string
	}{
		{slices.Concat(flags, last), "meta http://127.0.0.1:7/v1 arg allowed", ""},
		{slices.Concat(flags, []string{"--permissions", "reject"}, last), "meta http://127.0.0.1:7/v1 arg rejected", ""},
		{slices.Concat(flags, []string{"--permissions", "ask"}, last), "", "--permissions ask: it is allow or reject"},
		{slices.Concat(flags, []string{"--meta", "[1]"}, last), "", "--meta [1]: it is no JSON object"},
		{slices.Concat(flags, []string{"--mode", "other"}, last), "", "server: session/set_mode"},
		{[]string{"acp", "server", agenttest.Thread, agenttest.Role}, "", "the program stands after --; got 3 arguments"},
		{[]string{"acp", "--", agenttest.Thread, agenttest.Role}, "", "the program stands after --; got 2 arguments"},
		{[]string{"acp", "a", "--", "server", agenttest.Thread, agenttest.Role}, "", "the program stands after --"},
		{[]string{"cursor", agenttest.Thread, agenttest.Role}, "", "cursor-agent talks to the servers of its makers alone"},
	} {
		p := agenttest.NewProcess(t, task, agents.EnvProgram+"="+program, "HOME="+t.TempDir(), "TMPDIR="+t.TempDir(), "UWF_GATEWAY_URL=http://127.0.0.1:7")
		err := uwf(t, p, "", tt.args...)
		if tt.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%v: %v, want %q", tt.args, err, tt.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", tt.args, err)
			continue
		}
		if output, ok := p.Nodes(t)[p.Step(t).Output].Payload.(map[string]any); !ok || output["note"] != tt.note {
			t.Errorf("%v: %v", tt.args, output)
		}
	}
}

// The parent finds out which program of somebody else's an agent runs.
func TestForeignServer(t *testing.T) {
	for _, tt := range []struct {
		name, argv, program string
	}{
		{"acp", "uwf agent acp --mode yolo -- ./server --acp", "./server"},
		{"acp", "uwf agent acp --", ""},
		{"acp", "uwf agent acp server", ""},
		{"goose", "uwf agent goose", "goose"},
		{"opencode-acp", "uwf agent opencode-acp", "opencode"},
		{"codex", "uwf agent codex", "codex"},
		{"builtin", "uwf agent builtin", ""},
	} {
		got, ok := Foreign(tt.name, strings.Fields(tt.argv))
		if got.Program != tt.program || ok != (tt.program != "") {
			t.Errorf("%s: %+v %v", tt.argv, got, ok)
		}
		if !slices.Contains(Names(), tt.name) {
			t.Errorf("%s is no name of an agent", tt.name)
		}
	}
}
