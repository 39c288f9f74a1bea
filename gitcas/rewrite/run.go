package rewrite

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// run is one way through the history. It can be taken further when the branch
// moves on.
type run struct {
	ctx    context.Context
	remote wire.Remote
	o      *Options
	w      *writer
	nodes  *nodes
	report *report

	old, new wire.ID               // the last commit, and what became of it
	commits  map[wire.ID]wire.ID   // only those that changed
	memo     map[memoKey]wire.ID   // what became of every object
	firsts   map[filePlace]wire.ID // files of nodes, as they came to stand there
	days     map[string]dayTexts   // history files
	found    []treeItem            // node files of the present commit
	objs     wire.Objects          // of the present chunk
	prefix   string                // of paths: an attempt's ref
	partial  bool                  // objs lack what is people's
	tries    map[wire.ID]wire.ID   // commits of attempts
}

func newRun(ctx context.Context, remote wire.Remote, o *Options) *run {
	rep, memo := newReport(o), map[memoKey]wire.ID{}
	return &run{
		ctx: ctx, remote: remote, o: o, w: &writer{made: map[wire.ID]bool{}}, report: rep, nodes: newNodes(o, rep, memo),
		commits: map[wire.ID]wire.ID{}, memo: memo, days: map[string]dayTexts{}, firsts: map[filePlace]wire.ID{}, objs: wire.Objects{}, tries: map[wire.ID]wire.ID{},
	}
}

// commitsAtOnce is how much history is fetched with all its objects in one
// request; listedAtOnce how much of the commits alone.
const (
	commitsAtOnce = 64
	listedAtOnce  = 4096
)

// runTo takes the run to a tip that extends where it is.
func (r *run) runTo(tip wire.ID) error {
	ids, err := r.listCommits(tip, r.old)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(ids, commitsAtOnce) {
		req := wire.FetchRequest{Wants: []wire.ID{chunk[len(chunk)-1]}}
		if !r.old.IsZero() {
			req.Haves = []wire.ID{r.old}
		}
		if r.objs, err = r.remote.Fetch(r.ctx, req); err != nil {
			return fmt.Errorf("read the history: %w", err)
		}
		for _, id := range chunk {
			if err := r.rewriteCommit(id); err != nil {
				return fmt.Errorf("state commit %s: %w", id, err)
			}
		}
	}
	return nil
}

// listCommits are the commits after one, up to tip, oldest first: a zero one stands for
// the whole history.
func (r *run) listCommits(tip, after wire.ID) ([]wire.ID, error) {
	var out []wire.ID
	for at := tip; at != after; {
		objs, err := r.remote.Fetch(r.ctx, wire.FetchRequest{Wants: []wire.ID{at}, Depth: listedAtOnce, Filter: "tree:0"})
		if err != nil {
			return nil, fmt.Errorf("read the history: %w", err)
		}
		if _, ok := objs[at]; !ok {
			return nil, fmt.Errorf("%w: the remote doesn't send commit %s", ErrUnreadable, at)
		}
		for at != after {
			o, ok := objs[at]
			if !ok {
				break
			}
			out = append(out, at)
			if at, err = r.parentOf(o); err != nil {
				return nil, err
			}
			if at.IsZero() && !after.IsZero() {
				return nil, ErrMoved
			}
		}
	}
	slices.Reverse(out)
	return out, nil
}

func (r *run) parentOf(o wire.Object) (wire.ID, error) {
	if o.Type != plumbing.CommitObject {
		return wire.ZeroID, fmt.Errorf("%w: %s is no commit", ErrUnreadable, o.ID)
	}
	c, err := gitobj.DecodeCommit(o.Data)
	switch {
	case err != nil:
		return wire.ZeroID, fmt.Errorf("%w: commit %s: %w", ErrUnreadable, o.ID, err)
	case len(c.Parents) > 1:
		return wire.ZeroID, fmt.Errorf("%w: commit %s is a merge; the state branch has one line of history (see: uwf fsck --history)", ErrUnreadable, o.ID)
	case len(c.Parents) == 0:
		return wire.ZeroID, nil
	}
	return c.Parents[0], nil
}

// rewriteCommit rewrites one state commit.
func (r *run) rewriteCommit(id wire.ID) error {
	c, o, err := r.readCommit(id)
	if err != nil {
		return err
	}
	r.report.commit = id
	tree, err := r.rewriteRoot(treeItem{kind: layout.RootFolder, id: c.Tree, in: r.nodes.scopes.shared})
	if err != nil {
		return err
	}
	var parents []wire.ID
	if !r.old.IsZero() {
		parents = []wire.ID{r.new}
	}
	to := r.commitTo(o, c, tree, parents, "commit "+id.String())
	r.old, r.new = id, to
	r.report.plan.Commits++
	if to != id {
		r.commits[id] = to
		r.report.plan.Changed++
	}
	return nil
}

// rewriteRoot rewrites a root folder: first all nodes in it, then the folders.
func (r *run) rewriteRoot(a treeItem) (wire.ID, error) {
	if err := r.gatherNodes(a, 0); err != nil {
		return wire.ZeroID, err
	}
	if err := r.readNodes(); err != nil {
		return wire.ZeroID, err
	}
	if err := r.nodes.resolveAll(r.w); err != nil {
		return wire.ZeroID, err
	}
	id, err := r.rebuildFolder(a, 0)
	if len(r.days) > 4 {
		clear(r.days) // only the newest grow
	}
	return id, err
}

// commitTo writes a commit anew with another tree, parents and message, if any of
// them changed. All else stays, byte by byte, but for signatures: they would no
// longer be right.
func (r *run) commitTo(o wire.Object, c gitobj.Commit, tree wire.ID, parents []wire.ID, where string) wire.ID {
	text := r.textAt(where)
	head, _, _ := bytes.Cut(o.Data, []byte("\n\n"))
	msg := text.rewriteMessage(c.Message)
	changed := tree != c.Tree || !slices.Equal(parents, c.Parents) || msg != c.Message
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	signature := false
	for line := range strings.Lines(strings.TrimSuffix(string(head), "\n") + "\n") {
		key, _, _ := strings.Cut(line, " ")
		switch key {
		case "tree", "parent":
			continue
		case "gpgsig", "gpgsig-sha256", "mergetag":
			signature = true
			continue
		case "":
			if signature {
				continue // the signature goes on
			}
		}
		signature = false
		out := text.rewriteHeader(line)
		changed = changed || out != line
		b.WriteString(out)
	}
	if !changed {
		return o.ID
	}
	b.WriteString("\n" + msg)
	return r.w.putObject(plumbing.CommitObject, b.Bytes(), nil)
}

// rewriteHeader is a line of author or committer: a name or an address may hold what is
// looked for. The date stays.
func (r textRewriter) rewriteHeader(line string) string {
	key, rest, _ := strings.Cut(line, " ")
	open, end := strings.IndexByte(rest, '<'), strings.LastIndexByte(rest, '>')
	if key != "author" && key != "committer" || open < 0 || end < open {
		return line
	}
	name, n := r.o.Find.Replace(rest[:open], nil)
	mail, m := r.o.Find.Replace(rest[open+1:end], nil)
	if n+m == 0 {
		return line
	}
	r.report.noteFound(r.path, "(its "+key+")")
	return key + " " + name + "<" + mail + rest[end:]
}

// wantsAtOnce is how many older objects are asked for in one request.
const wantsAtOnce = 256

// readOlder brings what the present chunk has not of a folder, because the commits before
// have it: the folders of a fork, texts that a step has from another one. All of it comes
// at once, with what is in it.
func (r *run) readOlder(ids []wire.ID) error {
	missing := slices.DeleteFunc(ids, func(id wire.ID) bool { _, here := r.objs[id]; return here })
	for wants := range slices.Chunk(missing, wantsAtOnce) {
		objs, err := r.remote.Fetch(r.ctx, wire.FetchRequest{Wants: wants, Depth: 1})
		if err != nil {
			return fmt.Errorf("read objects of earlier commits: %w", err)
		}
		maps.Copy(r.objs, objs)
	}
	return nil
}

// readObject is one that the present chunk brought, or an older one that is needed
// again.
func (r *run) readObject(id wire.ID, t plumbing.ObjectType) (wire.Object, error) {
	o, ok := r.objs[id]
	if !ok {
		objs, err := r.remote.Fetch(r.ctx, wire.FetchRequest{Wants: []wire.ID{id}, Depth: 1, Filter: "tree:0"})
		if err != nil {
			return o, fmt.Errorf("read object %s: %w", id, err)
		}
		o = objs[id]
		r.objs[id] = o
	}
	if o.Type != t {
		return o, fmt.Errorf("%w: object %s is a %s, not a %s", ErrUnreadable, id, o.Type, t)
	}
	return o, nil
}

// readCommit is readObject of a commit.
func (r *run) readCommit(id wire.ID) (gitobj.Commit, wire.Object, error) {
	o, err := r.readObject(id, plumbing.CommitObject)
	if err != nil {
		return gitobj.Commit{}, o, err
	}
	c, err := gitobj.DecodeCommit(o.Data)
	if err != nil {
		err = fmt.Errorf("%w: commit %s: %w", ErrUnreadable, id, err)
	}
	return c, o, err
}

// aliveThreads are the live threads whose heads change.
func (r *run) aliveThreads() ([]Thread, error) {
	c, _, err := r.readCommit(r.old)
	if err != nil {
		return nil, err
	}
	entries, err := r.readEntries(treeItem{kind: layout.RootFolder, id: c.Tree, in: r.nodes.scopes.shared}, 0)
	if err != nil {
		return nil, err
	}
	var out []Thread
	for _, e := range entries {
		if childOf(layout.RootFolder, e) != layout.ThreadsFile {
			continue
		}
		blob, err := r.readObject(e.ID, plumbing.BlobObject)
		if err != nil {
			return nil, err
		}
		t, err := statefile.ParseThreads(blob.Data)
		if err != nil {
			return nil, fmt.Errorf("%w: threads.yaml: %w", ErrUnreadable, err)
		}
		for _, id := range t.Keys() {
			e, _ := t.Get(id)
			if to := r.nodes.recordNow(string(id), e.Head); to != e.Head {
				out = append(out, Thread{ID: id, Old: e.Head, New: to})
			}
		}
	}
	return out, nil
}
