package action

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/internal/forgetest"
	"github.com/united-workforce/uwf/internal/outage"
)

// given are inputs as a job's environment has them.
func given(env map[string]string) Ask {
	return newAsk(func(name string) string { return env[name] })
}

func TestReadInputs(t *testing.T) {
	in, err := readInputs(given(nil))
	if err != nil {
		t.Fatal(err)
	}
	if in.StepsPerJob != 1 || in.Label != "uwf" || in.Config != ".uwf/config.yaml" || in.Artifact != ".uwf-step" ||
		in.Command != ci.CommandStep || in.Doctor || in.AllowShell != nil || in.Comment.Off || in.PullRequest.Off || in.MaxSteps != 0 {
		t.Errorf("without inputs: %+v", in)
	}
	in, err = readInputs(given(map[string]string{
		"INPUT_MAX-STEPS": "12", "INPUT_STEPS_PER_JOB": " 3 ", "INPUT_TIMEOUT": "20m", "INPUT_SANDBOX": "Require", "INPUT_ALLOW-SHELL": "false",
		"INPUT_COMMENT": "false", "INPUT_PULL-REQUEST": "17", "INPUT_DRAFT": "true", "INPUT_ALLOW": "ann, bob\nuwf[bot]", "INPUT_COMMAND": "run",
		"INPUT_THREAD": "01jy0000000000000000000000", "INPUT_HEAD": "CTS5P6RD8HMCS", "INPUT_BASE_URL": "http://127.0.0.1:1/v1", "INPUT_DISPATCH": "uwf.yml",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if in.MaxSteps != 12 || in.StepsPerJob != 3 || in.Timeout != 20*time.Minute || in.Sandbox != config.SandboxRequire || in.AllowShell == nil || *in.AllowShell ||
		!in.Comment.Off || in.PullRequest.ID != 17 || !in.Draft || !slices.Equal(in.Allow, []string{"ann", "bob", "uwf[bot]"}) || in.Command != ci.CommandRun ||
		in.Thread != "01JY0000000000000000000000" || in.Head.String() != "CTS5P6RD8HMCS" || in.BaseURL != "http://127.0.0.1:1/v1" {
		t.Errorf("%+v", in)
	}
}

const aCommit = "0123456789abcdef0123456789abcdef01234567"

// A policy is a text, or a place at a whole commit.
func TestParsePolicy(t *testing.T) {
	for _, text := range []string{"sandbox: require", "agents:\n- builtin\n", "{sandbox: require}", "# nothing", "limits: {costUsd: 5} # acme/x/y@main"} {
		if p, err := parsePolicy(text); err != nil || p != (policyInput{Text: text}) || p.name() != "the input policy" {
			t.Errorf("%q: %+v %v", text, p, err)
		}
	}
	p, err := parsePolicy("acme/.github/org/policy.yaml@" + aCommit)
	if err != nil || p != (policyInput{Repository: "acme/.github", Path: "org/policy.yaml", Commit: aCommit}) || p.name() != "acme/.github/org/policy.yaml@"+aCommit {
		t.Errorf("%+v %v", p, err)
	}
	if _, err := parsePolicy("acme/.github/policy.yaml@main"); err == nil || !strings.Contains(err.Error(), "what a branch, a tag or a part of a hash leads to may change") {
		t.Errorf("a branch: %v", err)
	}
}

// A forge that is away gives an error, and not a job without a policy.
func TestPolicyOfAForgeThatIsAway(t *testing.T) {
	s := forgetest.Start(t, forgetest.Options{})
	commit := s.MustCommit(t, "main", "Policy", map[string]string{"policy.yaml": "sandbox: require\n"})
	p, err := parsePolicy(s.Repository() + "/policy.yaml@" + commit)
	if err != nil {
		t.Fatal(err)
	}
	o := forge.Options{APIURL: s.APIURL, Outages: outage.Policy{Until: time.Unix(1, 0)}}
	if text, err := p.read(t.Context(), o); err != nil || string(text) != "sandbox: require\n" {
		t.Errorf("%q %v", text, err)
	}
	for _, fault := range []forgetest.Fault{{Answer: forgetest.Broken(503)}, {Cut: true}, {Answer: forgetest.PrimaryLimit(time.Now().Add(time.Hour))}} {
		fault.Path, fault.Times = "contents/*", -1
		s.ClearFaults()
		s.Inject(fault)
		if text, err := p.read(t.Context(), o); err == nil || text != nil || app.ExitCodeOf(err) != 1 || !strings.Contains(err.Error(), "nothing is done without it") {
			t.Errorf("%+v: %q %v", fault, text, err)
		}
	}
}

func TestWrongInputs(t *testing.T) {
	for name, values := range map[string][]string{
		"max-steps": {"x", "0", "-1", "1.5", "1e3", "99999999999999999999"}, "steps-per-job": {"no", "0"}, "timeout": {"20", "0s", "-1m", "soon"}, "sandbox": {"hard"},
		"allow-shell": {"yes", "1"}, "draft": {"maybe"}, "comment": {"sometimes", "-3"}, "pull-request": {"#7"}, "command": {"stop"},
		"thread": {"01JY", "../x"}, "head": {"xyz"}, "dispatch": {"../uwf.yml", "a/b.yml", "uwf", "a\nb.yml"}, "state-branch": {"refs/heads/x", "a b", "a..b"},
		"config":   {"../x", "/etc/passwd", ".git/config", "a/.GIT/config", "a//b", `a\b`, "C:/x", "a\nb"},
		"artifact": {"..", ".", "/tmp/x", ".git"},
		"policy": {"acme/.github/policy.yaml", "policy.yaml", "acme/policy.yaml@" + aCommit, "acme/.github/policy.yaml@main", "acme/.github/policy.yaml@v1", "acme/.github/policy.yaml@" + aCommit[:39],
			"acme/.github/policy.yaml@" + aCommit + "0", "acme/.github/policy.yaml@" + strings.ToUpper(aCommit), "acme/.github/../policy.yaml@" + aCommit, "acme/.github//policy.yaml@" + aCommit,
			"acme/x/.git/config@" + aCommit, "acme/.github/a@b@" + aCommit, "acme/.github/policy.yaml@", "ac%2Fme/x/y@" + aCommit},
	} {
		for _, value := range values {
			_, err := readInputs(func(asked string) string {
				if asked == name {
					return value
				}
				return ""
			})
			if app.ExitCodeOf(err) != 2 || !strings.Contains(err.Error(), name+" is ") {
				t.Errorf("%s %q: %v", name, value, err)
			}
		}
	}
	_, err := readInputs(given(map[string]string{"INPUT_MAX-STEPS": "x", "INPUT_SANDBOX": "x", "INPUT_HEAD": "x"}))
	for _, name := range []string{"max-steps", "sandbox", "head"} {
		if err == nil || !strings.Contains(err.Error(), name+" is ") {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	read := func(pairs ...string) (environment, error) {
		env := map[string]string{"GITHUB_REPOSITORY": "octo/demo"}
		for i := 0; i < len(pairs); i += 2 {
			env[pairs[i]] = pairs[i+1]
		}
		return readEnvironment(func(name string) string { return env[name] })
	}
	e, err := read()
	if err != nil || e.APIURL != "https://api.github.com" || e.remoteURL() != "https://github.com/octo/demo.git" || e.Attempt != 1 {
		t.Errorf("by hand: %+v, %v", e, err)
	}
	for server, want := range map[string]string{"https://git.corp.example": "https://git.corp.example/api/v3", "https://git.corp.example/": "https://git.corp.example/api/v3"} {
		if e, err := read("GITHUB_SERVER_URL", server); err != nil || e.APIURL != want {
			t.Errorf("%s: %s, %v", server, e.APIURL, err)
		}
	}
	if e, _ := read("GITHUB_SERVER_URL", "https://gitea.example", "GITEA_ACTIONS", "true"); e.APIURL != "https://gitea.example/api/v1" || e.Flavour != "gitea" {
		t.Errorf("Gitea: %+v", e)
	}
	if e, _ := read("GITHUB_SERVER_URL", "https://code.example", "FORGEJO_ACTIONS", "true", "GITHUB_RUN_NUMBER", "12", "GITHUB_RUN_ID", "99"); e.ResolveRunURL() != "https://code.example/octo/demo/actions/runs/12" {
		t.Errorf("Forgejo's run is at %s", e.ResolveRunURL())
	}
	for ref, want := range map[string]string{
		"octo/demo/.github/workflows/uwf.yml@refs/heads/main": "uwf.yml",
		"octo/demo/.gitea/workflows/a.yaml@refs/heads/x@y":    "a.yaml",
		"other/demo/.github/workflows/uwf.yml@v1":             "",
		"octo/demo/uwf.yml@v1":                                "",
		"":                                                    "",
	} {
		if got := workflowFile(ref, "octo/demo"); got != want {
			t.Errorf("%s: %q", ref, got)
		}
	}
	// Gitea gives no reference: its GITHUB_WORKFLOW is the file, or what that calls itself.
	for said, want := range map[string][2]string{
		"uwf.yml": {"uwf.yml"}, "agents.yaml": {"agents.yaml"}, ".github/workflows/x.yml": {"x.yml"}, "uwf": {"", "uwf"}, "": {},
		"..": {"", ".."}, "a/../.yml/..": {"", "a/../.yml/.."}, "x\n.yml": {"", "x\n.yml"},
	} {
		if e, err := read("GITHUB_WORKFLOW", said); err != nil || e.WorkflowFile != want[0] || e.WorkflowName != want[1] {
			t.Errorf("GITHUB_WORKFLOW=%q: %q, %q, %v", said, e.WorkflowFile, e.WorkflowName, err)
		}
	}
	if e, _ := read("GITHUB_WORKFLOW", "uwf.yml", "GITHUB_WORKFLOW_REF", "other/demo/.github/workflows/uwf.yml@v1"); e.WorkflowFile != "" || e.WorkflowName != "" {
		t.Errorf("another repository's workflow: %+v", e.Job)
	}
	for name, value := range map[string]string{
		"GITHUB_REPOSITORY": "demo", "GITHUB_SERVER_URL": "ftp://x", "GITHUB_RUN_ATTEMPT": "0",
	} {
		if _, err := read(name, value); app.ExitCodeOf(err) != 2 || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	if _, err := read("GITHUB_SERVER_URL", "https://me:hunter2222@github.com"); err == nil || strings.Contains(err.Error(), "hunter") {
		t.Errorf("a password in the address: %v", err)
	}
}

// TestPagesAreWhereTheEventSays: a runner may reach the forge by another name than people do.
func TestPagesAreWhereTheEventSays(t *testing.T) {
	for repository, want := range map[string]string{
		`{"html_url":"https://code.example/octo/demo"}`: "https://code.example/octo/demo/actions/runs/7",
		`{"html_url":"javascript:alert(1)"}`:            "http://gitea:3000/octo/demo/actions/runs/7",
		`{"html_url":"https://a:b@code.example/o/d"}`:   "http://gitea:3000/octo/demo/actions/runs/7",
		`{}`: "http://gitea:3000/octo/demo/actions/runs/7",
	} {
		file := filepath.Join(t.TempDir(), "event.json")
		if err := os.WriteFile(file, []byte(`{"repository":`+repository+`}`), 0o600); err != nil {
			t.Fatal(err)
		}

		j := &job{ask: given(nil), f: &app.Factory{Environ: []string{
			"GITHUB_REPOSITORY=octo/demo", "GITHUB_SERVER_URL=http://gitea:3000", "GITHUB_EVENT_NAME=schedule", "GITHUB_EVENT_PATH=" + file,
			"GITHUB_RUN_ID=7", "GITHUB_TOKEN=t",
		}}}

		if err := j.readJob(); err != nil || j.env.ResolveRunURL() != want {
			t.Errorf("%s: the run is at %s, %v", repository, j.env.ResolveRunURL(), err)
		}
		if at := j.env.remoteURL(); at != "http://gitea:3000/octo/demo.git" {
			t.Errorf("%s: git goes to %s", repository, at)
		}
	}
}

// Jobs of one run are told apart, a job and its re-runs are not.
func TestName(t *testing.T) {
	name := func(job, step string, inputs map[string]string) string {
		e := environment{Job: ci.Job{Name: job}}
		return e.useName(func(n string) string { return map[string]string{"GITHUB_ACTION": step}[n] }, func(n string) string { return inputs[n] })
	}
	base := name("step", "uwf", map[string]string{"prompt": "a"})
	if again := name("step", "uwf", map[string]string{"prompt": "a", "api-key": "another", "head": "another"}); again != base {
		t.Errorf("a re-run is %s, and was %s", again, base)
	}
	for what, other := range map[string]string{
		"another job": name("other", "uwf", map[string]string{"prompt": "a"}), "another step": name("step", "uwf2", map[string]string{"prompt": "a"}),
		"another of a matrix": name("step", "uwf", map[string]string{"prompt": "b"}),
	} {
		if other == base {
			t.Errorf("%s has the same name %s", what, other)
		}
	}
	if odd := name("a_b/c d", "", nil); notWord.MatchString(strings.ReplaceAll(odd, "-", "")) {
		t.Errorf("%s is no name of a run", odd)
	}
}

func TestJobTime(t *testing.T) {
	flow := []byte("jobs:\n  a: {timeout-minutes: 30}\n  b: {timeout-minutes: \"${{ vars.X }}\"}\n  c: {}\n  d: {timeout-minutes: -1}\n")
	for job, want := range map[string]time.Duration{"a": 30 * time.Minute, "b": hostedTime, "c": hostedTime, "d": hostedTime, "none": hostedTime} {
		if got := jobTime(flow, job); got != want {
			t.Errorf("%s: %s", job, got)
		}
	}
	called := []byte("jobs:\n  uwf: {uses: acme/.github/.github/workflows/uwf.yml@main}\n  own: {timeout-minutes: 30}\n")
	for job, want := range map[string]time.Duration{"step": calledTime, "own": 30 * time.Minute} {
		if got := jobTime(called, job); got != want {
			t.Errorf("%s beside a called workflow: %s", job, got)
		}
	}
	if jobTime([]byte("\t"), "a") != hostedTime || jobTime(nil, "a") != hostedTime {
		t.Error("no file")
	}
	now := time.Unix(1000, 0)
	if d := jobDeadline(now, 10*time.Minute); d.Sub(now) != 9*time.Minute {
		t.Errorf("deadline %s", d)
	}
}
