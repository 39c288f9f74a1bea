package forge

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/modeltest"
)

// envAgents is the folder of the real agent CLIs, as .ci/agents/install prints it.
const envAgents = "UWF_AGENTS_BIN"

// TestRealAgents: real agent CLIs solve the demo's issue, from its label to the pull request, by
// the workflow file that uwf init writes for each, run by act; confined, and with no network but
// the gateway. The model is package modeltest's: it speaks what the agent does, or chat alone.
// Changed in the file are the provider and the step that installs the program, which is here.
func TestRealAgents(t *testing.T) {
	act, bin := os.Getenv(envAct), os.Getenv(envAgents)
	if act == "" || bin == "" {
		t.Skipf("with the real agent CLIs only: .ci/run agents, which sets %s and %s", envAct, envAgents)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for agent, native := range map[string]modeltest.Wire{"claude-code": modeltest.Messages, "codex": modeltest.Responses} {
		for _, wire := range []modeltest.Wire{native, modeltest.Chat} {
			t.Run(agent+" by "+string(wire), func(t *testing.T) { solveByAgent(t, act, agent, wire) })
		}
	}
}

// whatAgentSees is what the developer's tool tells of where it runs, beside its work: its
// environment and that of each process that it may look into, and whether it reaches the forge.
const whatAgentSees = `{ id; env; cat /proc/*/environ | tr '\000' '\n'; curl -sS -m 5 FORGE/; (exec 3<>/dev/tcp/HOST) && echo REACHED; } > seen.txt 2>&1; true`

func solveByAgent(t *testing.T, act, agent string, wire modeltest.Wire) {
	t.Helper()
	model := &modeltest.Server{Key: aSecret, Wires: []modeltest.Wire{wire}, Roles: map[string]string{"planner": "[[plain]]", "reviewer": "[[plain]]"}}
	s := httptest.NewServer(model)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	kind, url := "openai", s.URL+"/v1"
	if wire == modeltest.Messages {
		kind, url = "anthropic", s.URL
	}
	shipped, err := os.ReadFile(filepath.Join("../../internal/initialize/testdata", agent+".yml"))
	if err != nil {
		t.Fatal(err)
	}
	file := string(shipped)
	for pattern, text := range map[string]string{`npm install -g \S+`: "true", `provider: \S+`: "provider: fake"} {
		if !regexp.MustCompile(pattern).MatchString(file) {
			t.Fatalf("the file of %s has no %s", agent, pattern)
		}
		file = regexp.MustCompile(pattern).ReplaceAllString(file, text)
	}
	config := fmt.Sprintf("state: {remote: origin}\nproviders: {fake: {kind: %s, baseUrl: %q, wires: [%s], apiKeyEnv: FAKE_API_KEY}}\n"+
		"models: {m: {provider: fake, name: fake-model, window: 200000, maxOutput: 8192, price: {input: 1, output: 1}}}\ndefaultModel: m\ndefaultAgent: %s\n"+
		"sandbox: require\nconfine: {network: gateway}\n%s", kind, url, wire, agent, quickCheck)
	c := newCI(t, ciOptions{config: config, files: map[string]string{ciWorkflow: file}})
	host := strings.TrimPrefix(c.forge.URL, "http://")
	sees := strings.NewReplacer("FORGE", c.forge.URL, "HOST", strings.Replace(host, ":", "/", 1)).Replace(whatAgentSees)
	work := "echo " + base64.StdEncoding.EncodeToString([]byte(fixed)) + " | base64 -d > slug/slug.go; echo " + base64.StdEncoding.EncodeToString([]byte(sees)) + " | base64 -d | bash"
	model.Roles["developer"] = "[[run " + work + "]]"
	a := newActor(c, act)
	a.standIn("exit 1", regexp.MustCompile(`actions/(?:up|down)load-artifact@[0-9a-f]{40}`).FindAllString(file, -1)...)
	a.standIn("true", regexp.MustCompile(`actions/setup-node@[0-9a-f]{40}`).FindAllString(file, -1)...)
	n := c.issue()
	a.run(c.forge.PutLabel("alice", n, "uwf"), "planner → ready")
	a.settle()
	c.solved(n, 3)
	seen := c.git("show", c.pull(n).Pull.Head+":seen.txt")
	if !strings.Contains(seen, "PATH=") || strings.Contains(seen, "REACHED") || strings.Contains(seen, aSecret) {
		t.Errorf("the agent's tool sees:\n%s", seen)
	}
	if objects := c.git("cat-file", "--batch-all-objects", "--batch"); strings.Contains(objects, aSecret) {
		t.Error("the key is in an object of the repository")
	}
	for _, r := range model.Requests() {
		if r.Status != 200 && r.Wire != "" {
			t.Errorf("the model answered %d to %s:\n%s", r.Status, r.URL, r.Body)
		}
	}
}
