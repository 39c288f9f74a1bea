package gitcas

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/gitcastest/collide"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// vandal changes a state branch as anybody with write access could.
type vandal struct {
	t   *testing.T
	mem *wiretest.Memory
	s   *Store
	v   *View // of thread 1, before
}

func newVandal(t *testing.T) *vandal {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	threadWithSteps(t, s, threadID(1), 2)
	v := mustLoad(t, s, threadID(1))
	mustPush(t, s, v, &Change{Subject: "end", Nodes: startChange(t, threadID(2), "x").Nodes, Threads: map[ThreadID]*Entry{threadID(2): {Head: startChange(t, threadID(2), "x").Nodes[2].Hash}}})
	v = mustLoad(t, s, threadID(2))
	mustPush(t, s, v, &Change{Subject: "cancel", Archive: []Ended{{Thread: threadID(2), Head: mustEntry(t, v, threadID(2)).Head, Reason: "cancelled", CompletedAt: 1_700_000_000_000}}})
	return &vandal{t, mem, s, mustLoad(t, s, threadID(1))}
}

func (x *vandal) put(typ plumbing.ObjectType, data []byte) wire.ID {
	o := wire.NewObject(typ, data)
	x.mem.AddObjects(o)
	return o.ID
}

func (x *vandal) get(id wire.ID) []byte {
	o, ok := x.mem.Get(id)
	if !ok {
		x.t.Fatalf("object %s is not there", id)
	}
	return o.Data
}

// edit replaces the entry at path: change gets what is there (or a zero entry)
// and returns what is to be there; one with a zero id goes away.
func (x *vandal) edit(path string, change func(gitobj.Entry) gitobj.Entry) {
	c, err := gitobj.DecodeCommit(x.get(x.v.Tip()))
	if err != nil {
		x.t.Fatal(err)
	}
	x.commit(x.editTree(c.Tree, strings.Split(path, "/"), change), x.v.Tip())
}

func (x *vandal) editTree(tree wire.ID, path []string, change func(gitobj.Entry) gitobj.Entry) wire.ID {
	var entries []gitobj.Entry
	if !tree.IsZero() {
		var err error
		if entries, err = gitobj.DecodeTree(x.get(tree)); err != nil {
			x.t.Fatal(err)
		}
	}
	old := gitobj.Entry{Name: path[0], Mode: filemode.Regular}
	var out []gitobj.Entry
	for _, e := range entries {
		if e.Name == path[0] {
			old = e
			continue
		}
		out = append(out, e)
	}
	now := old
	if len(path) > 1 {
		now.Mode = filemode.Dir
		now.ID = x.editTree(old.ID, path[1:], change)
	} else {
		now = change(old)
	}
	if !now.ID.IsZero() {
		out = append(out, now)
	}
	data, err := gitobj.EncodeTree(out)
	if err != nil {
		x.t.Fatal(err)
	}
	return x.put(plumbing.TreeObject, data)
}

// commit puts a commit with that tree on the branch, as uwf's own push would.
func (x *vandal) commit(tree wire.ID, parents ...wire.ID) {
	sig := x.s.o.Author.Sign(x.s.o.Now())
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: tree, Parents: parents, Author: sig, Committer: sig, Message: "m\n"})
	if err != nil {
		x.t.Fatal(err)
	}
	id := x.put(plumbing.CommitObject, data)
	x.mem.SetRef(x.s.source.Branch, id)
	x.mem.SetRef(layout.StoreRef, id)
}

// replace sets the content of a file.
func (x *vandal) replace(path string, change func([]byte) []byte) {
	x.edit(path, func(e gitobj.Entry) gitobj.Entry {
		var old []byte
		if !e.ID.IsZero() {
			old = x.get(e.ID)
		}
		e.ID = x.put(plumbing.BlobObject, change(bytes.Clone(old)))
		return e
	})
}

func mode(m filemode.FileMode) func(gitobj.Entry) gitobj.Entry {
	return func(e gitobj.Entry) gitobj.Entry { e.Mode = m; return e }
}

func gone(e gitobj.Entry) gitobj.Entry { e.ID = wire.ZeroID; return e }

// use does all that a job and a reader do.
func (x *vandal) use() error {
	ctx, id := x.t.Context(), threadID(1)
	v, err := x.s.Load(ctx, id)
	if err != nil {
		return err
	}
	c, err := v.ReadChain(ctx, id)
	if err != nil {
		return err
	}
	if _, err := v.Get(ctx, c.Start.Workflow); err != nil {
		return err
	}
	for _, s := range c.Steps {
		for _, h := range []node.Hash{s.Output, *s.Body, s.Detail} {
			if _, err := below(ctx, v, id, s.Hash, h); err != nil {
				return err
			}
		}
	}
	return v.History(ctx, time.Time{}, func(Ended) error { return nil })
}

// TestHostileBranch: whatever somebody with write access puts on the branch is an
// error that names the file, for the job and for fsck.
func TestHostileBranch(t *testing.T) {
	probe := newVandal(t)
	c, err := probe.v.ReadChain(t.Context(), threadID(1))
	if err != nil {
		t.Fatal(err)
	}
	folder := layout.ThreadPath(threadID(1))
	head := folder + "/" + layout.FileOf(c.Steps[1].Hash)
	start := folder + "/" + layout.FileOf(c.StartHash)
	first, second := Place{Thread: threadID(1), Of: c.Steps[0].Hash}, Place{Thread: threadID(1), Of: c.Steps[1].Hash}
	output := first.Path(c.Steps[0].Output)
	detail := Place{Thread: threadID(1), Of: first.Of, Detail: true}.Path(c.Steps[0].Detail)
	details := Place{Thread: threadID(1), Of: first.Of, Detail: true}.String()
	workflow := "cas/" + layout.FileOf(c.Start.Workflow)
	schema := first.Path(outputSchema(t).Hash)
	flip := func(b []byte) []byte {
		return bytes.Replace(b, []byte("developer"), []byte("Developer"), 1)
	}
	flipAny := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	for name, tc := range map[string]struct {
		path   string // what the error names
		change func(x *vandal)
		fine   bool // for a job: only fsck sees it
	}{
		"flipped byte in a step":    {head, func(x *vandal) { x.replace(head, flip) }, false},
		"flipped byte in the start": {start, func(x *vandal) { x.replace(start, flipAny) }, false},
		"flipped byte in an output": {output, func(x *vandal) { x.replace(output, flipAny) }, false},
		"flipped byte in a detail":  {detail, func(x *vandal) { x.replace(detail, flipAny) }, false},
		"flipped byte in a schema":  {schema, func(x *vandal) { x.replace(schema, flipAny) }, false},
		"flipped byte in cas":       {workflow, func(x *vandal) { x.replace(workflow, flipAny) }, false},
		"empty node":                {head, func(x *vandal) { x.replace(head, func([]byte) []byte { return nil }) }, false},
		"huge node": {head, func(x *vandal) {
			x.replace(head, func(b []byte) []byte { return append(b, make([]byte, tree.MaxNodeFile)...) })
		}, false},
		"symlinked node":             {head, func(x *vandal) { x.edit(head, mode(filemode.Symlink)) }, false},
		"executable node":            {output, func(x *vandal) { x.edit(output, mode(filemode.Executable)) }, false},
		"submodule node":             {output, func(x *vandal) { x.edit(output, mode(filemode.Submodule)) }, false},
		"symlinked threads.yaml":     {layout.ThreadsName, func(x *vandal) { x.edit(layout.ThreadsName, mode(filemode.Symlink)) }, false},
		"symlinked thread":           {folder, func(x *vandal) { x.edit(folder, mode(filemode.Symlink)) }, false},
		"file as a folder":           {"cas", func(x *vandal) { x.edit("cas", mode(filemode.Regular)) }, false},
		"foreign file at the root":   {".gitignore", func(x *vandal) { x.replace(".gitignore", flipNothing) }, false},
		"foreign folder":             {"src", func(x *vandal) { x.replace("src/main.go", flipNothing) }, false},
		"foreign file in a thread":   {folder + "/run.sh", func(x *vandal) { x.replace(folder+"/run.sh", flipNothing) }, false},
		"lower case node":            {folder + "/" + strings.ToLower(layout.FileOf(c.StartHash)), func(x *vandal) { x.replace(folder+"/"+strings.ToLower(layout.FileOf(c.StartHash)), flipNothing) }, false},
		"upper case VERSION":         {"version", func(x *vandal) { x.replace("version", flipNothing) }, false},
		"foreign file in cas":        {"cas/notes.txt", func(x *vandal) { x.replace("cas/notes.txt", flipNothing) }, false},
		"foreign folder in a thread": {folder + "/nodes", func(x *vandal) { x.replace(folder+"/nodes/x", flipNothing) }, false},
		"foreign file of a record":   {first.String() + "x", func(x *vandal) { x.replace(first.String()+"x", flipNothing) }, false},
		"file of no record":          {folder + "/notahash." + layout.FileOf(c.StartHash), func(x *vandal) { x.replace(folder+"/notahash."+layout.FileOf(c.StartHash), flipNothing) }, false},
		"foreign file in detail":     {folder + "/detail/x", func(x *vandal) { x.replace(folder+"/detail/x", flipNothing) }, false},
		"foreign file among details": {details + "x", func(x *vandal) { x.replace(details+"x", flipNothing) }, false},
		"details of no record":       {folder + "/detail/notahash", func(x *vandal) { x.replace(folder+"/detail/notahash/x", flipNothing) }, false},
		"foreign file among pages":   {folder + "/pages/x", func(x *vandal) { x.replace(folder+"/pages/x", flipNothing) }, true},
		"page that is a link":        {folder + "/pages/01-developer.md", func(x *vandal) { x.edit(folder+"/pages/01-developer.md", mode(filemode.Symlink)) }, true},
		"details are a file":         {folder + "/detail", func(x *vandal) { x.edit(folder+"/detail", mode(filemode.Regular)) }, false},
		"foreign thread":             {"threads/notathread", func(x *vandal) { x.replace("threads/notathread/x", flipNothing) }, false},
		"foreign history":            {"history/later", func(x *vandal) { x.replace("history/later/11-14.jsonl", flipNothing) }, false},
		"foreign day":                {"history/2023/x.jsonl", func(x *vandal) { x.replace("history/2023/x.jsonl", flipNothing) }, false},
		"broken history":             {"history/2023/11-14.jsonl", func(x *vandal) { x.replace("history/2023/11-14.jsonl", func(b []byte) []byte { return b[:len(b)-5] }) }, false},
		"missing head":               {head, func(x *vandal) { x.edit(head, gone) }, false},
		"missing start":              {start, func(x *vandal) { x.edit(start, gone) }, false},
		"missing folder":             {folder + ": unexpected content on the state branch: threads.yaml lists the thread", func(x *vandal) { x.edit(folder, gone) }, false},
		"missing VERSION":            {layout.VersionName + ": unexpected content on the state branch: it is missing", func(x *vandal) { x.edit(layout.VersionName, gone) }, false},
		"missing threads.yaml":       {layout.ThreadsName + ": unexpected content on the state branch: it is missing", func(x *vandal) { x.edit(layout.ThreadsName, gone) }, false},
		"missing registry":           {layout.RegistryName + ": unexpected content on the state branch: it is missing", func(x *vandal) { x.edit(layout.RegistryName, gone) }, false},
		"garbage threads.yaml":       {layout.ThreadsName, func(x *vandal) { x.replace(layout.ThreadsName, func([]byte) []byte { return []byte("{[") }) }, false},
		"emptied threads.yaml":       {layout.ThreadsName, func(x *vandal) { x.replace(layout.ThreadsName, func([]byte) []byte { return nil }) }, false},
		"garbage registry":           {layout.RegistryName, func(x *vandal) { x.replace(layout.RegistryName, func([]byte) []byte { return []byte("a: b") }) }, false},
		"head of another thread": {folder, func(x *vandal) {
			x.replace(layout.ThreadsName, func([]byte) []byte { return []byte(string(threadID(1)) + ": 0000000000000\n") })
		}, false},
		"head is an output": {folder + "/" + layout.FileOf(c.Steps[0].Output), func(x *vandal) {
			x.replace(layout.ThreadsName, func([]byte) []byte { return fmt.Appendf(nil, "%s: %s\n", threadID(1), c.Steps[0].Output) })
		}, false},
		"step that fits no schema": {"", func(x *vandal) { x.forgedStep(c, map[string]any{"role": 7}) }, false},
		"step of another start":    {"", func(x *vandal) { x.forgedStep(c, map[string]any{"start": "0000000000000"}) }, false},
		"start as predecessor":     {"", func(x *vandal) { x.forgedStep(c, map[string]any{"prev": string(c.StartHash)}) }, false},
		"folder without an entry":  {layout.ThreadPath(threadID(9)), func(x *vandal) { x.replace(layout.ThreadPath(threadID(9))+"/pages/01-a.md", flipNothing) }, true},
		"dangling registry": {layout.RegistryName, func(x *vandal) {
			x.replace(layout.RegistryName, func([]byte) []byte { return []byte("a: 0000000000000\n") })
		}, true},
		"missing workflow": {workflow + ": unexpected content on the state branch: it is the thread's workflow", func(x *vandal) { x.edit(workflow, gone) }, false},
		"missing output":   {second.Path(c.Steps[1].Output), func(x *vandal) { x.edit(second.Path(c.Steps[1].Output), gone) }, false},
		"unknown type":     {"", func(x *vandal) { x.strangeNode() }, true},
		"page is garbage": {"", func(x *vandal) {
			x.replace(folder+"/pages/01-developer.md", func([]byte) []byte { return []byte("\x00\xff") })
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newVandal(t)
			if err := x.use(); err != nil {
				t.Fatalf("before: %v", err)
			}
			tc.change(x)
			x.s = Open(x.mem, testOptions()) // a fresh process
			err := x.use()
			if tc.fine != (err == nil) {
				t.Fatalf("use: %v", err)
			}
			if err != nil {
				wantErr(t, err, ErrDamaged)
				wantErr(t, err, ErrContent)
				if !strings.Contains(err.Error(), tc.path) {
					t.Errorf("the error does not name %s: %v", tc.path, err)
				}
			}
			if _, err := x.s.Reload(t.Context(), x.v, threadID(1)); !tc.fine && err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("reload: %v", err)
			}
			r, err := x.s.Fsck(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			if r.OK() == (name != "page is garbage") {
				t.Errorf("fsck sees %+v", r.Problems)
			}
		})
	}
}

func flipNothing(b []byte) []byte { return b }

// forgedStep puts a step on top of the head whose hash is right and whose content
// is not.
func (x *vandal) forgedStep(c Chain, change map[string]any) {
	last := c.Steps[1]
	prev := last.Hash
	s := record.Step{Start: c.StartHash, Prev: &prev, Role: "developer", Output: last.Output, Detail: last.Detail, Agent: "a", Cwd: "."}
	n, _, err := s.Node(x.s.o.Now())
	if err != nil {
		x.t.Fatal(err)
	}
	payload, _ := n.Payload.(map[string]any)
	for k, v := range change {
		payload[k] = v
	}
	n, h, err := node.New(n.Type, payload, x.s.o.Now())
	if err != nil {
		x.t.Fatal(err)
	}
	x.putNode(layout.ThreadPath(threadID(1)), n, h)
	x.v = mustLoadTip(x)
	x.replace(layout.ThreadsName, func([]byte) []byte { return fmt.Appendf(nil, "%s: %s\n", threadID(1), h) })
}

func (x *vandal) putNode(folder string, n node.Node, h node.Hash) {
	data, err := node.EncodeFile(n)
	if err != nil {
		x.t.Fatal(err)
	}
	x.replace(folder+"/"+layout.FileOf(h), func([]byte) []byte { return data })
}

func mustLoadTip(x *vandal) *View {
	v, err := x.s.Load(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	return v
}

// strangeNode puts a node whose type is nowhere.
func (x *vandal) strangeNode() {
	n, h, err := node.New("0000000000000", "x", x.s.o.Now())
	if err != nil {
		x.t.Fatal(err)
	}
	x.putNode(layout.ThreadPath(threadID(1)), n, h)
}

// TestHostileTree: trees that no git would make.
func TestHostileTree(t *testing.T) {
	for name, raw := range map[string]func(e []gitobj.Entry) []byte{
		"name twice": func(e []gitobj.Entry) []byte { return append(rawEntry(e[0]), rawTree(e)...) },
		"order":      func(e []gitobj.Entry) []byte { return append(rawTree(e[1:]), rawEntry(e[0])...) },
		"slash": func(e []gitobj.Entry) []byte {
			return append(rawEntry(gitobj.Entry{Name: "..", Mode: 0o100644, ID: e[0].ID}), rawTree(e)...)
		},
		"cut off": func(e []gitobj.Entry) []byte { b := rawTree(e); return b[:len(b)-3] },
		"garbage": func([]gitobj.Entry) []byte { return []byte("tree of nonsense") },
		"empty":   func([]gitobj.Entry) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			x := newVandal(t)
			c, err := gitobj.DecodeCommit(x.get(x.v.Tip()))
			if err != nil {
				t.Fatal(err)
			}
			entries, err := gitobj.DecodeTree(x.get(c.Tree))
			if err != nil {
				t.Fatal(err)
			}
			x.commit(x.put(plumbing.TreeObject, raw(entries)), x.v.Tip())
			_, err = x.s.Load(t.Context())
			// The remote itself can't read some of these.
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, wire.ErrUnreadable) {
				t.Fatalf("error %v", err)
			}
		})
	}
}

func rawEntry(e gitobj.Entry) []byte {
	return append(fmt.Appendf(nil, "%o %s\x00", uint32(e.Mode), e.Name), e.ID[:]...)
}

func rawTree(entries []gitobj.Entry) []byte {
	var b []byte
	for _, e := range entries {
		b = append(b, rawEntry(e)...)
	}
	return b
}

// TestHostileRefs: what the refs themselves can be.
func TestHostileRefs(t *testing.T) {
	for format, want := range map[string]string{"3": "use a newer uwf", "1": "put that store aside and begin a new one: git push "} {
		t.Run("VERSION "+format, func(t *testing.T) {
			x := newVandal(t)
			x.replace(layout.VersionName, func(b []byte) []byte { return bytes.Replace(b, []byte("format: 2"), []byte("format: "+format), 1) })
			err := x.use()
			wantErr(t, err, ErrVersion)
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("other store id", func(t *testing.T) {
		x := newVandal(t)
		x.s.o.ExpectStore = strings.Repeat("f", 32)
		wantErr(t, x.use(), ErrOtherStore)
		x.s.o.ExpectStore = x.v.StoreID()
		if err := x.use(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("other store expected, nothing there", func(t *testing.T) {
		o := testOptions()
		o.ExpectStore = strings.Repeat("f", 32)
		_, err := Open(wiretest.NewMemory(wiretest.MemoryOptions{}), o).Init(t.Context())
		wantErr(t, err, ErrBranchGone)
	})
	t.Run("rewritten history", func(t *testing.T) {
		x := newVandal(t)
		c, err := gitobj.DecodeCommit(x.get(x.v.Tip()))
		if err != nil {
			t.Fatal(err)
		}
		mark := x.v.Tip()
		x.commit(c.Tree) // the same content, without history
		x.mem.SetRef(layout.StoreRef, mark)
		wantErr(t, x.use(), ErrRewritten)
	})
	t.Run("branch is a blob", func(t *testing.T) {
		x := newVandal(t)
		x.mem.SetRef(x.s.source.Branch, x.put(plumbing.BlobObject, []byte("x")))
		wantErr(t, x.use(), ErrDamaged)
	})
	t.Run("claim is garbage", func(t *testing.T) {
		says := func(msg string) func(*vandal) wire.ID {
			return func(x *vandal) wire.ID { return x.claimCommit(wire.EmptyTree, msg) }
		}
		for name, tc := range map[string]struct {
			id   func(x *vandal) wire.ID
			want string
		}{
			"blob":     {func(x *vandal) wire.ID { return x.put(plumbing.BlobObject, []byte("{}")) }, "a blob of 2 bytes is no claim"},
			"state":    {func(x *vandal) wire.ID { return x.v.Tip() }, "it has content or history"},
			"content":  {func(x *vandal) wire.ID { return x.claimCommit(x.v.Root.Object.ID, `{"run":"r"}`) }, "it has content or history"},
			"history":  {func(x *vandal) wire.ID { return x.claimCommit(wire.EmptyTree, `{"run":"r"}`, x.v.Tip()) }, "it has content or history"},
			"no JSON":  {says("hello\n"), "is no JSON"},
			"no run":   {says(`{"run":""}`), "has no run, or values out of range"},
			"head":     {says(`{"run":"r","head":"x"}`), "has no run, or values out of range"},
			"tokens":   {says(`{"run":"r","tokens":-1}`), "has no run, or values out of range"},
			"since":    {says(`{"run":"r","since":-1}`), "has no run, or values out of range"},
			"cost":     {says(`{"run":"r","cost":-1}`), "has no run, or values out of range"},
			"started":  {says(`{"run":"r","started":-1}`), "has no run, or values out of range"},
			"until":    {says(`{"run":"r","until":-1}`), "has no run, or values out of range"},
			"renewed":  {says(`{"run":"r","renewed":-1}`), "has no run, or values out of range"},
			"reserved": {says(`{"run":"r","reserveTokens":-1}`), "has no run, or values out of range"},
			"reserve":  {says(`{"run":"r","reserveCost":-1}`), "has no run, or values out of range"},
			"too long": {says(`{"run":"` + strings.Repeat("x", 64<<10) + `"}`), "bytes is no claim"},
		} {
			x := newVandal(t)
			x.mem.SetRef(layout.ClaimRef(threadID(1)), tc.id(x))
			err := x.use()
			if !errors.Is(err, ErrContent) || !strings.Contains(err.Error(), layout.ClaimRef(threadID(1))) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %s", name, err, tc.want)
			}
		}
	})
	t.Run("history names a wrong commit", func(t *testing.T) {
		x := newVandal(t)
		x.replace("history/2023/11-14.jsonl", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"head":"`), []byte(`"head":"0000000000000","was":"`), 1)
		})
		v := mustLoad(t, x.s)
		e, ok, err := v.FindEnded(t.Context(), threadID(2))
		if err != nil || !ok {
			t.Fatal(err)
		}
		_, err = v.LoadEnded(t.Context(), e)
		wantErr(t, err, ErrContent)
	})
	t.Run("history names a commit of another store", func(t *testing.T) {
		x := newVandal(t)
		v := mustLoad(t, x.s)
		e := findLine(t, x.s, v, threadID(2))
		other := *v
		other.Version.Store = strings.Repeat("f", 32)
		_, err := other.LoadEnded(t.Context(), e)
		wantErr(t, err, ErrOtherStore)
	})
}

// TestHostileAttempt: what an attempt's ref can hold is refused before any of it is
// believed.
func TestHostileAttemptNodes(t *testing.T) {
	x := newVandal(t)
	own := Place{Thread: threadID(1), Of: "0000000000000"}
	note := placed(t, own, node.String, "a note")
	other := placed(t, own, node.String, "another")
	for name, tc := range map[string]struct {
		nodes []PlacedNode
		why   string // empty: it is fine
	}{
		"as it should be":        {nodes: []PlacedNode{note, other}},
		"under another's hash":   {nodes: []PlacedNode{{Hash: other.Hash, Node: note.Node, Place: note.Place}}, why: "its content hashes to " + string(note.Hash)},
		"in the place of a type": {nodes: []PlacedNode{{Hash: record.StepSchema, Node: note.Node}}, why: "its content hashes to " + string(note.Hash)},
	} {
		t.Run(name, func(t *testing.T) {
			u, objs, err := BuildAttempt(Attempt{Thread: threadID(1), Run: "r", Attempt: 1, Nodes: tc.nodes})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objs {
				x.mem.AddObjects(o.Object)
			}
			x.mem.SetRef(u.Name, u.New)
			a, err := x.s.ReadAttempt(t.Context(), x.v, u.Name)
			if tc.why == "" {
				if err != nil || len(a.Nodes) != len(tc.nodes) {
					t.Fatalf("%+v, %v", a, err)
				}
				return
			}
			wantErr(t, err, ErrContent)
			if !strings.Contains(err.Error(), tc.why) || !strings.Contains(err.Error(), u.Name) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// claimCommit makes a commit like that of a claim.
func (x *vandal) claimCommit(tree wire.ID, msg string, parents ...wire.ID) wire.ID {
	x.mem.AddObjects(wire.NewObject(plumbing.TreeObject, nil))
	sig := x.s.o.Author.Sign(x.s.o.Now())
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: tree, Parents: parents, Author: sig, Committer: sig, Message: msg})
	if err != nil {
		x.t.Fatal(err)
	}
	return x.put(plumbing.CommitObject, data)
}

// TestFsckHistory: what only a walk through all commits shows.
func TestFsckHistory(t *testing.T) {
	folder := layout.ThreadPath(threadID(1))
	probe, err := newVandal(t).v.ReadChain(t.Context(), threadID(1))
	if err != nil {
		t.Fatal(err)
	}
	detail := Place{Thread: threadID(1), Of: probe.Steps[0].Hash, Detail: true}.Folder()
	output := Place{Thread: threadID(1), Of: probe.Steps[0].Hash}.Path(probe.Steps[0].Output)
	for name, tc := range map[string]struct {
		change func(x *vandal)
		want   string
	}{
		"node removed and put back": {func(x *vandal) {
			old := x.v
			x.edit("cas/"+layout.FileOf(workflowNode(t).Hash), gone)
			tip := x.mem.Refs()[x.s.source.Branch]
			c, _ := gitobj.DecodeCommit(x.get(old.Tip()))
			x.commit(c.Tree, tip)
		}, "removes cas/"},
		"output removed":  {func(x *vandal) { x.edit(output, gone) }, "removes " + output},
		"details removed": {func(x *vandal) { x.edit(detail, gone) }, "removes " + detail},
		"details are a file": {func(x *vandal) {
			x.edit(detail, func(e gitobj.Entry) gitobj.Entry { e.ID = x.put(plumbing.BlobObject, nil); return e })
		}, detail + " is no folder"},
		"node rewritten": {func(x *vandal) {
			x.replace("cas/"+layout.FileOf(workflowNode(t).Hash), func(b []byte) []byte { return bytes.Replace(b, []byte("1700000000000"), []byte("1700000000001"), 1) })
		}, "rewrites cas/" + layout.FileOf(workflowNode(t).Hash)},
		"history line changed in place": {func(x *vandal) {
			x.replace("history/2023/11-14.jsonl", func(b []byte) []byte { return bytes.Replace(b, []byte("1700000000000"), []byte("1700000000001"), 1) })
		}, "rewrites history/2023/11-14.jsonl"},
		"reference to nothing": {func(x *vandal) {
			c, err := x.v.ReadChain(x.t.Context(), threadID(1))
			if err != nil {
				x.t.Fatal(err)
			}
			x.forgedStep(c, map[string]any{"output": "0000000000000"})
		}, "0000000000000.json it is the output of step"},
		"folder removed": {func(x *vandal) { x.edit(folder, gone) }, "threads.yaml lists the thread, but its folder is missing"},
		"page changed": {func(x *vandal) {
			x.replace(folder+"/pages/01-developer.md", func([]byte) []byte { return []byte("x") })
		}, ""},
		"history line changed": {func(x *vandal) {
			x.replace("history/2023/11-14.jsonl", func(b []byte) []byte { return bytes.Replace(b, []byte("cancelled"), []byte("ended"), 1) })
		}, "rewrites history/2023/11-14.jsonl"},
		"history file removed": {func(x *vandal) { x.edit("history/2023/11-14.jsonl", gone) }, "removes history/2023/11-14.jsonl"},
		"refs a push changed": {func(x *vandal) {
			x.replace(layout.VersionName, func(b []byte) []byte { return append(b, "refs: 2\n"...) })
		}, ""},
		"store id changed": {func(x *vandal) {
			x.replace(layout.VersionName, func(b []byte) []byte { return append(b, "more: yes\n"...) })
		}, "changes VERSION"},
		"VERSION removed": {func(x *vandal) {
			x.edit(layout.VersionName, gone)
			x.restore(x.v.Tip())
		}, "it changes VERSION} {commit"},
		"VERSION too large": {func(x *vandal) {
			x.replace(layout.VersionName, func(b []byte) []byte { return append(b, bytes.Repeat([]byte("#"), statefile.MaxVersionFile)...) })
			x.restore(x.v.Tip())
		}, "{VERSION 4159 bytes"},
		"VERSION is no VERSION": {func(x *vandal) {
			x.replace(layout.VersionName, func([]byte) []byte { return []byte("hello") })
			x.restore(x.v.Tip())
		}, "VERSION: malformed: line 1"},
		"thread removed": {func(x *vandal) {
			x.edit(folder, gone)
			x.v = mustRawView(x)
			x.replace(layout.ThreadsName, func([]byte) []byte { return []byte("{}\n") })
		}, "removes thread"},
		"shared reference to nothing": {func(x *vandal) {
			list := placed(x.t, Place{}, node.MetaSchema, map[string]any{"type": "array", "items": map[string]any{"type": "string", "format": "ocas_ref"}})
			x.putNode(layout.CasDir, list.Node, list.Hash)
			x.v = mustLoadTip(x)
			n := placed(x.t, Place{}, list.Hash, []any{"0000000000000"})
			x.putNode(layout.CasDir, n.Node, n.Hash)
		}, "it refers to 0000000000000, which is missing"},
		"shared node that fits no schema": {func(x *vandal) {
			n := placed(x.t, Place{}, node.String, 7)
			x.putNode(layout.CasDir, n.Node, n.Hash)
			v := mustLoad(x.t, Open(x.mem, testOptions()))
			if _, err := v.Get(x.t.Context(), n.Hash); !errors.Is(err, ErrContent) {
				x.t.Errorf("it is found: %v", err)
			}
		}, "does not fit its schema"},
		"merge": {func(x *vandal) {
			c, _ := gitobj.DecodeCommit(x.get(x.v.Tip()))
			x.commit(c.Tree, x.v.Tip(), c.Parents[0])
		}, "is a merge"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newVandal(t)
			mustSound(t, x.s)
			tc.change(x)
			r, err := x.s.Fsck(t.Context(), true)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(r.Problems); (tc.want == "") != r.OK() || !strings.Contains(got, tc.want) {
				t.Errorf("fsck sees %s", got)
			}
		})
	}
}

// TestPushOfNoClaim: a claim that is none is told to who pushes it.
func TestPushOfNoClaim(t *testing.T) {
	x := newVandal(t)
	commit := wire.NewObject(plumbing.CommitObject, x.get(x.v.Tip()))
	c := &Change{Refs: []wire.RefUpdate{{Name: layout.ClaimRef(threadID(1)), New: commit.ID}}, Objects: []wire.PackObject{{Object: commit}}}
	if _, err := x.s.Push(t.Context(), x.v, c); !errors.Is(err, ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// restore commits the tree of an earlier commit on top of the tip.
func (x *vandal) restore(earlier wire.ID) {
	c, err := gitobj.DecodeCommit(x.get(earlier))
	if err != nil {
		x.t.Fatal(err)
	}
	x.commit(c.Tree, mustRawView(x).Tip())
}

// mustRawView is the tip without any check.
func mustRawView(x *vandal) *View {
	return &View{State: view.State{Commit: x.mem.Refs()[x.s.source.Branch]}}
}

// TestHostileAttempt: an attempt's ref holds what anybody with a token could push.
func TestHostileAttempt(t *testing.T) {
	id := threadID(1)
	own := Place{Thread: id, Of: "0000000000000"}
	text := placed(t, own, node.String, "an output")
	lying := text
	lying.Hash = placed(t, Place{}, node.String, "another one").Hash
	wrong := placed(t, own, node.String, 7)
	for name, tc := range map[string]struct {
		make func(x *vandal) wire.ID
		want string
	}{
		"blob":                   {func(x *vandal) wire.ID { return x.put(plumbing.BlobObject, nil) }, "it does not point to a commit"},
		"claim that is no claim": {func(x *vandal) wire.ID { return x.claimCommit(wire.EmptyTree, "hello\n") }, "is no JSON"},
		"state":                  {func(x *vandal) wire.ID { return x.v.Tip() }, "a foreign file"},
		"node under a wrong hash": {func(x *vandal) wire.ID { return x.attempt(lying) },
			"thread/0000000000000." + layout.FileOf(lying.Hash) + ": unexpected content on the state branch: its content hashes to " + string(text.Hash)},
		"node that fits no schema": {func(x *vandal) wire.ID { return x.attempt(wrong) }, layout.FileOf(wrong.Hash) + ": unexpected content on the state branch: node of type"},
		"page": {func(x *vandal) wire.ID {
			c, err := gitobj.DecodeCommit(x.get(x.attempt(text)))
			if err != nil {
				x.t.Fatal(err)
			}
			c.Tree = x.editTree(c.Tree, []string{layout.AttemptThread, "01-a.md"}, func(e gitobj.Entry) gitobj.Entry {
				e.ID = x.put(plumbing.BlobObject, []byte("x"))
				return e
			})
			data, err := gitobj.EncodeCommit(c)
			if err != nil {
				x.t.Fatal(err)
			}
			return x.put(plumbing.CommitObject, data)
		}, "thread/01-a.md: unexpected content on the state branch: a foreign file"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newVandal(t)
			ref := layout.AttemptRef(id, "r", 1)
			x.mem.SetRef(ref, x.attempt(text))
			if _, err := x.s.ReadAttempt(t.Context(), x.v, ref); err != nil {
				t.Fatalf("before: %v", err)
			}
			x.mem.SetRef(ref, tc.make(x))
			fresh := mustLoad(t, x.s, id)
			if found, err := x.s.Unlinked(t.Context(), fresh, []string{ref}); err != nil || len(found) > 0 {
				t.Errorf("to be linked: %q, %v", found, err)
			}
			_, err := x.s.ReadAttempt(t.Context(), x.v, ref)
			if !errors.Is(err, ErrContent) || !strings.Contains(err.Error(), ref) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
	for _, ref := range []string{"refs/heads/main.1", layout.AttemptRefs(id) + ".1", layout.AttemptRefs(id) + "run", layout.AttemptRefs(id) + "run.x", layout.AttemptRefs(id) + "run.-1"} {
		x := newVandal(t)
		_, err := x.s.ReadAttempt(t.Context(), x.v, ref)
		wantErr(t, err, ErrInvalid)
	}
}

// TestHostileUnlinked: what an attempt says of the head that it is to be linked from.
func TestHostileUnlinked(t *testing.T) {
	for text, want := range map[string]node.Hash{"0000000000000\n": "0000000000000", "0000000000000": "0000000000000", "": "", "x\n": "", "0000000000000\n\n": ""} {
		x := newVandal(t)
		ref := layout.AttemptRef(threadID(1), "r", 1)
		c, err := gitobj.DecodeCommit(x.get(x.attempt(placed(t, Place{Thread: threadID(1), Of: "0000000000000"}, node.String, "an output"))))
		if err != nil {
			t.Fatal(err)
		}
		c.Tree = x.editTree(c.Tree, []string{layout.AttemptUnlinked}, func(e gitobj.Entry) gitobj.Entry {
			e.ID = x.put(plumbing.BlobObject, []byte(text))
			return e
		})
		data, err := gitobj.EncodeCommit(c)
		if err != nil {
			t.Fatal(err)
		}
		x.mem.SetRef(ref, x.put(plumbing.CommitObject, data))
		if a, err := x.s.ReadAttempt(t.Context(), x.v, ref); err != nil || a.Unlinked != want {
			t.Errorf("%q: %q, %v", text, a.Unlinked, err)
		}
	}
}

// attempt makes the commit of an attempt with one node.
func (x *vandal) attempt(n PlacedNode) wire.ID {
	u, objs, err := BuildAttempt(Attempt{Thread: threadID(1), Run: "r", Attempt: 1, Nodes: []PlacedNode{n}, Error: "e"})
	if err != nil {
		x.t.Fatal(err)
	}
	for _, o := range objs {
		x.mem.AddObjects(o.Object)
	}
	return u.New
}

// TestFoundDamaged: what can't be read is not what is not there.
func TestFoundDamaged(t *testing.T) {
	x := newVandal(t)
	c, err := x.v.ReadChain(t.Context(), threadID(1))
	if err != nil {
		t.Fatal(err)
	}
	workflow := c.Start.Workflow
	x.replace("cas/"+layout.FileOf(workflow), func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	v := mustLoad(t, Open(x.mem, testOptions()))
	if _, err := Find(t.Context(), v, workflow); !errors.Is(err, ErrContent) || errors.Is(err, node.ErrNotFound) {
		t.Errorf("a damaged node: %v", err)
	}
	if _, err := v.ReadChain(t.Context(), threadID(9)); !errors.Is(err, ErrUnknownThread) {
		t.Errorf("the chain of no thread: %v", err)
	}
	if _, err := below(t.Context(), v, threadID(9), c.Steps[0].Hash, c.Steps[0].Detail); !errors.Is(err, node.ErrNotFound) {
		t.Errorf("a detail of no thread: %v", err)
	}
}

// TestVisitStops: an error of who is given something ends the reading, and is theirs.
func TestVisitStops(t *testing.T) {
	x := newVandal(t)
	stop := errors.New("stop here")
	for name, err := range map[string]error{
		"history": x.v.History(t.Context(), time.Time{}, func(Ended) error { return stop }),
		"log":     x.v.Log(t.Context(), threadID(1), func(view.LogEntry) error { return stop }),
		"shared":  x.v.Shared(t.Context(), func(node.Hash, node.Node) error { return stop }),
	} {
		if !errors.Is(err, stop) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNames: names that the layout doesn't have are not stored.
func TestNames(t *testing.T) {
	x := newVandal(t)
	_, err := x.s.Push(t.Context(), x.v, &Change{Subject: "a page elsewhere", Readable: map[string][]byte{"threads/" + string(threadID(1)) + "/01-a.md": nil}})
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "no path of a page") {
		t.Errorf("a page among the nodes: %v", err)
	}
}

// TestHostileChain: chains that no push of ours makes.
func TestHostileChain(t *testing.T) {
	start := record.Start{Workflow: "0000000000000", Prompt: "p"}
	step := func(start, prev string) record.Step {
		s := record.Step{Start: node.Hash(start), Role: "r", Output: "0000000000000", Detail: "0000000000000", Agent: "a"}
		if prev != "" {
			h := node.Hash(prev)
			s.Prev = &h
		}
		return s
	}
	const a, b = "AAAAAAAAAAAAA", "BBBBBBBBBBBBB"
	forged, _, err := step(a, a).Node(time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	payload, _ := forged.Payload.(map[string]any)
	for name, tc := range map[string]struct {
		nodes func(h node.Hash) any
		want  string
	}{
		"circle": {func(h node.Hash) any {
			payload["prev"] = string(h)
			return forged
		}, "the chain runs in a circle, or is endless"},
		"start that is a step":       {func(node.Hash) any { return step(a, "") }, layout.FileOf(a) + ": unexpected content on the state branch: not the expected record"},
		"start as predecessor":       {func(h node.Hash) any { return map[node.Hash]any{b: step(a, a), a: start}[h] }, "a step names the StartNode as its predecessor"},
		"step of another start":      {func(h node.Hash) any { return map[node.Hash]any{b: step(a, a), a: step(b, "")}[h] }, "its start is " + b + ", that of the step after it " + a},
		"something else as a step":   {func(node.Hash) any { return "text" }, layout.FileOf(b) + ": unexpected content on the state branch: not the expected record"},
		"a step that can't be read":  {func(node.Hash) any { return nil }, "node not found"},
		"a start that can't be read": {func(h node.Hash) any { return map[node.Hash]any{b: step(a, "")}[h] }, "node not found"},
	} {
		_, err := view.FollowChain(b, "threads/x", func(h node.Hash) (n node.Node, err error) {
			switch r := tc.nodes(h).(type) {
			case record.Step:
				n, _, err = r.Node(time.UnixMilli(1))
			case record.Start:
				n, _, err = r.Node(time.UnixMilli(1))
			case node.Node:
				n = r
			case string:
				n = node.Node{Type: node.String, Payload: r}
			default:
				err = node.ErrNotFound
			}
			return n, err
		})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// TestAdvice: how to get back is said where it is known, and once.
func TestAdvice(t *testing.T) {
	s := newVandal(t).s.source
	tip, mark := wire.EmptyTree, plumbing.NewHash(strings.Repeat("1", 40))
	both := map[string]wire.ID{s.Branch: tip, layout.StoreRef: mark}
	other := tree.Damaged("x", "y")
	other.Restore = "do this"
	for name, tc := range map[string]struct {
		refs map[string]wire.ID
		err  error
		want string // of what is advised
	}{
		"content":          {both, tree.Damaged("x", "y"), "restore it: "},
		"no mark":          {map[string]wire.ID{s.Branch: tip}, tree.Damaged("x", "y"), ""},
		"the mark is it":   {map[string]wire.ID{s.Branch: mark, layout.StoreRef: mark}, tree.Damaged("x", "y"), ""},
		"another format":   {both, &DamagedError{Kind: ErrVersion}, ""},
		"advised already":  {both, other, "do this"},
		"no damaged error": {both, ErrContent, ""},
	} {
		err := s.AdviseRestore(tc.refs, tc.err)
		var d *DamagedError
		if !errors.As(err, &d) {
			continue
		}
		if got := d.Restore; (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: advises %q, want %q", name, got, tc.want)
		}
	}
}

// TestExtendsFails: a history that can't be read is no history that was rewritten.
func TestExtendsFails(t *testing.T) {
	x := newVandal(t)
	ancestor := x.v.Tip()
	for range 3 {
		x.replace(layout.ThreadPath(threadID(1))+"/pages/01-developer.md", func(b []byte) []byte { return append(b, 'x') })
		x.v = mustLoadTip(x)
	}
	for name, tc := range map[string]struct {
		f    *faulty
		want error
	}{
		"fine":     {&faulty{Memory: x.mem}, nil},
		"no right": {&faulty{Memory: x.mem, at: 1, down: &wire.RemoteError{Op: "fetch", Kind: wire.ErrDenied}}, wire.ErrDenied},
		"garbage": {&faulty{Memory: x.mem, at: 1, spoil: func(objs wire.Objects) {
			o := objs[x.v.Tip()]
			o.Data = []byte("garbage")
			objs[x.v.Tip()] = o
		}}, ErrContent},
	} {
		ok, err := opener{Open(tc.f, testOptions())}.isAncestor(t.Context(), x.v.Tip(), ancestor)
		if !errors.Is(err, tc.want) || ok != (tc.want == nil) {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
}

// TestCollidingPlaces: one hash, and another node in every place. Each is found where it
// is, and none in the place of another one.
func TestCollidingPlaces(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	id := threadID(1)
	v := threadWithSteps(t, s, id, 1)
	c, err := v.ReadChain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	wf := workflowNode(t)
	forged := func(h node.Hash) PlacedNode {
		n, err := collide.Node(h, node.String, func(s string) any { return "forged " + s })
		if err != nil {
			t.Fatal(err)
		}
		return PlacedNode{Hash: h, Node: n}
	}
	step := func(target node.Hash, note string) *Change {
		c, err := v.ReadChain(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		body := forged(target)
		body.Place.Of = target
		out := placed(t, Place{Of: target}, node.String, note)
		last := c.Steps[len(c.Steps)-1].Hash
		head, nodes, err := v.Complete(t.Context(), id, record.Step{Start: c.StartHash, Prev: &last, Role: "r", Agent: "a", Cwd: ".", Output: out.Hash, Body: &body.Hash, Detail: out.Hash},
			time.UnixMilli(1), []PlacedNode{out, body}, nil)
		if err != nil {
			t.Fatal(err)
		}
		e := mustEntry(t, v, id)
		e.Head = head
		return &Change{Subject: "forged", Nodes: nodes, Threads: map[ThreadID]*Entry{id: &e}}
	}
	v = mustPush(t, s, v, step(c.Steps[0].Output, "two"))
	v = mustPush(t, s, v, step(*c.Steps[0].Body, "three"))
	v = mustPush(t, s, v, step(c.Steps[0].Hash, "four"))
	mustSound(t, s)
	v = mustLoad(t, s, id)
	if c, err = v.ReadChain(t.Context(), id); err != nil || len(c.Steps) != 4 {
		t.Fatalf("%d steps, %v", len(c.Steps), err)
	}
	first := Place{Thread: id, Of: c.Steps[0].Hash}
	for h, where := range map[node.Hash][]Place{
		c.Steps[0].Output: {first, {Thread: id, Of: c.Steps[1].Hash}},
		*c.Steps[0].Body:  {first, {Thread: id, Of: c.Steps[2].Hash}},
		c.Steps[0].Hash:   {{Thread: id}, {Thread: id, Of: c.Steps[3].Hash}},
	} {
		for i, p := range where {
			n, err := v.In(t.Context(), p).Get(h)
			text, _ := n.Payload.(string)
			if err != nil || strings.HasPrefix(text, "forged") != (i == 1) {
				t.Errorf("%s: %v, %v", p.Path(h), n.Payload, err)
			}
		}
		var several *AmbiguousError
		if _, err := Find(t.Context(), v, h); !errors.As(err, &several) || len(several.Places) != 2 ||
			!slices.Contains(several.Places, where[0]) || !slices.Contains(several.Places, where[1]) {
			t.Errorf("find %s: %v", h, err)
		}
	}
	walked := 0
	if err := v.Walk(t.Context(), Place{Thread: id}, c.Steps[3].Hash, func(Place, node.Hash, node.Node) error { walked++; return nil }); err != nil || walked < 4*3 {
		t.Errorf("%d nodes, %v", walked, err)
	}
	// Shared nodes are not replaced, nor is the workflow in a step's own folder.
	_, err = s.Push(t.Context(), v, &Change{Subject: "shared", Nodes: []PlacedNode{forged(wf.Hash)}})
	wantErr(t, err, ErrCollision)
	// A record that does not vouch for what it refers to is not stored.
	change := step(wf.Hash, "five")
	for i, n := range change.Nodes {
		if n.Place.Of != "" && n.Node.Payload == "five" {
			change.Nodes[i].Node = forged(n.Hash).Node
		}
	}
	_, err = s.Push(t.Context(), v, change)
	wantErr(t, err, ErrInvalid)
}
