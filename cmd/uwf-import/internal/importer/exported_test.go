package importer

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/bundle"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/ocastest"
)

// addAttempt gives the last step of the ended thread an earlier attempt.
func (w *world) addAttempt() {
	w.Helper()
	put := func(typ node.Hash, payload map[string]any) string {
		n, h, err := node.New(typ, payload, time.UnixMilli(1_780_000_000_000))
		w.ok(err)
		w.old.Nodes[h] = n
		return string(h)
	}
	failed := maps.Clone(w.old.Nodes[w.old.Heads[ocastest.Ended]].Payload.(map[string]any))
	last := maps.Clone(failed)
	failed["output"] = put(record.ErrorOutputSchema, map[string]any{"$status": "error", "error": "out of tape"})
	last["previousAttempts"] = []any{put(record.StepSchema, failed)}
	w.old.Heads[ocastest.Ended] = node.Hash(put(record.AttemptsStepSchema, last))
	w.ok(w.old.Write(w.dir))
}

// export is the bundle of all threads.
func (w *world) export() []byte {
	w.Helper()
	v, err := w.store().Load(w.Context())
	w.ok(err)
	b := bundle.New(workflow.ForPeers)
	for _, id := range slices.Sorted(maps.Keys(w.old.Heads)) {
		id := gitcas.ThreadID(id)
		t := bundle.Thread{ID: id, View: v}
		if e, alive := v.Entry(id); alive {
			t.Entry = e
		} else {
			e, _, err := v.FindEnded(w.Context(), id)
			w.ok(err)
			t.View, err = v.LoadEnded(w.Context(), e)
			w.ok(err)
			t.Entry, t.Ended = gitcas.Entry{Head: e.Head}, &e
		}
		out, err := b.Add(w.Context(), t)
		w.ok(err)
		if out.Exported != w.old.Heads[string(id)] {
			w.Errorf("thread %s goes out at %s, was at %s", id, out.Exported, w.old.Heads[string(id)])
		}
	}
	if notes := b.AddNames(v.Registry()); notes != nil {
		w.Errorf("%q", notes)
	}
	data, err := b.Bytes()
	w.ok(err)
	return data
}

// TestExported: what was imported goes out as it came, earlier attempts included: the same
// nodes, and into an empty store and out again the same bytes.
func TestExported(t *testing.T) {
	w := newWorld(t)
	w.addAttempt()
	if code, text := w.run(false, "bundle.tar"); code != 0 || w.outcomes() != allImported {
		t.Fatalf("%d, %s\n%s", code, text, w.outcomes())
	}
	w.sound()
	data := w.export()
	seen := 0
	for r := tar.NewReader(bytes.NewReader(data)); ; seen++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		w.ok(err)
		got, err := io.ReadAll(r)
		w.ok(err)
		name, isNode := strings.CutPrefix(strings.TrimSuffix(h.Name, ".bin"), "cas/")
		if !isNode {
			continue
		}
		if want, err := w.old.File(node.Hash(name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is another file than it was: %v", h.Name, err)
		}
	}
	if seen < 30 {
		t.Errorf("%d files", seen)
	}
	w.ok(os.WriteFile(filepath.Join(w.dir, "back.tar"), data, 0o600))
	if code, text := w.run(false, "back.tar"); code != 0 || strings.Contains(w.outcomes(), "imported") {
		t.Errorf("%d, %s\n%s", code, text, w.outcomes())
	}
	again := newWorld(t)
	again.old.Heads = w.old.Heads
	w.ok(os.WriteFile(filepath.Join(again.dir, "back.tar"), data, 0o600))
	if code, text := again.run(false, "back.tar"); code != 0 || again.outcomes() != allImported {
		t.Fatalf("%d, %s\n%s", code, text, again.outcomes())
	}
	if !bytes.Equal(again.export(), data) {
		t.Error("out again it is another bundle")
	}
}

// TestSecretInAttempt: what an earlier attempt holds is looked through as well.
func TestSecretInAttempt(t *testing.T) {
	w := newWorld(t)
	w.addAttempt()
	w.secret = "out of tape"
	if code, text := w.run(false, "bundle.tar"); code != 1 || !strings.Contains(w.outcomes(), "G8 refused") {
		t.Errorf("%d, %s\n%s", code, text, w.outcomes())
	}
}
