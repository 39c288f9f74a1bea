package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/examples"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/forgetest"
	"github.com/united-workforce/uwf/internal/outage"
	"github.com/united-workforce/uwf/internal/wiretest"
)

func shipped(t *testing.T, name string) []byte {
	t.Helper()
	b, err := fs.ReadFile(examples.Files, name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// files are a repository's as `uwf init` leaves them.
func files(t *testing.T) fstest.MapFS {
	t.Helper()
	return fstest.MapFS{
		".github/workflows/uwf.yml":       {Data: shipped(t, "github/uwf.yml")},
		".github/workflows/ci.yml":        {Data: []byte("on: push\njobs: {test: {runs-on: x, steps: [{uses: actions/checkout@v6}]}}\n")},
		".uwf/config.yaml":                {Data: []byte("state:\n  remote: origin\n")},
		".uwf/workflows/solve-issue.yaml": {Data: shipped(t, "solve-issue.yaml")},
	}
}

// found is a finding by its check.
func found(t *testing.T, list []Finding, check string) Finding {
	t.Helper()
	for _, f := range list {
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("no finding about %s in %+v", check, list)
	return Finding{}
}

func wants(t *testing.T, list []Finding, check string, s State, words string) {
	t.Helper()
	f := found(t, list, check)
	if f.State != s || !strings.Contains(f.Detail+" "+f.Fix, words) {
		t.Errorf("%s: %s, want %s with %q: %s → %s", check, f.State, s, words, f.Detail, f.Fix)
	}
	if f.State == Missing && f.Fix == "" {
		t.Errorf("%s is missing, and nothing says what to do", check)
	}
}

// What is installed is tried as agents would run it, and what does not work is told by its
// last words and what would open it.
func TestAgentsInUse(t *testing.T) {
	found := Check(t.Context(), Options{Offline: true, Agents: []Agent{
		{Name: "codex", Program: "/bin/codex", Version: "0.169.0"}, {Name: "claude-code", Missing: `no program "claude" on PATH`, Install: "npm install -g c@1"}, {Name: "mine", Missing: "it is gone"},
	}})
	for i, want := range []Finding{
		{Check: "agent", State: OK, Required: true, Detail: "codex runs /bin/codex 0.169.0"},
		{Check: "agent", State: Missing, Detail: `claude-code can't run here: no program "claude" on PATH`, Fix: "npm install -g c@1"},
		{Check: "agent", State: Missing, Detail: "mine can't run here: it is gone", Fix: "uwf agent check mine"},
	} {
		if i >= len(found) || found[i] != want {
			t.Errorf("%+v, want %+v", found, want)
		}
	}
	if Failed(found) {
		t.Error("a job may have what this machine has not")
	}
}

func TestTools(t *testing.T) {
	try := func(_ context.Context, program string, _ ...string) (string, string, error) {
		switch program {
		case "node":
			return "v20.1.0\n", "", nil
		case "python3":
			return "first\n\x1b[31mcat: /h/.p: Permission denied\n", "confine.read: [/h/.p]", errors.New("exit status 1")
		case "cargo":
			return "", "", errors.New("it was killed")
		case "java":
			return "half\n", "", fmt.Errorf("%w: it had not ended", worker.ErrTrialTime)
		}
		return "", "", ErrNoTool
	}

	files := fstest.MapFS{"setup.py": {}, "sub/Cargo.toml": {}}
	for _, f := range Check(t.Context(), Options{Offline: true, TryTool: try, Files: files}) {
		if f.Check == "cargo" {
			t.Errorf("a tool is missing that nothing at the top wants: %+v", f)
		}
	}
	wants(t, Check(t.Context(), Options{Offline: true, TryTool: try, Files: files}), "python3", Missing, "does not work confined:")

	list := Check(t.Context(), Options{Offline: true, TryTool: try})
	wants(t, list, "node", OK, "works confined: v20.1.0")
	nameless := func(context.Context, string, ...string) (string, string, error) {
		return "A system error occurred: uv_os_get_passwd returned ENOENT\n", "", errors.New("exit status 1")
	}
	wants(t, Check(t.Context(), Options{Offline: true, TryTool: nameless}), "node", Missing, "useradd -u 60999 uwf-agent")
	wants(t, list, "python3", Missing, "does not work confined:")
	wants(t, list, "python3", Missing, "cat: /h/.p: Permission denied confine.read: [/h/.p]")
	wants(t, list, "cargo", Missing, "it was killed name the folders")
	wants(t, list, "java", Unknown, "it had not ended")
	if len(list) != 4 || Failed(list) || strings.Contains(fmt.Sprint(list), "first") || strings.Contains(fmt.Sprint(list), "\x1b") {
		t.Errorf("%+v", list)
	}
}

func TestFiles(t *testing.T) {
	const flow = ".github/workflows/uwf.yml"
	edit := func(old, text string) func(fstest.MapFS) {
		return func(m fstest.MapFS) {
			s := string(m[flow].Data)
			if !strings.Contains(s, old) {
				panic("the shipped file has no " + old)
			}
			m[flow] = &fstest.MapFile{Data: []byte(strings.Replace(s, old, text, 1))}
		}
	}
	called := func(old, text string) func(fstest.MapFS) {
		return func(m fstest.MapFS) {
			m[flow] = &fstest.MapFile{Data: shipped(t, "github/caller.yml")}
			m[".github/workflows/jobs.yml"] = &fstest.MapFile{Data: shipped(t, "github/reusable.yml")}
			edit(old, text)(m)
		}
	}
	for name, tt := range map[string]struct {
		change func(fstest.MapFS)
		check  string
		state  State
		words  string
	}{
		"as shipped": {func(fstest.MapFS) {}, "workflow", OK, flow},
		"two jobs":   {func(m fstest.MapFS) { m[flow] = &fstest.MapFile{Data: shipped(t, "github/two-jobs.yml")} }, "permissions", OK, ""},
		"another name": {func(m fstest.MapFS) {
			m[".github/workflows/agents.yaml"] = m[flow]
			delete(m, ".github/workflows/uwf.yml")
		}, "workflow", OK, "agents.yaml"},
		"gitea":   {func(m fstest.MapFS) { m[".gitea/workflows/uwf.yml"] = m[flow]; delete(m, ".github/workflows/uwf.yml") }, "workflow", OK, ".gitea"},
		"none":    {func(m fstest.MapFS) { delete(m, ".github/workflows/uwf.yml") }, "workflow", Missing, "uwf init"},
		"no YAML": {func(m fstest.MapFS) { m[flow] = &fstest.MapFile{Data: []byte("a: [")} }, "workflow", Missing, "can't be read"},
		"a bomb": {func(m fstest.MapFS) {
			m[flow] = &fstest.MapFile{Data: []byte("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\non: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\njobs: {step: {steps: [{uses: a/uwf@v1}]}}\n")}
		}, "triggers", Missing, "workflow_dispatch"},
		"no dispatch":              {edit("workflow_dispatch:\n", "workflow_call:\n"), "triggers", Missing, "no workflow_dispatch"},
		"an input lacks":           {edit("      head:\n", "      heads:\n"), "triggers", Missing, "the inputs head"},
		"no count":                 {edit("      rescued:\n", "      saved:\n"), "triggers", Missing, "the inputs rescued"},
		"nobody's name":            {edit("checks: read", "# nothing"), "permissions", Missing, "checks: read (job stopped)"},
		"no schedule":              {edit("schedule:\n", "watch:\n"), "triggers", Missing, "schedule"},
		"no right to push":         {edit("contents: write", "contents: read"), "permissions", Missing, "contents: write (job step)"},
		"no right to start":        {edit("actions: write", "# nothing"), "permissions", Missing, "actions: write"},
		"models need a right":      {edit("provider: openai\n          api-key: ${{ secrets.OPENAI_API_KEY }}", "provider: github-models"), "permissions", Missing, "models: read"},
		"all rights":               {edit("permissions: {}", "permissions: write-all"), "permissions", OK, ""},
		"an unknown key":           {edit("\njobs:\n", "\njob: {}\njobs:\n"), "syntax", Missing, `uwf.yml:52:1: unexpected key "job" for "workflow" section; did you mean jobs?`},
		"a job's":                  {edit("timeout-minutes", "timeout-minute"), "syntax", Missing, `unexpected key "timeout-minute" for "job" section; did you mean timeout-minutes?`},
		"a step's":                 {edit("        with:", "        args: x\n        with:"), "syntax", Missing, `unexpected key "args" for step to execute action`},
		"an unknown event":         {edit("issue_comment:", "issues_comment:"), "syntax", Missing, "did you mean issue_comment?"},
		"events as a list":         {edit("on:\n", "on: [issue, push]\nx:\n"), "syntax", Missing, `unknown Webhook event "issue"; did you mean issues?`},
		"one event":                {edit("on:\n", "on: issue\nx:\n"), "syntax", Missing, `unknown Webhook event "issue"`},
		"an unknown type":          {edit("[labeled, assigned]", "[labelled, assigned]"), "syntax", Missing, "did you mean labeled?"},
		"one type":                 {edit("[created]", "create"), "syntax", Missing, "did you mean created?"},
		"an unknown input":         {edit("api-key:", "apikey:"), "syntax", Missing, "did you mean api-key?"},
		"an unknown provider":      {edit("provider: openai", "provider: opnai"), "syntax", Missing, "did you mean openai?"},
		"a wrong value":            {edit("timeout: 45m", "timeout: 45"), "syntax", Missing, `job step: timeout is "45"`},
		"no config":                {func(m fstest.MapFS) { delete(m, ".uwf/config.yaml") }, "settings", Missing, "uwf init"},
		"a wrong config":           {func(m fstest.MapFS) { m[".uwf/config.yaml"] = &fstest.MapFile{Data: []byte("modles: {}\n")} }, "settings", Missing, "modles"},
		"no definition":            {func(m fstest.MapFS) { delete(m, ".uwf/workflows/solve-issue.yaml") }, "definitions", Missing, "nobody knows what"},
		"a wrong definition":       {func(m fstest.MapFS) { m[".uwf/workflows/b.yaml"] = &fstest.MapFile{Data: []byte("name: b\n")} }, "definitions", Missing, "uwf workflow validate"},
		"a caller":                 {called("", ""), "permissions", OK, flow + " gives its jobs what they need"},
		"a caller can be started":  {called("", ""), "triggers", OK, ""},
		"a caller by another name": {called("/uwf.yml@", "/agents.yml@"), "workflow", OK, flow},
		"a caller of its own file": {called("acme/.github/.github/workflows/uwf.yml@0123456789abcdef0123456789abcdef01234567", "./.github/workflows/jobs.yml"), "workflow", OK, flow},
		"a caller of others": {func(m fstest.MapFS) {
			m[flow] = &fstest.MapFile{Data: []byte("on: push\njobs: {a: {uses: acme/ci/.github/workflows/test.yml@v1}}\n")}
		}, "workflow", Missing, "no file below .github/workflows uses uwf"},
		"what is called alone":      {func(m fstest.MapFS) { m[flow] = &fstest.MapFile{Data: shipped(t, "github/reusable.yml")} }, "workflow", Missing, "no file below"},
		"a caller without an input": {called("      rescued:\n", "      saved:\n"), "triggers", Missing, "the inputs rescued, so no next job can be started add them below on.workflow_dispatch.inputs, or have it written anew: uwf init --reusable acme/.github/.github/workflows/uwf.yml@0123456789abcdef0123456789abcdef01234567 --force"},
		"a caller without a right":  {called("contents: write", "contents: read"), "permissions", Missing, "contents: write (job uwf)"},
		"a caller without a name":   {called("checks: read", "# nothing"), "permissions", Missing, "does not give checks: read, which tells in a called workflow's job stopped who cancelled the run: where it asks for that, GitHub starts no job at all"},
		"a caller with a key":       {called("    secrets:\n", "    timeout-minutes: 60\n    secrets:\n"), "syntax", Missing, `"timeout-minutes" is not available`},
	} {
		t.Run(name, func(t *testing.T) {
			m := files(t)
			tt.change(m)
			list := Check(t.Context(), Options{
				Files: m, Offline: true, StateRemote: true, Providers: []string{"openai", "anthropic", "github-models"},
				Inputs: []string{"provider", "api-key", "allow-shell", "timeout", "command", "needs"},
				CheckInputs: func(given map[string]string) error {
					if v := given["timeout"]; v != "45m" && v != "" {
						return fmt.Errorf("timeout is %q", v)
					}
					return nil
				},
			})
			wants(t, list, tt.check, tt.state, tt.words)
			if tt.check != "syntax" && slices.ContainsFunc(list, func(f Finding) bool { return f.Check == "syntax" && name != "no schedule" && name != "a bomb" }) {
				t.Errorf("%+v", list)
			}
		})
	}
	if list := Check(t.Context(), Options{Files: files(t), Offline: true, StateRemote: true}); Failed(list) || len(list) != 5 {
		t.Errorf("%+v", list)
	}
	wants(t, Check(t.Context(), Options{Files: files(t), Offline: true}), "state", Missing, "state.remote origin")
	locked := files(t)
	locked["pnpm-lock.yaml"] = &fstest.MapFile{}
	wants(t, Check(t.Context(), Options{Files: locked, Offline: true}), "prepare", Missing, "nothing installs what pnpm-lock.yaml names before agents work")
	if list := Check(t.Context(), Options{Files: locked, Offline: true, StateRemote: true, Prepares: true}); len(list) != 5 {
		t.Errorf("%+v", list)
	}
	// Where the settings can't be used, that is what is wrong, and not what they would say.
	list := Check(t.Context(), Options{Files: files(t), Offline: true, NoSettings: "config.yaml:3:1: x: unknown key"})
	wants(t, list, "settings", Missing, "unknown key")
	if slices.ContainsFunc(list, func(f Finding) bool { return f.Check == "state" }) || !Failed(list) {
		t.Errorf("%+v", list)
	}
	wants(t, Check(t.Context(), Options{Files: files(t), Offline: true, Sandbox: []string{"no Landlock"}}), "sandbox", Missing, "no Landlock")
	wants(t, Check(t.Context(), Options{Files: files(t), Offline: true, Sandbox: []string{"Landlock"}, SandboxOK: true}), "sandbox", OK, "Landlock")
}

// On a forge that uwf has no jobs on nothing of a job is missing.
// What GitHub refuses whole, or takes for something else than what was meant, is named with its
// line and column. The changes are those that people make by hand.
func TestWorkflowFileRefused(t *testing.T) {
	condition := "github.event_name == 'workflow_dispatch'"
	for name, tt := range map[string]struct{ old, text, words string }{
		"an unknown name":          {condition, "githb.event_name == 'workflow_dispatch'", `:57:9: undefined variable "githb"; did you mean github?`},
		"double quotes":            {condition, `github.event_name == "workflow_dispatch"`, ":57:30: got unexpected character '\"'"},
		"a bracket that lacks":     {condition, "(" + condition, "unexpected end of input"},
		"env in a job's if":        {condition, "env.X", `:57:9: context "env" is not allowed here`},
		"a secret in a step's if":  {"failure() || cancelled()", "secrets.X", `context "secrets" is not allowed here`},
		"a permission":             {"pull-requests: write", "pull-request: write", `unknown permission scope "pull-request"; did you mean pull-requests?`},
		"a level":                  {"contents: write", "contents: admin", `"admin" is invalid as permission of scope "contents"`},
		"models that are written":  {"pull-requests: write", "models: write", `"write" is invalid as permission of scope "models"`},
		"a job that is not there":  {"needs: step", "needs: stepp", `job "rescue" needs job "stepp" which does not exist`},
		"a job's name":             {"  rescue:\n", "  9rescue:\n", `invalid job ID "9rescue"`},
		"no runner":                {"    runs-on: ubuntu-latest\n    timeout-minutes: 60\n", "    timeout-minutes: 60\n", `:53:3: "runs-on" section is missing in job "step"`},
		"a time in words":          {"timeout-minutes: 60", "timeout-minutes: one hour", ":79:22: expecting a single ${{...}} expression or float number literal"},
		"day 7":                    {"17 */2 * * *", "17 */2 * * 7", ":21:13: invalid CRON format"},
		"four fields":              {"17 */2 * * *", "17 */2 * *", "expected exactly 5 fields, found 4"},
		"a type of input":          {"type: string", "type: strin", `but got "strin"`},
		"a choice of nothing":      {"type: string", "type: choice", `"options" is not set`},
		"a merge key":              {"permissions: {}\n", "permissions: {}\nenv: &e {A: b}\ndefaults:\n  <<: *e\n", ":53:3: "},
		"keys that differ by case": {"permissions: {}\n", "permissions: {}\nenv: {A: b, a: c}\n", `:51:13: key "a" is duplicated`},
		"a key of concurrency":     {"group: uwf-$", "grop: uwf-$", `unexpected key "grop" for "concurrency" section; did you mean group?`},
		"always true":              {"if: ${{ !cancelled() && (needs.step.result == 'failure' || needs.step.result == 'cancelled') }}", "if: ${{ !cancelled() }} && (needs.step.result == 'failure')", "is always evaluated to true"},
		"no version":               {"actions/upload-artifact@b7c566a772e6b6bfb58ed0dc250532a479d7789f", "actions/upload-artifact", `"actions/upload-artifact" has no version: write OWNER/REPO@REF`},
		"a filter of no use":       {"    types: [created]", "    types: [created]\n    branches: [a]", `"branches" filter is not available for issue_comment`},
		"a list as an input":       {"        type: string", "        type: [string]", "expected scalar node"},
		"input for inputs":         {"    inputs:\n", "    input:\n", `expected "inputs" key`},
	} {
		t.Run(name, func(t *testing.T) {
			if f := checkEdited(t, tt.old, tt.text); f == nil || f.State != Missing || !strings.Contains(f.Detail, tt.words) {
				t.Errorf("the finding is %+v, want %q", f, tt.words)
			}
		})
	}
}

// Where submodules are, and nothing fetches them, doctor says so.
func TestSubmodules(t *testing.T) {
	m := files(t)
	m[".gitmodules"] = &fstest.MapFile{}
	wants(t, Check(t.Context(), Options{Files: m, Offline: true, StateRemote: true}), "submodules", Missing, "agents work without the files of the submodules")
	for _, f := range Check(t.Context(), Options{Files: m, Offline: true, StateRemote: true, Submodules: true}) {
		if f.Check == "submodules" {
			t.Errorf("%+v", f)
		}
	}
}

// A self-hosted runner keeps prepared files only if the job names a folder for them.
func TestStorageOfOwnRunners(t *testing.T) {
	const own = "the runner our-own-machine installs what workspace.prepare names again"
	for old, tt := range map[string][2]string{
		"":                         {"", ""},
		"runs-on: ubuntu-latest":   {"runs-on: our-own-machine", own},
		"ubuntu-latest":            {"[self-hosted, linux]", "the runner [self-hosted, linux] installs"},
		"runs-on: ubuntu-latest\n": {"runs-on: our-own-machine\n    env: {UWF_HOME: /var/lib/uwf}\n", ""},
		"ubuntu-latest\n":          {"${{ vars.RUNNER }}\n", ""},
	} {
		m := files(t)
		const flow = ".github/workflows/uwf.yml"
		m[flow] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(string(m[flow].Data), old, tt[0]))}
		list := Check(t.Context(), Options{Files: m, Offline: true, StateRemote: true, Prepares: true})
		if tt[1] != "" {
			wants(t, list, "prepare", Missing, tt[1])
		} else if slices.ContainsFunc(list, func(f Finding) bool { return f.Check == "prepare" }) {
			t.Errorf("%q: %+v", tt[0], list)
		}
	}
}

// What GitHub's schema has is no mistake, also where actionlint does not know it yet.
func TestWorkflowFileTaken(t *testing.T) {
	for name, tt := range map[string][2]string{
		"as shipped":       {"", ""},
		"a description":    {"name: uwf\n", "name: uwf\ndescription: x\n"},
		"a time to cancel": {"    timeout-minutes: 60\n", "    timeout-minutes: 60\n    cancel-timeout-minutes: 5\n"},
		"a queue":          {"      group: uwf-", "      queue: max\n      group: uwf-"},
		"newer steps":      {"    steps:\n", "    steps:\n      - parallel:\n          - run: x\n      - run: x\n        background: true\n      - wait: x\n      - wait-all: true\n      - cancel: x\n"},
		"newer types":      {"[labeled, assigned]", "[labeled, field_added, field_removed]"},
		"newer types, too": {"  pull_request:\n    types: [labeled]", "  pull_request:\n    types: [labeled, stacked]"},
		"newer rights":     {"pull-requests: write", "pull-requests: write\n      code-quality: read\n      copilot-requests: write\n      drives: read\n      vulnerability-alerts: read"},
		"a time zone":      {`    - cron: "17 */2 * * *"`, "    - cron: \"17 */2 * * *\"\n      timezone: Europe/Berlin"},
		"a runner's label": {"runs-on: ubuntu-latest", "runs-on: our-own-machine"},
		"Gitea's label":    {"github.event.label.name == 'uwf'", "(github.event.label.name == 'uwf' || contains(github.event.changes.added_labels.*.name, 'uwf'))"},
		"a script":         {"    steps:\n", "    steps:\n      - run: echo ${{ github.event.issue.title }}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if f := checkEdited(t, tt[0], tt[1]); f != nil {
				t.Errorf("it complains: %+v", f)
			}
		})
	}
}

// checkEdited is what is found in the syntax of the shipped file once a text in it is another.
func checkEdited(t *testing.T, old, text string) *Finding {
	t.Helper()
	const flow = ".github/workflows/uwf.yml"
	m := files(t)
	before := string(m[flow].Data)
	if !strings.Contains(before, old) {
		t.Fatalf("the shipped file has no %s", old)
	}
	m[flow] = &fstest.MapFile{Data: []byte(strings.Replace(before, old, text, 1))}
	list := Check(t.Context(), Options{Files: m, Offline: true, StateRemote: true})
	var all []Finding
	for _, f := range list {
		if f.Check == "syntax" {
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		return nil
	}
	// One mistake may bring others.
	for _, f := range all[1:] {
		all[0].Detail += "\n" + f.Detail
	}
	return &all[0]
}

func TestOtherForge(t *testing.T) {
	m := files(t)
	delete(m, ".github/workflows/uwf.yml")
	list := Check(t.Context(), Options{Files: m, Other: "GitLab", StateRemote: true})
	wants(t, list, "forge", OK, "origin is on GitLab: threads run on people's machines")
	for _, f := range list {
		if slices.Contains([]string{"workflow", "triggers", "permissions", "token", "secrets", "labels"}, f.Check) {
			t.Errorf("it speaks of jobs: %+v", f)
		}
	}
	wants(t, Check(t.Context(), Options{Files: m, Offline: true}), "workflow", Missing, "uses uwf")
}

// Jobs read the files of the default branch: what lies here alone is named.
func TestCommitted(t *testing.T) {
	s := forgetest.Start(t, forgetest.Options{})
	s.MustCommit(t, "main", "Begin", map[string]string{"README.md": "x"})
	dir := filepath.Join(t.TempDir(), "clone")
	env := []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "UWF_LOG=off", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Env = filepath.Dir(dir), env
		if args[0] != "clone" {
			cmd.Dir = dir
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	git("clone", "-q", s.CloneURL(), dir)
	for name, f := range files(t) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, f.Data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	f := app.NewAt(dir, env, app.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	check := func(s State, words string) {
		t.Helper()
		list := Check(t.Context(), Options{Files: os.DirFS(dir), Offline: true, StateRemote: true, Commits: ReadCommits(t.Context(), f, "origin")})
		wants(t, list, "committed", s, words)
	}
	check(Missing, "git add .github/workflows/uwf.yml .uwf/config.yaml")
	wants(t, Check(t.Context(), Options{Files: os.DirFS(dir), Offline: true, Below: true, Commits: ReadCommits(t.Context(), f, "origin")}), "committed", Missing, "git add :/.github/workflows/uwf.yml :/.uwf/config.yaml")
	git("add", "-A")
	git("commit", "-q", "-m", "Add uwf")
	check(Missing, "git push origin HEAD:main; if that was done: git fetch origin")
	git("remote", "rename", "origin", "up")
	list := Check(t.Context(), Options{Files: os.DirFS(dir), Offline: true, RemoteName: "up", Commits: ReadCommits(t.Context(), f, "up")})
	wants(t, list, "committed", Missing, "bring it to main, by a pull request or git push up HEAD:main; if that was done: git fetch up")
	git("remote", "rename", "up", "origin")
	pushed := map[string]string{}
	for name, f := range files(t) {
		pushed[name] = string(f.Data)
	}
	s.MustCommit(t, "main", "Add uwf", pushed)
	git("fetch", "-q")
	check(OK, "those of origin/main")
	config := filepath.Join(dir, ".uwf", "config.yaml")
	for text, want := range map[string]State{"state: {remote: origin} # changed\n": Missing, "state:\r\n  remote: origin\r\n": OK} {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		check(want, map[State]string{Missing: "git add .uwf/config.yaml &&", OK: ""}[want])
	}
}

// bench is a repository on a fake forge.
type bench struct {
	*testing.T
	s *forgetest.Server
	o Options
}

func newBench(t *testing.T, o forgetest.Options) *bench {
	t.Helper()
	s := forgetest.Start(t, o)
	m := files(t)
	commit := map[string]string{}
	for name, f := range m {
		commit[name] = string(f.Data)
	}
	s.MustCommit(t, "main", "Begin", commit)
	b := &bench{T: t, s: s, o: Options{Files: m, StateRemote: true, InJob: true, Rand: rand.Reader}}
	b.token(forgetest.JobPermissions())
	return b
}

// token changes what the checks may do.
func (b *bench) token(p forgetest.Permissions) { b.use(b.s.JobToken(p)) }

func (b *bench) use(token string) {
	b.Helper()
	var err error
	b.o.Forge, err = forge.New(forge.Options{
		APIURL: b.s.APIURL, Repository: b.s.Repository(), Token: func() string { return token },
		Outages: outage.Policy{Until: time.Unix(1, 0)},
	})
	if err == nil {
		b.o.Remote, err = wire.Dial(b.s.CloneURL(), wire.DialOptions{BasicAuth: func(context.Context) (string, string, error) { return "x-access-token", token, nil }})
	}
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) check() []Finding { return Check(b.Context(), b.o) }

func TestOnline(t *testing.T) {
	for name, gitea := range map[string]bool{"github": false, "gitea": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, forgetest.Options{Gitea: gitea})
			b.o.Issue = b.s.OpenIssue("alice", "It breaks", "")
			list := b.check()
			for _, f := range list {
				if f.State == Missing || f.State == Unknown && f.Check != "pull-requests" && f.Check != "secrets" && f.Check != "rules" {
					t.Errorf("%+v", f)
				}
			}
			if n := len(b.s.Labels()); n < 3 {
				t.Errorf("%d labels were made", n)
			}
			if out, err := b.s.Git("for-each-ref", "refs/uwf"); err != nil || out != "" {
				t.Errorf("refs stay: %q %v", out, err)
			}
			b.check() // a second time all is there
			seen := map[string]int{}
			for _, l := range b.s.Labels() {
				seen[l.Name]++
			}
			if seen["uwf"] != 1 || seen["uwf-failed"] != 1 || seen["uwf-waiting"] != 1 {
				t.Errorf("labels: %v", seen)
			}

			b.token(forgetest.ReadPermissions())
			list = b.check()
			wants(t, list, "push", Missing, "contents: write")
			if gitea {
				return // labels there already are found by reading
			}
			wants(t, list, "labels", Missing, "issues: write")
			if !Failed(list) {
				t.Error("a job without rights is said to be well")
			}
		})
	}
}

// On Gitea a job can't look up who may write: where an organisation owns the repository,
// nobody may start anything until the file names somebody.
func TestStarters(t *testing.T) {
	const flow = ".github/workflows/uwf.yml"
	with := func(line string) func(fstest.MapFS) {
		return func(m fstest.MapFS) {
			m[flow] = &fstest.MapFile{Data: []byte(strings.Replace(string(m[flow].Data), "          provider: openai\n", "          provider: openai\n          "+line+"\n", 1))}
		}
	}
	const toAdd = `, in ` + flow + `, below with: of the step that uses uwf: allow: "alice bob"`
	for name, tt := range map[string]struct {
		forge  forgetest.Options
		change func(fstest.MapFS)
		blind  bool // nobody can be asked
		state  State
		words  string
	}{
		"nobody":              {forgetest.Options{Gitea: true, Organisation: true}, nil, false, Missing, "nobody may start or steer: a job on Gitea can't look up who may write, octo is an organisation, and " + flow + " names nobody name who may" + toAdd},
		"somebody":            {forgetest.Options{Gitea: true, Organisation: true}, with(`allow: "alice, bob"`), false, OK, "who may start and steer: alice, bob"},
		"an expression":       {forgetest.Options{Gitea: true, Organisation: true}, with("allow: ${{ vars.UWF_ALLOW }}"), false, OK, "${{ vars.UWF_ALLOW }}"},
		"nobody in an empty":  {forgetest.Options{Gitea: true, Organisation: true}, with(`allow: " "`), false, Missing, toAdd},
		"nobody, in two jobs": {forgetest.Options{Gitea: true, Organisation: true}, func(m fstest.MapFS) { m[flow] = &fstest.MapFile{Data: shipped(t, "github/two-jobs.yml")} }, false, Missing, toAdd},
		"the job's own token": {forgetest.Options{Gitea: true, Organisation: true}, with("token: ${{ secrets.GITHUB_TOKEN }}"), false, Missing, toAdd},
		"a token of its own":  {forgetest.Options{Gitea: true, Organisation: true}, with("token: ${{ secrets.BOT }}"), false, Unknown, "where it can't, name who may" + toAdd},
		"a person's":          {forgetest.Options{Gitea: true}, nil, false, OK, "octo may start and steer, and nobody else"},
		"nobody can be asked": {forgetest.Options{Gitea: true, Organisation: true}, nil, true, Unknown, "its owner may start and steer, if that is a person, and nobody at all, if it is an organisation"},
		"a workflow elsewhere says": {forgetest.Options{Gitea: true, Organisation: true}, func(m fstest.MapFS) {
			m[".github/workflows/uwf.yml"] = &fstest.MapFile{Data: shipped(t, "github/caller.yml")}
		}, false, Unknown, "whom acme/.github/.github/workflows/uwf.yml@0123456789abcdef0123456789abcdef01234567 lets start"},
		"GitHub looks them up": {forgetest.Options{}, nil, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tt.forge)
			if tt.change != nil {
				tt.change(b.o.Files.(fstest.MapFS))
			}
			if tt.blind {
				b.o.Forge, b.o.Gitea = nil, true
			}
			list := b.check()
			if tt.state == "" {
				if slices.ContainsFunc(list, func(f Finding) bool { return f.Check == "starters" }) {
					t.Errorf("%+v", list)
				}
				return
			}
			wants(t, list, "starters", tt.state, tt.words)
			if Failed(list) != (tt.state == Missing) {
				t.Errorf("well or not: %+v", list)
			}
		})
	}
}

func TestCommentsOfPrivateRepositories(t *testing.T) {
	b := newBench(t, forgetest.Options{Private: true})
	b.token(forgetest.Permissions{"contents": "write"})
	wants(t, b.check(), "comments", Missing, "issues: write")
}

func TestRulesAndSettings(t *testing.T) {
	b := newBench(t, forgetest.Options{})
	b.s.SetPermission("root", "admin")
	b.s.Protect("uwf-state", "deletion")
	wants(t, b.check(), "rules", Unknown, "only an administrator")
	b.s.ProtectBranches("uwf/*")
	wants(t, b.check(), "rules", Unknown, "only an administrator")
	b.use(b.s.UserToken("root"))
	wants(t, b.check(), "rules", Missing, "protected branch (uwf/*)")
	b.token(forgetest.JobPermissions())
	b.s.Protect("uwf-state", "pull_request")
	wants(t, b.check(), "rules", Missing, "pull request (uwf-state)")
	b.s.DisableWorkflow("uwf.yml", true)
	wants(t, b.check(), "dispatch", Missing, "gh workflow enable uwf.yml")
	b.o.Workflow = "other.yml"
	wants(t, b.check(), "dispatch", Missing, "other.yml is not on the branch main")
	b.o.Workflow = ""

	b.o.InJob = false
	b.use(b.s.UserToken("root"))
	wants(t, b.check(), "pull-requests", OK, "")
	b.s.SetPullsAllowed(false)
	list := b.check()
	wants(t, list, "pull-requests", Missing, "settings/actions")
	if found(t, list, "pull-requests").Required {
		t.Error("without that setting uwf comments with a link: it is not required")
	}
}

// TestEmpty: of an empty repository nothing else is said.
func TestEmpty(t *testing.T) {
	s := forgetest.Start(t, forgetest.Options{})
	b := &bench{T: t, s: s, o: Options{Rand: rand.Reader}}
	b.token(forgetest.JobPermissions())
	list := b.check()
	if len(list) != 1 || !Failed(list) {
		t.Fatalf("%+v", list)
	}
	wants(t, list, "repository", Missing, "has no commits")
	if n := len(s.Calls()); n > 0 {
		t.Errorf("the forge was asked %d times", n)
	}
}

func TestReadOnly(t *testing.T) {
	b := newBench(t, forgetest.Options{})
	b.o.ReadOnly = true
	list := b.check()
	wants(t, list, "push", Unknown, "--read-only")
	wants(t, list, "labels", Unknown, "gh label create uwf ")
	for _, c := range b.s.Calls() {
		if c.Method != http.MethodGet && c.Path != "graphql" { // which only asks
			t.Errorf("%s %s", c.Method, c.Path)
		}
	}
	for _, c := range b.s.GitCalls() {
		if strings.Contains(c.Path+c.Query, "receive-pack") {
			t.Errorf("%s %s", c.Method, c.Path)
		}
	}
}

// TestLostPush: the ref is removed although nobody heard that it was made.
func TestLostPush(t *testing.T) {
	b := newBench(t, forgetest.Options{})
	b.s.Inject(forgetest.Fault{Git: true, Method: http.MethodPost, Path: "git-receive-pack", Lost: true})
	f := found(t, b.check(), "push")
	if f.State == Missing {
		t.Errorf("%+v", f)
	}
	if out, err := b.s.Git("for-each-ref", "refs/uwf"); err != nil || out != "" {
		t.Errorf("refs stay: %q %v", out, err)
	}
}

// TestRaisedRefs: a bound that VERSION remembers, and the server no longer has, is named.
func TestRaisedRefs(t *testing.T) {
	for _, c := range []struct{ noted, takes, says int }{{2, 0, gitcas.StepRefs}, {2, 3, 3}, {2, 2, 0}, {3, 2, 0}, {0, 0, 0}, {gitcas.StepRefs, 0, 0}} {
		mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, MostRefs: c.takes})
		mem.SetRef("refs/heads/main", wire.EmptyTree)
		if _, err := gitcas.Open(mem, gitcas.Options{Branch: "state"}).Init(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.noted > 0 {
			setRefs(t, mem, "refs/heads/state", c.noted)
		}
		for gitea, page := range map[bool]string{false: "edit", true: "_edit"} {
			list := Check(t.Context(), Options{Remote: mem, Rand: rand.Reader, Branch: "state", Gitea: gitea, Server: "https://forge.example/o/r"})
			i := slices.IndexFunc(list, func(f Finding) bool { return f.Check == "refs" && strings.Contains(f.Detail, "VERSION") })
			if (i >= 0) != (c.says > 0) || Failed(list) {
				t.Fatalf("%+v: %+v", c, list)
			}
			if i < 0 {
				continue
			}
			if want := fmt.Sprintf("no more than %d refs, and %d were taken", c.noted, c.says); !strings.Contains(list[i].Detail, want) {
				t.Errorf("%+v, want %s", list[i], want)
			}
			if want := fmt.Sprintf(`"refs: %d" out of VERSION on the branch state, by a commit there: https://forge.example/o/r/%s/state/VERSION`, c.noted, page); !strings.Contains(list[i].Fix, want) {
				t.Errorf("%+v, want %s", list[i], want)
			}
		}
	}
}

// TestFewRefs: a limit of the refs a push is found and explained, and nothing stays.
func TestFewRefs(t *testing.T) {
	for most, pushes := range map[int]int{0: 0, gitcas.StepRefs: 0, 3: 2, 2: 3, 1: 5} {
		mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, MostRefs: most})
		mem.SetRef("refs/heads/main", wire.EmptyTree)
		list := Check(t.Context(), Options{Remote: mem, Rand: rand.Reader, Server: "https://forge.example/o/r"})
		i := slices.IndexFunc(list, func(f Finding) bool { return f.Check == "refs" })
		if (i >= 0) != (pushes > 0) || Failed(list) {
			t.Fatalf("%d refs a push: %+v", most, list)
		}
		if pushes > 0 {
			wants(t, list, "push", OK, fmt.Sprintf("removed, %d in a push", most))
			wants(t, list, "refs", Missing, fmt.Sprintf("no more than %d refs here", most))
			wants(t, list, "refs", Missing, fmt.Sprintf("up to %d pushes", pushes))
			wants(t, list, "refs", Missing, "https://forge.example/o/r/settings")
		}
		if refs := mem.Refs(); len(refs) != 1 {
			t.Errorf("%d refs a push: %v stay", most, refs)
		}
	}
}

func TestNothingToAsk(t *testing.T) {
	o := Options{NoForge: "no token", ForgeFix: "log in", NoRemote: "no remote", NoModel: "no key", ModelFix: "get one", Rand: rand.Reader}
	list := Check(t.Context(), o)
	wants(t, list, "token", Unknown, "log in")
	wants(t, list, "model", Unknown, "no key get one")
	// Without a remote there are no jobs: that is known.
	wants(t, list, "repository", Missing, "git remote add")
	if !Failed(list) || Failed(slices.DeleteFunc(list, func(f Finding) bool { return f.Check == "repository" })) {
		t.Error("what is not known is not missing, and what is not there is")
	}
}

func TestModel(t *testing.T) {
	for kind, want := range map[string]State{setup.KindKey: Missing, setup.KindQuota: Missing, setup.KindRate: OK, setup.KindRequest: Unknown, setup.KindUnreachable: Unknown} {
		list := Check(t.Context(), Options{Rand: rand.Reader, Model: func(context.Context) error {
			return fmt.Errorf("try: %w", &setup.Failure{Kind: kind, What: "what it said", Do: "what to do"})
		}})
		wants(t, list, "model", want, "what it said")
	}
	wants(t, Check(t.Context(), Options{Model: func(context.Context) error { return nil }}), "model", OK, "")
	wants(t, Check(t.Context(), Options{Model: func(context.Context) error { return errors.New("broken") }}), "model", Unknown, "broken")
}

// secretive is a forge that tells the names of secrets.
type secretive struct {
	forge.Forge
	names []string
	known bool
}

func (s secretive) ListSecretNames(context.Context) ([]string, bool, error) {
	return s.names, s.known, nil
}

func TestSecrets(t *testing.T) {
	b := newBench(t, forgetest.Options{})
	plain := b.o.Forge
	b.o.InJob = false
	for _, tt := range []struct {
		names []string
		known bool
		want  State
		words string
	}{
		{[]string{"openai_api_key"}, true, OK, ""},
		{[]string{"OPENAI_API_KEY"}, false, OK, ""},
		{nil, true, Missing, "gh secret set OPENAI_API_KEY"},
		{nil, false, Unknown, "gh secret set OPENAI_API_KEY"},
	} {
		b.o.Forge = secretive{plain, tt.names, tt.known}
		wants(t, b.check(), "secrets", tt.want, tt.words)
	}
	m := files(t)
	const flow = ".github/workflows/uwf.yml"
	b.o.Files = fstest.MapFS{flow: {Data: []byte(strings.Replace(string(shipped(t, "github/caller.yml")), "OPENAI_API_KEY", "ACME_KEY", 1))}}
	b.o.Forge = secretive{plain, []string{"OPENAI_API_KEY"}, true}
	wants(t, b.check(), "secrets", Missing, "there is no secret ACME_KEY, which "+flow+" names")
	b.o.Forge = plain
	m[flow] = &fstest.MapFile{Data: []byte(strings.Replace(string(m[flow].Data), "${{ secrets.OPENAI_API_KEY }}", "sk-a-key-in-a-file", 1))}
	b.o.Files = m
	list := b.check()
	wants(t, list, "secrets", Missing, "revoke that key now")
	if strings.Contains(fmt.Sprint(list), "sk-a-key") {
		t.Error("the key is repeated")
	}
}

// TestCommand runs `uwf doctor` in a clone: without a token, with one that may little,
// and with an owner's.
func TestCommand(t *testing.T) {
	b := newBench(t, forgetest.Options{})
	dir, home := filepath.Join(t.TempDir(), "clone"), t.TempDir()
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "UWF_LOG=off"}
	git := exec.CommandContext(t.Context(), "git", "clone", "-q", b.s.CloneURL(), dir)
	git.Env = append(env, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := func(want int, more ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		f := app.NewAt(dir, append(env, more...), app.IO{In: strings.NewReader(""), Out: &out, Err: &errs})
		cmd := NewCmdDoctor(f, nil, nil, func(ctx context.Context, o *CommandOptions) error {
			o.Client.GHToken = func(context.Context, string) string { return "" }
			return doctorRun(ctx, o)
		})
		cmd.SetArgs(nil)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); app.ExitCodeOf(err) != want {
			t.Errorf("exit code %d, want %d: %v\n%s", app.ExitCodeOf(err), want, err, out.String())
		}
		for _, e := range more {
			if _, v, _ := strings.Cut(e, "GITHUB_TOKEN="); v != "" && strings.Contains(out.String()+errs.String(), v) {
				t.Error("the token shows")
			}
		}
		return out.String()
	}
	has := func(s, want string) {
		t.Helper()
		if !strings.Contains(s, want) {
			t.Errorf("%q is not in %s", want, s)
		}
	}
	out := run(1) // anonymous people may not push
	has(out, "there is no token")
	has(out, `"check": "push",
      "state": "missing"`)
	// A token for github.com goes nowhere else.
	b.s.ForgetCalls()
	out = run(1, "GITHUB_TOKEN="+b.s.UserToken("alice"))
	has(out, "there is no token for the forge's API, so permissions and settings are not known; GITHUB_TOKEN was not sent: it is for https://github.com, and this is "+b.s.URL)
	has(out, "set GITHUB_SERVER_URL="+b.s.URL+" beside GITHUB_TOKEN")
	for _, c := range append(b.s.Calls(), b.s.GitCalls()...) {
		if c.Login != "" {
			t.Errorf("a token was sent to another forge: %+v", c)
		}
	}
	// What git keeps for the remote is asked for once, for the API and for the pushes.
	asked := filepath.Join(home, "asked")
	helper := fmt.Sprintf("[credential]\n\thelper = \"!f() { echo $1 >>%s; test $1 != get || printf 'username=alice\\\\npassword=%s\\\\n'; }; f\"\n", asked, b.s.UserToken("alice"))
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(helper), 0o600); err != nil {
		t.Fatal(err)
	}
	b.s.SetPermission("alice", "admin")
	has(run(0), `"repository": "octo/demo"`)
	if times, err := os.ReadFile(asked); err != nil || string(times) != "get\n" {
		t.Errorf("git's helper was asked %q, %v", times, err)
	}
	if err := os.Remove(filepath.Join(home, ".gitconfig")); err != nil {
		t.Fatal(err)
	}
	job := []string{"GITHUB_SERVER_URL=" + b.s.URL, "GITHUB_API_URL=" + b.s.APIURL}
	b.s.SetPermission("root", "admin")
	out = run(0, append(job, "GITHUB_TOKEN="+b.s.UserToken("root"))...)
	has(out, `"repository": "octo/demo"`)
	has(out, `"ok": true`)
	out = run(1, append(job, "GITHUB_ACTIONS=true", "GITHUB_TOKEN="+b.s.JobToken(forgetest.ReadPermissions()))...)
	has(out, "add contents: write to permissions: of the job")
}

// setRefs writes into VERSION how many refs a push updates.
func setRefs(t *testing.T, mem *wiretest.Memory, branch string, n int) {
	t.Helper()
	get := func(id wire.ID) []byte {
		o, ok := mem.Get(id)
		if !ok {
			t.Fatalf("no object %s", id)
		}
		return o.Data
	}
	put := func(typ plumbing.ObjectType, data []byte, err error) wire.ID {
		if err != nil {
			t.Fatal(err)
		}
		o := wire.NewObject(typ, data)
		mem.AddObjects(o)
		return o.ID
	}
	c, err := gitobj.DecodeCommit(get(mem.Refs()[branch]))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := gitobj.DecodeTree(get(c.Tree))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		if e.Name == "VERSION" {
			text, err := statefile.SetVersionRefs(get(e.ID), n)
			entries[i].ID = put(plumbing.BlobObject, text, err)
		}
	}
	tree, err := gitobj.EncodeTree(entries)
	c.Tree = put(plumbing.TreeObject, tree, err)
	commit, err := gitobj.EncodeCommit(c)
	mem.SetRef(branch, put(plumbing.CommitObject, commit, err))
	mem.SetRef(layout.StoreRef, wire.ZeroID)
}
