package rewrite_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/rewrite"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// secret is what these tests take out.
const secret = `hunter2-"7Zq\n+LEAK/ünïx`

func id(n int) gitcas.ThreadID { return gitcas.ThreadID(fmt.Sprintf("01KN%022d", n)) }

// fixture is a store with a history.
type fixture struct {
	testing.TB
	remote wire.Remote
	store  *gitcas.Store
	at     time.Time
	schema gitcas.PlacedNode
	flow   gitcas.PlacedNode
	plain  map[gitcas.ThreadID]bool // threads whose records have no digests, as the peers'
}

func (f *fixture) now() time.Time {
	f.at = f.at.Add(time.Second)
	return f.at
}

func newFixture(t testing.TB, remote wire.Remote) *fixture {
	t.Helper()
	f := &fixture{TB: t, remote: remote, at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), plain: map[gitcas.ThreadID]bool{}}
	f.store = gitcas.Open(remote, gitcas.Options{Now: f.now, Rand: bytes.NewReader(make([]byte, 1<<10)),
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
	f.setSchema("an output")
	f.setFlow("do it well")
	_, err := f.store.Init(t.Context())
	f.ok(err)
	return f
}

func memory(t *testing.T) *fixture {
	t.Helper()
	return newFixture(t, wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}))
}

func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) setSchema(description string) {
	f.schema = f.placed(gitcas.Place{}, node.MetaSchema, map[string]any{
		"type": "object", "required": []any{"$status"}, "additionalProperties": false, "description": description,
		"properties": map[string]any{
			"$status": map[string]any{"enum": []any{"finished", "rejected"}}, "note": map[string]any{"type": "string"},
			"code": map[string]any{"type": "string", "pattern": "^[a-z0-9-]+$"}, "count": map[string]any{"type": "number"},
			"more": map[string]any{"type": "object"},
		},
	})
}

func (f *fixture) setFlow(goal string) {
	role := map[string]any{"description": "d", "goal": goal, "capabilities": []any{"c"}, "procedure": "p", "output": "o", "frontmatter": string(f.schema.Hash)}
	f.flow = f.placed(gitcas.Place{}, record.WorkflowSchema, map[string]any{
		"name": "solve-issue", "description": "d", "roles": map[string]any{"developer": role},
		"graph": map[string]any{
			"$START":    map[string]any{"_": map[string]any{"role": "developer", "prompt": "begin"}},
			"developer": map[string]any{"finished": map[string]any{"role": "$END", "prompt": "{{{note}}}"}, "rejected": map[string]any{"role": "developer", "prompt": "again"}},
		},
	})
}

func (f *fixture) placed(at gitcas.Place, typ node.Hash, payload any) gitcas.PlacedNode {
	f.Helper()
	n, h, err := node.New(typ, payload, f.now())
	f.ok(err)
	return gitcas.PlacedNode{Hash: h, Node: n, Place: at}
}

func (f *fixture) withSchemas(nodes ...gitcas.PlacedNode) []gitcas.PlacedNode {
	out := nodes
	for _, n := range nodes {
		if s, ok := record.Schemas()[n.Node.Type]; ok {
			out = append(out, gitcas.PlacedNode{Hash: n.Node.Type, Node: s})
		}
	}
	return out
}

func (f *fixture) load(ids ...gitcas.ThreadID) *gitcas.View {
	f.Helper()
	v, err := f.store.Load(f.Context(), ids...)
	f.ok(err)
	return v
}

func (f *fixture) push(v *gitcas.View, c *gitcas.Change) {
	f.Helper()
	_, err := f.store.Push(f.Context(), v, c)
	f.ok(err)
}

func (f *fixture) start(t gitcas.ThreadID, prompt string) {
	f.Helper()
	s := record.Start{Workflow: f.flow.Hash, Prompt: prompt, Cwd: "."}
	v := f.load()
	if !f.plain[t] {
		d, err := v.Definition(f.Context(), f.flow.Hash, node.Map{f.flow.Hash: f.flow.Node, f.schema.Hash: f.schema.Node})
		f.ok(err)
		s.Trigger, s.Digests = map[string]any{"event": "issues"}, &record.StartDigests{Workflow: d}
	}
	n, h, err := s.Node(f.now())
	f.ok(err)
	start := gitcas.PlacedNode{Hash: h, Node: n, Place: gitcas.Place{Thread: t}}
	f.push(v, &gitcas.Change{
		Subject: "started · " + prompt, Trailers: []gitcas.Trailer{{Key: "Uwf-Thread", Value: string(t)}, {Key: "Uwf-Head", Value: string(h)}},
		Nodes:    f.withSchemas(f.flow, f.schema, start),
		Threads:  map[gitcas.ThreadID]*gitcas.Entry{t: {Head: h, Workflow: f.flow.Hash, Key: "issue/" + string(t)}},
		Registry: map[string]*gitcas.RegistryEntry{"solve-issue": {Hash: f.flow.Hash, Timestamp: 5}},
	})
}

// step adds a step: detail is what its agent did on the way.
func (f *fixture) step(t gitcas.ThreadID, output map[string]any, body, detail string) node.Hash {
	f.Helper()
	v := f.load(t)
	c, err := v.ReadChain(f.Context(), t)
	f.ok(err)
	e, _ := v.Entry(t)
	s, own := f.work(t, output, body, detail)
	s.Start = c.StartHash
	if n := len(c.Steps); n > 0 {
		s.Prev = &c.Steps[n-1].Hash
	}
	h, nodes := f.complete(v, t, s, own)
	prev := e.Head
	e.Head = h
	note, _ := output["note"].(string)
	f.push(v, &gitcas.Change{
		Subject:  fmt.Sprintf("developer → %v · solve-issue · step %d", output["$status"], len(c.Steps)+1),
		Body:     "note: " + note + "\n\n" + body,
		Trailers: []gitcas.Trailer{{Key: "Uwf-Thread", Value: string(t)}, {Key: "Uwf-Head", Value: string(h)}, {Key: "Uwf-Prev", Value: string(prev)}},
		Nodes:    nodes,
		Readable: map[string][]byte{layout.PagePath(t, len(c.Steps)+1, "developer"): []byte("# Step\n\n    note: " + strings.ReplaceAll(note, "\n", "\n      ") + "\n\n" + body + "\n")},
		Threads:  map[gitcas.ThreadID]*gitcas.Entry{t: &e},
	})
	return h
}

// work is what a step refers to, and the step without its place in a chain.
func (f *fixture) work(t gitcas.ThreadID, output map[string]any, body, detail string) (record.Step, []gitcas.PlacedNode) {
	f.Helper()
	own, inDetail := gitcas.Place{Thread: t}, gitcas.Place{Thread: t, Detail: true}
	out := f.placed(own, f.schema.Hash, output)
	turn := f.placed(inDetail, record.BuiltinTurnSchema, map[string]any{"role": "tool", "content": detail})
	det := f.placed(inDetail, record.BuiltinDetailSchema, map[string]any{"sessionId": "s", "model": "m", "duration": int64(1), "turnCount": int64(1), "turns": []any{string(turn.Hash)}})
	s := record.Step{
		Role: "developer", Output: out.Hash, Detail: det.Hash, Agent: "mock", Cwd: ".", EdgePrompt: "go",
		StartedAtMs: 1_700_000_000_000, CompletedAtMs: f.now().UnixMilli(),
	}
	nodes := []gitcas.PlacedNode{out, turn, det}
	if !f.plain[t] {
		text := f.placed(own, node.String, body)
		s.Body = &text.Hash
		nodes = append(nodes, text)
	}
	return s, nodes
}

// complete makes the node of a step, with its digests where the thread has such.
func (f *fixture) complete(v *gitcas.View, t gitcas.ThreadID, s record.Step, own []gitcas.PlacedNode, records ...gitcas.PlacedNode) (node.Hash, []gitcas.PlacedNode) {
	f.Helper()
	if !f.plain[t] {
		h, nodes, err := v.Complete(f.Context(), t, s, f.now(), own, records)
		f.ok(err)
		return h, append(nodes, records...)
	}
	n, h, err := s.Node(f.now())
	f.ok(err)
	for i := range own {
		own[i].Place.Of = h
	}
	return h, f.withSchemas(append(append(own, records...), gitcas.PlacedNode{Hash: h, Node: n, Place: gitcas.Place{Thread: t}})...)
}

func note(text string) map[string]any { return map[string]any{"$status": "finished", "note": text} }

func (f *fixture) end(t gitcas.ThreadID, reason, text string) {
	f.Helper()
	v := f.load(t)
	e, _ := v.Entry(t)
	c := &gitcas.Change{Subject: "ended", Archive: []gitcas.Ended{{
		Thread: t, Workflow: e.Workflow, Head: e.Head, Reason: reason, Note: text, CompletedAt: f.now().UnixMilli(), Key: e.Key,
	}}}
	if reason == "ended" {
		e.Status = gitcas.StatusEnded
		c.Threads = map[gitcas.ThreadID]*gitcas.Entry{t: &e}
	}
	f.push(v, c)
}

func (f *fixture) fork(to, from gitcas.ThreadID) {
	f.Helper()
	v := f.load(from)
	e, _ := v.Entry(from)
	e.Key = ""
	f.push(v, &gitcas.Change{Subject: "forked", Threads: map[gitcas.ThreadID]*gitcas.Entry{to: &e}, Forks: map[gitcas.ThreadID]gitcas.ThreadID{to: from}})
}

// said is what a person says to a thread.
func (f *fixture) said(t gitcas.ThreadID, text string) gitcas.PlacedNode {
	f.Helper()
	made, h, err := record.Answer{Words: []record.Word{{Do: record.DoResume, Role: "developer", Question: text, Text: text, AtMs: 5}}}.Node(time.UnixMilli(5))
	f.ok(err)
	return gitcas.PlacedNode{Hash: h, Node: made, Place: gitcas.Place{Thread: t, Of: h}}
}

// finder finds texts as the command does.
func finder(t testing.TB, texts ...string) rewrite.Finder {
	t.Helper()
	n, _, err := redact.NewNeedle(texts)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (f *fixture) options(find rewrite.Finder) rewrite.Options {
	return rewrite.Options{
		Branch: f.store.Branch(), Store: layout.StoreRef, Attempts: "refs/uwf/attempts/", Outages: f.store.Outages(),
		Atomic: f.store.Atomic(f.load()), Find: find,
		Quotes: func(texts []string) rewrite.Finder {
			var good []string
			for _, s := range texts {
				if _, _, err := redact.NewNeedle([]string{s}); err == nil {
					good = append(good, s)
				}
			}
			if len(good) == 0 {
				return nil
			}
			return finder(f, good...)
		},
	}
}

// purge plans and executes.
func (f *fixture) purge(o rewrite.Options) *rewrite.Plan {
	f.Helper()
	r := rewrite.New(f.remote, o)
	plan, err := r.MakePlan(f.Context())
	f.ok(err)
	done, err := r.Execute(f.Context())
	f.ok(err)
	if done.New != plan.New || done.Changed != plan.Changed {
		f.Errorf("planned %+v, done %+v", plan, done)
	}
	return done
}

// sound checks the whole store with its history.
func (f *fixture) sound() {
	f.Helper()
	r, err := f.store.Fsck(f.Context(), true)
	f.ok(err)
	for _, p := range r.Problems {
		f.Errorf("fsck: %s: %s", p.Path, p.Why)
	}
	days := f.tree(f.tree(f.tipTree(), "history"), "2026")
	for name, id := range f.entries(days) {
		if layout.YearFolder.ChildOf(name) != layout.DayFile {
			continue
		}
		want, err := statefile.DayPage(f.object(id).Data)
		f.ok(err)
		if page := f.entries(days)[layout.DayPageOf(name)]; string(f.object(page).Data) != string(want) {
			f.Errorf("the page of %s is\n%s\nwant\n%s", name, f.object(page).Data, want)
		}
	}
}

func (f *fixture) object(id wire.ID) wire.Object {
	f.Helper()
	if id.IsZero() {
		return wire.Object{}
	}
	objs, err := f.remote.Fetch(f.Context(), wire.FetchRequest{Wants: []wire.ID{id}})
	f.ok(err)
	return objs[id]
}

func (f *fixture) tipTree() wire.ID {
	f.Helper()
	_, commits := f.log()
	return commits[0].Tree
}

func (f *fixture) entries(tree wire.ID) map[string]wire.ID {
	f.Helper()
	list, err := gitobj.DecodeTree(f.object(tree).Data)
	f.ok(err)
	out := map[string]wire.ID{}
	for _, e := range list {
		out[e.Name] = e.ID
	}
	return out
}

func (f *fixture) tree(of wire.ID, name string) wire.ID {
	f.Helper()
	return f.entries(of)[name]
}

// below is a node that a step of a thread refers to.
func (f *fixture) below(v *gitcas.View, t gitcas.ThreadID, step, h node.Hash) node.Node {
	f.Helper()
	n, err := v.In(f.Context(), gitcas.Place{Thread: t, Of: step, Detail: true}).Get(h)
	f.ok(err)
	return n
}

// everything gives each object that refs reach to visit, once.
func (f *fixture) everything(visit func(ref string, o wire.Object)) {
	f.Helper()
	l, err := f.remote.List(f.Context(), "refs/")
	f.ok(err)
	for name, tip := range l.Refs {
		if strings.HasPrefix(name, "refs/heads/") && name != f.store.Branch() {
			continue
		}
		objs, err := f.remote.Fetch(f.Context(), wire.FetchRequest{Wants: []wire.ID{tip}})
		f.ok(err)
		for _, o := range objs {
			visit(name, o)
		}
	}
}

// nowhere checks that nothing which a ref reaches holds a text in any form.
func (f *fixture) nowhere(texts ...string) {
	f.Helper()
	find := finder(f, texts...)
	f.everything(func(ref string, o wire.Object) {
		if o.Type == plumbing.TreeObject {
			return
		}
		if _, n := find.Replace(string(o.Data), nil); n > 0 {
			f.Errorf("%s: %s %s holds it:\n%s", ref, o.Type, o.ID, o.Data)
		}
	})
}

// log are the commits of the state branch, newest first.
func (f *fixture) log() (ids []wire.ID, commits []gitobj.Commit) {
	f.Helper()
	tip := f.load().Tip()
	objs, err := f.remote.Fetch(f.Context(), wire.FetchRequest{Wants: []wire.ID{tip}, Filter: "tree:0"})
	f.ok(err)
	for at := tip; ; {
		c, err := gitobj.DecodeCommit(objs[at].Data)
		f.ok(err)
		ids, commits = append(ids, at), append(commits, c)
		if len(c.Parents) == 0 {
			return ids, commits
		}
		at = c.Parents[0]
	}
}

// files puts a commit with these files, by path, into the remote, and a branch to it.
func (f *fixture) files(branch, message string, files map[string]string, parents ...wire.ID) wire.ID {
	f.Helper()
	var objs []wire.PackObject
	add := func(t plumbing.ObjectType, data []byte) wire.ID {
		o := wire.NewObject(t, data)
		objs = append(objs, wire.PackObject{Object: o})
		return o.ID
	}
	var folder func(files map[string]string) wire.ID
	folder = func(files map[string]string) wire.ID {
		var entries []gitobj.Entry
		below := map[string]map[string]string{}
		for path, text := range files {
			name, rest, deeper := strings.Cut(path, "/")
			switch {
			case !deeper:
				entries = append(entries, gitobj.Entry{Name: name, Mode: filemode.Regular, ID: add(plumbing.BlobObject, []byte(text))})
			case below[name] == nil:
				below[name] = map[string]string{rest: text}
			default:
				below[name][rest] = text
			}
		}
		for name, files := range below {
			entries = append(entries, gitobj.Entry{Name: name, Mode: filemode.Dir, ID: folder(files)})
		}
		data, err := gitobj.EncodeTree(entries)
		f.ok(err)
		return add(plumbing.TreeObject, data)
	}
	sig := gitobj.Signature{Name: "Someone", Email: "someone@example.com", When: f.now()}
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: folder(files), Parents: parents, Author: sig, Committer: sig, Message: message})
	f.ok(err)
	c := add(plumbing.CommitObject, data)
	var old wire.ID
	l, err := f.remote.List(f.Context(), branch)
	f.ok(err)
	old = l.Refs[branch]
	_, err = f.remote.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: branch, Old: old, New: c}}, Objects: objs})
	f.ok(err)
	return c
}
