package artifact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
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

// claims are the refs for which the remote's new values count.
const claims = "refs/uwf/claims/"

const (
	opPush  = "push to the private copy"
	opFetch = "fetch from the private copy"
)

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
	for name, p := range m.refs {
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		switch {
		case strings.HasPrefix(name, claims) && l.Refs[name] != p.from:
			delete(m.refs, name)
		case p.id.IsZero():
			delete(l.Refs, name)
		default:
			l.Refs[name] = p.id
		}
	}
	return l, nil
}

// Push keeps objects and refs here, by the rules of a git server for expected values.
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
	refused := map[string]*wire.Error{}
	for _, u := range req.Updates {
		if now := m.valueOf(u.Name, remote); now != u.Old {
			refused[u.Name] = &wire.Error{Op: opPush, URL: m.URL(), Ref: u.Name, Kind: wire.ErrLostRace, Detail: fmt.Sprintf("expected %s, is %s", u.Old, now)}
		}
	}
	if len(refused) > 0 && (req.Atomic || len(refused) == len(req.Updates)) {
		return remote.Time, refused[names[slices.IndexFunc(names, func(n string) bool { return refused[n] != nil })]]
	}
	for _, o := range req.Objects {
		m.objects.Add(o.Object)
	}
	part := &wire.PartialError{URL: m.URL(), Refused: refused}
	for _, u := range req.Updates {
		if refused[u.Name] == nil {
			m.refs[u.Name] = private{id: u.New, from: remote.Refs[u.Name]}
			part.Applied = append(part.Applied, u.Name)
		}
	}
	if len(refused) > 0 {
		return remote.Time, part
	}
	return remote.Time, nil
}

// valueOf is what a ref holds here.
func (m *mirror) valueOf(name string, remote wire.Listing) wire.ID {
	p, ours := m.refs[name]
	if !ours || strings.HasPrefix(name, claims) && remote.Refs[name] != p.from {
		return remote.Refs[name]
	}
	return p.id
}

// Fetch takes what was pushed here from here, and the rest from the remote.
func (m *mirror) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	f := fetch{req: req, out: wire.Objects{}, depth: map[wire.ID]int{}, wants: map[string][]wire.ID{}}
	m.mu.Lock()
	f.known = make(wire.Objects, len(m.objects))
	for id, o := range m.objects {
		f.known[id] = o
	}
	m.mu.Unlock()
	if err := f.planObjects(); err != nil {
		return nil, &wire.Error{Op: opFetch, URL: m.URL(), Kind: wire.ErrUnreadable, Detail: err.Error()}
	}
	return f.out, f.fetchRest(ctx, m.from)
}

// fetch divides one request into what is known here and what is not.
type fetch struct {
	req   wire.FetchRequest
	known wire.Objects
	out   wire.Objects
	// levels is how many levels of a tree are wanted: that of the filter tree:<n>;
	// negative: all.
	levels int
	depth  map[wire.ID]int // the smallest depth at which a tree was met

	direct  []wire.ID            // wanted, and not here: asked for as the request says
	wants   map[string][]wire.ID // found inside of what is here, by the filter to ask with
	parents []wire.ID            // commits of the remote below those that are here
	left    int                  // how many generations of them; 0: all
}

func (f *fetch) planObjects() error {
	f.levels = -1
	if n, ok := strings.CutPrefix(f.req.Filter, "tree:"); ok {
		if _, err := fmt.Sscanf(n, "%d", &f.levels); err != nil {
			return fmt.Errorf("filter %q: %w", f.req.Filter, err)
		}
	}
	var commits []wire.ID
	for _, id := range f.req.Wants {
		o, here := f.known[id]
		switch {
		case !here:
			f.direct = append(f.direct, id)
		case o.Type == plumbing.CommitObject:
			commits = append(commits, id)
		default:
			f.out.Add(o)
			if err := f.walkTree(o, 0); err != nil {
				return err
			}
		}
	}
	return f.walkCommits(commits)
}

// walkCommits walks history generation by generation, as deep as is wanted.
func (f *fetch) walkCommits(level []wire.ID) error {
	for n := 0; len(level) > 0 && (f.req.Depth == 0 || n < f.req.Depth); n++ {
		var next []wire.ID
		for _, id := range level {
			o, here := f.known[id]
			if !here {
				f.parents = append(f.parents, id)
				f.left = max(f.left, f.req.Depth-n)
				continue
			}
			if _, done := f.out[id]; done {
				continue
			}
			f.out.Add(o)
			c, err := gitobj.DecodeCommit(o.Data)
			if err != nil {
				return fmt.Errorf("commit %s: %w", id, err)
			}
			if err := f.takeEntry(c.Tree, filemode.Dir, 0); err != nil {
				return err
			}
			next = append(next, c.Parents...)
		}
		level = next
	}
	return nil
}

// walkTree walks what a tree that is here holds; depth is that of its entries.
func (f *fetch) walkTree(o wire.Object, depth int) error {
	if o.Type != plumbing.TreeObject {
		return nil
	}
	if before, met := f.depth[o.ID]; met && before <= depth {
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
	if o, here := f.known[id]; here {
		f.out.Add(o)
		return f.walkTree(o, depth+1)
	}
	filter := f.req.Filter
	switch {
	case mode != filemode.Dir:
		filter = ""
	case f.levels >= 0:
		filter = fmt.Sprintf("tree:%d", f.levels-depth-1)
	}
	if id != wire.EmptyTree && !slices.Contains(f.wants[filter], id) {
		f.wants[filter] = append(f.wants[filter], id)
	}
	return nil
}

// fetchRest gets from the remote what is not here.
func (f *fetch) fetchRest(ctx context.Context, from wire.Remote) error {
	haves := f.listHaves()
	if len(f.direct) > 0 {
		req := f.req
		req.Wants, req.Haves = f.direct, haves
		if err := f.askRemote(ctx, from, req); err != nil {
			return err
		}
	}
	if len(f.parents) > 0 {
		if err := f.askRemote(ctx, from, wire.FetchRequest{Wants: f.parents, Depth: f.left, Filter: f.req.Filter, Haves: haves}); err != nil {
			return err
		}
	}
	for filter, ids := range f.wants {
		err := f.askRemote(ctx, from, wire.FetchRequest{Wants: ids, Filter: filter})
		if errors.Is(err, wire.ErrNotFound) {
			// An old server gives nothing by its id but what refs point to.
			err = f.fetchWhole(ctx, from, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listHaves are commits of the remote's whose history the caller has.
func (f *fetch) listHaves() []wire.ID {
	var out []wire.ID
	seen := map[wire.ID]bool{}
	for todo := slices.Clone(f.req.Haves); len(todo) > 0; {
		id := todo[0]
		todo = todo[1:]
		if seen[id] {
			continue
		}
		seen[id] = true
		o, here := f.known[id]
		if !here {
			out = append(out, id)
		} else if c, err := gitobj.DecodeCommit(o.Data); err == nil {
			todo = append(todo, c.Parents...)
		}
	}
	return out
}

// fetchWhole gets the commits of the remote's that those pushed here were made on, with
// everything in them: what a new tree takes over from an old one is there. Where there
// are none, missing is what is wrong.
func (f *fetch) fetchWhole(ctx context.Context, from wire.Remote, missing error) error {
	var ids []wire.ID
	for _, o := range f.known {
		if o.Type != plumbing.CommitObject {
			continue
		}
		c, err := gitobj.DecodeCommit(o.Data)
		if err != nil {
			return err
		}
		for _, p := range c.Parents {
			if _, here := f.known[p]; !here && !slices.Contains(ids, p) {
				ids = append(ids, p)
			}
		}
	}
	if len(ids) == 0 {
		return missing
	}
	return f.askRemote(ctx, from, wire.FetchRequest{Wants: ids, Depth: 1})
}

func (f *fetch) askRemote(ctx context.Context, from wire.Remote, req wire.FetchRequest) error {
	objs, err := from.Fetch(ctx, req)
	if err != nil {
		return err
	}
	for _, o := range objs {
		f.out.Add(o)
	}
	return nil
}
