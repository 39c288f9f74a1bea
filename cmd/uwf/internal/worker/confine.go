package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/internal/removal"
)

// sandboxMode is how much agents are confined: what the configuration says, or
// what was said for this process if that is stricter; the default where nobody says
// anything.
func (w *Worker) sandboxMode() config.Sandbox {
	flag := config.Sandbox(w.o.Sandbox)
	if w.config.SaysSandbox() || flag == "" {
		return config.StricterSandbox(w.config.Sandbox, flag)
	}
	return flag
}

// saysSandbox reports whether somebody said how agents are confined.
func (w *Worker) saysSandbox() bool { return w.config.SaysSandbox() || w.o.Sandbox != "" }

// isTrusted says whether somebody switched the sandbox off, so that agents may have
// what this process has.
func (w *Worker) isTrusted() bool { return w.sandboxMode() == config.SandboxOff && w.saysSandbox() }

// NewSandbox is what confines agents by these settings; nil: nothing does. self is this
// binary's command line; optional: nobody asked for it.
func NewSandbox(f *app.Factory, c *config.Config, self []string, mode config.Sandbox, optional bool) *sandbox.Sandbox {
	var protect []string
	if root, err := f.StorageRoot(); err == nil {
		protect = append(protect, root)
	}
	return sandbox.New(sandbox.Options{
		Mode: sandbox.Mode(mode), Network: sandbox.Network(c.Confine.Network), Optional: optional,
		Read: c.Confine.Read, Write: c.Confine.Write, Protect: protect,
		Self: self, Environ: f.Environ,
	})
}

// confineAgents gives the spawner the sandbox that the settings ask for.
func (w *Worker) confineAgents(o *agents.Options) {
	w.sandbox = NewSandbox(w.f, w.config, o.Self, w.sandboxMode(), !w.saysSandbox())
	o.Sandbox = w.sandbox
	o.Folder, o.OwnFolder = w.folder.Dir, w.o.Workspace == ""
	o.Gaps = w.tellGaps
}

// describeCell says in one line what an agent of this process may do.
func (w *Worker) describeCell(agent string) string {
	confined, network := w.sandbox.Summary()
	switch err := w.sandbox.Check(); {
	case err != nil:
		confined += ", as nothing here can (" + strings.Join(w.sandbox.Gaps(), "; ") + ")"
	case w.sandbox != nil:
	case w.saysSandbox() || runtime.GOOS == "linux":
		confined += " (sandbox: off)"
	case runtime.GOOS == "darwin":
		confined += " (nobody has tried uwf's sandbox on macOS yet; sandbox: auto uses it)"
	}
	shell := "no shell"
	if w.o.AllowShell || w.config.AllowShell || w.runsForeign(agent) { // who brings its own tools has one
		shell = "shell"
	}
	return fmt.Sprintf("agents: %s, %s, network %s", confined, shell, network)
}

// tellGaps says once of each thing that it isn't enforced.
func (w *Worker) tellGaps(gaps []string) {
	for _, gap := range gaps {
		w.noticeOnce("sandbox: " + gap)
	}
}

// noticeOnce tells something that is the same for each agent of this process.
func (w *Worker) noticeOnce(text string) {
	if _, again := w.noticed.LoadOrStore(text, true); !again {
		w.logEvent(thread.Event{Kind: "notice", Text: text})
	}
}

// refuseExposure refuses to start agents that could read secrets out of this
// process's environment.
func (w *Worker) refuseExposure() error {
	if w.f.Exposed == nil || w.isTrusted() {
		return nil
	}
	found := redact.FromEnv(w.f.Environ)
	if len(found) == 0 {
		return nil
	}
	return app.Usagef("agents could read %s out of the environment of this process (%w): keep secrets in ~/.uwf/.env instead, or set sandbox: off if you trust the agents with them",
		found[0].Name, w.f.Exposed)
}

// refuseOwnCheckout refuses a working folder that is a checkout, or lies around or in the .git of
// the one that uwf was called from: git obeys what agents write into a .git, when the person or the
// prompt of a shell runs it next.
func refuseOwnCheckout(f *app.Factory, dir string) error {
	own := f.FindRepo()
	if own.Dir != "" && app.Within(dir, own.Dir) {
		return app.Usagef("--workspace %s lies in %s, which is git's: %s", dir, own.Dir, emptyFolder)
	}
	places := []string{f.Dir}
	if own.Root != "" {
		places = append(places, filepath.Join(own.Root, ".git"), own.Dir)
	}
	if made := filepath.Join(dir, ".git"); isThere(made) {
		places = append(places, made)
	}
	for _, place := range places {
		if app.Within(place, dir) {
			return app.Usagef("--workspace %s holds %s, which agents must not change: git obeys what they write into a .git, as soon as you or your shell's prompt runs it; %s", dir, place, emptyFolder)
		}
	}
	return nil
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// emptyFolder says which folder agents can work in.
const emptyFolder = "name an empty folder, or leave --workspace out"

// putBackTime bounds how long an agent's folder is tidied after it.
const (
	putBackTime     = 30 * time.Second
	putBackStopping = time.Second // if the job was told to end
)

// withPutBackTime gives what is put back its time, whatever ended the agent.
func withPutBackTime(ctx context.Context) (context.Context, context.CancelFunc) {
	within := putBackTime
	if ctx.Err() != nil {
		within = putBackStopping
	}
	return context.WithTimeout(context.WithoutCancel(ctx), within)
}

// removingGit runs an agent. A .git that it makes in a folder that was named is removed after it,
// since git obeys what it holds.
func (w *Worker) removingGit(ctx context.Context, t task.Task, run func() (task.Draft, error)) (task.Draft, error) {
	draft, err := run()
	made := filepath.Join(w.folder.dir, ".git")
	if w.o.Workspace == "" || !isThere(made) {
		return draft, err
	}

	ctx, cancel := withPutBackTime(ctx)
	defer cancel()
	if rerr := removal.Tree(ctx, made, 0); rerr != nil {
		return draft, &task.AgentError{Agent: t.Agent, Reason: "the .git that it made in the workspace can't be removed", Err: errors.Join(rerr, err)}
	}
	w.logEvent(thread.Event{Kind: "notice", Thread: t.Thread, Step: t.Step, Role: t.Role, Text: "the agent made a .git in the workspace, which is removed"})
	return draft, err
}
