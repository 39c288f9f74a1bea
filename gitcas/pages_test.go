package gitcas

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestLoadLeavesPages: a job gets the records of a thread and what they refer to, and
// neither the pages for people nor the details, however long these are.
func TestLoadLeavesPages(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	id := threadID(1)
	threadWithSteps(t, s, id, 3)
	var blobs []string
	watched := Open(&wrapped{Remote: mem, fetch: func(req wire.FetchRequest) error {
		objs, err := mem.Fetch(t.Context(), req)
		for _, o := range objs {
			if o.Type == plumbing.BlobObject {
				blobs = append(blobs, string(o.Data))
			}
		}
		return err
	}}, testOptions())
	v := mustLoad(t, watched, id)
	c, err := v.ReadChain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range c.Steps {
		if _, err := v.In(t.Context(), Place{Thread: id, Of: st.Hash}).Get(st.Output); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range blobs {
		if strings.HasPrefix(text, "# ") && !strings.HasPrefix(text, "# uwf state") || strings.Contains(text, "detail of ") {
			t.Errorf("this came along:\n%s", text)
		}
	}
}

// TestChangedDay: lines that somebody changed never had a page that the remote could make
// the next one of.
func TestChangedDay(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	first, second := threadID(1), threadID(2)
	v := threadWithSteps(t, s, first, 1)
	v = mustPush(t, s, v, endChange(t, v, first, "over"))
	path := ""
	for _, year := range v.HistoryDir.Entries() {
		d, err := v.Reader.Below(t.Context(), v.HistoryDir, year.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range d.Entries() {
			if strings.HasSuffix(e.Name, ".jsonl") {
				path = d.PathOf(e.Name)
			}
		}
	}
	x := &vandal{t: t, s: s, v: v, mem: mem}
	x.replace(path, func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"reason":"ended"`), []byte(`"reason":"ended","title":"changed"`), 1)
	})
	threadWithSteps(t, s, second, 1)
	v = mustLoad(t, s, second)
	mustPush(t, s, v, endChange(t, v, second, "over"))
	tip := mustLoad(t, s)
	d, err := tip.Reader.Below(t.Context(), tip.HistoryDir, strings.Split(path, "/")[1])
	if err != nil {
		t.Fatal(err)
	}
	page := string(x.get(d.IDOf(layout.DayPageOf(path[strings.LastIndexByte(path, '/')+1:]))))
	for _, want := range []string{string(first), string(second)} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of %s says\n%s", path, page)
		}
	}
}
