package workspace

import (
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
)

// maxHops is how many links one resolution may pass, like the system's own limit.
const maxHops = 40

// linkInside reports whether a symlink in the folder at (path parts) with that
// target stays within the top folder and out of .git, when the links of the tree
// on its way are followed as the system would follow them. What doesn't exist is
// taken as an ordinary folder. read returns the target of a link of the tree.
func linkInside(top *dir, at []string, target string, read func(e *entry) (string, bool)) bool {
	todo, ok := linkParts(target)
	if !ok {
		return false
	}
	pos := append([]string(nil), at...)
	for hops := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(pos) == 0 {
				return false
			}
			pos = pos[:len(pos)-1]
			continue
		}
		if gitobj.CheckName(part) != nil {
			return false
		}
		e := lookUp(top, append(pos, part))
		if e == nil || e.mode != filemode.Symlink {
			pos = append(pos, part)
			continue
		}
		if hops++; hops > maxHops {
			// The system refuses to follow it as well: it leads nowhere.
			return true
		}
		next, ok := read(e)
		if !ok {
			return false
		}
		parts, ok := linkParts(next)
		if !ok {
			return false
		}
		todo = append(parts, todo...)
	}
	return true
}

// linkParts splits a target; it refuses those that are no relative paths on
// every system.
func linkParts(target string) ([]string, bool) {
	if target == "" || len(target) > maxTarget || strings.HasPrefix(target, "/") || strings.IndexByte(target, 0) >= 0 {
		return nil, false
	}
	return strings.Split(target, "/"), true
}

func lookUp(d *dir, path []string) *entry {
	var e *entry
	for _, part := range path {
		if e = d.findEntry(part); e == nil {
			return nil
		}
		d = e.dir
	}
	return e
}
