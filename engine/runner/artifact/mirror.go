package artifact

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Mirror is a private copy of a remote: it reads through to the remote, and keeps
// what is pushed to itself. An engine steps it as it does the remote, with a token
// that can only read, and costs no more than on the remote: nothing is copied in
// advance.
//
// Refs that were not pushed to are always the remote's present ones. So a thread
// that is stepped, suspended or cancelled there meanwhile is noticed, and its agent
// stopped, as in any other job. A claim that another job pushed to the remote counts
// more than one that was only pushed here.
func Mirror(from wire.Remote) wire.Remote {
	return &mirror{from: from, refs: map[string]private{}, objects: wire.Objects{}}
}

// private is a ref that was pushed to the mirror; a zero id means deleted.
type private struct {
	id   wire.ID
	from wire.ID // what the remote had then
}

type mirror struct {
	from wire.Remote

	mu      sync.Mutex
	refs    map[string]private
	objects wire.Objects // what was pushed; the rest is on the remote
}

func (m *mirror) URL() string { return m.from.URL() }

// Atomic is true: pushes never leave the process.
func (m *mirror) Atomic(context.Context) (bool, error) { return true, nil }

// List is the remote's listing, with what was pushed here over it.
func (m *mirror) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	l, err := m.from.List(ctx, prefixes...)
	if err != nil {
		return l, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l.Refs = m.coverRefs(l.Refs, prefixes)
	return l, nil
}

// coverRefs is what the remote lists, with what was pushed here over it.
func (m *mirror) coverRefs(remote map[string]wire.ID, prefixes []string) map[string]wire.ID {
	out := maps.Clone(remote)
	for name, p := range m.refs {
		switch {
		case !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }):
		case strings.HasPrefix(name, layout.Claims) && remote[name] != p.from: // the remote's new value counts
			delete(m.refs, name)
		case p.id.IsZero():
			delete(out, name)
		default:
			out[name] = p.id
		}
	}
	return out
}

// Push keeps objects and refs here, all of them or none.
func (m *mirror) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	names := make([]string, len(req.Updates))
	for i, u := range req.Updates {
		names[i] = u.Name
	}
	remote, err := m.from.List(ctx, names...)
	if err != nil {
		return time.Time{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	refs := m.coverRefs(remote.Refs, names)
	for _, u := range req.Updates {
		if now := refs[u.Name]; now != u.Old {
			return remote.Time, &wire.Error{Op: "push to the private copy", URL: m.URL(), Ref: u.Name, Kind: wire.ErrLostRace, Detail: fmt.Sprintf("expected %s, is %s", u.Old, now)}
		}
	}
	for _, o := range req.Objects {
		m.objects.Add(o.Object)
	}
	for _, u := range req.Updates {
		m.refs[u.Name] = private{id: u.New, from: remote.Refs[u.Name]}
	}
	return remote.Time, nil
}

// Fetch takes what was pushed here from here, and the rest from the remote.
func (m *mirror) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	m.mu.Lock()
	f := fetch{req: req, ours: maps.Clone(m.objects), out: wire.Objects{}, depth: map[wire.ID]int{}}
	m.mu.Unlock()
	if err := f.takeOurs(); err != nil {
		return nil, &wire.Error{Op: "fetch from the private copy", URL: m.URL(), Kind: wire.ErrUnreadable, Detail: err.Error()}
	}
	haves := slices.DeleteFunc(slices.Clone(req.Haves), f.isOurs)
	err := f.askRemote(ctx, m.from, wire.FetchRequest{Wants: f.direct, Depth: req.Depth, Filter: req.Filter, Haves: haves})
	if err == nil {
		if err = f.askRemote(ctx, m.from, wire.FetchRequest{Wants: f.entries, Filter: req.Filter}); errors.Is(err, wire.ErrNotFound) && len(f.bases) > 0 {
			// An old server gives nothing by its id but what refs point to.
			err = f.askRemote(ctx, m.from, wire.FetchRequest{Wants: f.bases, Depth: 1})
		}
	}
	return f.out, err
}

// fetch divides one request into what is here and what is not. It may give more than was
// asked for.
type fetch struct {
	req  wire.FetchRequest
	ours wire.Objects
	out  wire.Objects
	// levels is how many levels of a tree are wanted: that of the filter tree:<n>;
	// negative: all.
	levels int
	depth  map[wire.ID]int // the smallest depth at which a tree was met

	direct  []wire.ID // commits, and what else was asked for by its id, that are not here
	entries []wire.ID // the same, found in trees that are here
	bases   []wire.ID // the remote's commits that those here were made on
}

func (f *fetch) isOurs(id wire.ID) bool { _, here := f.ours[id]; return here }

func (f *fetch) askRemote(ctx context.Context, from wire.Remote, req wire.FetchRequest) error {
	if len(req.Wants) == 0 {
		return nil
	}
	objs, err := from.Fetch(ctx, req)
	maps.Copy(f.out, objs)
	return err
}

func (f *fetch) takeOurs() (err error) {
	f.levels = -1
	if n, ok := strings.CutPrefix(f.req.Filter, "tree:"); ok {
		if f.levels, err = strconv.Atoi(n); err != nil {
			return fmt.Errorf("filter %q: %w", f.req.Filter, err)
		}
	}
	var commits []wire.ID
	for _, id := range f.req.Wants {
		o := f.ours[id]
		if !f.isOurs(id) || o.Type == plumbing.CommitObject {
			commits = append(commits, id)
			continue
		}
		f.out.Add(o)
		if err := f.walkTree(o, 0); err != nil {
			return err
		}
	}
	return f.walkCommits(commits)
}

// walkCommits walks history generation by generation, as deep as is wanted.
func (f *fetch) walkCommits(level []wire.ID) error {
	for n := 0; len(level) > 0; n++ {
		var next []wire.ID
		for _, id := range level {
			deep := f.req.Depth > 0 && n >= f.req.Depth
			switch _, done := f.out[id]; {
			case done:
				continue
			case !f.isOurs(id):
				if n > 0 {
					f.bases = append(f.bases, id)
				}
				if !deep {
					f.direct = append(f.direct, id)
				}
				continue
			}
			c, err := gitobj.DecodeCommit(f.ours[id].Data)
			if err == nil && !deep {
				f.out.Add(f.ours[id])
				err = f.takeEntry(c.Tree, filemode.Dir, 0)
			}
			if err != nil {
				return fmt.Errorf("commit %s: %w", id, err)
			}
			next = append(next, c.Parents...)
		}
		level = next
	}
	return nil
}

// walkTree walks what a tree that is here holds; depth is that of its entries.
func (f *fetch) walkTree(o wire.Object, depth int) error {
	if before, met := f.depth[o.ID]; o.Type != plumbing.TreeObject || met && before <= depth {
		return nil
	}
	f.depth[o.ID] = depth
	entries, err := gitobj.DecodeTree(o.Data)
	if err != nil {
		return fmt.Errorf("tree %s: %w", o.ID, err)
	}
	for _, e := range entries {
		if e.Mode == filemode.Submodule {
			continue
		}
		if err := f.takeEntry(e.ID, e.Mode, depth); err != nil {
			return err
		}
	}
	return nil
}

// takeEntry takes a tree or blob that was met at that depth, if the filter lets it.
func (f *fetch) takeEntry(id wire.ID, mode filemode.FileMode, depth int) error {
	if f.levels >= 0 && depth >= f.levels || mode != filemode.Dir && f.req.Filter == "blob:none" {
		return nil
	}
	if o, here := f.ours[id]; here {
		f.out.Add(o)
		return f.walkTree(o, depth+1)
	}
	if id != wire.EmptyTree && !slices.Contains(f.entries, id) {
		f.entries = append(f.entries, id)
	}
	return nil
}
