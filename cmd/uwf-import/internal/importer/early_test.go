package importer

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/internal/ocastest"
)

// writeEarly writes a store of the json-cas era: threads of one generation in each of the
// states that its lists know.
func (w *world) writeEarly(dir string, s *ocastest.EarlyStore, g ocastest.Generation) {
	w.Helper()
	flow, _, _ := s.PutWorkflow(g)
	s.Lists["workflows.yaml"] = fmt.Sprintf("early: %s\n", flow)
	s.Lists["threads.yaml"] = fmt.Sprintf("%s: %s\n%s:\n  head: %s\n  suspendedRole: developer\n  suspendMessage: Which one?\n",
		ocastest.Active, s.PutThread(g, "Active.", false), ocastest.Suspended, s.PutThread(g, "Suspended.", false))
	line := func(id string, head node.Hash, more string) string {
		return fmt.Sprintf(`{"thread":"%s","workflow":"%s","head":"%s","completedAt":1780000000000%s}`+"\n", id, flow, head, more)
	}
	s.Lists["history.jsonl"] = line(ocastest.Ended, s.PutThread(g, "Ended.", false, true), "") +
		line(ocastest.Cancelled, s.PutThread(g, "Killed.", true, false), "") +
		line(neverStepped, s.PutThread(g, "Killed at once."), `,"reason":null`) +
		line(toldCancelled, s.PutThread(g, "Told.", true), `,"reason":"cancelled"`) +
		line(toldEnded, s.PutThread(g, "Told, too.", false), `,"reason":"completed"`)
	w.ok(s.Write(filepath.Join(w.dir, dir)))
}

// Further threads of such a store.
const (
	neverStepped  = "06F2S0000000000000000000GG"
	toldCancelled = "06F2S0000000000000000000GK"
	toldEnded     = "06F2S0000000000000000000GQ"
)

const earlyImported = "G0 imported 2 active\nG4 imported 2 suspended\nG8 imported 4 ended\nGC imported 4 cancelled\n" +
	"GG imported 0 cancelled\nGK imported 2 cancelled\nGQ imported 2 ended\nearly imported\n"

// TestEarly: threads of all generations of the json-cas era come over, each as what it was,
// and the moderator sends them on as it did then.
func TestEarly(t *testing.T) {
	for g := ocastest.FirstGeneration; g <= ocastest.MixedGeneration; g++ {
		t.Run(fmt.Sprint(g), func(t *testing.T) {
			w, s := newWorld(t), ocastest.NewEarly("json-cas JSON Schema meta-schema")
			w.old.Heads = nil
			w.writeEarly("early", s, g)
			if code, text := w.run(true, "early"); code != 0 || w.outcomes() != earlyImported {
				t.Fatalf("dry: %d, %s\n%s", code, text, w.outcomes())
			}
			if code, text := w.run(false, "early"); code != 0 || w.outcomes() != earlyImported {
				t.Fatalf("%d, %s\n%s", code, text, w.outcomes())
			}
			w.sound()
			again := strings.ReplaceAll(earlyImported, "imported", "exists")
			if code, text := w.run(false, "early"); code != 0 || w.outcomes() != again {
				t.Errorf("again: %d, %s\n%s", code, text, w.outcomes())
			}
			v, err := w.store().Load(t.Context(), ocastest.Suspended)
			w.ok(err)
			e, _ := v.Entry(ocastest.Suspended)
			if e.Suspended == nil || e.Suspended.Role != "developer" || e.Suspended.Reason != "Which one?" {
				t.Errorf("%+v", e)
			}
			w.checkRoute(v)
			w.checkListed(v, s)
		})
	}
}

// checkRoute asks the moderator about the active thread, whose reviewer sent it back.
func (w *world) checkRoute(v *gitcas.View) {
	w.Helper()
	c, err := v.ReadChain(w.Context(), ocastest.Active)
	w.ok(err)
	def, err := workflow.FromNode(v.Getter(w.Context()), c.Start.Workflow)
	w.ok(err)
	var t moderator.Thread
	for _, s := range c.Steps {
		out, err := v.In(w.Context(), gitcas.Place{Thread: ocastest.Active, Of: s.Hash}).Get(s.Output)
		w.ok(err)
		t.Steps = append(t.Steps, moderator.Output{Role: s.Role, Output: out.Payload.(map[string]any)})
	}
	for n, want := range []string{"developer", "reviewer", "developer"} {
		d, err := moderator.Next(def, moderator.Thread{Steps: t.Steps[:n]})
		if err != nil || d.Kind != moderator.Run || d.Role != want {
			w.Errorf("after %d steps: %+v, %v, want %s", n, d, err, want)
		}
	}
}

// checkListed makes sure that every head is found by the hash that it had.
func (w *world) checkListed(v *gitcas.View, s *ocastest.EarlyStore) {
	w.Helper()
	heads := map[gitcas.ThreadID]node.Hash{}
	for id, e := range v.Threads() {
		heads[id] = e.Head
	}
	w.ok(v.History(w.Context(), time.Time{}, func(e gitcas.Ended) error { heads[e.Thread] = e.Head; return nil }))
	found := map[gitcas.ThreadID]bool{}
	for h := range s.Nodes {
		names, err := view.FindFormer(w.Context(), v, h)
		w.ok(err)
		for _, n := range names {
			found[n.Thread] = found[n.Thread] || n.Hash == heads[n.Thread]
		}
	}
	delete(found, "") // the workflow's
	if len(found) != len(heads) {
		w.Errorf("%v", found)
	}
	for id, ok := range found {
		if !ok {
			w.Errorf("the head of thread %s is in no list", id)
		}
	}
}

// TestEarlyVersions: former versions of a registered workflow get other hashes as well; one
// that differed in its hash alone is the present one.
func TestEarlyVersions(t *testing.T) {
	w, s, other := newWorld(t), ocastest.NewEarly("json-cas JSON Schema meta-schema"), ocastest.NewEarly("another meta-schema")
	flow, _, _ := s.PutWorkflow(ocastest.FirstGeneration)
	same, _, _ := other.PutWorkflow(ocastest.FirstGeneration)
	before, _, _ := s.PutWorkflow(ocastest.FourthGeneration)
	maps.Copy(s.Nodes, other.Nodes)
	s.Lists["registry.yaml"] = fmt.Sprintf("early:\n  hash: %s\n  timestamp: 9\n  history:\n    - hash: %s\n      timestamp: 8\n    - hash: %s\n      timestamp: 7\n", flow, same, before)
	w.ok(s.Write(filepath.Join(w.dir, "early")))
	if code, text := w.run(false, "early"); code != 0 || w.outcomes() != "early imported\n" {
		t.Fatalf("%d, %s\n%s", code, text, w.outcomes())
	}
	v, err := w.store().Load(t.Context())
	w.ok(err)
	e := v.Registry()["early"]
	if len(e.History) != 1 || e.Hash == flow || e.History[0].Hash == before || e.History[0].Timestamp != 7 || e.Timestamp != 9 {
		t.Fatalf("%+v", e)
	}
	for h, want := range map[node.Hash]node.Hash{flow: e.Hash, same: e.Hash, before: e.History[0].Hash} {
		if names, err := view.FindFormer(t.Context(), v, h); err != nil || len(names) != 1 || names[0] != (view.Renamed{Hash: want}) {
			t.Errorf("%s: %v, %v", h, names, err)
		}
	}
	if r, err := w.store().Fsck(t.Context(), true); err != nil || !r.OK() {
		t.Errorf("%v, %v", r.Problems, err)
	}
}

// TestEarlyRefused: a workflow that can't be read any more leaves out its threads, and
// nothing else.
func TestEarlyRefused(t *testing.T) {
	w, s := newWorld(t), ocastest.NewEarly("json-cas JSON Schema meta-schema")
	w.writeEarly("early", s, ocastest.FirstGeneration)
	flow, developer, _ := s.PutWorkflow(ocastest.FirstGeneration)
	p := s.Nodes[flow].Payload.(map[string]any)
	bad := s.Put(s.Nodes[flow].Type, map[string]any{"name": "bad", "description": "d", "conditions": map[string]any{}, "graph": p["graph"],
		"roles": map[string]any{"developer": map[string]any{"description": "d", "systemPrompt": "", "outputSchema": string(developer)}}})
	start := s.PutThread(ocastest.FirstGeneration, "bad")
	head := s.Put(s.Nodes[start].Type, map[string]any{"workflow": string(bad), "prompt": "Bad."})
	s.Lists["threads.yaml"] += fmt.Sprintf("%s: %s\n", "06F2S0000000000000000000GV", head)
	s.Lists["workflows.yaml"] += fmt.Sprintf("bad: %s\n", bad)
	w.ok(s.Write(filepath.Join(w.dir, "early")))
	code, text := w.run(false, "early")
	if want := strings.Replace(earlyImported, "early", "GV refused 0 active\nbad refused\nearly", 1); code != 1 || w.outcomes() != want {
		t.Fatalf("%d, %s\n%s", code, text, w.outcomes())
	}
	for _, why := range []string{w.got.Threads[len(w.got.Threads)-1].Why, w.got.Workflows[0].Why} {
		if !strings.Contains(why, "`systemPrompt` of role \"developer\" is empty") {
			t.Error(why)
		}
	}
}

// TestKilledUnsure: where the moderator can't decide, a thread is taken for cancelled, and
// that is said.
func TestKilledUnsure(t *testing.T) {
	w, s := newWorld(t), ocastest.NewEarly("json-cas JSON Schema meta-schema")
	flow, _, _ := s.PutWorkflow(ocastest.FirstGeneration)
	p := s.Nodes[flow].Payload.(map[string]any)
	p["conditions"] = map[string]any{"notApproved": map[string]any{"description": "d", "expression": "steps[-1].output.("}}
	other := s.Put(s.Nodes[flow].Type, p)
	delete(s.Nodes, flow)
	head := s.PutThread(ocastest.FirstGeneration, "Odd.", true)
	// The same thread of the other workflow.
	swap := map[string]string{string(flow): string(other)}
	for _, h := range append(chainOf(s, head), head) {
		moved := node.MapStrings(s.Nodes[h].Payload, func(t string) string {
			if to, ok := swap[t]; ok {
				return to
			}
			return t
		})
		swap[string(h)] = string(s.Put(s.Nodes[h].Type, moved))
	}
	s.Lists["history.jsonl"] = fmt.Sprintf(`{"thread":"%s","head":"%s","completedAt":1}`+"\n", ocastest.Ended, swap[string(head)])
	w.ok(s.Write(filepath.Join(w.dir, "odd")))
	if code, text := w.run(false, "odd"); code != 0 || w.outcomes() != "G8 imported 2 cancelled\n" || !strings.Contains(w.got.Threads[0].Why, "can't be told") {
		t.Errorf("%d, %s\n%s%+v", code, text, w.outcomes(), w.got.Threads)
	}
}

// chainOf are the records before a head, the oldest first.
func chainOf(s *ocastest.EarlyStore, head node.Hash) []node.Hash {
	p := s.Nodes[head].Payload.(map[string]any)
	if prev, ok := p["prev"].(string); ok {
		return append(chainOf(s, node.Hash(prev)), node.Hash(prev))
	}
	if start, ok := p["start"].(string); ok {
		return []node.Hash{node.Hash(start)}
	}
	return nil
}

// TestKeptThreads: threads of later versions have no list of former hashes.
func TestKeptThreads(t *testing.T) {
	w := newWorld(t)
	if code, text := w.run(false, "bundle.tar"); code != 0 {
		t.Fatal(code, text)
	}
	v, err := w.store().Load(t.Context())
	w.ok(err)
	if _, there := v.Root.Find(layout.FormerDir); there {
		t.Error("there is a list of former hashes")
	}
}

// TestEarlyStore: the store that 2026-05-18 left comes over, each thread as what it was.
func TestEarlyStore(t *testing.T) {
	u := unpackStore(t, "0518")
	before := u.listFiles()
	for _, dry := range []bool{true, false} {
		if code, text := u.importStore(dry); code != 0 || len(u.got.Problems) > 0 {
			t.Fatal(code, text)
		}
		got := map[string]string{}
		for is, id := range u.ids {
			for _, th := range u.got.Threads {
				if string(th.Thread) == id {
					got[is] = fmt.Sprintf("%s, %s, %d", th.Result, th.Status, th.Steps)
				}
			}
		}
		want := map[string]string{"active": "imported, active, 2", "done": "imported, ended, 5", "killed": "imported, cancelled, 1", "started": "imported, active, 0"}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v", got)
		}
	}
	u.sound()
	if after := u.listFiles(); after != before {
		t.Errorf("the store was changed:\n%s\n%s", before, after)
	}
}

// TestEarlyDamaged: a damaged node of that store leaves out, by name, the threads and the
// workflow that need it, and nothing else.
func TestEarlyDamaged(t *testing.T) {
	kinds := damageKinds()
	kinds["flipped"] = flipNode
	u := unpackStore(t, "0518")
	ref := func(h node.Hash, key string) node.Hash {
		m, _ := u.nodes[h].Payload.(map[string]any)
		text, _ := m[key].(string)
		if _, there := u.nodes[node.Hash(text)]; !there {
			t.Fatalf("%s of %s is no node", key, h)
		}
		return node.Hash(text)
	}
	head := u.threads["done"].Head
	for what, h := range map[string]node.Hash{
		"head": head, "a step": ref(head, "prev"), "start": ref(head, "start"), "output": ref(head, "output"), "detail": ref(head, "detail"),
		"workflow": ref(ref(head, "start"), "workflow"), "role schema": u.nodes[ref(head, "output")].Type, "schema of steps": u.nodes[head].Type, "meta-schema": u.nodes[u.nodes[head].Type].Type,
	} {
		for kind, damage := range kinds {
			if what == "meta-schema" && kind == "flipped" {
				continue // see TestRerootRefused
			}
			t.Run(what+"/"+kind, func(t *testing.T) {
				u := unpackStore(t, "0518")
				want := map[string]string{}
				for is, th := range u.threads {
					want[is] = map[bool]string{true: refused, false: imported}[u.walkClosure(th.Head, map[node.Hash]bool{})[h]]
				}
				for flow, e := range u.flows {
					want[flow] = map[bool]string{true: refused, false: imported}[u.walkClosure(e.Hash, map[node.Hash]bool{})[h]]
				}
				u.ok(damage(t, filepath.Join(u.files, string(h)+".bin")))
				code, text := u.importStore(kind != "flipped")
				if got := u.outcomesBy(); code != 1 || want["done"] != refused || !reflect.DeepEqual(got, want) {
					t.Fatalf("%s: %d, %s: %v, want %v", h, code, text, got, want)
				}
				for _, th := range u.got.Threads {
					if th.Result == refused && !strings.Contains(th.Why, string(h)) {
						t.Errorf("%s is not named: %s", h, th.Why)
					}
				}
				if kind == "flipped" {
					u.sound()
				}
			})
		}
	}
}
