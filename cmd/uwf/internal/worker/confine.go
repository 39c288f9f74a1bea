package worker

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas/workspace/gitsettings"
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
	o.Folder = w.folder.Dir
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

// refuseOwnCheckout refuses a working folder that holds the .git of the checkout that uwf
// was called from, unless somebody insists: git obeys what agents write there, when uwf or
// the person or the prompt of a shell runs it next, or while they work.
func refuseOwnCheckout(f *app.Factory, dir string, insisted bool) error {
	own := f.FindRepo()
	if f.Job != nil { // what a job knows of the repository it reads from the default branch
		return nil
	}
	if own.Dir != "" && app.Within(dir, own.Dir) {
		return app.Usagef("--workspace %s lies in %s, which is git's: name another folder, or leave --workspace out", dir, own.Dir)
	}
	if insisted {
		return nil
	}
	places := []string{f.Dir}
	if own.Root != "" {
		places = append(places, filepath.Join(own.Root, ".git"), own.Dir)
	}
	for _, place := range places {
		if app.Within(place, dir) {
			return app.Usagef("--workspace %s holds %s, from where uwf is called: git obeys what agents write into a .git there, as soon as you, uwf or your shell's prompt runs it. "+
				"Leave --workspace out (agents get a folder of their own), name another folder, or insist with --with-git: then the .git's config, hooks and info are put back after each agent", dir, place)
		}
	}
	return nil
}

// refuseStoreInside refuses that confined agents work in the folder that holds the store:
// uwf works with its .git while they do, and they could direct it.
func (w *Worker) refuseStoreInside(ctx context.Context, dir string) error {
	if w.sandboxMode() == config.SandboxOff {
		return nil
	}
	loc, err := w.f.Locate(ctx)
	if err != nil {
		return err
	}
	path := loc.URL
	if u, err := url.Parse(loc.URL); err == nil && u.Scheme == "file" {
		path = filepath.FromSlash(u.Path)
	}
	if filepath.IsAbs(path) && app.Within(path, dir) {
		return app.Usagef("--workspace %s holds the threads as well (%s), which confined agents could change while uwf works with them: keep them on a remote (state.remote), name another folder, leave --workspace out, or trust the agents with all that is yours (sandbox: off in ~/.uwf/config.yaml)", dir, path)
	}
	return nil
}

// ownEntries are the entries named .git of that checkout in a folder, but for the folder's
// own.
func ownEntries(f *app.Factory, dir string) (entries []string) {
	own := f.FindRepo()
	top, err := filepath.EvalSymlinks(dir)
	if f.Job != nil || own.Root == "" || err != nil {
		return nil
	}
	for _, tree := range []string{own.Root, filepath.Dir(own.Dir)} { // that one is another where it is a linked working tree
		real, err := filepath.EvalSymlinks(tree)
		if err != nil {
			continue
		}
		if rel, err := filepath.Rel(top, real); err == nil && filepath.IsLocal(rel) && rel != "." {
			entries = append(entries, filepath.Join(rel, ".git"))
		}
	}
	return slices.Compact(entries)
}

// putBackTime bounds how long a .git is removed that was not there before, an agent's own.
const (
	putBackTime     = 30 * time.Second
	putBackStopping = time.Second // where the job was told to end
)

// withPutBackTime gives what is put back its time, whatever ended the agent.
func withPutBackTime(ctx context.Context) (context.Context, context.CancelFunc) {
	within := putBackTime
	if ctx.Err() != nil {
		within = putBackStopping
	}
	return context.WithTimeout(context.WithoutCancel(ctx), within)
}

// keepingGitSettings runs an agent, and puts back what git obeys in a folder that was
// named. Folders of uwf's own have no .git, and nobody runs git there.
func (w *Worker) keepingGitSettings(ctx context.Context, t task.Task, run func() (task.Draft, error)) (task.Draft, error) {
	failed := func(d task.Draft, reason string, err error) (task.Draft, error) {
		return d, &task.AgentError{Agent: t.Agent, Reason: reason, Err: err}
	}
	dir := w.folder.dir
	if w.o.Workspace == "" {
		return run()
	}
	root, err := w.f.StorageRoot()
	if err != nil {
		return failed(task.Draft{}, "it can't be started", err)
	}
	kept, err := gitsettings.Keep(dir, ownEntries(w.f, dir), app.KeptSettings(root))
	if err != nil {
		return failed(task.Draft{}, "it can't be started", err)
	}
	draft, err := run()
	ctx, cancel := withPutBackTime(ctx)
	defer cancel()
	changed, perr := kept.PutBack(ctx)
	draft.PutBack = changed
	if perr != nil {
		return failed(draft, "what it changed for git can't be undone", errors.Join(perr, err))
	}
	return draft, err
}
