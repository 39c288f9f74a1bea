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

func (s *shelf) putObject(t *testing.T, typ plumbing.ObjectType, data []byte) wire.ID {
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
	blob := s.putObject(t, plumbing.BlobObject, data)
	edit := &Edit{}
	edit.SetFile(layout.FileOf(h), blob)
	cas, err := edit.Write(t.Context(), nil, "cas", layout.CasFolder, nil, nil, func(d, _, _ *Dir) { s.objs.Add(d.Object) })
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(s)
	for range 2 {
		d, err := r.ReadDir(t.Context(), "cas", layout.CasFolder, cas.Object.ID)
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
	blob := s.putObject(t, plumbing.BlobObject, []byte("x"))
	folder := func(name string, mode filemode.FileMode) wire.ID {
		data, err := gitobj.EncodeTree([]gitobj.Entry{{Name: name, Mode: mode, ID: blob}})
		if err != nil {
			t.Fatal(err)
		}
		return s.putObject(t, plumbing.TreeObject, data)
	}
	for name, tc := range map[string]struct {
		id   wire.ID
		want string
	}{
		"a file":        {blob, "the root of the state branch: unexpected content on the state branch: object "},
		"nothing":       {wire.EmptyTree, "the remote doesn't send this object"},
		"garbage":       {s.putObject(t, plumbing.TreeObject, []byte("x")), "malformed git object"},
		"foreign":       {folder("x", filemode.Regular), "x: unexpected content on the state branch: a foreign file"},
		"an executable": {folder("VERSION", filemode.Executable), "not that of a plain file"},
		"a symlink":     {folder("README.md", filemode.Symlink), "not that of a plain file"},
		"a submodule":   {folder("cas", filemode.Submodule), "not that of a folder"},
		"a plain file":  {folder("threads", filemode.Regular), "not that of a folder"},
		"a large one":   {s.putObject(t, plumbing.TreeObject, make([]byte, MaxTree+1)), "bytes, more than"},
	} {
		_, err := NewReader(s).ReadDir(t.Context(), "", layout.RootFolder, tc.id)
		if !errors.Is(err, ErrDamaged) || !errors.Is(err, ErrContent) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// TestEdit: folders are made from below, each like the one that was there.
func TestEdit(t *testing.T) {
	s := &shelf{objs: wire.Objects{}}
	r := NewReader(s)
	var made []string
	put := func(d, from, known *Dir) {
		made = append(made, d.Path)
		if (from == nil) != (known == nil) {
			t.Errorf("%s is like %v, and was %v", d.Path, known, from)
		}
		r.Keep(d.Object)
	}
	blob := s.putObject(t, plumbing.BlobObject, []byte("x"))
	write := func(from *Dir, edit *Edit, want string) *Dir {
		t.Helper()
		made = nil
		d, err := edit.Write(t.Context(), r, "", layout.RootFolder, from, from, put)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(made, " "); got != want {
			t.Errorf("made were %q, want %q", got, want)
		}
		return d
	}
	page := layout.IndexPath("01KN0000000000000000000001")
	first := &Edit{}
	first.SetFile(layout.ReadmeName, blob)
	first.SetFile(page, blob)
	const thread = "threads/01KN0000000000000000000001"
	all := thread + "/pages " + thread + " threads "
	one := write(nil, first, all)
	second := &Edit{}
	second.Remove(page)
	two := write(one, second, "") // nothing is left but the root
	if d, err := r.Below(t.Context(), two, layout.ThreadsDir); d != nil || err != nil || !two.IDOf(layout.ThreadsDir).IsZero() || two.IDOf(layout.ReadmeName) != blob {
		t.Errorf("%v, %v", d, err)
	}
	third := &Edit{}
	threads, err := r.Below(t.Context(), one, layout.ThreadsDir)
	if err != nil {
		t.Fatal(err)
	}
	third.At(layout.ThreadsDir).Replace(threads, threads)
	if three := write(two, third, "threads "); three.Object.ID != one.Object.ID {
		t.Error("the folder did not come back")
	}
	slash := &Edit{}
	slash.Set(gitobj.Entry{Name: "a/b", Mode: filemode.Regular, ID: blob})
	if _, err := slash.Write(t.Context(), nil, "x", layout.CasFolder, nil, nil, put); !errors.Is(err, ErrInvalid) {
		t.Errorf("a file with a slash in its name: %v", err)
	}
	ignore := func(_, _, _ *Dir) {}
	for name, from := range map[string][2]*Dir{"a folder that is not there": {one, nil}, "the like of a folder that is not there": {nil, one}} {
		if _, err := second.Write(t.Context(), NewReader(s), "", layout.RootFolder, from[0], from[1], ignore); !errors.Is(err, ErrContent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	below := &Edit{}
	below.At(layout.CasDir).Set(gitobj.Entry{Name: "a/b", Mode: filemode.Regular, ID: blob})
	if _, err := below.Write(t.Context(), r, "", layout.RootFolder, nil, nil, ignore); !errors.Is(err, ErrInvalid) {
		t.Errorf("a file with a slash in its name, in a folder: %v", err)
	}
	if _, err := Parse("cas", layout.CasFolder, wire.NewObject(plumbing.BlobObject, nil)); !errors.Is(err, ErrContent) {
		t.Errorf("a file in the place of a folder: %v", err)
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
			edit := &Edit{}
			for _, e := range d.Entries() {
				edit.Set(e)
			}
			again, err := edit.Write(t.Context(), nil, "x", kind, nil, nil, func(_, _, _ *Dir) {})
			if err != nil || again != nil && !bytes.Equal(again.Object.Data, bytes.ReplaceAll(data, []byte("040000"), []byte("40000"))) && !bytes.Contains(data, []byte("040000 ")) {
				t.Fatalf("%v: %q", err, data)
			}
		}
	})
}
