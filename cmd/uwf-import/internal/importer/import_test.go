package importer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/ocastest"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// world is a store, and what is to be moved into it.
type world struct {
	*testing.T
	mem    wire.Remote
	old    *ocastest.Store
	dir    string
	secret string
	// settings is the file for them; empty: none.
	settings string
	got      result
}

func newWorld(t *testing.T) *world {
	t.Helper()
	old, err := ocastest.New()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, mem: wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), old: old, dir: t.TempDir()}
	w.ok(old.Write(w.dir))
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) store() *gitcas.Store { return gitcas.Open(w.mem, gitcas.Options{}) }

// run imports, and returns the exit code and the error's text.
func (w *world) run(dry bool, paths ...string) (int, string) {
	w.Helper()
	var out bytes.Buffer
	f := app.NewAt(w.dir, nil, app.IO{Out: &out, Err: &out})
	f.Printed = func(v any) { w.got, _ = v.(result) }
	w.got = result{}
	err := importRun(w.Context(), &Options{
		Store: func(context.Context) (*gitcas.Store, error) { return w.store(), nil },
		Redactor: func(context.Context) (*redact.Redactor, error) {
			o := redact.Options{}
			if w.secret != "" {
				o.Secrets = []redact.Secret{{Name: "PLANTED", Value: w.secret}}
			}
			return redact.New(o)
		},
		Factory: f, Paths: paths, DryRun: dry, Settings: w.settings,
	})
	if err == nil {
		return 0, ""
	}
	return app.ExitCodeOf(err), err.Error()
}

// outcomes are what became of threads and workflows.
func (w *world) outcomes() string {
	var b strings.Builder
	for _, t := range w.got.Threads {
		fmt.Fprintf(&b, "%s %s %d %s\n", t.Thread[24:], t.Result, t.Steps, t.Status)
	}
	for _, f := range w.got.Workflows {
		fmt.Fprintf(&b, "%s %s\n", f.Name, f.Result)
	}
	return b.String()
}

const allImported = "G0 imported 2 active\nG4 imported 1 suspended\nG8 imported 2 ended\nGC imported 0 cancelled\nsolve imported\n"

// sound checks the store, and that every thread has the head that it had.
func (w *world) sound() {
	w.Helper()
	s := w.store()
	r, err := s.Fsck(w.Context(), true)
	w.ok(err)
	for _, p := range r.Problems {
		w.Errorf("fsck: %s: %s", p.Path, p.Why)
	}
	v, err := s.Load(w.Context())
	w.ok(err)
	heads := map[gitcas.ThreadID]node.Hash{}
	for id, e := range v.Threads() {
		heads[id] = e.Head
	}
	w.ok(v.History(w.Context(), time.Time{}, func(e gitcas.Ended) error { heads[e.Thread] = e.Head; return nil }))
	for id, h := range w.old.Heads {
		if heads[gitcas.ThreadID(id)] != h {
			w.Errorf("thread %s is at %s, was at %s", id, heads[gitcas.ThreadID(id)], h)
		}
	}
}

func TestImport(t *testing.T) {
	for _, paths := range [][]string{{"nodes", "root"}, {"root", "nodes"}, {"bundle.tar"}} {
		t.Run(strings.Join(paths, " "), func(t *testing.T) {
			w := newWorld(t)
			if code, text := w.run(true, paths...); code != 0 || w.outcomes() != allImported || !w.got.DryRun {
				t.Fatalf("dry: %d, %s\n%s", code, text, w.outcomes())
			}
			if _, err := w.store().Load(t.Context()); !errors.Is(err, gitcas.ErrNoStore) {
				t.Fatalf("a dry run wrote: %v", err)
			}
			if code, text := w.run(false, paths...); code != 0 || w.outcomes() != allImported {
				t.Fatalf("%d, %s\n%s", code, text, w.outcomes())
			}
			w.sound()
			again := strings.ReplaceAll(allImported, "imported", "exists")
			if code, text := w.run(false, paths...); code != 0 || w.outcomes() != again {
				t.Errorf("again: %d, %s\n%s", code, text, w.outcomes())
			}
			v, err := w.store().Load(t.Context(), ocastest.Suspended)
			w.ok(err)
			e, _ := v.Entry(ocastest.Suspended)
			if e.Status != gitcas.StatusSuspended || e.Suspended.Role != "developer" || e.Suspended.Reason != "Which one?" || e.Workflow != w.old.Workflow {
				t.Errorf("%+v %+v", e, e.Suspended)
			}
		})
	}
}

// TestBrokenOff: an import that stopped anywhere goes on where it stopped, and
// meanwhile nobody can step the thread.
func TestBrokenOff(t *testing.T) {
	for stop := 3; ; stop++ { // the first push asks whether the remote takes any, and the second makes the store
		w := newWorld(t)
		mem := w.mem
		pushes := 0
		w.mem = &remote{Remote: mem, push: func() error {
			if pushes++; pushes >= stop {
				return errors.New("pulled the plug")
			}
			return nil
		}}
		code, text := w.run(false, "bundle.tar")
		w.mem = mem
		if code != 0 && !strings.Contains(text, "pulled the plug") {
			t.Fatalf("%d, %s", code, text)
		}
		if code != 0 {
			v, err := w.store().Load(t.Context())
			w.ok(err)
			for id, e := range v.Threads() {
				if e.Head != w.old.Heads[string(id)] && e.Status != gitcas.StatusSuspended {
					t.Errorf("after %d pushes thread %s can be stepped half-way", stop-1, id)
				}
			}
		}
		if again, text := w.run(false, "bundle.tar"); again != 0 {
			t.Fatalf("after %d pushes: %d, %s", stop-1, again, text)
		}
		w.sound()
		if code == 0 {
			return
		}
	}
}

// remote is a remote that loses pushes.
type remote struct {
	wire.Remote
	push func() error
}

func (r *remote) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	if err := r.push(); err != nil {
		return time.Time{}, err
	}
	return r.Remote.Push(ctx, req)
}

func TestLeftOut(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(w *world)
		want   string
		why    string
	}{
		"a node is missing": {func(w *world) { w.ok(os.Remove(w.file(w.old.Heads[ocastest.Ended]))) }, "G8 refused 0 ended", "is not there"},
		"a node is another": {func(w *world) {
			b, err := w.old.File(w.old.Heads[ocastest.Active])
			w.ok(err)
			w.ok(os.WriteFile(w.file(w.old.Heads[ocastest.Ended]), b, 0o600))
		}, "G8 refused 0 ended", "content and hash differ"},
		"a secret": {func(w *world) { w.secret = "turn of " + ocastest.Ended }, "G8 refused 2 ended", "holds a secret"},
		"a FIFO or folder": {func(w *world) {
			w.ok(os.Remove(w.file(w.old.Heads[ocastest.Ended])))
			w.ok(os.Mkdir(w.file(w.old.Heads[ocastest.Ended]), 0o700))
		}, "G8 refused 0 ended", "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(w)
			code, text := w.run(false, "nodes", "root")
			if code != 1 || !strings.Contains(w.outcomes(), tc.want) || strings.Count(w.outcomes(), "imported") != 4 {
				t.Fatalf("%d, %s\n%s", code, text, w.outcomes())
			}
			for _, th := range w.got.Threads {
				if th.Result == refused && !strings.Contains(th.Why, tc.why) {
					t.Errorf("%s", th.Why)
				}
			}
			r, err := w.store().Fsck(t.Context(), true)
			if err != nil || !r.OK() {
				t.Errorf("%v, %v", r.Problems, err)
			}
		})
	}
}

func (w *world) file(h node.Hash) string { return filepath.Join(w.dir, "nodes", string(h)+".bin") }

// TestTaken: ids and names that the store has given to others.
func TestTaken(t *testing.T) {
	w := newWorld(t)
	w.ok(os.WriteFile(filepath.Join(w.dir, "root", "threads.yaml"), []byte(ocastest.Active+": "+string(w.old.Heads[ocastest.Ended])+"\n"), 0o600))
	if code, text := w.run(false, "nodes", "root"); code != 0 {
		t.Fatal(code, text)
	}
	w.ok(os.WriteFile(filepath.Join(w.dir, "root", "threads.yaml"), []byte(ocastest.Active+": "+string(w.old.Heads[ocastest.Active])+"\n"), 0o600))
	if code, _ := w.run(false, "nodes", "root"); code != 1 || !strings.Contains(w.outcomes(), "G0 refused") {
		t.Errorf("%d\n%s", code, w.outcomes())
	}
}

func TestNothingToImport(t *testing.T) {
	w := newWorld(t)
	w.ok(os.WriteFile(filepath.Join(w.dir, "db"), append([]byte("SQLite format 3\x00"), make([]byte, 100)...), 0o600))
	w.ok(os.Mkdir(filepath.Join(w.dir, "empty"), 0o700))
	w.ok(os.MkdirAll(filepath.Join(w.dir, "may", "bundles", "C9NMV6V2TQT81.esm.js"), 0o700))
	for _, tc := range []struct{ path, want string }{
		{"may", "may/bundles: bundles of 2026-05 and their threads (logs), which uwf can't take over yet"},
		{"nodes", "no list says which of them are threads; give the storage root as well: ~/.uwf"}, {"gone", "no such file"}, {"db", "give the folder of the store"},
		{"root", "there are lists but no nodes; give the store"}, {"empty", "neither nodes nor lists"}, {"root/threads.yaml", "read the archive"},
		{"empty", "\n  empty: found nothing; not there: variables.db, vars/_store.db, _vars.jsonl, vars/_vars.jsonl, threads.yaml, history.jsonl, workflows.yaml, registry.yaml, *.bin, nodes/*.bin, cas/*.bin"},
	} {
		if code, text := w.run(false, tc.path); code != 2 || !strings.Contains(text, tc.want) {
			t.Errorf("%s: %d, %s", tc.path, code, text)
		}
	}
}
