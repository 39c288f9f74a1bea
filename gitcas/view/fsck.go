package view

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

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
// It reads some threads at a time, so its memory doesn't grow with the store.
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
	ids := f.v.ThreadsFile.Keys()
	var came wire.Objects
	return threadsAtOnce.Fetch(len(ids), func(from, to int) (_ int64, err error) {
		came, err = f.fetchThreads(ids[from:to])
		return came.Size(), err
	}, func(from, to int) error {
		for _, id := range ids[from:to] {
			f.Threads++
			if err := f.checkThread(f.v, id, came); err != nil {
				return err
			}
		}
		return nil
	})
}

// threadsAtOnce bounds how many threads are fetched together.
var threadsAtOnce = wire.Batches{First: 16, Most: 256, Bytes: 8 << 20}

// maxBatch is how many bytes the answer for a batch may hold.
const maxBatch = 32 << 20

// detailFilter sends the folders of a thread's details and older steps with all that is in them.
const detailFilter = "tree:4"

// fetchThreads fetches the folders of threads with all nodes in them, in two requests. If the
// remote can't give them all, or one is damaged, it returns none: the check of each thread asks for
// what it needs then, and says what is wrong.
func (f *fsck) fetchThreads(ids []layout.ThreadID) (wire.Objects, error) {
	r := f.v.Reader.Apart()
	folders := lists.Map(ids, func(id layout.ThreadID) wire.ID { return f.v.ThreadsDir.IDOf(string(id)) })
	came, err := r.FetchUpTo(f.ctx, maxBatch, threadFilter, folders)
	if err == nil {
		var details []wire.ID
		for _, id := range folders {
			if d, err := tree.Parse("", layout.ThreadFolder, came[id]); err == nil {
				details = append(details, d.IDOf(layout.DetailDir), d.IDOf(layout.OlderDir))
			}
		}
		var below wire.Objects
		below, err = r.FetchUpTo(f.ctx, maxBatch, detailFilter, details)
		maps.Copy(came, below)
	}

	switch {
	case err == nil:
		return came, nil
	case errors.Is(err, wire.ErrNotFound), errors.Is(err, tree.ErrDamaged), errors.Is(err, wire.ErrUnreadable) && len(ids) == 1:
		return nil, nil
	}
	return nil, err
}

// nodeFolders are all folders of a thread that hold nodes. It keeps what came of them already.
func (f *fsck) nodeFolders(v *View, id layout.ThreadID, d *tree.Dir, came wire.Objects) ([]folder, error) {
	if older := d.IDOf(layout.OlderDir); !older.IsZero() && len(came) == 0 {
		var err error
		if came, err = v.Reader.FetchWith(f.ctx, detailFilter, []wire.ID{older}); err != nil {
			return nil, err
		}
	}
	older, err := v.Reader.Below(f.ctx, d, layout.OlderDir)
	if err != nil {
		return nil, err
	}
	prefetcher{v}.adoptObjects(older, came)
	all, err := v.StepFolders(f.ctx, d)
	var out []folder
	for _, d := range all {
		in, err := f.foldersIn(v, id, d, came)
		if out = append(out, in...); err != nil {
			return out, err
		}
	}
	return out, err
}

// foldersIn are a folder with steps of a thread and those in it that hold nodes.
func (f *fsck) foldersIn(v *View, id layout.ThreadID, d *tree.Dir, came wire.Objects) ([]folder, error) {
	out := []folder{{d, layout.Place{Thread: id}}}
	prefetcher{v}.adoptObjects(d, came)
	if _, err := v.Reader.Below(f.ctx, d, layout.PagesDir); err != nil {
		return out, err
	}
	details, err := v.Reader.Below(f.ctx, d, layout.DetailDir)
	if err != nil {
		return out, err
	}
	prefetcher{v}.adoptObjects(details, came)
	if err := v.Reader.FetchEntries(f.ctx, details.Entries()); err != nil {
		return out, err
	}
	for _, e := range details.Entries() {
		of, err := v.Reader.Below(f.ctx, details, e.Name)
		if err != nil {
			return out, err
		}
		prefetcher{v}.adoptObjects(of, came)
		out = append(out, folder{of, layout.Place{Thread: id, Of: node.Hash(e.Name), Detail: true}})
	}
	return out, nil
}

// checkThread checks one thread of a view, with a reader of its own that is thrown away. Some of its
// objects may have come already.
func (f *fsck) checkThread(base *View, id layout.ThreadID, came wire.Objects) error {
	v := *base
	v.Reader = base.Reader.Apart()
	if o, ok := came[base.ThreadsDir.IDOf(string(id))]; ok {
		v.Reader.Keep(o)
	}
	v.derivedMemos = newDerivedMemos()
	v.flows = base.flows

	path := layout.ThreadPath(id)
	d, err := v.ThreadFolder(f.ctx, id)
	if err != nil {
		return f.NoteError(path, err)
	}
	if d == nil {
		f.addProblem(path, "threads.yaml lists the thread, but its folder is missing")
		return nil
	}
	dirs, err := f.nodeFolders(&v, id, d, came)
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
	if counted := c.Used(); known && (said.Steps != counted.Steps || said.Tokens != counted.Tokens || said.DurationMs != counted.DurationMs || said.Unpriced != counted.Unpriced || math.Abs(said.CostUSD-counted.CostUSD) > 1e-6) {
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
		if d, err = f.v.FolderOf(f.ctx, d, last.Head); err != nil {
			return f.NoteError(layout.ThreadPath(id), err)
		}
		if _, ok := d.Find(layout.FileOf(last.Head)); !ok {
			f.addProblem(layout.HistoryDir, "thread %s ended at %s and lives again without that step", id, last.Head)
		}
		return nil
	}
}
