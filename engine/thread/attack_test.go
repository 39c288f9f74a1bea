package thread_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/deliver"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/gitcastest/collide"
)

// Hashes are 64 bits of XXH64, and whoever chooses a text can choose its hash. These
// tests do what an agent can do with that, and then what somebody can do who writes to
// the state branch.

// text is a text whose node has a hash.
func (f *fixture) text(h node.Hash) string {
	f.Helper()
	s, err := collide.Text(h, node.String, func(s string) any { return "forged " + s })
	f.ok(err)
	return "forged " + s
}

func (f *fixture) hash(typ node.Hash, payload any) node.Hash {
	f.Helper()
	h, err := node.HashOf(typ, payload)
	f.ok(err)
	return h
}

// said is what a step put out, by its place.
func (f *fixture) said(v *gitcas.View, id gitcas.ThreadID, s gitcas.ChainStep) map[string]any {
	f.Helper()
	n, err := v.In(f.Context(), gitcas.Place{Thread: id, Of: s.Hash}).Get(s.Output)
	f.ok(err)
	m, _ := n.Payload.(map[string]any)
	return m
}

// TestAgentsCollide: what an agent makes has the hash of something else. That fails its
// own step, or harms nobody.
func TestAgentsCollide(t *testing.T) {
	reject := map[string]any{"$status": "rejected", "note": "no"}
	later := map[string]any{"type": "object", "title": "later"}
	laterSchema := func(f *fixture) node.Hash { return f.hash(node.MetaSchema, later) }
	schemaOf := func(f *fixture, role string) node.Hash { return f.hash(node.MetaSchema, testSchema(role)) }
	for name, c := range map[string]struct {
		// forge is what the first step's agent does to its honest draft.
		forge func(f *fixture, t task.Task, d *draft)
		fails string // the step fails, saying this; empty: it goes through
	}{
		"its own prompt": {func(f *fixture, t task.Task, d *draft) { d.body(f.text(f.hash(node.String, t.Prompt))) },
			"two different nodes of a step have the same hash"},
		"its own output": {func(f *fixture, _ task.Task, d *draft) { d.body(f.text(d.step.Output)) }, // staged in its place
			"the agent's output is of type"},
		"the output that the next role is to give": {func(f *fixture, _ task.Task, d *draft) { d.body(f.text(f.hash(schemaOf(f, "b"), reject))) }, ""},
		"a detail with that hash": {func(f *fixture, _ task.Task, d *draft) {
			d.step.Detail = d.put(node.String, f.text(f.hash(schemaOf(f, "b"), reject)))
		}, ""},
		"the start of the thread": {func(f *fixture, t task.Task, d *draft) { d.body(f.text(t.Start)) }, ""},
		"the definition": {func(f *fixture, t task.Task, d *draft) { d.body(f.text(t.Workflow)) },
			"two different nodes of a step have the same hash"},
		"the schema of a role, as a text": {func(f *fixture, _ task.Task, d *draft) { d.body(f.text(schemaOf(f, "b"))) },
			"two different nodes of a step have the same hash"},
		"a built-in schema": {func(f *fixture, _ task.Task, d *draft) { d.body(f.text(record.ErrorOutputSchema)) },
			"two different nodes of a step have the same hash"},
		"the schema of a later workflow": {func(f *fixture, _ task.Task, d *draft) {
			n, err := collide.Node(laterSchema(f), node.MetaSchema, func(s string) any { return map[string]any{"description": s} })
			f.ok(err)
			typ := d.put(node.MetaSchema, n.Payload)
			d.step.Detail = d.put(typ, map[string]any{"any": "thing"})
		}, ""},
		"what a person is about to say": {func(f *fixture, _ task.Task, d *draft) { d.body(f.text(f.hash(node.String, "go on"))) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				honest := f.agent
				f.agent = func(_ context.Context, task task.Task, _ *task.Meter) (task.Draft, error) {
					d := f.draftOf(task).output(map[string]any{"$status": "done", "note": "honest"})
					c.forge(f, task, d)
					return d.done(), nil
				}
				_, err := f.step("r1")
				if c.fails != "" {
					f.says(f.code(err, life.KindFailed), c.fails)
					f.agent = honest
					f.steps("r2", "r3") // somebody honest goes on
					f.sound()
					return
				}
				f.ok(err)
				f.agent = func(_ context.Context, task task.Task, _ *task.Meter) (task.Draft, error) {
					return f.draftOf(task).output(reject).done(), nil
				}
				f.steps("r2")
				f.agent = f.answer("ask", "")
				f.steps("r3")
				f.ok(f.deed("resume"))
				_, err = f.engine("fork", 1).Fork(f.Context(), thread.ForkRequest{ID: "01JD0000000000000000000009", From: testThread, Steps: 2})
				f.ok(err)
				next := startRequest("01JD0000000000000000000008")
				n, h, err := node.New(node.MetaSchema, later, time.UnixMilli(0))
				f.ok(err)
				next.Nodes[h] = n
				_, err = f.engine("later", 1).Start(f.Context(), next)
				f.ok(err)
				for _, id := range []gitcas.ThreadID{testThread, "01JD0000000000000000000009"} {
					v, err := f.store().Load(f.Context(), id)
					f.ok(err)
					chain, err := v.ReadChain(f.Context(), id)
					f.ok(err)
					if got := f.said(v, id, chain.Steps[0]); got["note"] != "honest" {
						f.Errorf("thread %s: the first step says %v", id, got)
					}
					if got := f.said(v, id, chain.Steps[1]); got["$status"] != "rejected" || got["note"] != "no" {
						f.Errorf("thread %s: the second step says %v", id, got)
					}
				}
				f.sound()
			})
		})
	}
}

// TestLaterAgentsCollide: a later step can't change what an earlier one said either, for
// people, for the moderator or for the agents after it.
func TestLaterAgentsCollide(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.steps("r1")
		first := f.chain().Steps[0]
		f.agent = func(_ context.Context, task task.Task, _ *task.Meter) (task.Draft, error) {
			d := f.draftOf(task).output(map[string]any{"$status": "rejected", "note": "no"}).body(f.text(first.Output))
			d.step.Detail = d.put(node.String, f.text(*first.AssembledPrompt))
			return d.done(), nil
		}
		f.steps("r2")
		f.agent = f.answer("done", "approved")
		f.steps("r3")
		v := f.view()
		if got := f.said(v, testThread, first); got["note"] != "what now?" {
			f.Errorf("the first step says %v", got)
		}
		p, err := v.In(f.Context(), gitcas.Place{Thread: testThread, Of: first.Hash, Detail: true}).Get(*first.AssembledPrompt)
		f.ok(err)
		if p.Payload != f.runs[0].Prompt {
			f.Errorf("the first step was told %q", p.Payload)
		}
		// What the third agent could read has both, apart.
		nodes := f.runs[2].Nodes
		if n := nodes[gitcas.Place{Thread: testThread, Of: first.Hash}][first.Output]; n.Type == node.String {
			f.Errorf("the agent sees %v", n)
		}
		if strings.Contains(f.runs[2].Prompt, "### forged") || !strings.Contains(f.runs[2].Prompt, "what now?") {
			f.Errorf("it is told %s", f.runs[2].Prompt)
		}
		f.sound()
	})
}

// TestFailedAgentsCollide: nor can an agent that fails hide why.
func TestFailedAgentsCollide(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		text := "agent test: gave up"
		f.agent = func(_ context.Context, asked task.Task, _ *task.Meter) (task.Draft, error) {
			d := f.draftOf(asked).output(map[string]any{"$status": "done", "note": "x"})
			for _, h := range []node.Hash{
				f.hash(record.ErrorOutputSchema, map[string]any{"$status": "error", "error": text, "phase": "agent"}), f.hash(node.String, "why"),
			} {
				d.put(node.String, f.text(h))
			}
			return task.Draft{Nodes: d.d.Nodes, Stderr: "why"}, &task.AgentError{Agent: "test", Reason: "gave up"}
		}
		_, err := f.step("r1")
		f.says(f.code(err, life.KindFailed), text)
		as, err := attempt.ReadAll(f.Context(), f.store(), f.view(), testThread, f.entry())
		f.ok(err)
		if len(as) != 1 || as[0].Error != text {
			f.Errorf("%+v", as)
		}
		f.agent = f.answer("done", "approved")
		f.steps("r2")
		as, err = attempt.ReadLinkedTo(f.places(), testThread, f.chain().Steps[0].Step)
		f.ok(err)
		if len(as) != 1 || as[0].Error != text {
			f.Errorf("%+v", as)
		}
		f.sound()
	})
}

// exchange puts another node of the same hash into a file of the state branch, as
// somebody can who may push to it.
func (f *fixture) exchange(path string, typ node.Hash, build func(text string) any) {
	f.Helper()
	parts := strings.Split(path, "/")
	name := strings.TrimSuffix(parts[len(parts)-1], ".json")
	n, err := collide.Node(node.Hash(name[strings.LastIndexByte(name, '.')+1:]), typ, build)
	f.ok(err)
	data, err := node.EncodeFile(n)
	f.ok(err)
	const branch = "refs/heads/" + gitcas.DefaultBranch
	tip := f.mem.Refs()[branch]
	c, err := gitobj.DecodeCommit(f.object(tip).Data)
	f.ok(err)
	c.Tree, c.Parents, c.Message = f.withFile(c.Tree, parts, f.add(plumbing.BlobObject, data)), []wire.ID{tip}, "nothing to see here\n"
	commit, err := gitobj.EncodeCommit(c)
	f.ok(err)
	f.mem.SetRef(branch, f.add(plumbing.CommitObject, commit))
}

func (f *fixture) add(typ plumbing.ObjectType, data []byte) wire.ID {
	o := wire.NewObject(typ, data)
	f.mem.AddObjects(o)
	return o.ID
}

func (f *fixture) object(id wire.ID) wire.Object {
	f.Helper()
	o, ok := f.mem.Get(id)
	if !ok {
		f.Fatalf("object %s is not there", id)
	}
	return o
}

func (f *fixture) withFile(tree wire.ID, path []string, blob wire.ID) wire.ID {
	f.Helper()
	entries, err := gitobj.DecodeTree(f.object(tree).Data)
	f.ok(err)
	for i, e := range entries {
		if e.Name != path[0] {
			continue
		}
		if e.Mode == filemode.Dir {
			blob = f.withFile(e.ID, path[1:], blob)
		}
		entries[i].ID = blob
		data, err := gitobj.EncodeTree(entries)
		f.ok(err)
		return f.add(plumbing.TreeObject, data)
	}
	f.Fatalf("%s is not there", path[0])
	return tree
}

// TestExchangedOnBranch: who can push to the state branch exchanges a node for another
// one of its hash. The next job says which, and so does fsck.
func TestExchangedOnBranch(t *testing.T) {
	text := func(s string) any { return "forged " + s }
	for name, c := range map[string]struct {
		path  func(f *fixture, c gitcas.Chain) string
		typ   node.Hash
		build func(f *fixture, c gitcas.Chain) func(string) any
		later bool // only who reads details sees it
		flow  bool // the workflow is named, as it has one digest with its schemas
	}{
		"the definition": {path: func(_ *fixture, c gitcas.Chain) string { return gitcas.Place{}.Path(c.Start.Workflow) }, typ: record.WorkflowSchema,
			build: func(_ *fixture, _ gitcas.Chain) func(string) any {
				return func(s string) any {
					w := maps.Clone(testWorkflow)
					w["description"] = "everything is approved " + s
					return w
				}
			}},
		"the schema of a role": {path: func(f *fixture, _ gitcas.Chain) string {
			return gitcas.Place{}.Path(f.hash(node.MetaSchema, testSchema("b")))
		}, typ: node.MetaSchema, build: func(*fixture, gitcas.Chain) func(string) any {
			return func(s string) any { return map[string]any{"type": "object", "description": s} }
		}, flow: true},
		"the start": {path: func(_ *fixture, c gitcas.Chain) string { return gitcas.Place{Thread: testThread}.Path(c.StartHash) }, typ: record.OwnStartSchema,
			build: func(_ *fixture, c gitcas.Chain) func(string) any {
				return func(s string) any {
					return map[string]any{"workflow": string(c.Start.Workflow), "prompt": "do something else", "cwd": ".",
						"digests": map[string]any{"workflow": string(c.Start.Digests.Workflow)}, "trigger": map[string]any{"x": s}}
				}
			}},
		"the output of a step": {path: func(_ *fixture, c gitcas.Chain) string {
			return gitcas.Place{Thread: testThread, Of: c.Steps[0].Hash}.Path(c.Steps[0].Output)
		}, build: func(f *fixture, _ gitcas.Chain) func(string) any {
			return func(s string) any { return map[string]any{"$status": "done", "note": s} }
		}},
		"a body": {path: func(_ *fixture, c gitcas.Chain) string {
			return gitcas.Place{Thread: testThread, Of: c.Steps[0].Hash}.Path(*c.Steps[0].Body)
		}, typ: node.String, build: func(*fixture, gitcas.Chain) func(string) any { return text }},
		"a prompt": {path: func(_ *fixture, c gitcas.Chain) string {
			return gitcas.Place{Thread: testThread, Of: c.Steps[0].Hash, Detail: true}.Path(*c.Steps[0].AssembledPrompt)
		}, typ: node.String, build: func(*fixture, gitcas.Chain) func(string) any { return text }, later: true},
		"a detail": {path: func(_ *fixture, c gitcas.Chain) string {
			return gitcas.Place{Thread: testThread, Of: c.Steps[0].Hash, Detail: true}.Path(c.Steps[0].Detail)
		}, typ: node.String, build: func(*fixture, gitcas.Chain) func(string) any { return text }, later: true},
		"an error": {path: func(f *fixture, c gitcas.Chain) string {
			attempt, err := record.ParseStep(f.get(c.Steps[0].PreviousAttempts[0]))
			f.ok(err)
			return gitcas.Place{Thread: testThread, Of: c.Steps[0].PreviousAttempts[0]}.Path(attempt.Output)
		}, typ: record.ErrorOutputSchema, build: func(*fixture, gitcas.Chain) func(string) any {
			return func(s string) any { return map[string]any{"$status": "error", "error": s} }
		}, later: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				f.agent = f.fails
				_, err := f.step("r0")
				f.code(err, life.KindFailed)
				f.agent = func(_ context.Context, task task.Task, _ *task.Meter) (task.Draft, error) {
					d := f.draftOf(task).output(map[string]any{"$status": "done", "note": "honest"}).body("honest")
					d.step.Detail = d.put(node.String, "what I did")
					return d.done(), nil
				}
				head := f.steps("r1").Pin()
				chain := f.chain()
				path, typ := c.path(f, chain), c.typ
				named := path
				if c.flow {
					named = gitcas.Place{}.Path(chain.Start.Workflow)
				}
				if typ == "" {
					typ = f.hash(node.MetaSchema, testSchema("a"))
				}
				f.exchange(path, typ, c.build(f, chain))
				runs := len(f.runs)
				f.agent = f.answer("done", "approved")
				if !c.later {
					_, err = f.stepWith("r2", 1, step.Request{Thread: testThread, ExpectHead: head})
					f.says(f.code(err, life.KindDamaged), named)
					if !errors.Is(err, gitcas.ErrExchanged) || len(f.runs) != runs {
						f.Errorf("%v; %d agents ran", err, len(f.runs)-runs)
					}
				}
				for _, history := range []bool{false, true} {
					r, err := f.store().Fsck(f.Context(), history)
					f.ok(err)
					found := false
					for _, p := range r.Problems {
						found = found || p.Path == named && strings.Contains(p.Why, "exchanged")
						if history && strings.Contains(p.Why, "rewrites "+path) {
							found = true
						}
					}
					if !found {
						f.Errorf("fsck (history %v) does not name %s: %+v", history, path, r.Problems)
					}
				}
			})
		})
	}
}

// TestExchangedHead: nothing follows a head that could vouch for it. Who was told its
// digest sees that it is another one.
func TestExchangedHead(t *testing.T) {
	for _, told := range []bool{true, false} {
		inBubble(t, func(f *fixture) {
			f.start()
			c := f.chain()
			pin := node.Pin{Hash: c.StartHash}
			if told {
				pin.Digest = c.Head
			}
			path := gitcas.Place{Thread: testThread}.Path(c.StartHash)
			f.exchange(path, record.OwnStartSchema, func(s string) any {
				return map[string]any{"workflow": string(c.Start.Workflow), "prompt": "do something else", "cwd": ".",
					"digests": map[string]any{"workflow": string(c.Start.Digests.Workflow)}, "trigger": map[string]any{"x": s}}
			})
			_, err := f.stepWith("r1", 1, step.Request{Thread: testThread, ExpectHead: pin})
			if !told {
				f.ok(err) // SECURITY.md says so
				return
			}
			f.says(f.code(err, life.KindDamaged), path, "exchanged it", "fsck")
			f.paid(0)
			r, err := f.store().Fsck(f.Context(), true)
			f.ok(err)
			if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Why, "rewrites "+path) {
				f.Errorf("fsck: %+v", r.Problems)
			}
		})
	}
}

// TestDeliverTold: a delivery is told the head's digest as a step is.
func TestDeliverTold(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.steps("r1")
		res, err := f.stepWith("r2", 1, step.Request{Thread: testThread, Deliver: true})
		f.ok(err)
		deliver := func(d node.Digest) error {
			_, err := f.engine("r3", 1).Deliver(f.Context(), deliver.Request{Thread: testThread, ExpectHead: node.Pin{Hash: res.Head, Digest: d}, Do: func(context.Context, deliver.Delivery) (life.Effects, error) {
				return life.Effects{}, nil
			}})
			return err
		}
		f.says(f.code(deliver(node.Digest(strings.Repeat("0", 64))), life.KindDamaged), "somebody exchanged it on the branch")
		f.ok(deliver(res.HeadDigest))
	})
}

// TestAgentsBurden: what an agent makes is at the limits of what can be stored. Its own
// step may fail for that; nobody after it does.
func TestAgentsBurden(t *testing.T) {
	nested := func(levels int, inner any) any {
		for range levels {
			inner = []any{inner}
		}
		return inner
	}
	wide := make([]any, 95_000)
	for i := range wide {
		wide[i] = int64(1)
	}
	for name, payload := range map[string]any{
		"deep": nested(node.MaxDepth, "x"), "deepest": nested(node.MaxDepth-1, "x"),
		"many": append(append([]any{}, wide...), wide[:node.MaxValues-len(wide)-2]...), "wide once indented": nested(95, wide),
	} {
		for _, gives := range []string{"an output with it", "a detail", "up"} {
			t.Run(name+", gives "+gives, func(t *testing.T) {
				inBubble(t, func(f *fixture) {
					f.start()
					honest := f.agent
					f.agent = func(_ context.Context, asked task.Task, _ *task.Meter) (task.Draft, error) {
						d := f.draftOf(asked)
						h := d.put(d.put(node.MetaSchema, map[string]any{"type": "array"}), payload)
						fields := map[string]any{"$status": "done", "note": "x"}
						switch gives {
						case "up":
							return task.Draft{Nodes: d.output(fields).d.Nodes}, &task.AgentError{Agent: "test", Reason: "gave up"}
						case "a detail":
							d.step.Detail = h
						default:
							fields["see"] = []any{string(h)}
						}
						return d.output(fields).done(), nil
					}
					_, err := f.step("r1")
					if code := life.KindOf(err); code != life.KindDone && code != life.KindFailed {
						f.Fatalf("exit code %d: %v", code, err)
					}
					f.agent = honest
					f.steps("r2")
					if _, alive := f.view().Entry(testThread); alive {
						f.steps("r3")
					}
					f.sound()
				})
			})
		}
	}
}
