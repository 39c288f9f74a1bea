package forge

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/forgetest"
)

// envAct is the path of act (github.com/nektos/act), which .ci/run builds.
const envAct = "UWF_ACT"

// TestAct runs the workflow file that we ship, by act instead of a forge's runner: its
// triggers and conditions, its expressions, and the host variant of the action, in jobs
// on this machine. The forge is the fake one, with real git. Only the action's name is
// changed, to the variant that needs no container engine.
func TestAct(t *testing.T) {
	act := os.Getenv(envAct)
	if act == "" {
		t.Skipf("act is not here: set %s to its path (cd .ci/tools/act && go build -o ACT github.com/nektos/act)", envAct)
	}
	t.Parallel()
	bothForges(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea, script: askingScript})
		shipped := c.example("github/uwf.yml")
		hosted := strings.ReplaceAll(shipped, "uses: united-workforce/uwf@", "uses: united-workforce/uwf/.github/actions/host@")
		if gitea { // whose token can't tell what alice may do, and whose labels stand elsewhere
			hosted = strings.Replace(hosted, "        with:\n", "        with:\n          allow: alice\n", 1)
			label := "github.event.label.name == 'uwf'"
			hosted = strings.Replace(hosted, label, "("+label+" || contains(github.event.changes.added_labels.*.name, 'uwf'))", 1)
		}
		if hosted == shipped {
			t.Fatal("the shipped workflow file uses no action of ours")
		}
		c.forge.MustCommit(t, c.forge.Branch(), "Run on the runner itself", map[string]string{ciWorkflow: hosted})
		a := newActor(c, act)
		a.standIn("exit 1", otherAction.FindAllString(hosted, -1)...)
		n := c.issue()
		a.run(c.forge.PutLabel("alice", n, "bug"), "")
		a.run(c.forge.PostComment("alice", n, "What is this?"), "")
		if got := c.forge.Comments(n); len(got) != 1 {
			t.Errorf("comments: %+v", got)
		}
		a.run(c.forge.PutLabel("alice", n, "uwf"), "planner → ready")
		a.settle()
		if said := c.sticky(n).Body; !strings.Contains(said, "Does MaxLen count bytes?") {
			t.Fatalf("nobody is asked: %s", said)
		}
		a.run(c.forge.PostComment("alice", n, "/uwf resume\nYes, bytes."), "developer → done")
		a.settle()
		c.solved(n, 4)
		c.readable()
	})
	t.Run("called", func(t *testing.T) { t.Parallel(); actCalled(t, act) })
}

// actCalled has the jobs of a repository in its organisation's workflow, which carries a policy: they
// start each other by the repository's own file, and it is told what the policy holds.
func actCalled(t *testing.T, act string) {
	c := newCI(t, ciOptions{config: mockConfig + "limits: {maxSteps: 50}\n"})
	shipped := c.example("github/reusable.yml")
	hosted := strings.NewReplacer("uses: united-workforce/uwf@", "uses: united-workforce/uwf/.github/actions/host@",
		"agents: [builtin]\n", "agents: [mock]\n", "sandbox: require\n", "sandbox: auto\n").Replace(shipped)
	dir := filepath.Join(c.dir, "organisation")
	c.check(os.MkdirAll(filepath.Join(dir, ".github/workflows"), 0o755)) //nolint:gosec // as a runner's
	c.check(os.WriteFile(filepath.Join(dir, ciWorkflow), []byte(hosted), 0o600))
	c.forge.MustCommit(t, c.forge.Branch(), "Call the organisation's workflow", map[string]string{ciWorkflow: c.example("github/caller.yml")})
	c.perms = c.permissions("uwf")
	a := newActor(c, act)
	a.standIn("exit 1", otherAction.FindAllString(hosted, -1)...)
	called := regexp.MustCompile(`uses: (acme/\.github)/\S+(@[0-9a-f]{40})`).FindStringSubmatch(c.example("github/caller.yml"))
	a.local = append(a.local, "--local-repository", called[1]+called[2]+"="+dir)
	n := c.issue()
	a.run(c.forge.PutLabel("alice", n, "bug"), "LocalRepositoryCache read") // the called file, which starts no job
	if got := c.forge.Comments(n); len(got) > 0 {
		t.Errorf("comments: %+v", got)
	}
	a.run(c.forge.PutLabel("alice", n, "uwf"), "limits.maxSteps: it asks for 50; the policy (the input policy:4) allows nothing looser than 40, which holds")
	if sent := c.forge.Dispatches(); len(sent) != 1 || sent[0].Workflow != filepath.Base(ciWorkflow) {
		t.Fatalf("the next job is %+v", sent)
	}
	a.settle()
	c.solved(n, 3)
}

// actor runs a repository's workflow file by act.
type actor struct {
	*ci
	act, action, clone, uwf string
	local                   []string // actions in folders of this machine, as act is told
	runs                    int
}

// otherAction is an action in a workflow file that is not ours.
var otherAction = regexp.MustCompile(`actions/[a-z-]+@[0-9a-f]{40}`)

// standIn puts a command in the place of actions, even of those that come by only when a job
// failed: act fetches the actions of all steps before it begins.
func (a *actor) standIn(command string, actions ...string) {
	a.Helper()
	dir, err := os.MkdirTemp(a.dir, "stand-in-")
	a.check(err)
	a.check(os.WriteFile(filepath.Join(dir, "action.yml"), []byte("name: stand-in\nruns:\n  using: composite\n  steps:\n    - run: "+command+"\n      shell: sh\n"), 0o600))
	for _, name := range actions {
		a.local = append(a.local, "--local-repository", name+"="+dir)
	}
}

func newActor(c *ci, act string) *actor {
	c.Helper()
	a := &actor{ci: c, act: act, action: filepath.Join(c.dir, "action"), clone: c.checkout(c.forge.Branch())}
	var err error
	a.uwf, err = exec.LookPath("uwf")
	c.check(err)
	host := ".github/actions/host"
	c.check(os.CopyFS(filepath.Join(a.action, host), os.DirFS("../../../../"+host)))
	c.check(os.Chmod(filepath.Join(a.action, host, "install.sh"), 0o755)) //nolint:gosec // a program
	return a
}

// run runs an event's jobs, whose log has to say something; empty: there are none.
func (a *actor) run(e forgetest.Event, want string) {
	a.Helper()
	a.runs++
	dir := filepath.Join(a.dir, "act-"+itoa(a.runs))
	c := a.ci
	for _, name := range []string{"home", "cache", "temp"} {
		c.check(os.MkdirAll(filepath.Join(dir, name), 0o755)) //nolint:gosec // as a runner's
	}
	payload := filepath.Join(dir, "event.json")
	c.check(os.WriteFile(payload, e.Payload, 0o600))
	token := c.forge.JobToken(c.permissions("step"))
	defer c.forge.Revoke(token)
	args := []string{e.Name, "--eventpath", payload, "--workflows", ciWorkflow, "--actor", e.Actor,
		"--platform", "ubuntu-latest=-self-hosted", "--pull=false", "--no-cache-server",
		"--action-cache-path", filepath.Join(dir, "cache"), "--defaultbranch", c.forge.Branch(),
		"--local-repository", "united-workforce/uwf@v1=" + a.action,
		"--secret", "GITHUB_TOKEN=" + token, "--secret", "OPENAI_API_KEY=" + aSecret, "--secret", "ANTHROPIC_API_KEY=" + aSecret}
	args = append(args, a.local...)
	run := e.Run
	if run == 0 {
		run = 9000 + int64(a.runs)
	}
	for name, value := range map[string]string{
		"GITHUB_API_URL": c.forge.APIURL, "GITHUB_SERVER_URL": c.forge.URL, "GITHUB_REPOSITORY": c.forge.Repository(),
		"GITHUB_RUN_ID": strconv.FormatInt(run, 10), "UWF_BINARY": a.uwf,
		// act has none; forges do.
		"GITHUB_WORKFLOW_REF": c.forge.Repository() + "/" + ciWorkflow + "@refs/heads/" + c.forge.Branch(),
	} {
		args = append(args, "--env", name+"="+value)
	}
	if c.gitea {
		args = append(args, "--env", "GITEA_ACTIONS=true")
	}
	ctx, cancel := context.WithTimeout(c.Context(), jobDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, a.act, args...)
	cmd.Dir = a.clone
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "TMPDIR=" + filepath.Join(dir, "temp"),
		"XDG_CACHE_HOME=" + filepath.Join(dir, "cache"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "LC_ALL=C",
	}
	out, err := cmd.CombinedOutput()
	log := string(out)
	if err != nil || !strings.Contains(log, want) || want == "" && strings.Contains(log, "uwf/") {
		c.Fatalf("act %s: %v; %q is expected in:\n%s", e.Name, err, want, log)
	}
	for _, secret := range []string{token, aSecret} {
		if strings.Contains(log, secret) {
			c.Errorf("a secret is in the log of act %s:\n%s", e.Name, log)
		}
	}
}

// settle runs what was dispatched, until nothing is left.
func (a *actor) settle() {
	a.Helper()
	for range maxJobs {
		sent := a.forge.TakeDispatches()
		if len(sent) == 0 {
			return
		}
		for _, d := range sent {
			a.run(a.forge.Dispatched(d), "Job succeeded")
		}
	}
	a.Fatal("the jobs come to no end")
}
