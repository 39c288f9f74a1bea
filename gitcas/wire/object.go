package wire

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
)

// link is one object that another one needs.
type link struct {
	id     ID
	typ    plumbing.ObjectType // AnyObject when the referrer doesn't say
	parent bool                // a commit's parent, as opposed to its content
}

var errMalformed = errors.New("malformed object")

// linksOf lists the objects that o refers to. Submodule entries of a tree are
// left out: their commits live in another repository.
func linksOf(o Object) ([]link, error) {
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
		var id ID
		if id, rest, err = headerID(rest, "parent "); err != nil {
			return nil, err
		}
		out = append(out, link{id: id, typ: plumbing.CommitObject, parent: true})
	}
	return out, nil
}

// headerID reads one header line of the form "<key><40 hex digits>\n".
func headerID(b []byte, key string) (ID, []byte, error) {
	line, rest, ok := bytes.Cut(b, []byte("\n"))
	if !ok || !bytes.HasPrefix(line, []byte(key)) {
		return ZeroID, nil, fmt.Errorf("%w: no %q line", errMalformed, key)
	}
	id, ok := parseID(string(line[len(key):]))
	if !ok {
		return ZeroID, nil, fmt.Errorf("%w: bad id in its %q line", errMalformed, key)
	}
	return id, rest, nil
}

func treeLinks(b []byte) ([]link, error) {
	out := make([]link, 0, len(b)/40)
	for len(b) > 0 {
		nul := bytes.IndexByte(b, 0)
		sp := bytes.IndexByte(b, ' ')
		if sp < 1 || nul < sp+2 || len(b) < nul+1+len(ZeroID) {
			return nil, fmt.Errorf("%w: broken tree entry", errMalformed)
		}
		var id ID
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
		b = b[nul+1+len(ZeroID):]
	}
	return out, nil
}

// parseID reads an object id in its only valid form: 40 lower-case hex digits.
func parseID(s string) (ID, bool) {
	var id ID
	if len(s) != 2*len(id) {
		return id, false
	}
	for i := range s {
		var v byte
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			v = c - '0'
		case c >= 'a' && c <= 'f':
			v = c - 'a' + 10
		default:
			return ZeroID, false
		}
		id[i/2] = id[i/2]<<4 | v
	}
	return id, true
}
