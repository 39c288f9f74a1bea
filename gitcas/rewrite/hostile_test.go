package rewrite_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/rewrite"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/testmode"
)

// TestHostile rewrites branches on which somebody put anything: files that are not
// what their names say, broken lists, odd modes. It either says that it can't, or
// the text is gone.
func TestHostile(t *testing.T) {
	tried, refused := 0, 0
	for seed := range testmode.Seeds(t, 30, 150) {
		tried++
		f := memory(t)
		f.start(id(1), "p")
		f.step(id(1), note("n"), "b", "d")
		f.start(id(2), "q")
		f.end(id(2), "cancelled", "note")
		o := f.options(finder(t, secret))
		rnd := rand.New(rand.NewPCG(seed, 7))
		for range 3 {
			f.vandalise(rnd)
		}
		r := rewrite.New(f.remote, o)
		_, err := r.MakePlan(t.Context())
		if err == nil {
			_, err = r.Execute(t.Context())
		}
		var fixed *rewrite.FixedError
		switch {
		case errors.As(err, &fixed), errors.Is(err, rewrite.ErrUnreadable):
			refused++
		case err != nil:
			t.Errorf("seed %d: %v", seed, err)
		default:
			f.nowhere(secret)
		}
	}
	if tried > 1 && refused > tried/2 {
		t.Errorf("%d of %d are refused", refused, tried)
	}
}

// vandalise commits the tip's files with one of them changed.
func (f *fixture) vandalise(rnd *rand.Rand) {
	f.Helper()
	l, err := f.remote.List(f.Context(), f.store.Branch())
	f.ok(err)
	tip := l.Refs[f.store.Branch()]
	objs, err := f.remote.Fetch(f.Context(), wire.FetchRequest{Wants: []wire.ID{tip}, Depth: 1})
	f.ok(err)
	c, err := gitobj.DecodeCommit(objs[tip].Data)
	f.ok(err)
	var made []wire.PackObject
	put := func(t plumbing.ObjectType, data []byte) wire.ID {
		o := wire.NewObject(t, data)
		made = append(made, wire.PackObject{Object: o})
		return o.ID
	}
	var tree func(id wire.ID) wire.ID
	tree = func(id wire.ID) wire.ID {
		entries, err := gitobj.DecodeTree(objs[id].Data)
		f.ok(err)
		e := &entries[rnd.IntN(len(entries))]
		switch {
		case e.IsDir() && rnd.IntN(8) > 0:
			e.ID = tree(e.ID)
		case e.IsDir():
			*e = gitobj.Entry{Name: e.Name, Mode: filemode.Regular, ID: put(plumbing.BlobObject, []byte("no folder "+secret))}
		default:
			e.ID = put(plumbing.BlobObject, vandal(rnd, objs[e.ID].Data))
			e.Mode = []filemode.FileMode{filemode.Regular, filemode.Regular, filemode.Executable, filemode.Symlink}[rnd.IntN(4)]
			if rnd.IntN(6) == 0 {
				e.Name = "0-" + e.Name
			}
		}
		data, err := gitobj.EncodeTree(entries)
		f.ok(err)
		return put(plumbing.TreeObject, data)
	}
	c.Tree, c.Parents = tree(c.Tree), []wire.ID{tip}
	c.Message = string(vandal(rnd, []byte(c.Message)))
	data, err := gitobj.EncodeCommit(c)
	f.ok(err)
	to := put(plumbing.CommitObject, data)
	_, err = f.remote.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: f.store.Branch(), Old: tip, New: to}}, Objects: made})
	f.ok(err)
}

// vandal changes a file in one of many ways, mostly so that it holds the secret.
func vandal(rnd *rand.Rand, data []byte) []byte {
	text := string(data)
	at := rnd.IntN(len(text) + 1)
	switch rnd.IntN(6) {
	case 0:
		return []byte(secret)
	case 1:
		return []byte(text[:at] + secret + text[at:])
	case 2:
		return []byte(strings.ReplaceAll(text, "p", secret))
	case 3:
		return []byte(text[:at])
	case 4:
		return []byte(text + text + secret)
	}
	return []byte(strings.ReplaceAll(strings.ReplaceAll(text, "\"", secret), "\x00", ""))
}
