package ocas

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/ocastest"
)

// TestRerootMost: only so many nodes get other hashes at once.
func TestRerootMost(t *testing.T) {
	early, dir := ocastest.NewEarly("json-cas JSON Schema meta-schema"), t.TempDir()
	head := early.PutThread(ocastest.FirstGeneration, "Mend it.", true)
	known := node.Map(node.Builtin())
	maps.Copy(known, record.Schemas())
	s := New(known)
	if err := early.Write(dir); err != nil {
		t.Fatal(err)
	}
	s.AddFolder("early", os.DirFS(dir))
	r := newRerooter(s)
	if _, err := r.rerootRecords(head); err != nil {
		t.Fatal(err)
	}
	n := len(r.done)
	for most, refused := range map[int]bool{n: false, n - 1: true} {
		r := newRerooter(s)
		r.most = most
		if _, err := r.rerootRecords(head); (err != nil) != refused || refused && !strings.Contains(err.Error(), "more than") {
			t.Errorf("%d of %d: %v", most, n, err)
		}
	}
}
