package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/commitmsg"
)

// LogEntry is one state commit that changed a thread. Subject, Body and Trailers
// are what its message says: for showing, never facts.
type LogEntry struct {
	Commit   wire.ID
	Parents  []wire.ID
	When     time.Time
	Author   gitobj.Author
	Subject  string
	Body     string
	Trailers []commitmsg.Trailer
}

// commitsAtOnce is how much history is fetched in one request.
const commitsAtOnce = 64

// rootFilter sends commits with their root folders alone.
const rootFilter = "tree:1"

// Log gives the commits that changed threads/<id> to fn, the newest first, as
// `git log <branch> -- threads/<id>` does, but for those that took the folder off
// the tip. An ended thread's log begins at the last commit that still had its folder;
// that of one which was resumed after its end goes on with what was before.
// ErrStop from fn ends it early.
func (v *View) Log(ctx context.Context, id layout.ThreadID, fn func(LogEntry) error) error {
	lives, err := historyReader{v}.threadLives(ctx, id)
	if err != nil {
		return err
	}
	for _, from := range lives {
		err := historyReader{v}.walkHistory(ctx, from, func(h *historyCommit) error { return h.visitIfOfThread(id, fn) })
		switch {
		case errors.Is(err, errBegins):
		case errors.Is(err, ErrStop):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// errBegins says that a walk has come to the commit that a folder began with.
var errBegins = errors.New("the folder begins here")

// historyReader reads the commits of a branch.
type historyReader struct{ *View }

// threadLives are the last commits that hold a thread's folder, of each of its lives, the
// newest first.
func (v historyReader) threadLives(ctx context.Context, id layout.ThreadID) ([]wire.ID, error) {
	var out []wire.ID
	if !v.ThreadsDir.IDOf(string(id)).IsZero() {
		out = append(out, v.Commit)
	}
	err := historyFiles(v).visitLines(ctx, id.Time().Add(-clockGrace), func(e statefile.Ended) error {
		if last := plumbing.NewHash(e.Commit); e.Thread == id && !slices.Contains(out, last) {
			out = append(out, last)
		}
		return nil
	})
	if err != nil || len(out) > 0 {
		return out, err
	}
	e, ok, err := v.FindEnded(ctx, id) // its id may be older than the thread
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("%w: %s", ErrUnknownThread, id)
	}
	return []wire.ID{plumbing.NewHash(e.Commit)}, nil
}

// visitIfOfThread gives a commit to fn if it changed the thread's folder.
func (h *historyCommit) visitIfOfThread(id layout.ThreadID, fn func(LogEntry) error) error {
	folder, before := h.threadDirs.IDOf(string(id)), wire.ZeroID
	if h.parent != nil {
		before = h.parent.threadDirs.IDOf(string(id))
	}
	if folder != before {
		if err := fn(h.logEntry()); err != nil {
			return err
		}
	}
	if before.IsZero() {
		return errBegins
	}
	return nil
}

// historyCommit is a state commit as a walk through the history sees it.
type historyCommit struct {
	id         wire.ID
	commit     gitobj.Commit
	root       *tree.Dir
	threadDirs *tree.Dir
	parent     *historyCommit // nil for the first one
}

func (h *historyCommit) logEntry() LogEntry {
	m := commitmsg.Parse(h.commit.Message)
	return LogEntry{
		Commit: h.id, Parents: h.commit.Parents, When: h.commit.Committer.When,
		Author:  gitobj.Author{Name: h.commit.Author.Name, Email: h.commit.Author.Email},
		Subject: m.Subject, Body: m.Body, Trailers: m.Trailers,
	}
}

// walkHistory visits the commits from one on, newest first, along first parents. It
// holds a bounded part of the history at a time.
func (v historyReader) walkHistory(ctx context.Context, from wire.ID, visit func(*historyCommit) error) error {
	var last *historyCommit // visited only when its parent is known
	for at := from; !at.IsZero(); {
		chunk, err := v.readHistory(ctx, at)
		if err != nil {
			return err
		}
		for _, h := range chunk {
			if last != nil {
				last.parent = h
				if err := visit(last); err != nil {
					return err
				}
			}
			last = h
		}
		at = wire.ZeroID
		if len(last.commit.Parents) > 0 {
			at = last.commit.Parents[0]
		}
	}
	if last == nil {
		return nil
	}
	return visit(last)
}

// readHistory reads a commit and some of its ancestors, with their root folders
// and the listings of threads/.
func (v historyReader) readHistory(ctx context.Context, at wire.ID) ([]*historyCommit, error) {
	objs, err := v.Source.Remote.Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{at}, Depth: commitsAtOnce, Filter: rootFilter})
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", v.Source.shortBranch(), err)
	}
	var out []*historyCommit
	var wants []wire.ID
	for len(out) < commitsAtOnce {
		o, ok := objs[at]
		if !ok {
			break
		}
		h, err := readCommit(at, o, objs)
		if err != nil {
			return nil, err
		}
		out = append(out, h)
		if id := h.root.IDOf(layout.ThreadsDir); !id.IsZero() && !slices.Contains(wants, id) {
			wants = append(wants, id)
		}
		if len(h.commit.Parents) == 0 {
			break
		}
		at = h.commit.Parents[0]
	}
	if len(out) == 0 {
		return nil, tree.Damaged("commit "+at.String(), "the remote doesn't send it")
	}
	trees, err := v.fetchTrees(ctx, wants)
	if err != nil {
		return nil, err
	}
	for _, h := range out {
		id := h.root.IDOf(layout.ThreadsDir)
		if id.IsZero() {
			continue
		}
		if h.threadDirs, err = tree.Parse(layout.ThreadsDir, layout.ThreadsFolder, trees[id]); err != nil {
			return nil, fmt.Errorf("commit %s: %w", h.id, err)
		}
	}
	return out, nil
}

func readCommit(id wire.ID, o wire.Object, objs wire.Objects) (*historyCommit, error) {
	where := "commit " + id.String()
	if o.Type != plumbing.CommitObject {
		return nil, tree.Damaged(where, "it is no commit")
	}
	c, err := gitobj.DecodeCommit(o.Data)
	if err != nil {
		return nil, tree.DamagedBy(where, err)
	}
	top, ok := objs[c.Tree]
	if !ok {
		return nil, tree.Damaged(where, "the remote doesn't send its folder")
	}
	root, err := tree.Parse("", layout.RootFolder, top)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return &historyCommit{id: id, commit: c, root: root}, nil
}

// fetchTrees fetches trees by id; each one asked for is there.
func (v historyReader) fetchTrees(ctx context.Context, ids []wire.ID) (wire.Objects, error) {
	if len(ids) == 0 {
		return wire.Objects{}, nil
	}
	objs, err := v.Source.Remote.Fetch(ctx, wire.FetchRequest{Wants: ids, Depth: 1, Filter: tree.OnlyWanted})
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", v.Source.shortBranch(), err)
	}
	for _, id := range ids {
		if _, ok := objs[id]; !ok {
			return nil, tree.Damaged(id.String(), "the remote doesn't send this folder")
		}
	}
	return objs, nil
}
