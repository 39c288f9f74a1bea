package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf-import/internal/ocas"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/ocastest"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// storeNames are the stores below testdata/stores that the rows here are about.
var storeNames = []string{"0604", "030", "040"}

// unpacked is a store that the TypeScript uwf wrote, and a world to import it into.
type unpacked struct {
	*world
	nodes   map[node.Hash]node.Node // by the names of the files
	files   string                  // the folder that has them
	ids     map[string]string       // by what the thread is
	threads map[string]ocas.Thread
	flows   map[string]gitcas.RegistryEntry
}

func unpackStore(t *testing.T, name string) *unpacked {
	t.Helper()
	dir := t.TempDir()
	u := &unpacked{nodes: map[node.Hash]node.Node{}, ids: map[string]string{}, threads: map[string]ocas.Thread{}}
	u.world = &world{T: t, mem: wire.Remote(wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})), dir: filepath.Join(dir, name), old: &ocastest.Store{Heads: map[string]node.Hash{}}}
	u.ok(ocastest.Unpack(filepath.Join("../../testdata/stores", name+".tgz"), dir))
	u.ok(filepath.WalkDir(u.dir, func(path string, e fs.DirEntry, err error) error {
		h := node.Hash(strings.TrimSuffix(e.Name(), ".bin"))
		if err != nil || !h.Valid() || e.IsDir() || filepath.Ext(path) != ".bin" {
			return err
		}
		b, err := os.ReadFile(path)
		u.ok(err)
		u.nodes[h], u.files = decodeNode(t, b), filepath.Dir(path)
		return nil
	}))
	b, err := os.ReadFile(filepath.Join(u.dir, "ids"))
	u.ok(err)
	src := ocas.New(nil)
	for _, path := range u.sourcePaths() {
		src.AddFolder(path, os.DirFS(filepath.Join(u.dir, path)))
	}
	for line := range strings.Lines(string(b)) {
		is, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		u.ids[is] = id
		for _, th := range src.Threads() {
			if string(th.ID) == id {
				u.threads[is] = th
			}
		}
	}
	u.flows = src.Workflows()
	return u
}

func decodeNode(t *testing.T, b []byte) node.Node {
	t.Helper()
	v, err := node.DecodeCBOR(b)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := v.(map[string]any)
	typ, _ := m["type"].(string)
	return node.Node{Type: node.Hash(typ), Payload: m["payload"]}
}

// sourcePaths are what is given to uwf-import: the store and the storage root, or both in one.
func (u *unpacked) sourcePaths() []string {
	if _, err := os.Stat(filepath.Join(u.dir, "root")); err == nil {
		return []string{"root"}
	}
	return []string{"ocas", "uwf"}
}

// importStore imports it, and returns the exit code and the error's text.
func (u *unpacked) importStore(dry bool) (int, string) {
	u.Helper()
	return u.run(dry, u.sourcePaths()...)
}

// walkClosure is what a node needs: whatever it names that is there, and that uwf doesn't bring
// along itself.
func (u *unpacked) walkClosure(h node.Hash, into map[node.Hash]bool) map[node.Hash]bool {
	n, there := u.nodes[h]
	_, builtin := node.Builtin()[h]
	_, known := record.Schemas()[h]
	if !there || into[h] || builtin || known {
		return into
	}
	into[h] = true
	u.walkClosure(n.Type, into)
	var visit func(any)
	visit = func(v any) {
		switch v := v.(type) {
		case string:
			u.walkClosure(node.Hash(v), into)
		case []any:
			for _, x := range v {
				visit(x)
			}
		case map[string]any:
			for _, x := range v {
				visit(x)
			}
		}
	}
	visit(n.Payload)
	return into
}

// outcomesBy are what became of the threads, by what they are, and of the workflows.
func (u *unpacked) outcomesBy() map[string]string {
	out := map[string]string{}
	for is, id := range u.ids {
		for _, th := range u.got.Threads {
			if string(th.Thread) == id {
				out[is] = th.Result
			}
		}
	}
	for _, f := range u.got.Workflows {
		out[f.Name] = f.Result
	}
	return out
}

// checkSound checks the store, and that what was imported is what it was.
func (u *unpacked) checkSound() {
	u.Helper()
	maps.DeleteFunc(u.old.Heads, func(string, node.Hash) bool { return true })
	for is, result := range u.outcomesBy() {
		if th, isThread := u.threads[is]; isThread && result == imported {
			u.old.Heads[u.ids[is]] = th.Head
		}
	}
	u.sound()
	v, err := u.store().Load(u.Context())
	u.ok(err)
	for is, th := range u.threads {
		if _, came := u.old.Heads[u.ids[is]]; !came {
			continue
		}
		v := v
		if e, over, err := v.FindEnded(u.Context(), th.ID); over {
			v, err = v.LoadEnded(u.Context(), e)
			u.ok(err)
		} else {
			u.ok(err)
		}
		left := u.walkClosure(th.Head, map[node.Hash]bool{})
		u.ok(v.Walk(u.Context(), layout.Place{Thread: th.ID}, th.Head, func(_ layout.Place, h node.Hash, n node.Node) error {
			if old, there := u.nodes[h]; there && (old.Type != n.Type || !reflect.DeepEqual(old.Payload, n.Payload)) {
				u.Errorf("%s: node %s: %v, was %v", is, h, n, old)
			}
			delete(left, h)
			return nil
		}))
		if len(left) > 0 {
			u.Errorf("%s: these nodes did not come: %v", is, left)
		}
	}
}

// TestStores: what each version of the predecessor left comes over, whole.
func TestStores(t *testing.T) {
	for _, name := range storeNames {
		t.Run(name, func(t *testing.T) {
			u := unpackStore(t, name)
			before := u.listFiles()
			for _, paths := range [][]string{u.sourcePaths(), u.sourcePaths()[:1]} { // the lists are beside the nodes
				if code, text := u.run(true, paths...); code != 0 || len(u.got.Threads) != len(u.ids) {
					t.Fatal(code, text)
				}
			}
			if code, text := u.importStore(false); code != 0 || len(u.got.Problems) > 0 {
				t.Fatal(code, text)
			}
			var got []string
			for _, is := range slices.Sorted(maps.Keys(u.ids)) {
				for _, th := range u.got.Threads {
					if string(th.Thread) == u.ids[is] {
						got = append(got, fmt.Sprintf("%s: %s, %s, %d of %s", is, th.Result, th.Status, th.Steps, th.Name))
					}
				}
			}
			if s := strings.Join(got, "\n"); s != `active: imported, active, 2 of test-loop
cancelled: imported, cancelled, 1 of test-loop
done: imported, ended, 4 of test-loop
forked: imported, active, 1 of test-loop
started: imported, active, 0 of test-loop
suspended: imported, suspended, 1 of test-suspend` {
				t.Error(s)
			}
			u.checkSound()
			v, err := u.store().Load(t.Context())
			u.ok(err)
			if reg := v.Registry(); !reflect.DeepEqual(reg, u.flows) || len(reg["test-loop"].History) != 1 || reg["test-loop"].Timestamp == 0 || len(reg) != 2 {
				t.Errorf("%v, want %v", reg, u.flows)
			}
			if after := u.listFiles(); after != before {
				t.Errorf("the store was changed:\n%s\n%s", before, after)
			}
		})
	}
}

// listFiles are the names, sizes and times of all files of the store.
func (u *unpacked) listFiles() string {
	u.Helper()
	var b strings.Builder
	u.ok(filepath.WalkDir(u.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		fmt.Fprintln(&b, path, info.Size(), info.ModTime(), info.Mode())
		return err
	}))
	return b.String()
}

// damageKinds are what can happen to a file.
func damageKinds() map[string]func(t *testing.T, file string) error {
	replace := func(with func(file string) error) func(*testing.T, string) error {
		return func(_ *testing.T, file string) error { return errors.Join(os.Remove(file), with(file)) }
	}
	link := func(to string) func(*testing.T, string) error {
		return replace(func(file string) error { return os.Symlink(to, file) })
	}
	return map[string]func(*testing.T, string) error{
		"missing":         func(_ *testing.T, file string) error { return os.Remove(file) },
		"empty":           func(_ *testing.T, file string) error { return os.Truncate(file, 0) },
		"100 MB":          func(_ *testing.T, file string) error { return os.Truncate(file, 100<<20) },
		"/dev/zero":       link("/dev/zero"),
		"/dev/full":       link("/dev/full"),
		"a dangling link": link("nowhere"),
		"a FIFO":          replace(func(file string) error { return syscall.Mkfifo(file, 0o600) }),
		"a folder":        replace(func(file string) error { return os.Mkdir(file, 0o700) }),
		"cut": func(t *testing.T, file string) error {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			return os.Truncate(file, info.Size()/2)
		},
		"unreadable": func(t *testing.T, file string) error {
			err := os.Chmod(file, 0)
			if _, readable := os.ReadFile(file); readable == nil {
				t.Skip("everything can be read here")
			}
			return err
		},
	}
}

// flipNode flips one bit of a node's content.
func flipNode(t *testing.T, file string) error {
	h := node.Hash(strings.TrimSuffix(filepath.Base(file), ".bin"))
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for i := len(b) / 2; ; i-- { // one in the time, which isn't hashed, does no harm
		damaged := bytes.Clone(b)
		damaged[i] ^= 1
		v, err := node.DecodeCBOR(damaged)
		if m, _ := v.(map[string]any); err == nil && m["payload"] != nil && node.Verify(h, decodeNode(t, damaged)) != nil {
			return os.WriteFile(file, damaged, 0o600)
		}
	}
}

// damageTargets are nodes of the thread that has ended, of a store, one of each kind.
func (u *unpacked) damageTargets() map[string]node.Hash {
	u.Helper()
	ref := func(h node.Hash, path ...string) node.Hash {
		for _, key := range path {
			m, _ := u.nodes[h].Payload.(map[string]any)
			if v, nested := m[key].(map[string]any); nested { // of a role, its schema
				for _, role := range v {
					m, _ = role.(map[string]any)
					key = "frontmatter"
				}
			}
			text, _ := m[key].(string)
			h = node.Hash(text)
		}
		if _, there := u.nodes[h]; !there {
			u.Fatalf("%v is no node", path)
		}
		return h
	}
	head := u.threads["done"].Head
	out := map[string]node.Hash{
		"head": head, "a step": ref(head, "prev"), "the first step": ref(head, "prev", "prev", "prev"), "start": ref(head, "start"), "output": ref(head, "output"), "detail": ref(head, "detail"),
		"workflow": ref(head, "start", "workflow"), "role schema": ref(head, "start", "workflow", "roles"),
		"former version": u.flows["test-loop"].History[0].Hash,
	}
	if m, _ := u.nodes[head].Payload.(map[string]any); m["assembledPrompt"] != nil {
		out["prompt"] = ref(head, "assembledPrompt")
	}
	return out
}

// TestDamagedNodes: a damaged node leaves out, by name, the threads and workflows that need
// it, and nothing else.
func TestDamagedNodes(t *testing.T) {
	kinds := damageKinds()
	kinds["flipped"] = flipNode
	kinds["another node"] = func(_ *testing.T, file string) error {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(file), "7VQ43ZSJTEWA7.bin"))
		return errors.Join(err, os.WriteFile(file, b, 0o600))
	}
	for _, name := range storeNames {
		for what, h := range unpackStore(t, name).damageTargets() {
			u := unpackStore(t, name)
			file := filepath.Join(u.files, string(h)+".bin")
			whole, err := os.ReadFile(file)
			u.ok(err)
			for kind, damage := range kinds {
				t.Run(name+"/"+what+"/"+kind, func(t *testing.T) {
					u.T, u.mem = t, wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
					u.ok(errors.Join(os.RemoveAll(file), os.WriteFile(file, whole, 0o600)))
					want, problems := map[string]string{}, 0
					for is, th := range u.threads {
						want[is] = imported
						if u.walkClosure(th.Head, map[node.Hash]bool{})[h] {
							want[is] = refused
						}
					}
					for flow, e := range u.flows {
						want[flow] = imported
						if u.walkClosure(e.Hash, map[node.Hash]bool{})[h] {
							want[flow] = refused
							continue
						}
						for _, f := range e.History {
							if u.walkClosure(f.Hash, map[node.Hash]bool{})[h] {
								problems++
							}
						}
					}
					u.ok(damage(t, file))
					// Only one kind is written as well: the decision is the same.
					code, text := u.importStore(kind != "flipped")
					if got := u.outcomesBy(); code != 1 || !reflect.DeepEqual(got, want) {
						t.Fatalf("%s: %d, %s: %v, want %v", h, code, text, got, want)
					}
					leftOut := problems
					for _, th := range u.got.Threads {
						if th.Result == refused {
							leftOut++
							if !strings.Contains(th.Why, string(h)) {
								t.Errorf("%s is not named: %s", h, th.Why)
							}
						}
					}
					if len(u.got.Problems) != problems || leftOut == 0 || leftOut == len(u.threads) {
						t.Errorf("%d left out, problems %v", leftOut, u.got.Problems)
					}
					if kind == "flipped" {
						u.checkSound()
					}
				})
			}
		}
	}
}

// TestDamagedDatabases: of a damaged database what can be read is imported, and what can't is
// named.
func TestDamagedDatabases(t *testing.T) {
	// edit changes the row of the thread that has ended: name, schema, head, times, tags.
	edit := func(what string, change func(row []byte) int) func(*testing.T, *unpacked, string) {
		return func(t *testing.T, u *unpacked, file string) {
			t.Helper()
			b, err := os.ReadFile(file)
			u.ok(err)
			id, head := u.ids["done"], string(u.threads["done"].Head)
			at := regexp.MustCompile(id + `.{13}` + head + `(?s:.{1,16})\{"status"`).FindIndex(b)
			if at == nil {
				t.Fatal("no row")
			}
			row := b[at[0]:]
			if i := change(row); i >= 0 {
				row[i] ^= 1
			}
			u.ok(os.WriteFile(file, b, 0o600))
		}
	}
	whole := func(name string) func(*testing.T, *unpacked, string) {
		return func(t *testing.T, u *unpacked, file string) { t.Helper(); u.ok(damageKinds()[name](t, file)) }
	}
	const all, none = "active cancelled done forked started suspended test-loop test-suspend", ""
	without := strings.Replace(all, "done ", "", 1)
	for name, tc := range map[string]struct {
		damage func(*testing.T, *unpacked, string)
		code   int
		want   string // what is imported; "some": the rest is named
		says   string
	}{
		"the name of a row": {edit("name", func([]byte) int { return 8 }), 1, without, "has another name in the table than in its indexes"},
		"its tags":          {edit("tags", func(row []byte) int { return bytes.IndexByte(row, '{') }), 1, without, "its tags are no JSON object"},
		"its status":        {edit("status", func(row []byte) int { return bytes.Index(row, []byte(`":"`)) + 4 }), 1, without, "unknown status"},
		"its time":          {edit("time", func(row []byte) int { return bytes.Index(row, []byte(`At":"`)) + 5 }), 0, all, ""}, // another digit: nothing tells
		"a page of zeros": {func(t *testing.T, u *unpacked, file string) {
			edit("", func(row []byte) int { return -1 })(t, u, file)
			b, err := os.ReadFile(file)
			u.ok(err)
			at := bytes.Index(b, []byte(`{"status"`)) / 4096 * 4096
			copy(b[at:at+4096], make([]byte, 4096))
			u.ok(os.WriteFile(file, b, 0o600))
		}, 1, none, "the database is damaged: "},
		"the first page": {func(t *testing.T, u *unpacked, file string) {
			b, err := os.ReadFile(file)
			u.ok(err)
			copy(b[100:4096], make([]byte, 3996))
			u.ok(os.WriteFile(file, b, 0o600))
		}, 1, none, "the database is damaged: "},
		"cut":             {whole("cut"), 1, none, "the database is damaged: "},
		"empty":           {whole("empty"), 1, none, "it has no table vars"},
		"100 MB":          {whole("100 MB"), 1, none, "larger than 33554432 bytes"},
		"/dev/zero":       {whole("/dev/zero"), 1, none, "not a regular file"},
		"/dev/full":       {whole("/dev/full"), 1, none, "not a regular file"},
		"a FIFO":          {whole("a FIFO"), 1, none, "not a regular file"},
		"a folder":        {whole("a folder"), 1, none, "not a regular file"},
		"unreadable":      {whole("unreadable"), 1, none, "permission denied"},
		"a dangling link": {whole("a dangling link"), 2, none, "no list says which of them are threads"},
		"missing":         {whole("missing"), 2, none, "no list says which of them are threads"},
	} {
		for _, store := range storeNames {
			t.Run(store+"/"+name, func(t *testing.T) {
				u := unpackStore(t, store)
				file := filepath.Join(u.dir, "ocas/vars/_store.db")
				tc.damage(t, u, file)
				code, text := u.importStore(false)
				var got []string
				for is, result := range u.outcomesBy() {
					if result == imported {
						got = append(got, is)
					}
				}
				slices.Sort(got)
				if code != tc.code || strings.Join(got, " ") != tc.want || !strings.Contains(text+fmt.Sprint(u.got.Problems), tc.says) {
					t.Fatalf("%d, %s: %v, %v", code, text, got, u.got.Problems)
				}
				for _, p := range u.got.Problems {
					if p.File != "ocas/vars/_store.db" {
						t.Error(p)
					}
				}
				if code != 2 {
					u.checkSound()
				}
			})
		}
	}
}
