package wiretest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// link is one object that another one needs.
type link struct {
	id     wire.ID
	typ    plumbing.ObjectType // AnyObject when the referrer doesn't say
	parent bool                // a commit's parent, as opposed to its content
}

var errMalformed = errors.New("malformed object")

// linksOf lists the objects that o refers to. Submodule entries of a tree are
// left out: their commits live in another repository.
func linksOf(o wire.Object) ([]link, error) {
	switch o.Type {
	case plumbing.CommitObject:
		return commitLinks(o.Data)
	case plumbing.TreeObject:
		return treeLinks(o.Data)
	case plumbing.TagObject:
		id, _, err := headerID(o.Data, "object ")
		if err != nil {
			return nil, fmt.Errorf("tag %s: %w", o.ID, err)
		}
		return []link{{id: id, typ: plumbing.AnyObject}}, nil
	}
	return nil, nil
}

// commitLinks returns the tree first, then the parents.
func commitLinks(b []byte) ([]link, error) {
	tree, rest, err := headerID(b, "tree ")
	if err != nil {
		return nil, err
	}
	out := []link{{id: tree, typ: plumbing.TreeObject}}
	for bytes.HasPrefix(rest, []byte("parent ")) {
		var id wire.ID
		if id, rest, err = headerID(rest, "parent "); err != nil {
			return nil, err
		}
		out = append(out, link{id: id, typ: plumbing.CommitObject, parent: true})
	}
	return out, nil
}

// headerID reads one header line of the form "<key><40 hex digits>\n".
func headerID(b []byte, key string) (wire.ID, []byte, error) {
	line, rest, ok := bytes.Cut(b, []byte("\n"))
	if !ok || !bytes.HasPrefix(line, []byte(key)) {
		return wire.ZeroID, nil, fmt.Errorf("%w: no %q line", errMalformed, key)
	}
	id := plumbing.NewHash(string(line[len(key):]))
	if id.String() != string(line[len(key):]) {
		return wire.ZeroID, nil, fmt.Errorf("%w: bad id in its %q line", errMalformed, key)
	}
	return id, rest, nil
}

func treeLinks(b []byte) ([]link, error) {
	out := make([]link, 0, len(b)/40)
	for len(b) > 0 {
		nul := bytes.IndexByte(b, 0)
		sp := bytes.IndexByte(b, ' ')
		if sp < 1 || nul < sp+2 || len(b) < nul+1+len(wire.ZeroID) {
			return nil, fmt.Errorf("%w: broken tree entry", errMalformed)
		}
		var id wire.ID
		copy(id[:], b[nul+1:])
		switch mode := string(b[:sp]); mode {
		case "40000":
			out = append(out, link{id: id, typ: plumbing.TreeObject})
		case "160000":
		case "100644", "100755", "120000", "100664":
			out = append(out, link{id: id, typ: plumbing.BlobObject})
		default:
			return nil, fmt.Errorf("%w: mode %q in a tree entry", errMalformed, mode)
		}
		b = b[nul+1+len(wire.ZeroID):]
	}
	return out, nil
}
