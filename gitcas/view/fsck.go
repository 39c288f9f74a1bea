package view

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// Report is what Fsck found. A store without Problems is sound, but for what could not be read.
type Report struct {
	Problems []Problem `json:"problems"`
	// Unread is what the server doesn't give: see wire.ErrNotGiven.
	Unread  []Problem `json:"unread,omitempty"`
	Nodes   int       `json:"nodes"`             // node files read and checked
	Threads int       `json:"threads"`           // live threads
	Ended   int       `json:"ended"`             // threads that have ended, once or more often
	Commits int       `json:"commits,omitempty"` // state commits walked; 0 without history
}

// Problem is one thing that is wrong, at a path of the branch, a ref or a commit.
type Problem struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// maxReported bounds the problems of a report.
const maxReported = 1000

// NoteError takes an error about the store's content into the report and returns any
// other.
func (r *Report) NoteError(path string, err error) error {
	var d *tree.DamagedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &d):
		r.addProblem(d.What, "%s", d.Why)
		return nil
	case errors.Is(err, wire.ErrNotGiven):
		if len(r.Unread) < maxReported {
			r.Unread = append(r.Unread, Problem{path, err.Error()})
		}
		return nil
	case errors.Is(err, wire.ErrNotFound):
		r.addProblem(path, "%v", err)
		return nil
	}
	return err
}

func (r *Report) addProblem(path, format string, args ...any) {
	if len(r.Problems) < maxReported {
		r.Problems = append(r.Problems, Problem{path, fmt.Sprintf(format, args...)})
	}
}

// Fsck reads the whole tip and checks every file: names and modes, hashes,
// schemas, references, chains, the registry and the history lines. With history it
// also walks all commits: each must extend one before it, no node may have been
// rewritten, and what was taken off the tip must be named by the history and sound
// where that says it is. What is wrong is in the report; the error says only that
// the store could not be read.
//
// It reads one thread at a time, so its memory doesn't grow with the store.
func (v *View) Fsck(ctx context.Context, history bool) (Report, error) {
	f := &fsck{ctx: ctx, v: v, ended: map[layout.ThreadID][]statefile.Ended{}}
	steps := []func() error{f.checkShared, f.checkRegistry, f.checkThreads, f.readHistoryLines, f.checkFormer}
	if history {
		steps = append(steps, f.checkHistory)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return f.Report, err
		}
	}
	return f.Report, nil
}

// fsck is one check of a store.
type fsck struct {
	Report
	ctx   context.Context
	v     *View
	ended map[layout.ThreadID][]statefile.Ended // by thread, the newest first
	// partly: not all history lines could be read, which is said.
	partly bool
}

// filesAtOnce is how many node files are fetched in one request.
const filesAtOnce = 256

// folder is a folder of nodes, and where it is.
type folder struct {
	*tree.Dir
	place layout.Place
}

// checkFiles reads every node file of some folders and gives the nodes to visit. The
// nodes that bad files hold are left out.
func (f *fsck) checkFiles(v *View, dirs []folder, visit func(place layout.Place, h node.Hash, n node.Node)) error {
	type file struct {
		path  string
		id    wire.ID
		h     node.Hash
		place layout.Place
	}
	var all []file
	for _, d := range dirs {
		for _, e := range d.Entries() {
			if p, h, ok := d.place.NodeAt(e.Name); ok {
				all = append(all, file{d.PathOf(e.Name), e.ID, h, p})
			}
		}
	}
	r := &FolderReader{ctx: f.ctx, v: v}
	for chunk := range slices.Chunk(all, filesAtOnce) {
		ids := lists.Map(chunk, func(x file) wire.ID { return x.id })
		if err := f.NoteError("", v.Reader.Fetch(f.ctx, ids...)); err != nil {
			return err
		}
		for _, x := range chunk {
			var n node.Node
			types, err := r.TypesIn(x.place)
			if err == nil {
				n, err = v.readWith(f.ctx, x.path, x.id, x.h, types)
			}
			if err == nil {
				f.Nodes++
				visit(x.place, x.h, n)
			}
			if err := f.NoteError(x.path, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fsck) checkShared() error {
	var nodes []PlacedNode
	err := f.checkFiles(f.v, []folder{{f.v.CasDir, layout.Place{}}}, func(_ layout.Place, h node.Hash, n node.Node) {
		nodes = append(nodes, PlacedNode{Hash: h, Node: n})
	})
	if err != nil {
		return err
	}
	for _, n := range nodes {
		refs, err := f.v.Source.Schemas.Refs(f.v.Getter(f.ctx), n.Node)
		if err != nil {
			f.addProblem(n.Place.Path(n.Hash), "%v", err)
		}
		for _, h := range refs {
			_, known := known()[h]
			if _, inCas := f.v.CasDir.Find(layout.FileOf(h)); !known && !inCas {
				f.addProblem(n.Place.Path(n.Hash), "it refers to %s, which is missing", h)
			}
		}
	}
	return nil
}

func (f *fsck) checkRegistry() error {
	all := f.v.Registry()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if h := all[name].Hash; f.v.CasDir.IDOf(layout.FileOf(h)).IsZero() {
			f.addProblem(layout.RegistryName, "%s names %s, which is not in cas/", name, h)
		}
	}
	return nil
}

func (f *fsck) checkThreads() error {
	for _, e := range f.v.ThreadsDir.Entries() {
		if _, ok := f.v.ThreadsFile.Get(layout.ThreadID(e.Name)); !ok {
			f.addProblem(layout.ThreadPath(layout.ThreadID(e.Name)), "a folder without an entry in threads.yaml")
		}
	}
	for _, id := range f.v.ThreadsFile.Keys() {
		f.Threads++
		if err := f.checkThread(f.v, id); err != nil {
			return err
		}
	}
	return nil
}

// nodeFolders are all folders of a thread that hold nodes.
func (f *fsck) nodeFolders(v *View, id layout.ThreadID, d *tree.Dir) ([]folder, error) {
	out := []folder{{d, layout.Place{Thread: id}}}
	if _, err := v.Reader.Below(f.ctx, d, layout.PagesDir); err != nil {
		return out, err
	}
	details, err := v.Reader.Below(f.ctx, d, layout.DetailDir)
	if err != nil {
		return out, err
	}
	if err := v.Reader.FetchEntries(f.ctx, details.Entries()); err != nil {
		return out, err
	}
	for _, e := range details.Entries() {
		of, err := v.Reader.Below(f.ctx, details, e.Name)
		if err != nil {
			return out, err
		}
		out = append(out, folder{of, layout.Place{Thread: id, Of: node.Hash(e.Name), Detail: true}})
	}
	return out, nil
}

// checkThread checks one thread of a view, with a reader of its own that is thrown away.
func (f *fsck) checkThread(base *View, id layout.ThreadID) error {
	v := *base
	v.Reader = base.Reader.Apart()
	v.derivedMemos = derivedMemos{newDerivedMemos().closed, base.flows}

	path := layout.ThreadPath(id)
	d, err := v.ThreadFolder(f.ctx, id)
	if err != nil {
		return f.NoteError(path, err)
	}
	if d == nil {
		f.addProblem(path, "threads.yaml lists the thread, but its folder is missing")
		return nil
	}
	dirs, err := f.nodeFolders(&v, id, d)
	if err := f.NoteError(path, err); err != nil {
		return err
	}
	var records []node.Hash
	there := map[node.Hash]bool{}
	err = f.checkFiles(&v, dirs, func(p layout.Place, h node.Hash, n node.Node) {
		there[h] = true
		switch {
		case p.Of != "":
		case record.IsStep(n.Type):
			records = append(records, h)
		case !record.IsStart(n.Type):
			f.addProblem(p.Path(h), "it is neither a StartNode nor a StepNode")
		}
	})
	if err != nil {
		return err
	}
	for _, h := range records {
		p := layout.Place{Thread: id, Of: h, Detail: true}
		_, err := placeReader{&v}.closedNodes(f.ctx, p)
		if err := f.NoteError(layout.Place{Thread: id}.Path(h), err); err != nil {
			return err
		}
	}
	if err := f.checkRenamed(layout.FormerName(id), there); err != nil {
		return err
	}
	c, err := v.ReadChain(f.ctx, id)
	if err == nil {
		f.checkUsed(&v, id, c)
	}
	return f.NoteError(path, err)
}

// checkUsed compares what an entry says with the chain.
func (f *fsck) checkUsed(v *View, id layout.ThreadID, c Chain) {
	e, _ := v.Entry(id)
	said, known := e.Known()
	if counted := c.AddUpUsage(); known && (said.Steps != counted.Steps || said.Tokens != counted.Tokens || said.DurationMs != counted.DurationMs || said.Unpriced != counted.Unpriced || math.Abs(said.CostUSD-counted.CostUSD) > 1e-6) {
		f.addProblem(layout.ThreadsName, "thread %s: it says %d steps, %d tokens, %s and %d ms; its chain has %d, %d, %s and %d",
			id, said.Steps, said.Tokens, text.Dollars(said.CostUSD, said.Unpriced), said.DurationMs,
			counted.Steps, counted.Tokens, text.Dollars(counted.CostUSD, counted.Unpriced), counted.DurationMs)
	}
}

func (f *fsck) readHistoryLines() error {
	err := historyFiles{f.v}.visitLines(f.ctx, time.Time{}, func(e statefile.Ended) error {
		e.Steps = nil // not needed again, and long
		f.ended[e.Thread] = append(f.ended[e.Thread], e)
		return nil
	})
	if err := f.NoteError(layout.HistoryDir, err); err != nil {
		return err
	}
	f.partly = err != nil
	f.Ended = len(f.ended)
	for _, id := range slices.Sorted(maps.Keys(f.ended)) {
		if err := f.checkLives(id, f.ended[id]); err != nil {
			return err
		}
	}
	return nil
}

// checkLives checks what became of a thread by its history lines: it may end, be resumed
// and end again, but nothing comes after a cancelled or removed one but removal.
func (f *fsck) checkLives(id layout.ThreadID, lines []statefile.Ended) error {
	for i, e := range lines[1:] {
		if e.Reason != statefile.ReasonEnded && lines[i].Reason != statefile.ReasonRemoved {
			f.addProblem(layout.HistoryDir, "thread %s was %s, and %s after that", id, e.Reason, lines[i].Reason)
		}
	}
	_, alive := f.v.ThreadsFile.Get(id)
	switch last := lines[0]; {
	case !alive:
		return nil
	case last.Reason != statefile.ReasonEnded:
		f.addProblem(layout.HistoryDir, "thread %s was %s, but threads.yaml lists it", id, last.Reason)
		return nil
	default:
		// Resumed: what it was before must still be there.
		d, err := f.v.ThreadFolder(f.ctx, id)
		if err != nil {
			return f.NoteError(layout.ThreadPath(id), err)
		}
		if _, ok := d.Find(layout.FileOf(last.Head)); !ok {
			f.addProblem(layout.HistoryDir, "thread %s ended at %s and lives again without that step", id, last.Head)
		}
		return nil
	}
}

// checkHistory walks all commits.
func (f *fsck) checkHistory() error {
	err := historyReader{f.v}.walkHistory(f.ctx, f.v.Commit, func(h *historyCommit) error {
		f.Commits++
		where := "commit " + h.id.String()
		if len(h.commit.Parents) > 1 {
			f.addProblem(where, "it is a merge: the state branch has one line of history")
		}
		if h.parent == nil {
			return nil
		}
		if err := f.checkVersion(where, h.parent.root.IDOf(layout.VersionName), h.root.IDOf(layout.VersionName)); err != nil {
			return err
		}
		return f.checkCommit(where, h)
	})
	return f.NoteError(f.v.Source.Branch, err)
}

// checkVersion checks that VERSION stays, but for how many refs a push may update.
func (f *fsck) checkVersion(where string, before, after wire.ID) error {
	if before == after {
		return nil
	}
	if before.IsZero() || after.IsZero() {
		f.addProblem(where, "it changes VERSION")
		return nil
	}
	var rest [2][]byte
	for i, id := range []wire.ID{before, after} {
		o, err := f.v.Reader.Read(f.ctx, layout.VersionName, id, plumbing.BlobObject, statefile.MaxVersionFile)
		if err != nil {
			return f.NoteError(where, err)
		}
		if _, err = statefile.ParseVersion(o.Data); err == nil {
			rest[i], err = statefile.SetVersionRefs(o.Data, 1)
		}
		if err != nil {
			f.addProblem(where, "%s: %v", layout.VersionName, err)
			return nil
		}
	}
	if !bytes.Equal(rest[0], rest[1]) {
		f.addProblem(where, "it changes VERSION")
	}
	return nil
}

// checkCommit compares a commit with the one before it.
func (f *fsck) checkCommit(where string, h *historyCommit) error {
	old, cur := h.parent, h
	if err := f.checkNodesKept(where, layout.CasDir, old.root.IDOf(layout.CasDir), cur.root.IDOf(layout.CasDir)); err != nil {
		return err
	}
	if err := f.checkAppended(where, old.root.IDOf(layout.HistoryDir), cur.root.IDOf(layout.HistoryDir)); err != nil {
		return err
	}
	for _, e := range old.threadDirs.Entries() {
		id := layout.ThreadID(e.Name)
		now := cur.threadDirs.IDOf(e.Name)
		if now == e.ID {
			continue
		}
		if !now.IsZero() {
			if err := f.checkNodesKept(where, layout.ThreadPath(id), e.ID, now); err != nil {
				return err
			}
			continue
		}
		if err := f.checkRemovedThread(where, id, old.id); err != nil {
			return err
		}
	}
	return nil
}

// checkRemovedThread checks a thread that a commit removed.
func (f *fsck) checkRemovedThread(where string, id layout.ThreadID, last wire.ID) error {
	lines := f.ended[id]
	i := slices.IndexFunc(lines, func(e statefile.Ended) bool { return e.Commit == last.String() })
	switch {
	case i < 0 && f.partly:
		return nil
	case i < 0:
		f.addProblem(where, "it removes thread %s, and no history line names commit %s for it", id, last)
		return nil
	}
	past, err := f.v.LoadEnded(f.ctx, lines[i])
	if err != nil {
		return f.NoteError(where, err)
	}
	return f.checkThread(past, id)
}

// checkNodesKept checks that a folder keeps all its nodes as they were, also those
// below it.
func (f *fsck) checkNodesKept(where, path string, before, after wire.ID) error {
	if before == after || before.IsZero() {
		return nil
	}
	if after.IsZero() {
		f.addProblem(where, "it removes %s", path)
		return nil
	}
	objs, err := historyReader{f.v}.fetchTrees(f.ctx, []wire.ID{before, after})
	if err != nil {
		return f.NoteError(where, err)
	}
	entries := make([][]gitobj.Entry, 2)
	for i, id := range []wire.ID{before, after} {
		if objs[id].Type != plumbing.TreeObject {
			f.addProblem(where, "%s is no folder", path)
			return nil
		}
		if entries[i], err = gitobj.DecodeTree(objs[id].Data); err != nil {
			f.addProblem(where, "%s: %v", path, err)
			return nil
		}
	}
	now := make(map[string]gitobj.Entry, len(entries[1]))
	for _, e := range entries[1] {
		now[e.Name] = e
	}
	for _, e := range entries[0] {
		n, there := now[e.Name]
		_, _, isNode := layout.ParseNodeFile(e.Name)
		switch {
		case e.IsDir():
			if err := f.checkNodesKept(where, path+"/"+e.Name, e.ID, n.ID); err != nil {
				return err
			}
		case isNode && !there:
			f.addProblem(where, "it removes %s/%s", path, e.Name)
		case isNode && n.ID != e.ID:
			f.addProblem(where, "it rewrites %s/%s", path, e.Name)
		}
	}
	return nil
}

// checkAppended checks that the history files only grew.
func (f *fsck) checkAppended(where string, before, after wire.ID) error {
	if before == after || before.IsZero() {
		return nil
	}
	days := map[string]wire.ID{}
	for i, id := range []wire.ID{before, after} {
		v := *f.v
		v.Reader = f.v.Reader.Apart()
		v.HistoryDir = nil
		if !id.IsZero() {
			d, err := v.Reader.ReadDir(f.ctx, layout.HistoryDir, layout.HistoryFolder, id)
			if err != nil {
				return f.NoteError(where, err)
			}
			v.HistoryDir = d
		}
		list, err := historyFiles{&v}.listDays(f.ctx, time.Time{})
		if err != nil {
			return f.NoteError(where, err)
		}
		if i == 0 {
			for _, d := range list {
				days[d.path] = d.id
			}
			continue
		}
		if err := f.checkGrown(where, &v, days, list); err != nil {
			return err
		}
	}
	return nil
}

func (f *fsck) checkGrown(where string, v *View, before map[string]wire.ID, after []day) error {
	for _, d := range after {
		old, there := before[d.path]
		delete(before, d.path)
		if !there || old == d.id {
			continue
		}
		o, err := v.Reader.Read(f.ctx, d.path, old, plumbing.BlobObject, tree.MaxTree)
		if err != nil {
			return f.NoteError(where, err)
		}
		n, err := v.Reader.Read(f.ctx, d.path, d.id, plumbing.BlobObject, tree.MaxTree)
		if err != nil {
			return f.NoteError(where, err)
		}
		if len(n.Data) < len(o.Data) || string(n.Data[:len(o.Data)]) != string(o.Data) {
			f.addProblem(where, "it rewrites %s", d.path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		f.addProblem(where, "it removes %s", path)
	}
	return nil
}
