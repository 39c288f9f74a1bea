package workflow

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// racer is a remote that something else happens at, before or after a push.
type racer struct {
	wire.Remote
	before func()       // before the next push
	after  func() error // after the next push: what its sender is told
}

func (r *racer) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	if f := r.before; f != nil {
		r.before = nil
		f()
	}
	at, err := r.Remote.Push(ctx, req)
	if f := r.after; f != nil && err == nil {
		r.after = nil
		return time.Time{}, f()
	}
	return at, err
}

// registry is a store with a workflow of several versions.
type registry struct {
	*testing.T
	remote *racer
	dir    string
	hashes []string // of the versions, oldest first
}

func newRegistry(t *testing.T, versions int) *registry {
	t.Helper()
	r := &registry{T: t, remote: &racer{Remote: wiretest.NewMemory(wiretest.MemoryOptions{})}, dir: t.TempDir()}
	for i := range versions {
		r.hashes = append(r.hashes, r.put(fmt.Sprintf("version %d", i), "flow"))
	}
	return r
}

// factory is that of a process of its own, which works with the store on the racer.
func (r *registry) factory(stdout, stderr io.Writer) *app.Factory {
	r.Helper()
	write(r.T, r.dir+"/config.yaml", "state: {remote: 'memory://here'}\n")
	f := app.NewAt(r.dir, []string{"UWF_HOME=" + r.dir, "UWF_LOG=off"}, app.IO{Out: stdout, Err: stderr})
	f.DialWire = func(string, wire.DialOptions) (wire.Remote, error) { return r.remote, nil }
	f.After = func(time.Duration) (<-chan time.Time, func()) { // no outage lasts
		over := make(chan time.Time)
		close(over)
		return over, func() {}
	}
	return f
}

// put registers a definition, by a job of its own.
func (r *registry) put(description, name string) string {
	r.Helper()
	text := strings.Replace(flow(description), "name: flow", "name: "+name, 1)
	write(r.T, r.dir+"/"+name+".yaml", text)
	var out bytes.Buffer
	if err := putRun(r.Context(), &PutOptions{Factory: r.factory(&out, io.Discard), Ref: name + ".yaml"}); err != nil {
		r.Fatal(err)
	}
	_, hash, _ := strings.Cut(out.String(), `"hash": "`)
	return hash[:13]
}

// now is the name's entry: its hash, and those of its history.
func (r *registry) now() string {
	r.Helper()
	_, v, err := lookup.Load(r.Context(), r.factory(nil, io.Discard).Store)
	if err != nil {
		r.Fatal(err)
	}
	e, ok := v.Registry()["flow"]
	if !ok {
		return "none"
	}
	list := []string{string(e.Hash)}
	for _, h := range e.History {
		list = append(list, string(h.Hash))
	}
	return r.named(strings.Join(list, " "))
}

// named replaces hashes by numbers.
func (r *registry) named(text string) string {
	for i, h := range r.hashes {
		text = strings.ReplaceAll(text, h, fmt.Sprint(i))
	}
	return text
}

func (r *registry) rollback(hash string) (string, error) {
	var out bytes.Buffer
	err := rollbackRun(r.Context(), &RollbackOptions{Factory: r.factory(&out, io.Discard), Name: "flow", Hash: hash})
	return out.String(), err
}

func (r *registry) remove(yes bool, answer io.Reader) (string, error) {
	var out bytes.Buffer
	f := r.factory(&out, &out)
	f.IO.In, f.IO.InTTY, f.IO.ErrTTY = answer, answer != nil, answer != nil
	err := removeRun(r.Context(), &RemoveOptions{Factory: f, Name: "flow", Yes: yes})
	return out.String(), err
}

func TestRollbackInARace(t *testing.T) {
	t.Run("nothing else happens", func(t *testing.T) {
		r := newRegistry(t, 3)
		out, err := r.rollback("")
		if err != nil || r.now() != "1 2 1 0" || !strings.Contains(out, `"changed": true`) {
			t.Errorf("%v; registry %s; %s", err, r.now(), out)
		}
	})
	t.Run("another name is put", func(t *testing.T) {
		r := newRegistry(t, 3)
		r.remote.before = func() { r.put("another", "other") }
		if _, err := r.rollback(r.hashes[0]); err != nil || r.now() != "0 2 1 0" {
			t.Errorf("%v; registry %s", err, r.now())
		}
	})
	t.Run("a new version is put", func(t *testing.T) {
		r := newRegistry(t, 3)
		r.remote.before = func() { r.hashes = append(r.hashes, r.put("version 3", "flow")) }
		_, err := r.rollback("")
		if app.ExitCodeOf(err) != 2 || !strings.Contains(fmt.Sprint(err), "nothing was changed") || r.now() != "3 2 1 0" {
			t.Errorf("%v; registry %s", err, r.now())
		}
	})
	t.Run("the name is removed", func(t *testing.T) {
		r := newRegistry(t, 3)
		r.remote.before = func() {
			if _, err := r.remove(true, nil); err != nil {
				t.Error(err)
			}
		}
		if _, err := r.rollback(""); app.ExitCodeOf(err) != 2 || r.now() != "none" {
			t.Errorf("%v; registry %s", err, r.now())
		}
	})
	t.Run("the reply is lost", func(t *testing.T) {
		r := newRegistry(t, 3)
		r.remote.after = func() error {
			return &wire.RemoteError{Op: "push", URL: "memory:", Kind: wire.ErrUnreachable, Detail: "the line went dead"}
		}
		out, err := r.rollback("")
		if err != nil || r.now() != "1 2 1 0" || !strings.Contains(out, `"changed": true`) {
			t.Errorf("%v; registry %s; %s", err, r.now(), out)
		}
	})
}

func TestRemoveInARace(t *testing.T) {
	r := newRegistry(t, 2)
	r.remote.before = func() { r.hashes = append(r.hashes, r.put("version 2", "flow")) }
	if _, err := r.remove(true, nil); app.ExitCodeOf(err) != 2 || r.now() != "2 1 0" {
		t.Errorf("a version that nobody looked at: %v; registry %s", err, r.now())
	}
	r.remote.before = func() {
		if _, err := r.remove(true, nil); err != nil {
			t.Error(err)
		}
	}
	if out, err := r.remove(true, nil); err != nil || r.now() != "none" || !strings.Contains(out, `"removed": true`) {
		t.Errorf("removed by another: %v; registry %s; %s", err, r.now(), out)
	}
}

func TestRemoveAsks(t *testing.T) {
	for answer, removed := range map[string]bool{"y\n": true, "Yes\n": true, " y": true, "n\n": false, "\n": false, "": false, "yes please\n": false} {
		r := newRegistry(t, 1)
		out, err := r.remove(false, strings.NewReader(answer))
		unanswered := answer == "" || answer == "yes please\n" // which is asked again
		if (err != nil) != unanswered || (r.now() == "none") != removed || !strings.Contains(out, "Remove flow (1 version) from the registry? [y/N]") {
			t.Errorf("%q: %v; registry %s; %s", answer, err, r.now(), out)
		}
	}
	r := newRegistry(t, 1)
	if _, err := r.remove(false, nil); app.ExitCodeOf(err) != 2 || r.now() == "none" {
		t.Errorf("without a terminal: %v", err)
	}
}
