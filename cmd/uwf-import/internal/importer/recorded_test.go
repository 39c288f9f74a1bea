package importer

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/ocastest"
)

// storeHeads are the heads of the threads of the stores, by the names in their files ids, as
// their databases have them.
var storeHeads = map[string]map[string]node.Hash{
	"0604": {"active": "8S3EVXVCESB6E", "done": "D54N66J10R5ZZ", "cancelled": "7AT0HCP0G3CBW", "started": "5NJ02Y9VHXG2B", "suspended": "CHE9VP64DBDWZ", "forked": "9AN7M17CXRS04"},
	"030":  {"active": "2DSQR730F0481", "done": "3DDTS4XPCAFQT", "cancelled": "15PBZ6VADT81V", "started": "9SZRZYHCVMD6A", "suspended": "1PVC79F2XQ87V", "forked": "DENDDZ3Y1ZVTA"},
	"040":  {"active": "0N5YVV5ECB9W3", "done": "7Q6W96DB41VPT", "cancelled": "4FS3ARSN2WPV5", "started": "911D89R12WH74", "suspended": "D0BCMKJM4E00B", "forked": "2W1B52QNVN7FT"},
}

// TestStores: what releases of the TypeScript uwf wrote is here, node by node, in its place.
func TestStores(t *testing.T) {
	for version, heads := range storeHeads {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t)
			w.ok(ocastest.Unpack(filepath.Join("..", "..", "testdata", "stores", version+".tgz"), w.dir))
			old := filepath.Join(w.dir, version)
			if code, text := w.run(false, filepath.Join(old, "ocas"), filepath.Join(old, "uwf")); code != 0 {
				t.Fatalf("%d, %s\n%s", code, text, w.outcomes())
			}
			ids, err := os.ReadFile(filepath.Join(old, "ids"))
			w.ok(err)
			for line := range strings.Lines(string(ids)) {
				name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
				if heads[name] == "" {
					t.Fatalf("a thread that nobody knows: %s", line)
				}
				w.compareThread(old, gitcas.ThreadID(id), heads[name])
			}
			r, err := w.store().Fsck(t.Context(), true)
			if err != nil || !r.OK() {
				t.Errorf("%v, %v", r.Problems, err)
			}
		})
	}
}

// compareThread compares all nodes of a thread with the files of a store.
func (w *world) compareThread(old string, id gitcas.ThreadID, head node.Hash) {
	w.Helper()
	ctx := w.Context()
	v, err := w.store().Load(ctx, id)
	w.ok(err)
	e, alive := v.Entry(id)
	if !alive {
		ended, there, err := v.FindEnded(ctx, id)
		w.ok(err)
		if !there {
			w.Errorf("thread %s is not there", id)
			return
		}
		e.Head = ended.Head
		v, err = v.LoadEnded(ctx, ended)
		w.ok(err)
	}
	if e.Head != head {
		w.Errorf("thread %s is at %s, was at %s", id, e.Head, head)
	}
	seen := map[node.Hash]bool{}
	var compare func(p gitcas.Place, h node.Hash)
	compare = func(p gitcas.Place, h node.Hash) {
		if seen[h] || h == node.MetaSchema {
			return
		}
		seen[h] = true
		want := readNodeFile(w.T, old, h)
		n, err := v.In(ctx, p).Get(h)
		if n.Type == node.MetaSchema && n.Timestamp == 0 {
			want.Timestamp = 0 // a schema that every uwf knows
		}
		if err != nil || !reflect.DeepEqual(n, want) {
			w.Errorf("thread %s: node %s is %+v, was %+v: %v", id, h, n, want, err)
		}
		compare(p, n.Type)
		refs, _, err := record.RefsOf(n)
		w.ok(err)
		for _, r := range refs {
			to := gitcas.Place{Thread: id}
			switch r.To {
			case record.ToShared:
				to = gitcas.Place{}
			case record.ToOwn, record.ToDetail:
				to.Of, to.Detail = h, r.To == record.ToDetail
			}
			compare(to, r.Hash)
		}
	}
	compare(gitcas.Place{Thread: id}, head)
	if len(seen) < 4 {
		w.Errorf("thread %s: only %d nodes were compared", id, len(seen))
	}
}

// readNodeFile is a node as a store has it.
func readNodeFile(t *testing.T, old string, h node.Hash) node.Node {
	t.Helper()
	for _, dir := range []string{"ocas", "ocas/nodes"} {
		b, err := os.ReadFile(filepath.Join(old, filepath.FromSlash(dir), string(h)+".bin"))
		if err != nil {
			continue
		}
		v, err := node.DecodeCBOR(b)
		m, _ := v.(map[string]any)
		typ, _ := m["type"].(string)
		at, _ := m["timestamp"].(int64)
		if err != nil {
			t.Fatal(err)
		}
		return node.Node{Type: node.Hash(typ), Payload: m["payload"], Timestamp: at}
	}
	t.Fatalf("no file of node %s", h)
	return node.Node{}
}
