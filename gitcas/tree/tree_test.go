package tree

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// shelf is a remote that has some objects, and counts the requests for them.
type shelf struct {
	wire.Remote
	objs  wire.Objects
	asked int
}

func (s *shelf) Fetch(_ context.Context, req wire.FetchRequest) (wire.Objects, error) {
	s.asked++
	out := wire.Objects{}
	for _, id := range req.Wants {
		if o, ok := s.objs[id]; ok {
			out[id] = o
		}
	}
	return out, nil
}

func (s *shelf) put(t *testing.T, typ plumbing.ObjectType, data []byte) wire.ID {
	t.Helper()
	o := wire.NewObject(typ, data)
	s.objs[o.ID] = o
	return o.ID
}

// TestReader: what was read is not asked for again, and who begins apart has the nodes alone.
func TestReader(t *testing.T) {
	s := &shelf{objs: wire.Objects{}}
	n, h, err := node.New(node.String, "hello", time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	data, err := node.EncodeFile(n)
	if err != nil {
		t.Fatal(err)
	}
	blob := s.put(t, plumbing.BlobObject, data)
	edit := Edit{}
	edit.SetFile(layout.FileOf(h), blob)
	cas, err := (*Dir)(nil).After("cas", layout.CasFolder, edit)
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, plumbing.TreeObject, cas.Object.Data)
	r := NewReader(s)
	for range 2 {
		d, err := r.Dir(t.Context(), "cas", layout.CasFolder, cas.Object.ID)
		if err != nil {
			t.Fatal(err)
		}
		e, _ := d.Find(layout.FileOf(h))
		if got, err := r.Node(t.Context(), d.PathOf(e.Name), e.ID, h); err != nil || got.Hash != h {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if _, raw := r.Object(blob); s.asked != 2 || raw || !r.Has(blob) || len(r.Missing([]wire.ID{blob, cas.Object.ID, wire.ZeroID})) != 0 {
		t.Errorf("%d requests; the blob of a decoded node is kept: %t", s.asked, raw)
	}
	if a := r.Apart(); a.Has(cas.Object.ID) || !a.Has(blob) {
		t.Error("apart it has the folder, or lacks the node")
	}
	if c := r.Copy(cas.Object.ID); c.Has(cas.Object.ID) || !c.Has(blob) || !r.Has(cas.Object.ID) {
		t.Error("a copy without the folder")
	}
	if _, err := r.Node(t.Context(), "x", blob, "0000000000000"); !errors.Is(err, ErrContent) {
		t.Errorf("a node under another name: %v", err)
	}
}

// TestReadHostile: what the remote sends is named where it is not what it has to be.
func TestReadHostile(t *testing.T) {
	s := &shelf{objs: wire.Objects{}}
	blob := s.put(t, plumbing.BlobObject, []byte("x"))
	folder := func(name string, mode filemode.FileMode) wire.ID {
		data, err := gitobj.EncodeTree([]gitobj.Entry{{Name: name, Mode: mode, ID: blob}})
		if err != nil {
			t.Fatal(err)
		}
		return s.put(t, plumbing.TreeObject, data)
	}
	for name, tc := range map[string]struct {
		id   wire.ID
		want string
	}{
		"a file":        {blob, "the root of the state branch: unexpected content on the state branch: object "},
		"nothing":       {wire.EmptyTree, "the remote doesn't send this object"},
		"garbage":       {s.put(t, plumbing.TreeObject, []byte("x")), "malformed git object"},
		"foreign":       {folder("x", filemode.Regular), "x: unexpected content on the state branch: a foreign file"},
		"an executable": {folder("VERSION", filemode.Executable), "not that of a plain file"},
		"a symlink":     {folder("README.md", filemode.Symlink), "not that of a plain file"},
		"a submodule":   {folder("cas", filemode.Submodule), "not that of a folder"},
		"a plain file":  {folder("threads", filemode.Regular), "not that of a folder"},
		"a large one":   {s.put(t, plumbing.TreeObject, make([]byte, MaxTree+1)), "bytes, more than"},
	} {
		_, err := NewReader(s).Dir(t.Context(), "", layout.RootFolder, tc.id)
		if !errors.Is(err, ErrDamaged) || !errors.Is(err, ErrContent) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// FuzzTree: a root folder of any bytes is read or refused.
func FuzzTree(f *testing.F) {
	id := plumbing.NewHash("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
	some, err := gitobj.EncodeTree([]gitobj.Entry{{Name: "README.md", Mode: 0o100644, ID: id}, {Name: "cas", Mode: 0o40000, ID: id}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(some)
	f.Add([]byte("100644 VERSION\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for kind := layout.RootFolder; kind <= layout.WorkFolder; kind++ {
			d, err := Parse("x", kind, wire.NewObject(plumbing.TreeObject, data))
			if err != nil {
				if !errors.Is(err, ErrContent) {
					t.Fatal(err)
				}
				continue
			}
			again, err := (*Dir)(nil).After("x", kind, func() Edit {
				e := Edit{}
				for _, x := range d.Entries() {
					e[x.Name] = x
				}
				return e
			}())
			if err != nil || again != nil && !bytes.Equal(again.Object.Data, bytes.ReplaceAll(data, []byte("040000"), []byte("40000"))) && !bytes.Contains(data, []byte("040000 ")) {
				t.Fatalf("%v: %q", err, data)
			}
		}
	})
}
