package worker

import (
	"os"
	"slices"
	"sync"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/thread"
)

// sandboxMode is how much agents are confined: what the configuration says, or
// what was said for this process if that is stricter.
func (w *Worker) sandboxMode() config.Sandbox {
	strict := []config.Sandbox{config.SandboxOff, config.SandboxAuto, config.SandboxRequire}
	said := slices.Index(strict, config.Sandbox(w.o.Sandbox)) // -1: nothing was said
	return strict[max(said, slices.Index(strict, w.config.Sandbox), 0)]
}

// isTrusted says whether somebody switched the sandbox off, so that agents may have
// what this process has.
func (w *Worker) isTrusted() bool {
	_, said := w.config.Origins["sandbox"]
	return w.sandboxMode() == config.SandboxOff && (said || w.o.Sandbox != "")
}

// confineAgents gives the spawner the sandbox that the settings ask for.
func (w *Worker) confineAgents(o *agents.Options) {
	var protect []string
	if root, err := w.f.StorageRoot(); err == nil {
		protect = append(protect, root)
	}
	w.sandbox = sandbox.New(sandbox.Options{
		Mode: sandbox.Mode(w.sandboxMode()), Network: sandbox.Network(w.config.Confine.Network),
		Read: w.config.Confine.Read, Write: w.config.Confine.Write, Protect: protect,
		Self: o.Self, Environ: w.f.Environ,
	})
	o.Sandbox = w.sandbox
	o.Folder = w.folder.Dir
	o.Gaps = w.tellGaps()
}

// tellGaps says once of each thing that it isn't enforced.
func (w *Worker) tellGaps() func([]string) {
	var mu sync.Mutex
	told := map[string]bool{}
	return func(gaps []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, gap := range gaps {
			if !told[gap] {
				told[gap] = true
				w.logEvent(thread.Event{Kind: "notice", Text: "sandbox: " + gap})
			}
		}
	}
}

// makeWorkDir makes a thread's working folder below the storage root. The agents'
// user must be able to go there, though not to look around on the way.
func (w *Worker) makeWorkDir(root, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return w.sandbox.OpenWay(root, WorkRoot(root))
}
