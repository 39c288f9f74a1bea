package forge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/united-workforce/uwf/internal/forgetest"
	"golang.org/x/tools/txtar"
)

// Variables of TestImage; .ci/image sets them.
const (
	envEngine = "UWF_IMAGE_ENGINE" // the command that runs images: docker, podman or buildah, with its flags
	envImage  = "UWF_IMAGE"        // the image's name
)

// runnerUser is the user that the workspace belongs to on GitHub's runners.
const runnerUser = 1001

// container is how an engine runs the image.
type container struct {
	*testing.T
	engine []string
	image  string
}

// mount is a folder of this machine and where the container sees it.
type mount struct{ here, there string }

// run runs the image as a runner does a container action: by its own entry point. A
// program names another one.
func (c *container) run(mounts []mount, env map[string]string, program string, args ...string) (string, error) {
	c.Helper()
	if strings.HasSuffix(c.engine[0], "buildah") {
		return c.buildah(mounts, env, program, args...)
	}
	all := append(slices.Clone(c.engine[1:]), "run", "--rm", "--network", "host")
	for _, m := range mounts {
		all = append(all, "--volume", m.here+":"+m.there)
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, "--env", name+"="+env[name])
	}
	if len(mounts) > 0 {
		all = append(all, "--workdir", "/github/workspace")
	}
	if program != "" {
		all = append(all, "--entrypoint", program)
	}
	return c.output(c.engine[0], slices.Concat(all, []string{c.image}, args)...)
}

// buildah has no run for images: a container is made of it, and its entry point named.
func (c *container) buildah(mounts []mount, env map[string]string, program string, args ...string) (string, error) {
	c.Helper()
	do := func(args ...string) string {
		c.Helper()
		out, err := c.output(c.engine[0], append(slices.Clone(c.engine[1:]), args...)...)
		if err != nil {
			c.Fatal(err, out)
		}
		return strings.TrimSpace(out)
	}
	name := do("from", "--pull-never", c.image)
	defer do("rm", name)
	if program == "" {
		var image struct {
			OCI struct {
				Config struct{ Entrypoint []string } `json:"config"`
			} `json:"OCIv1"`
		}
		mustDo(c, json.Unmarshal([]byte(do("inspect", "--type", "image", c.image)), &image))
		if len(image.OCI.Config.Entrypoint) != 1 {
			c.Fatalf("the image's entry point: %q", image.OCI.Config.Entrypoint)
		}
		program = image.OCI.Config.Entrypoint[0]
	}
	all := append(slices.Clone(c.engine[1:]), "run", "--isolation", "chroot", "--network", "host")
	for _, m := range mounts {
		all = append(all, "--volume", m.here+":"+m.there)
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, "--env", name+"="+env[name])
	}
	if len(mounts) > 0 {
		all = append(all, "--workingdir", "/github/workspace")
	}
	return c.output(c.engine[0], slices.Concat(all, []string{name, "--", program}, args)...)
}

func (c *container) output(program string, args ...string) (string, error) {
	cmd := exec.CommandContext(c.Context(), program, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// TestImage runs the image that .ci/image has built as GitHub's runner runs a container
// action: a workspace of another user and the runner's folders below /github. The forge
// is the fake one, on this machine.
func TestImage(t *testing.T) {
	c := &container{T: t, engine: strings.Fields(setting(t, envEngine)), image: setting(t, envImage)}
	version, err := c.run(nil, nil, "", "--version")
	if err != nil || !strings.Contains(version, "v0.0.0-test") {
		t.Errorf("%v: %s", err, version)
	}
	tools, err := c.run(nil, nil, "bash", "-c", "git --version && curl --version && jq --version && rg --version && stat --version && id -u uwf-agent")
	if err != nil || !strings.Contains(tools, "60999") {
		t.Errorf("what agents need is not there: %v: %s", err, tools)
	}

	f := forgetest.Start(t, forgetest.Options{Private: true})
	files := map[string]string{
		".uwf/config.yaml": mockConfig, ".uwf/workflows/solve-issue.yaml": example(t, "solve-issue.yaml"), workflowFile: example(t, "github/uwf.yml"),
		".uwf/mock.yaml": "steps:\n  - {role: planner, write: {new/by-agent.txt: x}, output: \"---\\n$status: ready\\nplan: Write.\\nfiles: [a]\\n---\\nx\\n\"}\n",
	}
	for _, file := range txtar.Parse([]byte(example(t, "demo/repo.txtar"))).Files {
		files[file.Name] = string(file.Data)
	}
	f.MustCommit(t, "main", "A small blog", files)
	f.SetPermission("alice", "write")
	j := newContainerJob(t, f, f.PutLabel("alice", f.OpenIssue("alice", "Slugs look broken", example(t, "demo/issue.md")), "uwf"))
	log, err := c.run(j.mounts, j.env, "", "action")
	if err != nil {
		t.Fatalf("the job failed: %v\n%s", err, log)
	}
	j.check(log)
	if sent := f.TakeDispatches(); len(sent) != 1 || sent[0].Inputs["thread"] == "" {
		t.Errorf("the next job: %+v", sent)
	}
	if got := f.Comments(1); len(got) != 1 || !strings.Contains(got[0].Body, "planner") {
		t.Errorf("comments: %+v", got)
	}
}

// containerJob is what a runner gives to the container of a job.
type containerJob struct {
	*testing.T
	dirs   map[string]string // of this machine, by their names below /github
	env    map[string]string
	mounts []mount
	token  string
}

func newContainerJob(t *testing.T, f *forgetest.Server, e forgetest.Event) *containerJob {
	t.Helper()
	top := t.TempDir()
	// Agents are another user, who has to get to the workspace.
	for _, dir := range []string{filepath.Dir(top), top} {
		mustDo(t, os.Chmod(dir, 0o755))
	}
	j := &containerJob{T: t, dirs: map[string]string{}, token: f.JobToken(forgetest.JobPermissions())}
	for _, name := range []string{"workspace", "home", "workflow", "file_commands", "runner_temp"} {
		dir := filepath.Join(top, "_github_"+name)
		mustDo(t, os.Mkdir(dir, 0o755))
		j.own(dir)
		j.dirs[name] = dir
		j.mounts = append(j.mounts, mount{dir, "/github/" + name})
	}
	mustDo(t, os.WriteFile(filepath.Join(j.dirs["workflow"], "event.json"), e.Payload, 0o644))
	j.env = map[string]string{
		"HOME": "/github/home", "CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": "/github/workspace", "RUNNER_TEMP": "/github/runner_temp",
		"GITHUB_EVENT_PATH": "/github/workflow/event.json", "GITHUB_EVENT_NAME": e.Name, "GITHUB_ACTOR": e.Actor, "GITHUB_TRIGGERING_ACTOR": e.Actor,
		"GITHUB_SERVER_URL": f.URL, "GITHUB_API_URL": f.APIURL, "GITHUB_REPOSITORY": f.Repository(), "GITHUB_REPOSITORY_OWNER": "octo",
		"GITHUB_RUN_ID": "7001", "GITHUB_RUN_NUMBER": "1", "GITHUB_RUN_ATTEMPT": "1", "GITHUB_JOB": "step", "GITHUB_WORKFLOW": "uwf",
		"GITHUB_ACTION": "__united-workforce_uwf", "GITHUB_WORKFLOW_REF": f.Repository() + "/" + workflowFile + "@refs/heads/main",
		"GITHUB_REF": "refs/heads/main", "GITHUB_REF_NAME": "main", "RUNNER_OS": "Linux", "RUNNER_ARCH": "X64",
		"INPUT_TOKEN": j.token, "INPUT_COMMAND": "step", "INPUT_LABEL": "uwf", "INPUT_COMMENT": "true", "INPUT_PULL-REQUEST": "true",
		"INPUT_DISPATCH": "auto", "INPUT_CONFIG": ".uwf/config.yaml", "INPUT_STEPS-PER-JOB": "1", "INPUT_API-KEY": aSecret, "INPUT_PROVIDER": "openai",
	}
	for name, file := range commandFiles {
		full := filepath.Join(j.dirs["file_commands"], file)
		mustDo(t, os.WriteFile(full, nil, 0o644))
		j.own(full)
		j.env[name] = "/github/file_commands/" + file
	}
	return j
}

// commandFiles are the runner's files for what a job says.
var commandFiles = map[string]string{
	"GITHUB_OUTPUT": "set_output_1b2c", "GITHUB_STEP_SUMMARY": "step_summary_1b2c", "GITHUB_ENV": "set_env_1b2c", "GITHUB_PATH": "add_path_1b2c", "GITHUB_STATE": "save_state_1b2c",
}

// own gives a file to the runner's user, where that can be done.
func (j *containerJob) own(name string) {
	j.Helper()
	if os.Geteuid() == 0 {
		mustDo(j, os.Chown(name, runnerUser, runnerUser))
	}
}

func (j *containerJob) read(command string) string {
	j.Helper()
	text, err := os.ReadFile(filepath.Join(j.dirs["file_commands"], commandFiles[command]))
	mustDo(j, err)
	return string(text)
}

// check checks what the job has left.
func (j *containerJob) check(log string) {
	j.Helper()
	outputs := j.read("GITHUB_OUTPUT")
	for _, want := range []string{"planner", "ready", "developer", "false"} {
		if !strings.Contains(outputs, want) {
			j.Errorf("the outputs lack %q:\n%s", want, outputs)
		}
	}
	if summary := j.read("GITHUB_STEP_SUMMARY"); !strings.Contains(summary, "planner") {
		j.Errorf("the summary:\n%s", summary)
	}
	for _, name := range []string{"GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE"} {
		if text := j.read(name); text != "" {
			j.Errorf("the job wrote to the file of %s: %s", name, text)
		}
	}
	if strings.Contains(log, "note: sandbox") {
		j.Errorf("agents are not another user:\n%s", log)
	}
	if _, err := os.Stat(filepath.Join(j.dirs["workspace"], "new", "by-agent.txt")); err != nil {
		j.Errorf("the agents did not work in the workspace: %v\n%s", err, log)
	}
	for _, name := range []string{"home", "runner_temp"} {
		if left, err := os.ReadDir(j.dirs[name]); err != nil || len(left) > 0 {
			j.Errorf("left in %s: %v, %v", name, left, err)
		}
	}
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "::add-mask::") && (strings.Contains(line, j.token) || strings.Contains(line, aSecret)) {
			j.Errorf("a secret is in the log: %s", line)
		}
	}
	if os.Geteuid() != 0 {
		return // the runner's user is not another one
	}
	for _, name := range []string{"workspace", "runner_temp"} {
		mustDo(j, filepath.WalkDir(j.dirs[name], func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return fmt.Errorf("look at %s: %w", file, err)
			}
			if is, ok := info.Sys().(*syscall.Stat_t); !ok || is.Uid != runnerUser {
				j.Errorf("%s belongs to user %d, want %d", file, is.Uid, runnerUser)
			}
			return nil
		}))
	}
}
