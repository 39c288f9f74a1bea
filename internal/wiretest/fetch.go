package wiretest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// Fetch returns the wanted objects and what they need. Filters mean exactly
// what they mean to git: the depth of tree:<n> counts a commit's root tree as
// 0, and the entries of a wanted tree as 0 too; of wants that lie inside other
// wants only the objects themselves are certain to come.
func (m *Memory) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	if err := ctx.Err(); err != nil {
		return nil, m.failWith(opFetch, err)
	}
	if err := req.Check(); err != nil {
		return nil, m.failWith(opFetch, err)
	}
	f := parseFilter(req.Filter)
	if m.o.NoFilter {
		f = filter{depth: -1}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	objs, err := m.collectObjects(req, f)
	if err != nil {
		return nil, m.failWith(opFetch, err)
	}
	for len(req.Haves) == 0 {
		// What the filter left out because it lies inside another want is asked for alone.
		missing := slices.DeleteFunc(slices.Clone(req.Wants), func(id wire.ID) bool { _, came := objs[id]; return came })
		if len(missing) == 0 {
			break
		}
		req.Wants = missing
		more, err := m.collectObjects(req, f)
		if err != nil {
			return nil, m.failWith(opFetch, err)
		}
		maps.Copy(objs, more)
	}
	if req.MaxBytes > 0 && objs.Size() > req.MaxBytes {
		return nil, m.failWith(opFetch, fmt.Errorf("%w: more than %d bytes of objects", wire.ErrUnreadable, req.MaxBytes))
	}
	return objs, nil
}

// filter is a parsed object filter.
type filter struct {
	noBlobs bool
	depth   int // tree:<depth>; negative: any
}

// parseFilter reads a filter that was checked.
func parseFilter(s string) filter {
	f := filter{noBlobs: s == "blob:none", depth: -1}
	if depth, ok := strings.CutPrefix(s, "tree:"); ok {
		f.depth, _ = strconv.Atoi(depth)
	}
	return f
}

func (m *Memory) collectObjects(req wire.FetchRequest, f filter) (wire.Objects, error) {
	c := collector{m: m, f: f, out: make(wire.Objects), inside: make(map[wire.ID]bool), seen: make(map[wire.ID]bool), depth: make(map[wire.ID]int), alone: len(req.Wants) == 1}
	var err error
	if c.skip, err = m.reachableFrom(req.Haves); err != nil {
		return nil, err
	}
	if err := c.collectAll(req); err != nil {
		return nil, err
	}
	return c.out, nil
}

// collector gathers the objects of one fetch in the order in which git's
// list-objects.c does it, because with filters the order matters.
type collector struct {
	m    *Memory
	f    filter
	skip map[wire.ID]bool // what the caller has
	out  wire.Objects
	// inside marks what was found inside something else: the filter applies to
	// it. To a want that was not found so it doesn't.
	inside map[wire.ID]bool
	seen   map[wire.ID]bool
	// depth is the smallest depth at which a tree was met: met again further
	// up, more of its entries are within the filter.
	depth map[wire.ID]int
	// alone: there is one want, so nothing can lie inside another.
	alone bool
}

func (c *collector) collectAll(req wire.FetchRequest) error {
	var trees, level []wire.ID
	for _, id := range req.Wants {
		o, err := c.findWanted(id)
		if err != nil {
			return err
		}
		if o.Type == plumbing.CommitObject {
			level = append(level, o.ID)
		} else {
			trees = append(trees, o.ID)
		}
	}
	commits := map[wire.ID]bool{}
	for n := 0; len(level) > 0 && (req.Depth == 0 || n < req.Depth); n++ {
		next, roots, err := c.sendGeneration(level, commits)
		if err != nil {
			return err
		}
		level, trees = next, append(trees, roots...)
	}
	for _, id := range trees {
		if err := c.sendTree(id, 0); err != nil {
			return err
		}
	}
	return nil
}

// findWanted finds a wanted object; tags are sent and followed.
func (c *collector) findWanted(id wire.ID) (wire.Object, error) {
	for {
		o, ok := c.m.objects[id]
		if !ok {
			return wire.Object{}, fmt.Errorf("%w: %s", wire.ErrNotFound, id)
		}
		if o.Type != plumbing.TagObject {
			return o, nil
		}
		c.out.Add(o)
		ls, err := c.m.knownLinksOf(o)
		if err != nil {
			return wire.Object{}, err
		}
		id = ls[0].id
	}
}

// sendGeneration sends commits and returns their parents and their root trees.
func (c *collector) sendGeneration(level []wire.ID, done map[wire.ID]bool) (parents, roots []wire.ID, err error) {
	for _, id := range level {
		if done[id] || c.skip[id] {
			continue
		}
		done[id] = true
		o, ok := c.m.objects[id]
		if !ok {
			return nil, nil, fmt.Errorf("%w: %s", wire.ErrNotFound, id)
		}
		c.out.Add(o)
		ls, err := c.m.knownLinksOf(o)
		if err != nil {
			return nil, nil, err
		}
		for _, l := range ls {
			if l.parent {
				parents = append(parents, l.id)
				continue
			}
			c.inside[l.id] = true
			roots = append(roots, l.id)
		}
	}
	return parents, roots, nil
}

// sendTree sends a tree or blob met at that depth, and what is in it.
func (c *collector) sendTree(id wire.ID, depth int) error {
	if c.skip[id] || c.seen[id] {
		return nil
	}
	filtered := c.inside[id] && c.f.depth >= 0
	if filtered && depth >= c.f.depth {
		return nil
	}
	o, ok := c.m.objects[id]
	if !ok {
		return fmt.Errorf("%w: %s", wire.ErrNotFound, id)
	}
	if o.Type != plumbing.TreeObject {
		c.seen[id] = true
		if !c.inside[id] || !c.f.noBlobs {
			c.out.Add(o)
		}
		return nil
	}
	if filtered {
		if before, ok := c.depth[id]; ok && depth >= before {
			return nil
		}
		c.depth[id] = depth
		depth++
	} else {
		c.seen[id] = true
	}
	c.out.Add(o)
	if c.alone && c.f.depth >= 0 && depth >= c.f.depth {
		return nil // nothing in it passes, and nobody asks whether it was met
	}
	ls, err := c.m.knownLinksOf(o)
	if err != nil {
		return err
	}
	for _, l := range ls {
		c.inside[l.id] = true
		if l.typ == plumbing.BlobObject && c.f.noBlobs {
			c.seen[l.id] = true
			continue
		}
		if err := c.sendTree(l.id, depth); err != nil {
			return err
		}
	}
	return nil
}

// reachableFrom is everything that the given commits reach, as far as it is there.
func (m *Memory) reachableFrom(ids []wire.ID) (map[wire.ID]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	seen := map[wire.ID]bool{}
	todo := slices.Clone(ids)
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		o, ok := m.objects[id]
		if !ok || seen[id] {
			continue
		}
		seen[id] = true
		ls, err := m.knownLinksOf(o)
		if err != nil {
			return nil, err
		}
		for _, l := range ls {
			todo = append(todo, l.id)
		}
	}
	return seen, nil
}
