package forge

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/examples"
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

func shippedFile(t *testing.T, name string) string {
	t.Helper()
	text, err := fs.ReadFile(examples.Files, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fakeCopilot prints what copilot does with --output-format json (agents/cli/testdata), for each
// of solve-issue's roles. It wants a token of GitHub's, and no provider.
const fakeCopilot = `#!/bin/sh
case "$*" in *--version*) mkdir -p "$HOME/.cache/copilot"; echo 1.0.102; exit ;; esac
prompt=$(cat)
if [ -n "$COPILOT_PROVIDER_BASE_URL" ] || ! [ "$COPILOT_GITHUB_TOKEN" ]; then echo "Error: No authentication information found." >&2; exit 1; fi
say() { printf '{"type":"assistant.message","data":{"content":"---\\n$status: %s\\n---\\nDone with %s.\\n","toolRequests":[]}}\n' "$1" "$COPILOT_GITHUB_TOKEN"; }
case $prompt in
*"# Your role: planner"*) say 'ready\nplan: Write one dash.\nfiles: [slug/slug.go]' ;;
*"# Your role: developer"*) echo FIXED | base64 -d > slug/slug.go; say 'done\nsummary: Single dashes.\ntests: they pass' ;;
*) say 'approved\nsummary: Single dashes.' ;;
esac
`

// TestJobLogin: copilot asks GitHub's servers with the job's own token, in the first of two jobs.
// The token is the agent's to hold, and nobody else gets to see it.
func TestJobLogin(t *testing.T) {
	t.Parallel()
	files := map[string]string{ciWorkflow: strings.NewReplacer("          provider: openai\n", "", "          api-key: ${{ secrets.OPENAI_API_KEY }}\n", "",
		"      # models: read # for provider: github-models\n", "      copilot-requests: write\n").Replace(shippedFile(t, "github/two-jobs.yml"))}
	config := "state: {remote: origin}\nagents: {copilot: {login: job}}\ndefaultAgent: copilot\n" + quickCheck
	newJobs := func(t *testing.T, config string, files map[string]string) *ci {
		t.Helper()
		c := newCI(t, ciOptions{config: config, files: files})
		bin := filepath.Join(c.dir, "bin")
		c.check(os.MkdirAll(bin, 0o755)) //nolint:gosec // as an agent's program
		for _, name := range []string{"copilot", "codex"} {
			c.check(os.WriteFile(filepath.Join(bin, name), []byte(strings.Replace(fakeCopilot, "FIXED", base64.StdEncoding.EncodeToString([]byte(fixed)), 1)), 0o755)) //nolint:gosec // a program
		}
		c.env = append(c.env, "PATH="+bin+":"+os.Getenv("PATH"))
		return c
	}
	t.Run("two jobs", func(t *testing.T) {
		c := newJobs(t, config, files)
		n := c.issue()
		agent, commit := c.pair(c.forge.PutLabel("alice", n, "uwf"))
		c.green(agent, commit)
		c.green(c.settlePairs()...)
		c.solved(n, 3)
		if !slices.ContainsFunc(c.jobs, func(j *ciJob) bool { return strings.Contains(j.log, "agent copilot uses the job's own token") }) {
			t.Error("it is not said whose token the agent has")
		}
		if objects := c.git("cat-file", "--batch-all-objects", "--batch"); strings.Contains(objects, "Done with ghs_") || !strings.Contains(objects, "Done with ") {
			t.Error("what the agent says is not there, or with the token in it")
		}
	})
	for name, row := range map[string]struct {
		config string
		files  map[string]string
		says   string
	}{
		"one job":          {config, nil, "login is job, which is for the first of the two jobs"},
		"another agent":    {strings.ReplaceAll(config, "copilot", "codex"), files, "its program takes no token of a job"},
		"the program":      {strings.Replace(config, "{login", "{command: copilot, login", 1), files, "its program takes no token of a job"},
		"cost limit":       {config + "limits: {costUsd: 1}\n", files, "neither counted nor bounded"},
		"a person's token": {config, files, "input token is not the job's own"},
		"gateway alone":    {config + "confine: {network: gateway}\n", files, "confine.network: gateway does not allow"},
		"a user's login":   {strings.ReplaceAll(config, "job", "own"), files, "may not lend a login of the user's"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newJobs(t, row.config, row.files)
			switch name {
			case "gateway alone":
				c.with["sandbox"] = "require"
			case "a person's token":
				c.with["token"] = c.forge.UserToken("alice")
			}
			labelled := c.forge.PutLabel("alice", c.issue(), "uwf")
			if row.files == nil {
				c.start(labelled)
				c.settle()
			} else {
				c.pair(labelled)
				c.settlePairs()
			}
			said := func(j *ciJob) bool { return j.code != 0 && strings.Contains(j.log, row.says) }
			if !slices.ContainsFunc(c.jobs, said) || len(c.forge.Pulls()) > 0 {
				t.Errorf("no job fails with %q: %v", row.says, c.jobs)
			}
		})
	}
}
