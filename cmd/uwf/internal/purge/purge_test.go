package purge

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

const (
	secret                 = "hunter2-7Zq-LEAK"
	id     gitcas.ThreadID = "01KN0000000000000000000001"
)

// fixture is a store in memory with one thread, whose prompt holds the secret.
type fixture struct {
	*testing.T
	mem         *wiretest.Memory
	store       *gitcas.Store
	out, errout bytes.Buffer
	root        string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, mem: wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), root: t.TempDir()}
	f.store = gitcas.Open(f.mem, gitcas.Options{})
	v, err := f.store.Init(t.Context())
	f.ok(err)
	flow, fh, err := node.New(node.String, "flow", time.Now())
	f.ok(err)
	start, sh, err := record.Start{Workflow: fh, Prompt: "it is " + secret, Cwd: "."}.Node(time.Now())
	f.ok(err)
	_, err = f.store.Push(t.Context(), v, &gitcas.Change{
		Subject: "start · " + secret,
		Nodes: []gitcas.PlacedNode{
			{Hash: fh, Node: flow}, {Hash: start.Type, Node: record.Schemas()[start.Type]}, {Hash: sh, Node: start, Place: gitcas.Place{Thread: id}},
		},
		Threads: map[gitcas.ThreadID]*gitcas.Entry{id: {Head: sh, Workflow: fh}},
	})
	f.ok(err)
	return f
}

func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// options are those of one run; in is what stands in stdin, or is typed.
func (f *fixture) options(in string, tty bool, args ...string) *Options {
	a := app.NewAt(f.root, []string{"UWF_HOME=" + f.root}, app.IO{In: strings.NewReader(in), Out: &f.out, Err: &f.errout, InTTY: tty, ErrTTY: tty})
	return &Options{
		Open:    func(context.Context) (*gitcas.Store, error) { return f.store, nil },
		Factory: a, Confirm: a.Confirm, Root: a.StorageRoot,
		Locate: func(context.Context) (app.Location, error) {
			return app.Location{URL: "https://example.com/r.git"}, nil
		},
		Args: args,
		Person: func(context.Context) (*story.Person, error) {
			return &story.Person{By: record.By{Kind: record.ByLocal, Name: "Alice"}, Email: "alice@example.com"}, nil
		},
	}
}

func (f *fixture) run(o *Options) error {
	f.Helper()
	f.out.Reset()
	f.errout.Reset()
	err := purgeRun(f.Context(), o)
	said := f.out.String() + f.errout.String()
	if err != nil {
		said += err.Error()
	}
	if strings.Contains(said, "LEAK") {
		f.Errorf("it is quoted:\n%s", said)
	}
	return err
}

func (f *fixture) tip() wire.ID { return f.mem.Refs()[f.store.Branch()] }

// TestConfirm: a person sees the plan and is asked.
func TestConfirm(t *testing.T) {
	for answer, yes := range map[string]bool{"n\n": false, "\n": false, "": false, "what?\n": false, "y\n": true, "YES\n": true} {
		f := newFixture(t)
		before := f.tip()
		err := f.run(f.options(answer, true, secret))
		if moved := f.tip() != before; moved != yes || (err == nil) != yes {
			t.Errorf("%q: moved %v, %v", answer, moved, err)
		}
		for _, want := range []string{"2 commits", "threads/" + string(id), "heads that change", "Rewrite the history of the state branch? [y/N]"} {
			if !strings.Contains(f.errout.String(), want) {
				t.Errorf("%q is not in\n%s", want, f.errout.String())
			}
		}
	}
}

// TestMessages: whatever goes wrong, the text isn't quoted.
func TestMessages(t *testing.T) {
	f := newFixture(t)
	bad := errors.New("the server says " + secret)
	for name, change := range map[string]func(*Options){
		"open": func(o *Options) { o.Open = func(context.Context) (*gitcas.Store, error) { return nil, bad } },
		"locate": func(o *Options) {
			o.Locate = func(context.Context) (app.Location, error) { return app.Location{}, bad }
		},
		"root": func(o *Options) { o.Root = func() (string, error) { return "", bad } },
		"ask":  func(o *Options) { o.Yes = false },
	} {
		o := f.options("", false, secret)
		o.Yes = true
		change(o)
		before := f.tip()
		if err := f.run(o); err == nil || f.tip() != before {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A history that can't be read, and an error that quotes it.
	f.store = gitcas.Open(unreadable{f.mem}, gitcas.Options{})
	if err := f.run(f.options("", false, secret)); err == nil || !strings.Contains(err.Error(), "the history says [purged]") {
		t.Errorf("error %v", err)
	}
	// A remote that refuses, and quotes what it refuses.
	mem := f.mem
	f.store = gitcas.Open(refusing{mem}, gitcas.Options{})
	o := f.options("", false, secret)
	o.Yes = true
	err := f.run(o)
	if err == nil || !strings.Contains(err.Error(), "the remote takes no new history") || !strings.Contains(err.Error(), "[purged]") {
		t.Errorf("error %v", err)
	}
}

// unreadable gives no history with what is in it.
type unreadable struct{ wire.Remote }

func (u unreadable) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	if req.Depth == 0 {
		return nil, &wire.RemoteError{Op: "fetch", Kind: wire.ErrUnreadable, Detail: "the history says " + secret}
	}
	return u.Remote.Fetch(ctx, req)
}

// refusing takes no push.
type refusing struct{ wire.Remote }

func (refusing) Push(context.Context, wire.PushRequest) (time.Time, error) {
	return time.Time{}, &wire.RemoteError{Op: "push", Kind: wire.ErrProtected, Detail: "rule against " + secret}
}

// TestClaims: the job on a thread that changes keeps purge away, also when it
// claims it at the last moment.
func TestClaims(t *testing.T) {
	f := newFixture(t)
	claim := func(renewed time.Time) {
		t.Helper()
		v, err := f.store.Load(t.Context(), id)
		f.ok(err)
		e, _ := v.Entry(id)
		var old *gitcas.Held
		if h, ok := v.FindClaim(id); ok {
			old = &h
		}
		u, objs := view.ClaimUpdate(id, old, &gitcas.Claim{Run: "r-" + secret, Attempt: 1, Host: "h", Head: e.Head, Since: renewed.UnixMilli(), Renewed: renewed.UnixMilli()}, renewed)
		_, err = f.mem.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{u}, Objects: []wire.PackObject{objs[0], objs[1]}})
		f.ok(err)
	}
	before := f.tip()
	o := f.options("", false, secret)
	o.Yes = true
	claim(time.Now())
	err := f.run(o)
	if app.ExitCodeOf(err) != 4 || f.tip() != before || !strings.Contains(err.Error(), "jobs are at work") {
		t.Fatalf("error %v", err)
	}
	// Dead ones go with the head that they were on.
	claim(time.Now().Add(-time.Hour))
	o = f.options("", false, secret)
	o.Confirm = func(string, bool) error { claim(time.Now()); return nil } // it is renewed while the person thinks
	if err = f.run(o); app.ExitCodeOf(err) != 4 || f.tip() != before {
		t.Fatalf("error %v", err)
	}
	claim(time.Now().Add(-time.Hour))
	o = f.options("", false, secret)
	o.Yes = true
	f.ok(f.run(o))
	if _, there := f.mem.Refs()[layout.ClaimRef(id)]; there || f.tip() == before {
		t.Error("the dead claim is left")
	}
	if !strings.Contains(f.out.String(), `"claims": [`+"\n    \""+string(id)) {
		t.Errorf("result %s", f.out.String())
	}
}

// TestLocal: paths that hold the text themselves, links, folders of threads.
func TestLocal(t *testing.T) {
	f := newFixture(t)
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(f.root, filepath.FromSlash(name))
		f.ok(os.MkdirAll(filepath.Dir(path), 0o700))
		f.ok(os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	outside := filepath.Join(t.TempDir(), "mine.txt")
	f.ok(os.WriteFile(outside, []byte(secret), 0o600))
	log := write("logs/x-"+secret+".jsonl", secret)
	f.ok(os.Symlink(outside, filepath.Join(f.root, "logs", "link.jsonl")))
	sealed := write("pending/0123456789abcdef/"+string(id)+".0123456789abcdef", secret)
	alive := write("work/"+string(id)+"/a.txt", secret)
	unknown := write("work/01KN0000000000000000000077/a.txt", secret)
	mine := write("notes.txt", secret)
	clean := write("logs/clean.jsonl", "nothing")
	o := f.options("", false, secret)
	o.Yes = true
	f.ok(f.run(o))
	for _, gone := range []string{log, sealed} {
		if _, err := os.Stat(gone); err == nil {
			t.Errorf("%s is left", gone)
		}
	}
	for _, kept := range []string{outside, alive, unknown, mine, clean} {
		if _, err := os.Stat(kept); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(f.out.String(), `"remove": `); n != 5 {
		t.Errorf("%d leftovers are listed: %s", n, f.out.String())
	}
}

// TestStdin: a text from stdin or a file is taken without its last line break.
func TestStdin(t *testing.T) {
	for _, in := range []string{secret, secret + "\n", secret + "\r\n"} {
		f := newFixture(t)
		o := f.options(in, false, "-")
		o.Yes = true
		f.ok(f.run(o))
		if strings.Contains(f.out.String(), "shell's history") || !strings.Contains(f.out.String(), `"purged": true`) {
			t.Errorf("%q: %s", in, f.out.String())
		}
	}
}
