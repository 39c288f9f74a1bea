package workspace

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
)

// maxHops is how many links one resolution may pass, like the system's own limit.
const maxHops = 40

// linkInside reports whether a symlink at a path with that target stays within the top
// folder and out of .git, when the links of the tree on its way are followed as the system
// would follow them. What doesn't exist is taken as an ordinary folder. A link of the tree
// whose target isn't known leads out.
func linkInside(top *memtree.Dir, path, target string, targets map[wire.ID]string) bool {
	in, _ := rooted.SplitPath(path)
	todo, ok := linkParts(target)
	if !ok {
		return false
	}
	way := []*memtree.Dir{top} // the folder that was reached, and those above it
	enter := func(d *memtree.Dir) { way = append(way, d) }
	if in != "" {
		for part := range strings.SplitSeq(in, "/") {
			enter(way[len(way)-1].FindFolder(part))
		}
	}
	for hops := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(way) == 1 {
				return false
			}
			way = way[:len(way)-1]
			continue
		}
		if gitobj.CheckName(part) != nil {
			return false
		}
		e := way[len(way)-1].FindEntry(part)
		if e == nil || e.Mode != filemode.Symlink {
			enter(e.AsFolder())
			continue
		}
		if hops++; hops > maxHops {
			// The system refuses to follow it as well: it leads nowhere.
			return true
		}
		next, ok := linkParts(targets[e.ID])
		if !ok {
			return false
		}
		todo = append(next, todo...)
	}
	return true
}

// linksOut returns the paths of a tree's links that lead out, be it through another one, with
// their targets.
func linksOut(ctx context.Context, top *memtree.Dir, targets map[wire.ID]string) (map[string]string, error) {
	out := map[string]string{}
	for path, e := range top.FilesThat((*memtree.Entry).IsLink) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if target := targets[e.ID]; !linkInside(top, path, target, targets) {
			out[path] = target
		}
	}
	return out, nil
}

// refuseLinks refuses links that lead out, unless they are among old ones.
func refuseLinks(op, says string, out, old map[string]string) error {
	for _, path := range slices.Sorted(maps.Keys(out)) {
		if was, there := old[path]; !there || was != out[path] {
			return rooted.NewError(ErrLink, op, path, says, clipText(out[path]))
		}
	}
	return nil
}

// linkParts splits a target; it refuses those that are no relative paths on
// every system.
func linkParts(target string) ([]string, bool) {
	if target == "" || len(target) > maxTarget || strings.HasPrefix(target, "/") || strings.IndexByte(target, 0) >= 0 {
		return nil, false
	}
	return strings.Split(target, "/"), true
}
