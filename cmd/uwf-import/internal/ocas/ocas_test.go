package ocas_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf-import/internal/ocas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/ocastest"
)

func sample(t testing.TB) *ocastest.Store {
	t.Helper()
	s, err := ocastest.New()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func known() node.Map {
	out := node.Map(node.Builtin())
	for h, n := range record.Schemas() {
		out[h] = n
	}
	return out
}

// TestSources: a folder with lists and a bundle say the same.
func TestSources(t *testing.T) {
	s, dir := sample(t), t.TempDir()
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	folders, bundle := ocas.New(known()), ocas.New(known())
	folders.AddFolder("nodes", os.DirFS(dir+"/nodes"))
	folders.AddFolder("root", os.DirFS(dir+"/root"))
	b, err := s.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	bundle.AddBundle("bundle.tar", bytes.NewReader(b))
	for _, src := range []*ocas.Source{folders, bundle} {
		if err := src.CheckEnough(); err != nil || len(src.Problems()) > 0 {
			t.Fatal(err, src.Problems())
		}
	}
	if a, b := folders.Threads(), bundle.Threads(); fmt.Sprint(a) != fmt.Sprint(b) || len(a) != 4 {
		t.Errorf("folders: %+v\nbundle: %+v", a, b)
	}
	if a, b := folders.Workflows()[ocastest.Name], bundle.Workflows()[ocastest.Name]; a.Hash != s.Workflow || b.Hash != s.Workflow || a.Timestamp != 0 || b.Timestamp != 2 {
		t.Errorf("workflows %v, %v", a, b)
	}
	steps := map[string]int{ocastest.Active: 2, ocastest.Suspended: 1, ocastest.Ended: 2, ocastest.Cancelled: 0}
	for _, src := range []*ocas.Source{folders, bundle} {
		for _, th := range src.Threads() {
			c, err := src.ReadChain(th.Head)
			if err != nil {
				t.Fatalf("%s: %v", th.ID, err)
			}
			if len(c.Parts) != 1+steps[string(th.ID)] || c.Workflow != s.Workflow || c.Parts[len(c.Parts)-1].Head != s.Heads[string(th.ID)] {
				t.Errorf("%s: %d parts", th.ID, len(c.Parts))
			}
			complete(t, c)
		}
	}
}

// complete checks that all that a chain refers to is in it, and in its place.
func complete(t *testing.T, c ocas.Chain) {
	t.Helper()
	shared := map[node.Hash]bool{}
	for _, p := range c.Parts {
		for _, n := range p.Nodes {
			shared[n.Hash] = shared[n.Hash] || n.To == record.ToShared
		}
	}
	for _, p := range c.Parts[1:] {
		place := map[node.Hash]record.Target{}
		for _, n := range p.Nodes {
			place[n.Hash] = n.To
		}
		if place[p.Step.Output] != record.ToOwn || place[p.Step.Detail] != record.ToDetail || place[*p.Step.AssembledPrompt] != record.ToDetail || place[p.Head] != record.ToRecord {
			t.Errorf("step %s: %v", p.Head, place)
		}
	}
	if !shared[c.Workflow] {
		t.Errorf("the workflow is missing, or not shared")
	}
}

// TestBadNodes: what is wrong with a node keeps its thread out.
func TestBadNodes(t *testing.T) {
	s := sample(t)
	head := s.Heads[ocastest.Active]
	step, err := record.ParseStep(s.Nodes[head])
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.File(step.Output)
	if err != nil {
		t.Fatal(err)
	}
	cbor := func(m map[string]any) []byte {
		b, err := node.EncodeCBOR(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, tc := range map[string]struct {
		hash node.Hash
		data []byte
		want error
		says string
	}{
		"no head":      {head, nil, node.ErrNotFound, string(head) + ".bin is not there"},
		"no step":      {*step.Prev, nil, node.ErrNotFound, string(*step.Prev) + ".bin is not there"},
		"no start":     {step.Start, nil, node.ErrNotFound, string(step.Start) + ".bin is not there"},
		"no output":    {step.Output, nil, node.ErrNotFound, "step " + string(head) + ": "},
		"no detail":    {step.Detail, nil, node.ErrNotFound, "step " + string(head) + ": "},
		"no workflow":  {s.Workflow, nil, node.ErrNotFound, string(s.Workflow) + ".bin is not there"},
		"another node": {head, other, node.ErrWrongHash, "read " + string(head) + ".bin"},
		"garbage":      {head, []byte("\x00garbage"), node.ErrPayload, "more than one item"},
		"no map":       {head, []byte{1}, node.ErrPayload, "not a map of type, payload and timestamp"},
		"bad type":     {head, cbor(map[string]any{"type": "x", "payload": 1}), node.ErrPayload, "not a map of type, payload and timestamp"},
		"no payload":   {head, cbor(map[string]any{"type": string(node.String)}), node.ErrPayload, "not a map of type, payload and timestamp"},
		"a bomb":       {head, bytes.Repeat([]byte{0x9f}, 1000), node.ErrPayload, "indefinite"},
	} {
		fsys := fstest.MapFS{"threads.yaml": {Data: []byte(s.ThreadsFile())}}
		for h := range s.Nodes {
			b, err := s.File(h)
			if err != nil {
				t.Fatal(err)
			}
			fsys["cas/"+string(h)+".bin"] = &fstest.MapFile{Data: b}
		}
		delete(fsys, "cas/"+string(tc.hash)+".bin")
		if tc.data != nil {
			fsys["cas/"+string(tc.hash)+".bin"] = &fstest.MapFile{Data: tc.data}
		}
		src := ocas.New(known())
		src.AddFolder("x", fsys)
		if _, err := src.ReadChain(head); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %s", name, err, tc.says)
		}
	}
	pipe := fstest.MapFS{"threads.yaml": {Data: []byte(s.ThreadsFile())}, string(head) + ".bin": {Mode: fs.ModeNamedPipe}}
	src := ocas.New(known())
	src.AddFolder("x", pipe)
	if _, err := src.ReadChain(head); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
}

// TestBadChains: nodes with right hashes that are no chain.
func TestBadChains(t *testing.T) {
	s := sample(t)
	last := s.Nodes[s.Heads[ocastest.Active]]
	add := func(typ node.Hash, payload any) node.Hash {
		n, h, err := node.New(typ, payload, time.UnixMilli(1))
		if err != nil {
			t.Fatal(err)
		}
		s.Nodes[h] = n
		return h
	}
	// with is the last step, one field changed.
	with := func(field string, value any) node.Hash {
		old, _ := last.Payload.(map[string]any)
		payload := maps.Clone(old)
		payload[field] = value
		return add(last.Type, payload)
	}
	heads := map[string]struct {
		head node.Hash
		says string
	}{
		"step that fits no schema":   {with("role", 7), "/role: must be string"},
		"step of another start":      {with("start", string(s.Heads[ocastest.Cancelled])), "belongs to another thread than the step after it"},
		"start that is a workflow":   {"", "of type " + string(record.WorkflowSchema) + ": " + ocas.ErrOtherSchema.Error()},
		"output that fits no schema": {with("output", string(add(node.String, 7))), "must be string, not integer"},
	}
	payload, _ := last.Payload.(map[string]any)
	first := maps.Clone(payload)
	first["start"], first["prev"] = string(s.Workflow), nil
	heads["start that is a workflow"] = struct {
		head node.Hash
		says string
	}{add(last.Type, first), heads["start that is a workflow"].says}
	b, err := s.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	src := ocas.New(known())
	src.AddBundle("b.tar", bytes.NewReader(b))
	for name, tc := range heads {
		if _, err := src.ReadChain(tc.head); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %s", name, err, tc.says)
		}
	}
}

// TestBadBundles: archives that are none, or more than is read.
func TestBadBundles(t *testing.T) {
	archive := func(name string, size int64, data []byte) io.Reader {
		var out bytes.Buffer
		if err := tar.NewWriter(&out).WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		return io.MultiReader(&out, bytes.NewReader(data), bytes.NewReader(make([]byte, 512-len(data)%512+1024)))
	}
	const list = 32 << 20
	for name, tc := range map[string]struct {
		r    io.Reader
		says string
	}{
		"no archive": {strings.NewReader(strings.Repeat("x", 1024)), "b.tar: read the archive: "},
		"cut off":    {archive("cas/0000000000000.bin", 4096, []byte("x")), "b.tar/cas/0000000000000.bin: unexpected EOF"},
		"too large":  {archive("x", 513<<20, nil), "larger than 536870912 bytes together"},
		"large list": {archive("vars.jsonl", list+1, make([]byte, list+1)), "vars.jsonl: larger than 33554432 bytes"},
		"bad list":   {archive("vars.jsonl", 1, []byte("x")), "b.tar/vars.jsonl: line 1: "},
		"no nodes":   {archive("vars.jsonl", 2, []byte("{}")), ocas.ErrNothing.Error()},
	} {
		src := ocas.New(known())
		src.AddBundle("b.tar", tc.r)
		if err := src.CheckEnough(); !errors.Is(err, ocas.ErrNothing) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %s", name, err, tc.says)
		}
	}
}

// broken is a file system on which a folder can't be listed, and a file not opened.
type broken struct {
	fstest.MapFS
	list, open string
}

func (b broken) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == b.list {
		return nil, fs.ErrPermission
	}
	return b.MapFS.ReadDir(name)
}

func (b broken) Open(name string) (fs.File, error) {
	if name == b.open {
		return nil, fs.ErrPermission
	}
	return b.MapFS.Open(name)
}

// TestUnreadable: what can't be read is not what is not there.
func TestUnreadable(t *testing.T) {
	files := fstest.MapFS{"threads.yaml": {}, "cas/x": {}}
	for name, fsys := range map[string]fs.FS{"root/cas": broken{files, "cas", ""}, "root/threads.yaml": broken{files, "", "threads.yaml"}} {
		src := ocas.New(known())
		src.AddFolder("root", fsys)
		if p := src.Problems(); len(p) != 1 || p[0].File != name || !strings.Contains(p[0].Why, fs.ErrPermission.Error()) {
			t.Errorf("%s: %v", name, p)
		}
	}
}

// TestOtherChains: heads that lead to no chain.
func TestOtherChains(t *testing.T) {
	s := sample(t)
	b, err := s.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	src := ocas.New(known())
	src.AddBundle("b.tar", bytes.NewReader(b))
	if _, err := src.ReadChain(s.Workflow); !errors.Is(err, ocas.ErrOtherSchema) {
		t.Errorf("a workflow as head: %v", err)
	}
	if _, err := src.ReadChain("../../../etc/"); !errors.Is(err, node.ErrInvalidHash) {
		t.Errorf("a path as head: %v", err)
	}
}

func TestBadLists(t *testing.T) {
	h := string(sample(t).Workflow)
	id := ocastest.Active
	for name, list := range map[string]struct{ file, text, says string }{
		"list":         {"threads.yaml", "- a\n", "line 1: no mapping"},
		"no hash":      {"threads.yaml", id + ": x\n", "no thread id, or no hash"},
		"no id":        {"threads.yaml", "x: " + h + "\n", "no thread id, or no hash"},
		"status":       {"threads.yaml", id + ": {head: " + h + ", status: sleeping}\n", `unknown status "sleeping"`},
		"time":         {"threads.yaml", id + ": {head: " + h + ", completedAt: soon}\n", `completedAt: "soon" is no time`},
		"past":         {"threads.yaml", id + ": {head: " + h + ", completedAt: -1}\n", `completedAt: "-1" is no time`},
		"future":       {"threads.yaml", id + ": {head: " + h + ", completedAt: 9007199254740993}\n", `completedAt: "9007199254740993" is no time`},
		"sequence":     {"threads.yaml", id + ": [" + h + "]\n", "line 1: thread \"" + id + "\": neither a hash nor a mapping"},
		"alias":        {"threads.yaml", "? &a " + id + "\n: *a\n", "neither a hash nor a mapping"},
		"broken":       {"threads.yaml", "{", "yaml: "},
		"not JSON":     {"history.jsonl", "x\n", "line 1: read JSON: "},
		"no object":    {"history.jsonl", "[]\n", "line 1: no object"},
		"empty object": {"history.jsonl", "{}\n", "line 1: thread \"\""},
		"no workflow":  {"workflows.yaml", "a: b\n", `workflow "a": "b" is no hash`},
		"no name":      {"workflows.yaml", "\"\": " + h + "\n", `workflow ""`},
		"long name":    {"workflows.yaml", strings.Repeat("x", 201) + ": " + h + "\n", `workflow "xxx`},
	} {
		src := ocas.New(known())
		src.AddFolder("root", fstest.MapFS{list.file: {Data: []byte(list.text)}})
		if p := src.Problems(); len(p) != 1 || p[0].File != "root/"+list.file || !strings.Contains(p[0].String(), list.says) || len(src.Threads())+len(src.Workflows()) > 0 {
			t.Errorf("%s: %v, want %s", name, p, list.says)
		}
	}
	for _, text := range []string{"", "{}", "# nothing\n", "null\n"} {
		src := ocas.New(known())
		src.AddFolder("root", fstest.MapFS{"threads.yaml": {Data: []byte(text)}})
		if p := src.Problems(); len(p) > 0 || len(src.Threads()) > 0 {
			t.Errorf("%q: %v", text, p)
		}
	}
}

// TestVariables: stores from between the lists and the database.
func TestVariables(t *testing.T) {
	h := string(sample(t).Workflow)
	line := func(name, more string) string { return `{"name":"` + name + `","value":"` + h + `"` + more + "}\n" }
	vars := line("@uwf/thread/"+ocastest.Active, "") + line("@uwf/thread/"+ocastest.Ended, "") + line("@uwf/registry/a", "") + line("@uwf/registry/b", "") +
		line("@uwf/thread/"+ocastest.Ended, `,"__op":"remove"`) + line("@uwf/registry/b", `,"__op":"remove"`) +
		line("@uwf/thread/"+ocastest.Active, `,"tags":{"status":"suspended","suspendedRole":"r","suspendMessage":"m"}`) + line("@other/x", "")
	for _, name := range []string{"_vars.jsonl", "vars/_vars.jsonl"} {
		src := ocas.New(known())
		src.AddFolder("x", fstest.MapFS{name: {Data: []byte(vars)}})
		threads := src.Threads()
		if len(threads) != 1 || threads[0].ID != ocastest.Active || threads[0].Status != ocas.Suspended || threads[0].Role != "r" || len(src.Workflows()) != 1 || len(src.Problems()) > 0 {
			t.Errorf("%s: %+v, %v", name, threads, src.Workflows())
		}
	}
	// Moved into a database, and out of date since.
	src := ocas.New(known())
	src.AddFolder("x", fstest.MapFS{"_vars.jsonl": {Data: []byte(vars)}, "vars/_store.db": {}})
	if len(src.Threads()) > 0 {
		t.Error(src.Threads())
	}
}

func FuzzBundle(f *testing.F) {
	b, err := sample(f).Bundle()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[:4096])
	var small bytes.Buffer
	w := tar.NewWriter(&small)
	_ = w.WriteHeader(&tar.Header{Name: "vars.jsonl", Size: 2, Typeflag: tar.TypeReg})
	_, _ = w.Write([]byte("{}"))
	f.Add(small.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		src := ocas.New(known())
		src.AddBundle("b.tar", bytes.NewReader(data))
		for _, th := range src.Threads() {
			if c, err := src.ReadChain(th.Head); err == nil && (len(c.Parts) == 0 || !slices.ContainsFunc(c.Parts, func(p ocas.Part) bool { return p.Head == th.Head })) {
				t.Errorf("%+v", c)
			}
		}
	})
}

func FuzzThreads(f *testing.F) {
	f.Add(sample(f).ThreadsFile(), sample(f).HistoryFile())
	f.Fuzz(func(t *testing.T, threads, history string) {
		src := ocas.New(known())
		src.AddFolder("x", fstest.MapFS{"threads.yaml": {Data: []byte(threads)}, "history.jsonl": {Data: []byte(history)}})
		for _, th := range src.Threads() {
			if !th.ID.Valid() || !th.Head.Valid() || th.CompletedAt < 0 {
				t.Errorf("%+v", th)
			}
		}
	})
}
