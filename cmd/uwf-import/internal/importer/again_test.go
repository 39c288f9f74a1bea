package importer

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/ocastest"
)

// lists writes the lists of the old store: what it says now.
func (w *world) lists(threads, history string) {
	w.Helper()
	for name, text := range map[string]string{"threads.yaml": threads, "history.jsonl": history} {
		w.ok(os.WriteFile(filepath.Join(w.dir, "root", name), []byte(text), 0o600))
	}
}

// stepBefore is the head that a thread had a step ago.
func (w *world) stepBefore(id string) node.Hash {
	w.Helper()
	s, err := record.ParseStep(w.old.Nodes[w.old.Heads[id]])
	w.ok(err)
	if s.Prev == nil {
		return s.Start
	}
	return *s.Prev
}

// change changes a thread's entry here.
func (w *world) change(id gitcas.ThreadID, edit func(*gitcas.Entry, *gitcas.Change)) {
	w.Helper()
	v, err := w.store().Load(w.Context(), id)
	w.ok(err)
	_, err = w.store().Update(w.Context(), v, func(v *gitcas.View) (*gitcas.Change, error) {
		e, _ := v.Entry(id)
		c := &gitcas.Change{Subject: "work", Threads: map[gitcas.ThreadID]*gitcas.Entry{id: &e}}
		edit(&e, c)
		return c, nil
	}, id)
	w.ok(err)
}

// TestAgain: a later import brings what is new in the old store, unless somebody worked on
// it here.
func TestAgain(t *testing.T) {
	const id = ocastest.Active
	active := func(h node.Hash) string { return fmt.Sprintf("%s: %s\n", id, h) }
	waits := func(h node.Hash, why string) string {
		return fmt.Sprintf("%s: {head: %s, suspendedRole: developer, suspendMessage: %s}\n", id, h, why)
	}
	ended := func(h node.Hash, reason string) string {
		return fmt.Sprintf(`{"thread":"%s","head":"%s","completedAt":1780574400000,"reason":"%s"}`+"\n", id, h, reason)
	}
	resumed := func(w *world) {
		w.change(id, func(e *gitcas.Entry, _ *gitcas.Change) { e.Next = &gitcas.Next{Role: "reviewer", Since: 1} })
	}
	for name, tc := range map[string]struct {
		before, after func(head, earlier node.Hash) (threads, history string)
		here          func(*world)
		want, why     string
	}{
		"steps since": {
			func(_, earlier node.Hash) (string, string) { return active(earlier), "" },
			func(head, _ node.Hash) (string, string) { return active(head), "" }, nil, "imported 2 active, 1 added", "",
		},
		"ended since": {
			func(_, earlier node.Hash) (string, string) { return active(earlier), "" },
			func(head, _ node.Hash) (string, string) { return "", ended(head, "completed") }, nil, "imported 2 ended, 1 added", "",
		},
		"cancelled since, without a step": {
			func(head, _ node.Hash) (string, string) { return active(head), "" },
			func(head, _ node.Hash) (string, string) { return "", ended(head, "cancelled") }, nil, "imported 2 cancelled, 0 added", "",
		},
		"waits since": {
			func(head, _ node.Hash) (string, string) { return active(head), "" },
			func(head, _ node.Hash) (string, string) { return waits(head, "why"), "" }, nil, "imported 2 suspended, 0 added", "",
		},
		"waits, and went on": {
			func(_, earlier node.Hash) (string, string) { return waits(earlier, "why"), "" },
			func(head, _ node.Hash) (string, string) { return active(head), "" }, nil, "imported 2 active, 1 added", "",
		},
		"had ended, and went on": {
			func(_, earlier node.Hash) (string, string) { return "", ended(earlier, "completed") },
			func(head, _ node.Hash) (string, string) { return active(head), "" }, nil, "imported 2 active, 1 added", "",
		},
		"had ended, went on and ended": {
			func(_, earlier node.Hash) (string, string) { return "", ended(earlier, "completed") },
			func(head, _ node.Hash) (string, string) { return "", ended(head, "completed") }, nil, "imported 2 ended, 1 added", "",
		},
		"worked on here alone": {
			func(head, _ node.Hash) (string, string) { return active(head), "" },
			func(head, _ node.Hash) (string, string) { return active(head), "" }, resumed, "exists 2 active, 0 added", "",
		},
		"worked on here, and went on": {
			func(_, earlier node.Hash) (string, string) { return active(earlier), "" },
			func(head, _ node.Hash) (string, string) { return active(head), "" }, resumed, "refused 2 active, 0 added", "it went on in both: there from step 1 to step 2, and here somebody has worked on it",
		},
		"claimed here, and went on": {
			func(_, earlier node.Hash) (string, string) { return active(earlier), "" },
			func(head, _ node.Hash) (string, string) { return active(head), "" }, func(w *world) {
				w.change(id, func(_ *gitcas.Entry, c *gitcas.Change) {
					u, objs := view.ClaimUpdate(id, nil, &view.Claim{Run: "run", Attempt: 1, Head: c.Threads[id].Head, Since: 1, Renewed: 1}, time.UnixMilli(1))
					c.Threads, c.Refs, c.Objects = nil, []wire.RefUpdate{u}, objs
				})
			}, "refused 2 active, 0 added", "it went on in both",
		},
		"suspended here, and went on": {
			func(_, earlier node.Hash) (string, string) { return active(earlier), "" },
			func(head, _ node.Hash) (string, string) { return active(head), "" }, func(w *world) {
				w.change(id, func(e *gitcas.Entry, _ *gitcas.Change) {
					e.Status, e.Suspended = gitcas.StatusSuspended, &gitcas.Suspended{Role: "developer", Reason: "wait", By: &gitcas.By{Kind: "local", Name: "A"}}
				})
			}, "refused 2 active, 0 added", "it went on in both",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			head, earlier := w.old.Heads[id], w.stepBefore(id)
			w.old.Heads = map[string]node.Hash{}
			w.lists(tc.before(head, earlier))
			if code, text := w.run(false, "nodes", "root"); code != 0 {
				t.Fatal(code, text)
			}
			if tc.here != nil {
				tc.here(w)
			}
			w.lists(tc.after(head, earlier))
			if strings.HasPrefix(tc.want, "imported") {
				w.old.Heads[id] = head
			}
			for _, dry := range []bool{true, false} {
				code, text := w.run(dry, "nodes", "root")
				th := w.got.Threads[0]
				if got := fmt.Sprintf("%s %d %s, %d added", th.Result, th.Steps, th.Status, th.Added); got != tc.want || !strings.Contains(th.Why, tc.why) || (code == 0) != (th.Why == "") {
					t.Errorf("dry %v: %d, %s: %s, %s", dry, code, text, got, th.Why)
				}
			}
			w.sound()
			if tc.want[0] == 'r' {
				return
			}
			w.checkStatus(id, w.got.Threads[0].Status, tc.here != nil)
			w.run(false, "nodes", "root")
			if w.got.Threads[0].Result != exists {
				t.Errorf("once more: %+v", w.got.Threads[0])
			}
		})
	}
}

// checkStatus checks what the store says of a thread.
func (w *world) checkStatus(id gitcas.ThreadID, status string, worked bool) {
	w.Helper()
	v, err := w.store().Load(w.Context(), id)
	w.ok(err)
	e, alive := v.Entry(id)
	end, over, err := v.FindEnded(w.Context(), id)
	w.ok(err)
	switch {
	case alive && string(e.Status) == status && !(status == "suspended" && e.Suspended.Reason != "why") && (e.Next != nil) == worked:
	case !alive && over && end.Reason == status && end.CompletedAt == 1780574400000:
	default:
		w.Errorf("%v %+v, %v %+v, want %s", alive, e, over, end, status)
	}
}

// TestAgainBrokenOff: what a second import appends can be broken off as well.
func TestAgainBrokenOff(t *testing.T) {
	w := newWorld(t)
	start := w.old.Heads[ocastest.Cancelled]
	if s, err := record.ParseStep(w.old.Nodes[w.old.Heads[ocastest.Active]]); err == nil {
		start = s.Start
	}
	w.lists(fmt.Sprintf("%s: %s\n", ocastest.Active, start), "")
	if code, text := w.run(false, "nodes", "root"); code != 0 {
		t.Fatal(code, text)
	}
	w.lists(w.old.ThreadsFile(), w.old.HistoryFile())
	mem := w.mem
	pushes := 0
	w.mem = &remote{Remote: mem, push: func() error {
		if pushes++; pushes > 1 {
			return fmt.Errorf("pulled the plug")
		}
		return nil
	}}
	if code, _ := w.run(false, "nodes", "root"); code == 0 {
		t.Fatal("it was not broken off")
	}
	w.mem = mem
	v, err := w.store().Load(t.Context())
	w.ok(err)
	if e, _ := v.Entry(ocastest.Active); e.Head != w.stepBefore(ocastest.Active) || !isUnderWay(e) {
		t.Fatalf("%+v", e)
	}
	if code, text := w.run(false, "nodes", "root"); code != 0 || w.got.Threads[0].Added != 1 {
		t.Fatal(code, text, w.got.Threads[0])
	}
	w.sound()
}

// TestRegistryAgain: former versions come over, a new one too, and a name that somebody gave
// to another workflow here is left alone.
func TestRegistryAgain(t *testing.T) {
	w := newWorld(t)
	put := func(description string) node.Hash {
		old, _ := w.old.Nodes[w.old.Workflow].Payload.(map[string]any)
		payload := map[string]any{}
		for k, v := range old {
			payload[k] = v
		}
		payload["description"] = description
		n, h, err := node.New(record.WorkflowSchema, payload, time.UnixMilli(1))
		w.ok(err)
		w.old.Nodes[h] = n
		b, err := w.old.File(h)
		w.ok(err)
		w.ok(os.WriteFile(w.file(h), b, 0o600))
		return h
	}
	second, third, other := put("second"), put("third"), put("other")
	names := strings.NewReplacer("v1", string(w.old.Workflow), "v2", string(second), "v3", string(third), "v4", string(other), "@", "timestamp: ")
	for _, tc := range []struct {
		text, result string
		code         int
		want         string
	}{
		{"{hash: v1, @20, history: []}", imported, 0, "v1 20 []"},
		{"{hash: v3, @50, history: [{hash: v1, @20}, {hash: v2, @30}]}", imported, 0, "v3 50 [v2 30, v1 20]"},
		{"{hash: v3, @50, history: [{hash: v1, @20}, {hash: v2, @30}]}", exists, 0, "v3 50 [v2 30, v1 20]"},
		{"{hash: v4, @60, history: [{hash: v1, @20}, {hash: v2, @30}]}", refused, 1, "v3 50 [v2 30, v1 20]"},                                                      // v3 is not one of its former ones
		{"{hash: v4, @60, history: [{hash: v1, @20}, {hash: v2, @30}, {hash: v3, @50}, {hash: AAAAAAAAAAAAA, @40}]}", imported, 1, "v4 60 [v3 50, v2 30, v1 20]"}, // a version that is not there is left out
	} {
		w.ok(os.WriteFile(filepath.Join(w.dir, "root", "workflows.yaml"), []byte("solve: "+names.Replace(tc.text)), 0o600))
		code, text := w.run(false, "nodes", "root")
		if code != tc.code || w.got.Workflows[0].Result != tc.result {
			t.Errorf("%s: %d, %s: %+v", tc.text, code, text, w.got.Workflows)
		}
		v, err := w.store().Load(t.Context())
		w.ok(err)
		e := v.Registry()["solve"]
		var former []string
		for _, h := range e.History {
			former = append(former, fmt.Sprintf("%s %d", h.Hash, h.Timestamp))
			if _, err := v.Get(t.Context(), h.Hash); err != nil {
				t.Error(err)
			}
		}
		got := fmt.Sprintf("%s %d [%s]", e.Hash, e.Timestamp, strings.Join(former, ", "))
		if want := names.Replace(tc.want); got != want {
			t.Errorf("%s: %s, want %s", tc.text, got, want)
		}
	}
	if p := w.got.Problems; len(p) != 1 || p[0].File != "workflow solve" || !strings.Contains(p[0].Why, "AAAAAAAAAAAAA is left out") {
		t.Error(p)
	}
	r, err := w.store().Fsck(t.Context(), true)
	if err != nil || !r.OK() {
		t.Errorf("%v, %v", r.Problems, err)
	}
}

// TestTwoAtOnce: what another import has brought, and ended, meanwhile is not begun anew,
// wherever this one is then.
func TestTwoAtOnce(t *testing.T) {
	for at, done := 1, false; !done; at++ {
		w := newWorld(t)
		mem, pushes := w.mem, 0
		ours := &remote{Remote: mem}
		ours.push = func() error {
			if pushes++; pushes != at {
				return nil
			}
			w.mem = mem
			defer func() { w.mem = ours }()
			_, _ = w.run(false, "bundle.tar") // it may refuse what we are at
			return nil
		}
		w.mem = ours
		_, _ = w.run(false, "bundle.tar")
		w.mem, done = mem, pushes < at
		if code, text := w.run(false, "bundle.tar"); code != 0 {
			t.Errorf("at push %d: %d, %s\n%s", at, code, text, w.outcomes())
		}
		w.sound()
	}
}

// TestSecretsBeside: what is stored beside the nodes is searched as they are.
func TestSecretsBeside(t *testing.T) {
	w := newWorld(t)
	w.secret = "Which one?"
	if code, _ := w.run(false, "bundle.tar"); code != 1 || !strings.Contains(w.outcomes(), "G4 refused") {
		t.Errorf("a reason: %d\n%s", code, w.outcomes())
	}
	w = newWorld(t)
	list := filepath.Join(w.dir, "root", "workflows.yaml")
	w.ok(os.WriteFile(list, []byte("a-secret-name: "+string(w.old.Workflow)+"\n"), 0o600))
	w.secret = "a-secret-name"
	if code, _ := w.run(false, "nodes", "root"); code != 1 || !strings.Contains(w.outcomes(), "a-secret-name refused") {
		t.Errorf("a name: %d\n%s", code, w.outcomes())
	}
}

// TestStandsOtherwise: a thread that is here, and stands otherwise where it comes from, is left
// as it is, and that is said.
func TestStandsOtherwise(t *testing.T) {
	const id = ocastest.Active
	active := func(h node.Hash) string { return fmt.Sprintf("%s: %s\n", id, h) }
	ended := func(h node.Hash, reason string) string {
		return fmt.Sprintf(`{"thread":"%s","head":"%s","completedAt":1780574400000,"reason":"%s"}`+"\n", id, h, reason)
	}
	worked := func(w *world) {
		w.change(id, func(e *gitcas.Entry, _ *gitcas.Change) { e.Next = &gitcas.Next{Role: "reviewer", Since: 1} })
	}
	for name, tc := range map[string]struct {
		before, after func(head, earlier node.Hash) (threads, history string)
		here          func(*world)
		why           string
	}{
		"alike": {
			func(head, _ node.Hash) (string, string) { return active(head), "" },
			func(head, _ node.Hash) (string, string) { return active(head), "" }, worked, "",
		},
		"cancelled there": {
			func(head, _ node.Hash) (string, string) { return active(head), "" },
			func(head, _ node.Hash) (string, string) { return "", ended(head, "cancelled") }, worked, "it is cancelled there, and active here, where it stays as it is",
		},
		"alive there": {
			func(head, _ node.Hash) (string, string) { return "", ended(head, "completed") },
			func(head, _ node.Hash) (string, string) { return active(head), "" }, func(*world) {}, "it is active there, and ended here, where it stays as it is",
		},
		"taken back there": {
			func(head, _ node.Hash) (string, string) { return active(head), "" },
			func(_, earlier node.Hash) (string, string) { return active(earlier), "" }, func(*world) {}, "it is at step 1 there, and at step 2 here, where it stays as it is",
		},
		"taken back there, ended here": {
			func(head, _ node.Hash) (string, string) { return "", ended(head, "completed") },
			func(_, earlier node.Hash) (string, string) { return active(earlier), "" }, func(*world) {}, "it is at step 1 there, and at step 2 here, where it stays as it is",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			head, earlier := w.old.Heads[id], w.stepBefore(id)
			w.old.Heads = map[string]node.Hash{id: head}
			w.lists(tc.before(head, earlier))
			if code, text := w.run(false, "nodes", "root"); code != 0 {
				t.Fatal(code, text)
			}
			tc.here(w)
			w.lists(tc.after(head, earlier))
			code, text := w.run(false, "nodes", "root")
			if th := w.got.Threads[0]; code != 0 || th.Result != exists || th.Why != tc.why {
				t.Errorf("%d, %s: %+v", code, text, th)
			}
			w.sound()
		})
	}
}

// TestTooLargeHere: a node that has no room in a file of the state branch keeps its thread out
// before a commit is made, as the dry run says.
func TestTooLargeHere(t *testing.T) {
	w := newWorld(t)
	put := func(typ node.Hash, payload any) node.Hash {
		n, h, err := node.New(typ, payload, time.UnixMilli(1))
		w.ok(err)
		w.old.Nodes[h] = n
		b, err := w.old.File(h)
		w.ok(err)
		w.ok(os.WriteFile(w.file(h), b, 0o600))
		return h
	}
	last := w.old.Nodes[w.old.Heads[ocastest.Active]]
	payload, _ := last.Payload.(map[string]any)
	payload = maps.Clone(payload)
	payload["detail"] = string(put(node.String, strings.Repeat("\x01", 3<<20))) // six characters each in JSON
	w.lists(fmt.Sprintf("%s: %s\n", ocastest.Active, put(last.Type, payload)), "")
	for _, dry := range []bool{true, false} {
		code, text := w.run(dry, "nodes", "root")
		if th := w.got.Threads[0]; code != 1 || th.Result != refused || th.Added != 0 || !strings.Contains(th.Why, "more than") {
			t.Errorf("dry %v: %d, %s: %+v", dry, code, text, th)
		}
	}
	v, err := w.store().Load(t.Context())
	w.ok(err)
	if _, there := v.Entry(ocastest.Active); there {
		t.Error("half of the thread is there")
	}
}
