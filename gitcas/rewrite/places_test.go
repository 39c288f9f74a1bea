package rewrite_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/rewrite"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/gitcastest/collide"
)

// add puts a step on a thread that was made with complete.
func (f *fixture) add(v *gitcas.View, t gitcas.ThreadID, s record.Step, own []gitcas.PlacedNode, records ...gitcas.PlacedNode) node.Hash {
	f.Helper()
	c, err := v.ReadChain(f.Context(), t)
	f.ok(err)
	s.Start = c.StartHash
	if n := len(c.Steps); n > 0 {
		s.Prev = &c.Steps[n-1].Hash
	}
	h, nodes := f.complete(v, t, s, own, records...)
	e, _ := v.Entry(t)
	e.Head = h
	f.push(v, &gitcas.Change{Subject: "a step", Nodes: nodes, Threads: map[gitcas.ThreadID]*gitcas.Entry{t: &e}})
	return h
}

func (f *fixture) chain(t gitcas.ThreadID) (*gitcas.View, gitcas.Chain) {
	f.Helper()
	v := f.load(t)
	c, err := v.ReadChain(f.Context(), t)
	f.ok(err)
	return v, c
}

// textOf is the text of a node that a step refers to.
func (f *fixture) textOf(t gitcas.ThreadID, step int, h func(s record.Step) node.Hash) string {
	f.Helper()
	v, c := f.chain(t)
	s := c.Steps[step]
	switch x := f.below(v, t, s.Hash, h(s.Step)).Payload.(type) {
	case string:
		return x
	case map[string]any:
		out, _ := x["note"].(string)
		return out
	}
	return ""
}

func bodyOf(s record.Step) node.Hash { return *s.Body }

func outputOf(s record.Step) node.Hash { return s.Output }

// TestDigests: what refers to something that was purged has its digest as it is now:
// also through types, lists, earlier attempts and the steps before. What refers to
// nothing of the kind stays as it is, and what had no digests gets none.
func TestDigests(t *testing.T) {
	f := memory(t)
	f.plain[id(2)] = true
	f.start(id(1), "p")
	f.start(id(2), "q")
	f.step(id(1), note("first"), "first", "first")
	f.step(id(2), note("it is "+secret), "", secret)
	f.step(id(2), note("second"), "", "second")

	// A step in a schema of its agent's own, with an attempt before it.
	v := f.load(id(1))
	attempt := f.failed(v, id(1), secret)
	own := gitcas.Place{Thread: id(1)}
	schema := f.placed(own, node.MetaSchema, map[string]any{"type": "object", "description": "as in " + secret})
	out := f.placed(own, schema.Hash, map[string]any{"$status": "finished"})
	s, nodes := f.work(id(1), note("n"), "b", "d")
	s.Output, s.PreviousAttempts = out.Hash, []node.Hash{recordOf(attempt)}
	f.add(v, id(1), s, append(nodes, schema, out), attempt...)
	f.step(id(1), note("third"), "third", "third")

	_, before := f.chain(id(1))
	f.sound()
	f.purge(f.options(finder(t, secret)))
	f.sound()
	f.nowhere(secret)
	v, after := f.chain(id(1))
	for i, s := range after.Steps {
		old := before.Steps[i]
		if same := s.Hash == old.Hash; same != (i == 0) {
			t.Errorf("step %d: the same is %v", i+1, same)
		}
		if s.Digests == nil || i > 0 && (s.Digests.Prev == old.Digests.Prev) != (i == 1) {
			t.Errorf("step %d has the digests %+v, had %+v", i+1, s.Digests, old.Digests)
		}
	}
	second, was := after.Steps[1].Digests, before.Steps[1].Digests
	if second.Output == was.Output || second.PreviousAttempts[0] == was.PreviousAttempts[0] || second.Body != was.Body || second.Detail != was.Detail {
		t.Errorf("digests %+v, were %+v", second, was)
	}
	failed, err := v.In(t.Context(), gitcas.Place{Thread: id(1)}).Get(after.Steps[1].PreviousAttempts[0])
	f.ok(err)
	if sum, err := failed.Sum(); err != nil || sum != second.PreviousAttempts[0] {
		t.Errorf("the attempt has the digest %s (%v), not %s", sum, err, second.PreviousAttempts[0])
	}
	_, plain := f.chain(id(2))
	for _, s := range plain.Steps {
		if s.Digests != nil {
			t.Errorf("step %s has digests %+v", s.Hash, s.Digests)
		}
	}
	for n := range 2 {
		f.step(id(n+1), note("goes on"), "b", "d")
	}
	f.sound()
}

// recordOf is the hash of the step among the nodes of an attempt.
func recordOf(nodes []gitcas.PlacedNode) node.Hash {
	i := slices.IndexFunc(nodes, func(n gitcas.PlacedNode) bool { return record.IsStep(n.Node.Type) })
	return nodes[i].Hash
}

// TestDigestOfDefinition: a StartNode's digest is of the workflow with its schemas.
func TestDigestOfDefinition(t *testing.T) {
	f := memory(t)
	f.setSchema("use " + secret)
	f.setFlow("no more than that")
	f.start(id(1), "p")
	f.step(id(1), note("n"), "b", "d")
	_, before := f.chain(id(1))
	f.purge(f.options(finder(t, secret)))
	f.sound()
	_, after := f.chain(id(1))
	if after.Start.Digests.Workflow == before.Start.Digests.Workflow || after.Start.Workflow == before.Start.Workflow {
		t.Errorf("start %+v, was %+v", after.Start, before.Start)
	}
}

// TestDigestsAreNoText: what is looked for may stand in a digest by chance, and a record
// that is named loses its texts, but nothing by which it refers to others.
func TestDigestsAreNoText(t *testing.T) {
	f := memory(t)
	f.start(id(1), "p")
	f.step(id(1), note("n"), "b", "d")
	f.step(id(1), note("it is "+secret), "b", "d")
	_, c := f.chain(id(1))
	o := f.options(finder(t, secret))
	o.Nodes = []node.Hash{c.Steps[1].Hash, c.StartHash}
	f.purge(o)
	f.sound()
	_, now := f.chain(id(1))
	if s := now.Steps[1]; s.EdgePrompt != "[purged]" || s.Output == c.Steps[1].Output || s.Body == nil || *s.Body != *c.Steps[1].Body {
		t.Errorf("step %+v", s)
	}
	for _, text := range []string{string(now.Steps[1].Digests.Prev[:20]), string(now.Start.Digests.Workflow[10:40]), string(now.Steps[0].Output)[:9]} {
		plan, err := rewrite.New(f.remote, f.options(finder(t, text))).MakePlan(t.Context())
		if err != nil || plan.Purged > 0 {
			t.Errorf("%s: %+v, %v", text, plan, err)
		}
	}
}

// somewhere reports whether something that a ref reaches holds a text.
func (f *fixture) somewhere(text string) bool {
	f.Helper()
	found := false
	f.everything(func(_ string, o wire.Object) { found = found || strings.Contains(string(o.Data), text) })
	return found
}

// change puts a commit in the place of the tip, or after it, with one file changed.
func (f *fixture) change(path string, data []byte, after bool) {
	f.Helper()
	tip := f.load().Tip()
	objs, err := f.remote.Fetch(f.Context(), wire.FetchRequest{Wants: []wire.ID{tip}, Depth: 1})
	f.ok(err)
	c, err := gitobj.DecodeCommit(objs[tip].Data)
	f.ok(err)
	var made []wire.PackObject
	put := func(t plumbing.ObjectType, data []byte) wire.ID {
		o := wire.NewObject(t, data)
		made = append(made, wire.PackObject{Object: o})
		return o.ID
	}
	var tree func(id wire.ID, path string) wire.ID
	tree = func(id wire.ID, path string) wire.ID {
		entries, err := gitobj.DecodeTree(objs[id].Data)
		f.ok(err)
		name, rest, deeper := strings.Cut(path, "/")
		i := slices.IndexFunc(entries, func(e gitobj.Entry) bool { return e.Name == name })
		if i < 0 {
			f.Fatalf("%s is not there", path)
		}
		if deeper {
			entries[i].ID = tree(entries[i].ID, rest)
		} else {
			entries[i].ID = put(plumbing.BlobObject, data)
		}
		data, err := gitobj.EncodeTree(entries)
		f.ok(err)
		return put(plumbing.TreeObject, data)
	}
	c.Tree = tree(c.Tree, path)
	if after {
		c.Parents = []wire.ID{tip}
	}
	text, err := gitobj.EncodeCommit(c)
	f.ok(err)
	to := put(plumbing.CommitObject, text)
	updates := []wire.RefUpdate{{Name: f.store.Branch(), Old: tip, New: to}, {Name: layout.StoreRef, Old: tip, New: to}}
	_, err = f.remote.Push(f.Context(), wire.PushRequest{Updates: updates, Objects: made})
	f.ok(err)
}

// twin is another node with the hash of one: a text that begins with these words.
func (f *fixture) twin(of node.Hash, words string) gitcas.PlacedNode {
	f.Helper()
	n, err := collide.Node(of, node.String, func(text string) any { return words + text })
	f.ok(err)
	n.Timestamp = f.now().UnixMilli()
	return gitcas.PlacedNode{Hash: of, Node: n}
}

// TestForgeryStays: a node that somebody exchanged for one of the same hash is still
// found out afterwards: no digest is made to fit it.
func TestForgeryStays(t *testing.T) {
	for name, tc := range map[string]struct {
		words string
		after bool // it was another one in the commit before
	}{
		"from the beginning": {"another body ", false},
		"purged itself":      {"another body with " + secret + " ", false},
		"later":              {"another body ", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := memory(t)
			f.start(id(1), "it is "+secret)
			f.step(id(1), note("n"), "the body that was reviewed", "d")
			_, c := f.chain(id(1))
			s := c.Steps[0]
			data, err := node.EncodeFile(f.twin(*s.Body, tc.words).Node)
			f.ok(err)
			f.change(fmt.Sprintf("threads/%s/%s.%s.json", id(1), s.Hash, *s.Body), data, tc.after)
			exchanged := func() bool {
				v, c := f.chain(id(1))
				s := c.Steps[0]
				_, err := v.In(t.Context(), gitcas.Place{Thread: id(1), Of: s.Hash}).Get(*s.Body)
				return errors.Is(err, gitcas.ErrExchanged)
			}
			if !exchanged() {
				t.Fatal("nobody sees the forgery")
			}
			plan := f.purge(f.options(finder(t, secret)))
			f.nowhere(secret)
			if threadsAre(t, plan, id(1)); !exchanged() {
				t.Error("afterwards nobody sees the forgery")
			}
		})
	}
}

// TestCollisions: agents make nodes with the hashes of others. Each is rewritten for
// itself, and what refers to a name finds what it has in its place.
func TestCollisions(t *testing.T) {
	f := memory(t)
	for n := range 3 {
		f.start(id(n+1), "p")
	}
	f.step(id(1), note("it is "+secret), "the body has "+secret+" too", "d")
	f.step(id(2), note("clean"), "clean", "clean")
	f.step(id(3), note("clean"), "clean", "clean")
	_, one := f.chain(id(1))
	body, output := *one.Steps[0].Body, one.Steps[0].Output

	// Bodies with the hash of that body: a clean one, and one with the secret, which
	// becomes something else. A detail with the hash of that output.
	for n, words := range map[int]string{2: "clean ", 3: "another text with " + secret + " "} {
		s, own := f.work(id(n), note("n"), "", "d")
		twin, detail := f.twin(body, words), f.twin(output, words)
		twin.Place, detail.Place = gitcas.Place{Thread: id(n)}, gitcas.Place{Thread: id(n), Detail: true}
		s.Body = &twin.Hash
		s.Detail = detail.Hash
		f.add(f.load(id(n)), id(n), s, append(own, twin, detail))
	}
	// A step whose body, details and earlier answers have the hashes of the records, the
	// workflow and the schema of its own thread.
	v, one := f.chain(id(1))
	s, own := f.work(id(1), note("n"), "", "d")
	twin := f.twin(one.Steps[0].Hash, "has "+secret+" ")
	twin.Place = gitcas.Place{Thread: id(1)}
	s.Body = &twin.Hash
	_, two := f.chain(id(2))
	for _, h := range []node.Hash{f.flow.Hash, f.schema.Hash, one.StartHash, two.Steps[1].Hash} {
		n := f.twin(h, "has "+secret+" ")
		n.Place = gitcas.Place{Thread: id(1), Detail: true}
		own = append(own, n)
	}
	f.add(v, id(1), s, append(own, twin))
	f.step(id(2), note("clean"), "clean", "clean")
	f.sound()

	plan := f.purge(f.options(finder(t, secret)))
	f.sound()
	f.nowhere(secret)
	threadsAre(t, plan, id(1), id(3))
	_, two = f.chain(id(2))
	if *two.Steps[1].Body != body || two.Steps[1].Detail != output {
		t.Errorf("what is clean was changed: %+v", two.Steps[1])
	}
	if _, commits := f.log(); !strings.Contains(commits[0].Message, "\nUwf-Prev: "+string(two.Steps[1].Hash)+"\n") {
		t.Errorf("the last commit names something else:\n%s", commits[0].Message)
	}
	for n, want := range map[int]string{1: "the body has [purged] too", 2: "clean ", 3: "another text with [purged] "} {
		step := 1
		if n == 1 {
			step = 0
		}
		if got := f.textOf(id(n), step, bodyOf); !strings.HasPrefix(got, want) {
			t.Errorf("thread %d: body %q, want %q", n, got, want)
		}
	}
	_, one = f.chain(id(1))
	if got := f.textOf(id(1), 1, bodyOf); !strings.HasPrefix(got, "has [purged] ") || *one.Steps[1].Prev != one.Steps[0].Hash {
		t.Errorf("body %q, step %+v", got, one.Steps[1])
	}
	for n := range 3 {
		f.step(id(n+1), note("goes on"), "b", "d")
	}
	f.sound()
}

// TestSchemaCollides: an agent's own schema has the hash of a shared one, of a workflow
// that its thread has nothing to do with. What its step made fits the agent's.
func TestSchemaCollides(t *testing.T) {
	f := memory(t)
	flow, schema := f.flow, f.schema
	f.setSchema("of another workflow")
	f.setFlow("another workflow")
	f.start(id(2), "q")
	other := f.schema.Hash
	f.flow, f.schema = flow, schema
	f.start(id(1), "p")
	v := f.load(id(1))
	own := gitcas.Place{Thread: id(1)}
	n, err := collide.Node(other, node.MetaSchema, func(text string) any {
		return map[string]any{"type": "object", "required": []any{"x"}, "description": "says " + text}
	})
	f.ok(err)
	out := f.placed(own, other, map[string]any{"x": int64(1), "note": "it is " + secret})
	s, nodes := f.work(id(1), note("n"), "b", "d")
	s.Output = out.Hash
	f.add(v, id(1), s, append(nodes, gitcas.PlacedNode{Hash: other, Node: n, Place: own}, out))
	f.sound()
	f.purge(f.options(finder(t, secret)))
	f.sound()
	f.nowhere(secret)
	if got := f.textOf(id(1), 0, outputOf); got != "it is [purged]" {
		t.Errorf("output %q", got)
	}
}

// TestNamedEverywhere: a hash that is named stands for all nodes of it: the same text in
// several places, another one of the same hash, and one without any text, which keeps
// nobody from it.
func TestNamedEverywhere(t *testing.T) {
	f := memory(t)
	f.start(id(1), "p")
	f.start(id(2), "q")
	bare := map[string]any{"$status": "finished"}
	f.step(id(1), bare, "a text that is to go", "d")
	f.step(id(2), note("the same body"), "a text that is to go", "d")
	f.step(id(2), note("n"), "another body", "d")
	_, c := f.chain(id(1))
	output, body := c.Steps[0].Output, *c.Steps[0].Body

	v := f.load(id(2))
	s, own := f.work(id(2), note("n"), "", "d")
	twin := f.twin(body, "a text of the same hash ")
	twin.Place = gitcas.Place{Thread: id(2)}
	s.Body = &twin.Hash
	f.add(v, id(2), s, append(own, twin))

	// In an attempt: a text with the hash of an output that has none.
	v = f.load(id(2))
	twin = f.twin(output, "what the attempt said ")
	said := f.failedWith(v, id(2), twin)
	ref := layout.AttemptRef(id(2), "r", 1)
	u, objs, err := gitcas.BuildAttempt(gitcas.Attempt{Thread: id(2), Run: "r", Attempt: 1, Error: "failed", At: f.now(), Nodes: said})
	f.ok(err)
	f.push(v, &gitcas.Change{Refs: []wire.RefUpdate{u}, Objects: objs})
	f.sound()

	o := f.options(nil)
	o.Nodes = []node.Hash{output, body}
	plan := f.purge(o)
	f.sound()
	f.nowhere("a text that is to go", "a text of the same hash", "what the attempt said")
	threadsAre(t, plan, id(1), id(2))
	if len(plan.Attempts) != 1 || len(plan.Nodes) != 2 || plan.Purged != 4 {
		t.Errorf("plan %+v", plan)
	}
	for n, want := range map[int][]string{1: {"[purged]"}, 2: {"[purged]", "another body", "[purged]"}} {
		for i, text := range want {
			if got := f.textOf(id(n), i, bodyOf); got != text {
				t.Errorf("thread %d, step %d: body %q, want %q", n, i+1, got, text)
			}
		}
	}
	_, c = f.chain(id(1))
	if c.Steps[0].Output != output {
		t.Error("an output without a text was changed")
	}
	a, err := f.store.ReadAttempt(t.Context(), f.load(id(2)), ref)
	f.ok(err)
	if i := slices.IndexFunc(a.Nodes, func(n gitcas.PlacedNode) bool { return n.Node.Payload == "[purged]" }); i < 0 {
		t.Errorf("attempt %+v", a.Nodes)
	}

	// Where there is no text anywhere, that is said.
	var none *rewrite.NothingError
	o.Nodes = []node.Hash{output}
	if _, err := rewrite.New(f.remote, o).MakePlan(t.Context()); !errors.As(err, &none) || none.Node != output {
		t.Errorf("%v", err)
	}
}

// TestTwiceInOneStep: the same node among what a step refers to and among its details,
// and details that are another one of that hash.
func TestTwiceInOneStep(t *testing.T) {
	for name, other := range map[string]bool{"the same": false, "another one": true} {
		t.Run(name, func(t *testing.T) {
			f := memory(t)
			f.start(id(1), "p")
			v := f.load(id(1))
			s, own := f.work(id(1), note("n"), "it is "+secret, "d")
			body := own[len(own)-1]
			twin := body
			if other {
				twin = f.twin(body.Hash, "also "+secret)
			}
			twin.Place = gitcas.Place{Thread: id(1), Detail: true}
			f.add(v, id(1), s, append(own, twin))
			f.sound()
			f.purge(f.options(finder(t, secret)))
			f.sound()
			f.nowhere(secret)
			if got := f.textOf(id(1), 0, bodyOf); got != "it is [purged]" {
				t.Errorf("body %q", got)
			}
			if f.somewhere("also [purged]") != other {
				t.Error("another node took the place of the detail")
			}
		})
	}
}

// TestOtherRecords: what is among the records and is none of those that this version knows
// is rewritten as any node is: its texts go, and what it refers to is looked for in its place.
func TestOtherRecords(t *testing.T) {
	f := memory(t)
	f.start(id(1), "it is "+secret)
	_, c := f.chain(id(1))
	schema := f.placed(gitcas.Place{}, node.MetaSchema, map[string]any{"type": "object", "title": "StepNode"})
	step := f.placed(gitcas.Place{}, schema.Hash, map[string]any{"start": string(c.StartHash), "role": "as " + secret, "of": string(schema.Hash)})
	folder := "threads/" + string(id(1)) + "/"
	files := map[string]string{}
	start, err := f.load(id(1)).In(t.Context(), gitcas.Place{Thread: id(1)}).Get(c.StartHash)
	f.ok(err)
	for path, n := range map[string]gitcas.PlacedNode{"cas/": schema, folder: step, folder + " ": {Hash: c.StartHash, Node: start}} {
		data, err := node.EncodeFile(n.Node)
		f.ok(err)
		files[strings.TrimSpace(path)+string(n.Hash)+".json"] = string(data)
	}
	o := f.options(finder(t, secret))
	f.files(f.store.Branch(), "of another version", files, f.load().Tip())
	f.purge(o)
	f.nowhere(secret)
	found := 0
	f.everything(func(ref string, o wire.Object) {
		if n, err := node.DecodeFile(o.Data); err == nil && n.Type == schema.Hash && ref == f.store.Branch() {
			m, _ := n.Payload.(map[string]any)
			if found++; m["role"] != "as [purged]" || m["start"] == string(c.StartHash) || m["of"] != string(schema.Hash) {
				t.Errorf("the node is %v", m)
			}
		}
	})
	if found != 1 {
		t.Errorf("there are %d such nodes", found)
	}
}

// TestAttemptRefersToThread: the step of an attempt names records of its thread, and
// these change. An attempt that became an earlier attempt of a step is the same there.
func TestAttemptRefersToThread(t *testing.T) {
	f := memory(t)
	f.start(id(1), "it is "+secret)
	f.step(id(1), note("n"), "b", "d")
	ref := f.attempt(id(1), "r", "nothing", f.load().Tip())
	plan := f.purge(f.options(finder(t, secret)))
	f.sound()
	if len(plan.Attempts) != 1 {
		t.Errorf("plan %+v", plan)
	}
	v, c := f.chain(id(1))
	a, err := f.store.ReadAttempt(t.Context(), v, ref)
	f.ok(err)
	for _, n := range a.Nodes {
		if !record.IsStep(n.Node.Type) {
			continue
		}
		s, err := record.ParseStep(n.Node)
		f.ok(err)
		if s.Start != c.StartHash || *s.Prev != c.Steps[0].Hash || s.Digests.Prev != c.Head {
			t.Errorf("the attempt's step is %+v with %+v", s, s.Digests)
		}
		linked, own := f.work(id(1), note("after it"), "b", "d")
		linked.PreviousAttempts = []node.Hash{n.Hash}
		f.add(v, id(1), linked, own, a.Nodes...)
	}
	f.sound()
}

// answer lets a person say something to a thread.
func (f *fixture) answer(t gitcas.ThreadID, text string) {
	f.Helper()
	v := f.load(t)
	e, _ := v.Entry(t)
	answer := f.said(t, text)
	e.Next = &gitcas.Next{Role: "developer", Answer: answer.Hash}
	f.push(v, &gitcas.Change{Subject: "answered", Nodes: []gitcas.PlacedNode{answer}, Threads: map[gitcas.ThreadID]*gitcas.Entry{t: &e}})
}

// retried adds a step that names two failed attempts before it.
func (f *fixture) retried(t gitcas.ThreadID, one, two string) {
	f.Helper()
	v := f.load(t)
	s, own := f.work(t, note("n"), "b", "d")
	var attempts []gitcas.PlacedNode
	for _, text := range []string{one, two} {
		nodes := f.failed(v, t, text)
		s.PreviousAttempts, attempts = append(s.PreviousAttempts, recordOf(nodes)), append(attempts, nodes...)
	}
	f.add(v, t, s, own, attempts...)
}

// TestAnswers: what a person says is in the folder of its own hash. Answers that become
// the same get one folder, in which nothing is ever rewritten.
func TestAnswers(t *testing.T) {
	f := memory(t)
	f.start(id(1), "p")
	texts := []string{"second-secret", "first-secret", "[purged]", "third-secret", "something else"}
	for _, text := range texts {
		f.answer(id(1), text)
	}
	f.sound()
	f.purge(f.options(finder(t, "first-secret", "second-secret", "third-secret")))
	f.sound()
	f.nowhere("first-secret", "second-secret", "third-secret")
	v := f.load(id(1))
	e, _ := v.Entry(id(1))
	for h, want := range map[node.Hash]string{e.Next.Answer: "something else", f.said(id(1), "[purged]").Hash: "[purged]"} {
		n, err := v.In(t.Context(), gitcas.Place{Thread: id(1), Of: h}).Get(h)
		a, perr := record.ParseAnswer(n)
		if err != nil || perr != nil || a.Words[0].Text != want || a.Words[0].Question != want {
			t.Errorf("answer %+v, %v, %v", n, err, perr)
		}
	}
}

// TestDecisions: who did something, and what they said, loses what leaked, in records,
// entries, history and commits, and stays what it was; the words of the format are
// nobody's text.
func TestDecisions(t *testing.T) {
	const leak = "third-secret"
	f := memory(t)
	f.start(id(1), "p")
	by := record.By{Kind: record.ByForge, Login: "l-" + leak, ID: 7, URL: "https://forge.example/" + leak}
	local := record.By{Kind: record.ByLocal, Name: "n-" + leak}
	answer := f.said(id(1), leak)
	answer.Place = view.NextPlace(false)
	v := f.load(id(1))
	s, own := f.work(id(1), note("n"), "b", "d")
	s.By, s.Answer, s.Checks = &by, &answer.Hash, []record.Check{{Name: "test " + leak, Status: "passed", Note: "n-" + leak}}
	f.add(v, id(1), s, append(own, answer))
	v = f.load(id(1))
	e, _ := v.Entry(id(1))
	e.Title, e.By, e.Next = "t-"+leak, &by, &gitcas.Next{Role: "developer", By: &local}
	e.Suspended, e.Pause = &gitcas.Suspended{Role: "developer", Reason: "r", By: &by}, &gitcas.Pause{Reason: "r", By: &local}
	f.push(v, &gitcas.Change{Subject: "did", Author: &gitobj.Author{Name: "a-" + leak, Email: "m-" + leak}, Threads: map[gitcas.ThreadID]*gitcas.Entry{id(1): &e}})
	f.start(id(2), "p")
	f.push(f.load(id(2)), &gitcas.Change{Archive: []gitcas.Ended{{
		Thread: id(2), Head: f.headOf(id(2)), Reason: gitcas.ReasonCancelled, CompletedAt: f.now().UnixMilli(), Title: "t-" + leak, Result: "finished", By: &by, ClosedBy: &local,
	}}})
	f.sound()
	before, _ := f.log()
	for _, text := range []string{"resume", "passed", "closedBy"} {
		if plan, err := rewrite.New(f.remote, f.options(finder(t, text))).MakePlan(t.Context()); err != nil || !plan.Empty() {
			t.Errorf("%s: %+v, %v", text, plan, err)
		}
	}
	if after, _ := f.log(); after[0] != before[0] {
		t.Error("the branch moved")
	}
	f.purge(f.options(finder(t, leak)))
	f.sound()
	f.nowhere(leak)
	v = f.load(id(1))
	e, _ = v.Entry(id(1))
	clean := record.By{Kind: record.ByForge, Login: "l-[purged]", ID: 7, URL: "https://forge.example/[purged]"}
	c, err := v.ReadChain(t.Context(), id(1))
	f.ok(err)
	last := c.Steps[len(c.Steps)-1]
	if e.Title != "t-[purged]" || *e.By != clean || *e.Suspended.By != clean || e.Next.By.Name != "n-[purged]" || e.Pause.By.Name != "n-[purged]" || *last.By != clean || last.Checks[0].Name != "test [purged]" || last.Checks[0].Note != "n-[purged]" {
		t.Errorf("entry %+v, step %+v", e, last)
	}
	n, err := v.In(t.Context(), gitcas.Place{Thread: id(1), Of: last.Hash}).Get(*last.Answer)
	f.ok(err)
	if a, err := record.ParseAnswer(n); err != nil || a.Words[0].Text != "[purged]" {
		t.Errorf("%+v, %v", a, err)
	}
	line, _, err := v.FindEnded(t.Context(), id(2))
	if err != nil || line.Title != "t-[purged]" || *line.By != clean || line.ClosedBy.Name != "n-[purged]" {
		t.Errorf("%+v, %v", line, err)
	}
}

// headOf is where a thread stands.
func (f *fixture) headOf(t gitcas.ThreadID) node.Hash {
	e, _ := f.load(t).Entry(t)
	return e.Head
}

// TestBecomeEqualBelow: nodes of one folder that become one: details, and records with
// all that they refer to.
func TestBecomeEqualBelow(t *testing.T) {
	f := memory(t)
	f.start(id(1), "p")
	inDetail := gitcas.Place{Thread: id(1), Detail: true}
	step := func(texts ...string) {
		v := f.load(id(1))
		var turns []any
		s, own := f.work(id(1), note("n"), "b", "d")
		for _, text := range texts {
			turn := f.placed(inDetail, record.BuiltinTurnSchema, map[string]any{"role": "tool", "content": text})
			turns, own = append(turns, string(turn.Hash)), append(own, turn)
		}
		det := f.placed(inDetail, record.BuiltinDetailSchema, map[string]any{"sessionId": "s", "model": "m", "duration": int64(1), "turnCount": int64(1), "turns": turns})
		s.Detail = det.Hash
		var attempts []gitcas.PlacedNode
		for _, text := range texts {
			nodes := f.failed(v, id(1), text)
			s.PreviousAttempts, attempts = append(s.PreviousAttempts, recordOf(nodes)), append(attempts, nodes...)
		}
		f.add(v, id(1), s, append(own, det), attempts...)
	}
	step("first-secret", "second-secret", "[purged]", "third")
	step("first-secret", "second-secret")
	f.sound()
	f.purge(f.options(finder(t, "first-secret", "second-secret")))
	f.sound()
	f.nowhere("first-secret", "second-secret")
	f.step(id(1), note("goes on"), "b", "d")
	f.sound()
}

// TestSharedBecomeEqual: workflows and schemas that become one, in the order in which
// they came, whatever their names.
func TestSharedBecomeEqual(t *testing.T) {
	f := memory(t)
	for i, text := range []string{"second-secret", "first-secret", "[purged]", "third-secret"} {
		f.setSchema("use " + text)
		f.setFlow("say " + text)
		f.start(id(i+1), "p")
		f.step(id(i+1), note("n"), "b", "d")
	}
	f.purge(f.options(finder(t, "first-secret", "second-secret", "third-secret")))
	f.sound()
	f.nowhere("first-secret", "second-secret", "third-secret")
}

// TestLongFork: the folders of a fork are those of commits that were read long before.
// They are read in a few requests, however long the thread is.
func TestLongFork(t *testing.T) {
	f := memory(t)
	f.start(id(1), "it is "+secret)
	for i := range 70 {
		f.step(id(1), note(fmt.Sprint("step ", i)), "b "+secret, "d")
	}
	f.fork(id(2), id(1))
	f.step(id(2), note("n"), "b", "d")
	count := &spoilt{Remote: f.remote}
	plan, err := rewrite.New(count, f.options(finder(t, secret))).MakePlan(t.Context())
	f.ok(err)
	if threadsAre(t, plan, id(1), id(2)); count.n > 12 {
		t.Errorf("%d requests", count.n)
	}
	f.purge(f.options(finder(t, secret)))
	f.sound()
	f.nowhere(secret)
}
