package forge

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/internal/forgetest"
)

// workspaceOwner is the user that the workspace belongs to on hosted runners.
const workspaceOwner = 1001

// TestActionContainer runs a job as GitHub's runner runs a container action: as root,
// with nothing in the environment but what the runner puts there, in a workspace of
// another user. Agents are a third one. Afterwards nothing of root's is left where
// later steps and jobs of the machine would stumble over it.
func TestActionContainer(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("a container action is root, on Linux")
	}
	for _, confined := range []string{"auto", "off"} {
		t.Run("sandbox "+confined, func(t *testing.T) {
			t.Parallel()
			inContainer(t, confined)
		})
	}
}

func inContainer(t *testing.T, confined string) {
	const output = `"---\n$status: ready\nplan: Write.\nfiles: [a]\n---\nx\n"`
	c := newCI(t, ciOptions{script: "steps:\n  - {role: planner, write: {new/by-agent.txt: x}, output: " + output + "}\n"})
	c.with["sandbox"] = confined
	c.open()
	top := filepath.Join(c.dir, "container")
	made := map[string]string{}
	for _, dir := range []string{"workspace", "home", "workflow", "file_commands", "runner_temp"} {
		made[dir] = filepath.Join(top, "github", dir)
		c.check(os.MkdirAll(made[dir], 0o755)) //nolint:gosec // as the runner's
	}
	for _, dir := range []string{"workspace", "runner_temp"} {
		c.check(os.Chown(made[dir], workspaceOwner, workspaceOwner))
	}
	tmp := filepath.Join(top, "tmp")
	c.check(os.Mkdir(tmp, 0o700))
	c.check(os.Chmod(tmp, 0o777|fs.ModeSticky))
	env := []string{"HOME=" + made["home"], "GITHUB_WORKSPACE=" + made["workspace"], "RUNNER_TEMP=" + made["runner_temp"], "TMPDIR=" + tmp}
	for name, file := range map[string]string{"GITHUB_OUTPUT": "set_output", "GITHUB_STEP_SUMMARY": "step_summary", "GITHUB_ENV": "set_env", "GITHUB_PATH": "add_path", "GITHUB_STATE": "save_state"} {
		full := filepath.Join(made["file_commands"], file+"_1b2c")
		c.check(os.WriteFile(full, nil, 0o644)) //nolint:gosec // as the runner's
		c.check(os.Chown(full, workspaceOwner, workspaceOwner))
		env = append(env, name+"="+full)
	}
	n := c.issue()
	j := c.start(c.forge.PutLabel("alice", n, "uwf"), env...)
	c.green(j)
	if j.outputs["thread"] == "" || j.outputs["role"] != "planner" || j.outputs["result"] != "ready" || j.outputs["next-role"] != "developer" || j.outputs["step"] != "1" || j.outputs["done"] != "false" {
		t.Errorf("outputs: %v", j.outputs)
	}
	if !strings.Contains(j.summary, "planner") {
		t.Errorf("summary: %s", j.summary)
	}
	if strings.Contains(j.log, "note: sandbox") {
		t.Errorf("agents are not another user: %s", j)
	}
	c.run(c.forge.Dir(), "cat-file", "-e", "uwf/"+j.outputs["thread"]+":new/by-agent.txt")
	for _, dir := range []string{"workspace", "runner_temp"} {
		c.belongs(made[dir], workspaceOwner)
	}
	for _, name := range []string{"set_env", "add_path", "save_state"} {
		if text := c.read(filepath.Join(made["file_commands"], name+"_1b2c")); text != "" {
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, dir := range []string{tmp, made["home"], made["runner_temp"]} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
}

// open lets other users into the test's folder: agents are some.
func (c *ci) open() {
	c.Helper()
	for _, dir := range []string{filepath.Dir(c.dir), c.dir} {
		c.check(os.Chmod(dir, 0o755)) //nolint:gosec // what a job's folder is
	}
}

// TestActionInterrupted cancels a job while its agent is at work, as people do with a
// click: the agent and the claim are gone, and so is the job's folder.
func TestActionInterrupted(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{script: "steps:\n  - {role: planner, attempt: 1, hang: true, output: x}\n"})
	j := &ciJob{c: c, event: c.forge.PutLabel("alice", c.issue(), "uwf"), name: "step", run: 1, attempt: 1, dir: filepath.Join(c.dir, "interrupted")}
	vars := c.environ(j, c.forge.JobToken(c.permissions("step")))
	cmd := exec.CommandContext(c.Context(), "uwf", "action")
	for name, value := range vars {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	c.check(cmd.Start())
	clitest.WaitUntil(t, func() bool { return c.git("for-each-ref", "--format=%(refname)", "refs/uwf/claims") != "" })
	c.check(cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait() // the exit code says it
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d: %s", code, maskless(log.String()))
	}
	if refs := c.git("for-each-ref", "--format=%(refname)", "refs/uwf/claims"); refs != "" {
		t.Errorf("the claim is still there: %s", refs)
	}
	if left, err := os.ReadDir(vars["RUNNER_TEMP"]); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if out := readOutputs(c.read(vars["GITHUB_OUTPUT"])); out["done"] != "false" {
		t.Errorf("outputs: %v", out)
	}
}

// belongs checks that everything in a folder is one user's.
func (c *ci) belongs(dir string, uid uint32) {
	c.Helper()
	c.check(filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if has, ok := info.Sys().(*syscall.Stat_t); !ok || has.Uid != uid {
			c.Errorf("%s belongs to user %d, want %d", name, has.Uid, uid)
		}
		return nil
	}))
}

// TestActionWorkspace: agents never work in the job's workspace. They can't see a checkout, its
// ignored files or what its git settings name, nothing in it is changed, and the log says so.
func TestActionWorkspace(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{files: map[string]string{".gitignore": ".env\n"}})
	dir := c.checkout(c.forge.Branch())
	c.run(dir, "config", "core.fsmonitor", "touch "+filepath.Join(c.dir, "ran"))
	c.run(dir, "config", "http.https://github.com/.extraheader", "AUTHORIZATION: basic eC1hY2Nlc3MtdG9rZW46Z2hzXzAxMjM0NTY3ODk=")
	c.put(filepath.Join(dir, ".env"), "DEPLOY=of-another-workflow")
	before := c.listing(dir)
	j := c.start(c.forge.PutLabel("alice", c.issue(), "uwf"), "GITHUB_WORKSPACE="+dir)
	c.green(j)
	if !strings.Contains(j.log, "agents work in a folder of uwf's own, not in the checkout: workspace.prepare") {
		t.Errorf("the log doesn't say where agents work: %s", j)
	}
	if after := c.listing(dir); after != before {
		t.Errorf("the workspace was changed:\n%s\nbefore:\n%s", after, before)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "ran")); err == nil {
		t.Error("a program of the checkout's settings was run")
	}
}

// listing is what a folder holds, without git's own files.
func (c *ci) listing(dir string) string {
	c.Helper()
	var out []string
	c.check(filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() {
			out = append(out, name+": "+c.read(name))
		}
		return err
	}))
	return strings.Join(out, "\n")
}

func (c *ci) put(file, text string) {
	c.Helper()
	c.check(os.MkdirAll(filepath.Dir(file), 0o755))  //nolint:gosec // as a runner's
	c.check(os.WriteFile(file, []byte(text), 0o644)) //nolint:gosec // as a runner's
}

// run runs git on this machine.
func (c *ci) run(dir string, args ...string) {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
	if out, err := cmd.CombinedOutput(); err != nil {
		c.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestActionFails: what is wrong before any step, its exit code, and what is said.
func TestActionFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		with  map[string]string
		files map[string]string // of the default branch
		perms forgetest.Permissions
		code  int
		want  string
	}{
		"unknown provider":   {with: map[string]string{"provider": "opanai"}, code: 2, want: `::error title=uwf::no provider "opanai"; did you mean openai`},
		"a key for nobody":   {with: map[string]string{"provider": ""}, code: 2, want: "set provider too"},
		"unknown workflow":   {with: map[string]string{"workflow": "solve-isue"}, code: 2, want: "did you mean solve-issue"},
		"a path as workflow": {with: map[string]string{"workflow": "../../../../etc/passwd"}, code: 2, want: "on the default branch"},
		"another store":      {with: map[string]string{"store": "01JY0000000000000000000000"}, code: 5, want: "store"},
		"wrong settings":     {files: map[string]string{ciConfig: "defaultAgnet: x\n"}, code: 2, want: "defaultAgent"},
		"a wrong definition": {files: map[string]string{ciFlow: "name: solve-issue\nroles: {}\n"}, code: 2, want: "::error col="},
		"a large definition": {files: map[string]string{".uwf/x": strings.Repeat("x", 1<<20+1)}, code: 2, want: "::error file=.uwf/x,title=uwf::"},
		"no permission":      {perms: forgetest.ReadPermissions(), code: 1, want: "::error "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCI(t, ciOptions{files: tt.files})
			c.perms = tt.perms
			for in, v := range tt.with {
				c.with[in] = v
			}
			j := c.start(c.forge.PutLabel("alice", c.issue(), "uwf"))
			if j.code != tt.code && !(tt.perms != nil && j.code > 0) || !strings.Contains(j.log, tt.want) || j.outputs["done"] != "false" {
				t.Errorf("want exit code %d and %q: %s", tt.code, tt.want, j)
			}
			if tt.perms != nil && !regexp.MustCompile(`::warning::[a-z-]+: .*%0A`).MatchString(j.log) {
				t.Errorf("it does not say what mends it: %s", j)
			}
		})
	}
}

// TestActionQuiet: events that are not for uwf end green, with one line, and cost
// nothing.
func TestActionQuiet(t *testing.T) {
	t.Parallel()
	eitherForge(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea})
		n := c.issue()
		for what, e := range map[string]forgetest.Event{
			"a comment": c.forge.PostComment("alice", n, "I have seen it too."), "another label": c.forge.PutLabel("alice", n, "bug"), "a push": c.forge.Push("alice"),
		} {
			j := c.start(e)
			c.green(j)
			if strings.Count(j.log, "::notice::") != 1 || strings.Contains(j.log, "::error") || j.outputs["thread"] != "" {
				t.Errorf("%s: %s", what, j)
			}
		}
		for _, call := range c.forge.Calls() {
			if call.Method != "GET" {
				t.Errorf("%s %s", call.Method, call.Path)
			}
		}
	})
}

// TestActionEmptyRepository: there is nothing to work on, and the job says what to do.
func TestActionEmptyRepository(t *testing.T) {
	t.Parallel()
	s := forgetest.Start(t, forgetest.Options{})
	cmd := exec.CommandContext(t.Context(), "uwf", "action")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GITHUB_SERVER_URL=" + s.URL, "GITHUB_API_URL=" + s.APIURL,
		"GITHUB_REPOSITORY=" + s.Repository(), "INPUT_TOKEN=" + s.JobToken(forgetest.JobPermissions()), "INPUT_PROMPT=x"}
	out, _ := cmd.CombinedOutput() // the exit code says it
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "push a first commit") {
		t.Errorf("%s", out)
	}
}

// TestActionDoctor: the command doctor says how things stand, and changes no thread.
func TestActionDoctor(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	c.with["command"] = "doctor"
	good := c.start(c.forge.Manual("alice", "uwf.yml", nil))
	c.green(good)
	if !strings.Contains(good.log, "\nok: ") {
		t.Errorf("%s", good)
	}
	c.perms = forgetest.ReadPermissions()
	bad := c.start(c.forge.Manual("alice", "uwf.yml", nil))
	c.red(bad)
	if !strings.Contains(bad.log, "::error title=uwf doctor::") {
		t.Errorf("%s", bad)
	}
	// A secret that is not set comes as an empty key: a finding like others, not the end.
	c.perms = nil
	c.with["provider"], c.with["api-key"] = "openai", ""
	empty := c.start(c.forge.Manual("alice", "uwf.yml", nil))
	c.red(empty)
	if !strings.Contains(empty.log, "settings: there is no key for openai") || !strings.Contains(empty.log, "ok: push") || !strings.Contains(empty.log, "ok: sandbox") {
		t.Errorf("%s", empty)
	}
	if refs := c.git("for-each-ref", "--format=%(refname)", "refs/heads/uwf-state", "refs/uwf"); refs != "" {
		t.Errorf("refs were made: %s", refs)
	}
}

// TestActionDoctorStarters: a job on Gitea says that nobody may start there.
func TestActionDoctorStarters(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{gitea: true, forge: forgetest.Options{Organisation: true}})
	c.with["command"] = "doctor"
	closed := c.start(c.forge.Manual("alice", "uwf.yml", nil))
	c.red(closed)
	if !strings.Contains(closed.log, "::error title=uwf doctor::starters: nobody may start or steer") || !strings.Contains(closed.log, `allow: "alice bob"`) {
		t.Errorf("%s", closed)
	}
}

// TestActionAlone: without a runner, as in another CI, from the README of the command.
func TestActionAlone(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	cmd := exec.CommandContext(t.Context(), "uwf", "action")
	cmd.Dir = t.TempDir()
	token := c.forge.UserToken("alice")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GITHUB_SERVER_URL=" + c.forge.URL, "GITHUB_REPOSITORY=" + c.forge.Repository(),
		"GITHUB_TOKEN=" + token, "GITHUB_ACTOR=alice", "INPUT_PROMPT=Mend it.", "INPUT_DISPATCH=off", "INPUT_STEPS_PER_JOB=9", "INPUT_SANDBOX=off"}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), token) {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(string(out))
	if log := c.git("log", "--format=%s", "uwf-state"); !strings.Contains(log, "Mend it. · reviewer → approved · step 3 · ") {
		t.Errorf("%s\n%s", log, out)
	}
}

// TestActionOwnAgent runs an agent that is a program of the default branch, confined,
// and that tries to talk to the job's runner: what it prints is shown, and commands
// nobody.
func TestActionOwnAgent(t *testing.T) {
	t.Parallel()
	const evil = "::error::forged\n::add-mask::a\n::stop-commands::x\n::x::\n##[error]forged"
	c := newCI(t, ciOptions{config: "agents:\n  own: {command: .uwf/agent.sh}\ndefaultAgent: own\n"})
	c.with["sandbox"] = "auto"
	c.open()
	work := filepath.Join(c.dir, "main")
	c.run("", "clone", "-q", c.forge.Dir(), work)
	c.put(filepath.Join(work, ".uwf", "agent.sh"), "#!/bin/sh\nprintf '"+evil+"\\nI am %s\\n' \"$(id -u)\" >&2\nexec \"${UWF_BIN:-uwf}\" agent mock .uwf/mock.yaml \"$@\"\n")
	c.check(os.Chmod(filepath.Join(work, ".uwf", "agent.sh"), 0o755)) //nolint:gosec // a program
	c.run(work, "add", "-A")
	c.run(work, "-c", "user.name=alice", "-c", "user.email=alice@example.com", "commit", "-q", "-m", "An agent of our own")
	c.run(work, "push", "-q", "origin", "HEAD")
	j := c.start(c.forge.PutLabel("alice", c.issue(), "uwf"))
	c.green(j)
	if j.outputs["result"] != "ready" || !strings.Contains(j.log, "\n::error::forged\n") {
		t.Errorf("the agent was not heard: %s", j)
	}
	if os.Geteuid() == 0 && runtime.GOOS == "linux" && strings.Contains(j.log, "\nI am 0\n") {
		t.Errorf("the agent is root: %s", j)
	}
	fenced := regexp.MustCompile(`(?s)::stop-commands::(uwf-[A-Z2-7]{26})\n.*::error::forged\n.*\n::(uwf-[A-Z2-7]{26})::\n`).FindStringSubmatch(j.log)
	if fenced == nil || fenced[1] != fenced[2] {
		t.Errorf("the agent's words are not behind a fence: %s", j)
	}
}
