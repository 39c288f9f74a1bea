package gitcastest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// Export writes all that the refs reach. Equal repositories give equal bytes.
func Export(mem *wiretest.Memory) ([]byte, error) {
	x := &exporter{mem: mem, marks: map[wire.ID]int{}}
	refs := mem.Refs()
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		if err := x.writeCommit(name, refs[name]); err != nil {
			return nil, fmt.Errorf("export %s: %w", name, err)
		}
		fmt.Fprintf(&x.out, "reset %s\nfrom :%d\n\n", name, x.marks[refs[name]])
	}
	x.out.WriteString("done\n")
	return x.out.Bytes(), nil
}

type exporter struct {
	mem   *wiretest.Memory
	out   bytes.Buffer
	marks map[wire.ID]int // of what is written
}

func (x *exporter) getObject(id wire.ID, typ plumbing.ObjectType) (wire.Object, error) {
	o, ok := x.mem.Get(id)
	if !ok || o.Type != typ {
		return o, fmt.Errorf("%s is no %s that is there", id, typ)
	}
	return o, nil
}

// writeCommit writes a commit after its parents, under the name of the first ref that
// reaches it.
func (x *exporter) writeCommit(ref string, id wire.ID) error {
	if x.marks[id] != 0 {
		return nil
	}
	o, err := x.getObject(id, plumbing.CommitObject)
	if err != nil {
		return err
	}
	c, err := gitobj.DecodeCommit(o.Data)
	if err != nil {
		return err
	}
	if again, err := gitobj.EncodeCommit(c); err != nil || !bytes.Equal(again, o.Data) {
		return fmt.Errorf("commit %s holds more than a stream can say (%w)", id, err)
	}
	before := map[string]file{}
	for i, p := range c.Parents {
		if err := x.writeCommit(ref, p); err != nil {
			return err
		}
		if i == 0 {
			if before, err = x.filesOf(p); err != nil {
				return err
			}
		}
	}
	after := map[string]file{}
	if err := x.listFiles(after, "", c.Tree); err != nil {
		return err
	}
	if err := x.writeBlobs(before, after); err != nil {
		return err
	}
	if len(c.Parents) == 0 {
		fmt.Fprintf(&x.out, "reset %s\n", ref)
	}
	x.marks[id] = len(x.marks) + 1
	fmt.Fprintf(&x.out, "commit %s\nmark :%d\nauthor %s\ncommitter %s\ndata %d\n%s\n",
		ref, x.marks[id], formatSignature(c.Author), formatSignature(c.Committer), len(c.Message), c.Message)
	for i, p := range c.Parents {
		fmt.Fprintf(&x.out, "%s :%d\n", []string{"from", "merge"}[min(i, 1)], x.marks[p])
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[path]; !kept {
			fmt.Fprintf(&x.out, "D %s\n", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if f := after[path]; f != before[path] {
			fmt.Fprintf(&x.out, "M %s :%d %s\n", f.mode, x.marks[f.id], path)
		}
	}
	x.out.WriteByte('\n')
	return nil
}

func formatSignature(s gitobj.Signature) string {
	return fmt.Sprintf("%s <%s> %d %s", s.Name, s.Email, s.When.Unix(), s.When.Format("-0700"))
}

// writeBlobs writes the files that are new.
func (x *exporter) writeBlobs(before, after map[string]file) error {
	for _, path := range slices.Sorted(maps.Keys(after)) {
		f := after[path]
		if x.marks[f.id] != 0 || f == before[path] {
			continue
		}
		o, err := x.getObject(f.id, plumbing.BlobObject)
		if err != nil {
			return err
		}
		x.marks[f.id] = len(x.marks) + 1
		fmt.Fprintf(&x.out, "blob\nmark :%d\ndata %d\n%s\n", x.marks[f.id], len(o.Data), o.Data)
	}
	return nil
}

// file is one file of a commit.
type file struct {
	mode string
	id   wire.ID
}

func (x *exporter) filesOf(commit wire.ID) (map[string]file, error) {
	o, err := x.getObject(commit, plumbing.CommitObject)
	if err != nil {
		return nil, err
	}
	c, err := gitobj.DecodeCommit(o.Data)
	if err != nil {
		return nil, err
	}
	out := map[string]file{}
	return out, x.listFiles(out, "", c.Tree)
}

func (x *exporter) listFiles(out map[string]file, prefix string, tree wire.ID) error {
	o, err := x.getObject(tree, plumbing.TreeObject)
	if err != nil {
		return err
	}
	entries, err := gitobj.DecodeTree(o.Data)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := x.listFiles(out, prefix+e.Name+"/", e.ID); err != nil {
				return err
			}
			continue
		}
		out[prefix+e.Name] = file{fmt.Sprintf("%06o", uint32(e.Mode)), e.ID}
	}
	return nil
}
