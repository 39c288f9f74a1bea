package unpushed

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

const (
	testThread gitcas.ThreadID = "01JD0000000000000000000001"
	testStore  string          = "0123456789abcdef"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sample is a step with everything in it.
func sample(t testing.TB) Step {
	t.Helper()
	nodes := map[node.Hash]node.Node{}
	put := func(n node.Node, h node.Hash, err error) node.Hash {
		must(t, err)
		nodes[h] = n
		return h
	}
	text := put(node.New(node.String, "it is\ndone", time.UnixMilli(1)))
	step := record.Step{
		Start: text, Role: "developer", Output: text, Detail: text, Agent: "builtin", StartedAtMs: 1, CompletedAtMs: 2, Cwd: ".",
		Usage: &record.Usage{Turns: 2, InputTokens: 10, OutputTokens: 5, DurationMs: 1500, CostUSD: 0.25},
		Run:   &record.Run{ID: "r1", Attempt: 1},
	}
	handle := put(step.Node(time.UnixMilli(3)))
	objs := wire.Objects{}
	blob := wire.NewObject(plumbing.BlobObject, []byte("new\n"))
	tree := wire.NewObject(plumbing.TreeObject, []byte("100644 a\x00"+string(blob.ID[:])))
	commit := wire.NewObject(plumbing.CommitObject, []byte("tree "+tree.ID.String()+"\n\nm\n"))
	for _, o := range []wire.Object{blob, tree, commit, wire.NewObject(plumbing.BlobObject, nil)} {
		objs.Add(o)
	}
	return Step{
		Store: testStore, Thread: testThread, Nonce: "n0", Handle: handle, Nodes: nodes, Model: "gpt",
		Entry: gitcas.Entry{
			Head: text, Status: gitcas.StatusActive, Workflow: text, Key: "k", Next: &gitcas.Next{Role: "developer", Since: 5},
			Work: gitcas.Work{Branch: "uwf/x", Commit: commit.ID.String()}, Attempts: []string{"refs/uwf/attempts/" + string(testThread) + "/a.1"},
			Limits: map[string]float64{"maxSteps": 9}, Title: "a: title",
		},
		Work: Work{From: tree.ID, Commit: commit.ID, Objects: objs},
	}
}

func encoded(t testing.TB, s Step) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, Encode(&b, s))
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	for name, change := range map[string]func(*Step){
		"all":                 func(*Step) {},
		"nothing changed":     func(s *Step) { s.Work.Commit, s.Work.Objects = wire.ZeroID, nil },
		"from nothing":        func(s *Step) { s.Work.From = wire.ZeroID },
		"without nonce":       func(s *Step) { s.Nonce, s.Model = "", "" },
		"the shortest entry":  func(s *Step) { s.Entry = gitcas.Entry{Head: s.Handle, Status: gitcas.StatusActive} },
		"a suspended thread":  func(s *Step) { s.Entry.Status = gitcas.StatusSuspended },
		"a model with a name": func(s *Step) { s.Model = "vendor/model:free ü" },
	} {
		t.Run(name, func(t *testing.T) {
			want := sample(t)
			change(&want)
			f := &Folder{Dir: filepath.Join(t.TempDir(), "pending")}
			must(t, f.Write(want))
			must(t, f.Write(want)) // in its own place
			got, err := f.Read(testStore, testThread)
			must(t, err)
			if !reflect.DeepEqual(got.Entry, want.Entry) { // its private fields, too
				t.Errorf("got\n%+v, want\n%+v", got.Entry, want.Entry)
			}
			if got, want := encoded(t, got), encoded(t, want); !bytes.Equal(got, want) {
				t.Errorf("got\n%s, want\n%s", got, want)
			}
			must(t, f.Remove(testStore, testThread, want.Nonce))
			if _, err := f.Read(testStore, testThread); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
			must(t, f.Remove(testStore, testThread, want.Nonce))
		})
	}
}

// TestOfTwoClaims: what was made under one claim is neither written over nor removed by what
// was made under another; each is read in its turn.
func TestOfTwoClaims(t *testing.T) {
	f := &Folder{Dir: filepath.Join(t.TempDir(), "pending")}
	want := map[string]bool{"n0": true, "n1": true, "n2": true, "": true}
	for nonce := range want {
		s := sample(t)
		s.Nonce = nonce
		must(t, f.Write(s))
	}
	must(t, f.Remove(testStore, testThread, "n3"))
	for _, name := range []string{string(testThread), string(testThread) + ".x", string(testThread) + ".0123456789abcdef.tmp", "01JD0000000000000000000002.0123456789abcdef"} {
		must(t, os.WriteFile(filepath.Join(f.Dir, testStore, name), nil, 0o600)) // none of it is this thread's step
	}
	for len(want) > 0 {
		s, err := f.Read(testStore, testThread)
		must(t, err)
		if !want[s.Nonce] {
			t.Fatalf("%q is there twice", s.Nonce)
		}
		delete(want, s.Nonce)
		must(t, f.Remove(testStore, testThread, s.Nonce))
	}
	if _, err := f.Read(testStore, testThread); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestModes: nobody else on the machine reads what an agent wrote.
func TestModes(t *testing.T) {
	f := &Folder{Dir: filepath.Join(t.TempDir(), "pending")}
	must(t, f.Write(sample(t)))
	for path, want := range map[string]fs.FileMode{
		f.Dir: fs.ModeDir | 0o700, filepath.Join(f.Dir, testStore): fs.ModeDir | 0o700, f.Path(testStore, testThread, "n0"): 0o600,
	} {
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode() != want {
			t.Errorf("%s: %s, want %s", path, info.Mode(), want)
		}
	}
	entries, err := os.ReadDir(filepath.Join(f.Dir, testStore))
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("%v", entries)
	}
}

// TestCantWrite: what is there stays whole where nothing can be written.
func TestCantWrite(t *testing.T) {
	f := &Folder{Dir: filepath.Join(t.TempDir(), "pending")}
	must(t, f.Write(sample(t)))
	s := sample(t)
	s.Nodes["no hash"] = node.Node{}
	if err := f.Write(s); err == nil || !strings.Contains(err.Error(), f.Path(testStore, testThread, "n0")) {
		t.Errorf("%v", err)
	}
	if _, err := f.Read(testStore, testThread); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.Path(testStore, testThread, "n0") + half); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half of it was left: %v", err)
	}
	for _, store := range []string{"", "..", "../../../../tmp/x", "/etc", "UPPERCASEIDENTIFIER"} {
		s := sample(t)
		s.Store = store
		if err := f.Write(s); err == nil {
			t.Errorf("store %q was taken", store)
		}
		if _, err := f.Read(store, testThread); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("store %q: %v", store, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(f.Dir, link))
	for _, dir := range []string{file, filepath.Join(file, "below"), link} {
		if err := (&Folder{Dir: dir}).Write(sample(t)); err == nil {
			t.Errorf("%s was taken for a folder", dir)
		}
	}
	if _, err := (&Folder{Dir: link}).Read(testStore, testThread); err == nil {
		t.Error("a link was followed")
	}
}

// TestHostile: nothing but what Write makes for that thread is read.
func TestHostile(t *testing.T) {
	good := string(encoded(t, sample(t)))
	header, rest, _ := strings.Cut(good, "\n")
	nodes, objects := rest[:strings.Index(rest, "blob ")], rest[strings.Index(rest, "blob "):]
	_, lines, _ := strings.Cut(nodes, "\n")
	replace := func(old, now string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("there is no %q in\n%s", old, good)
		}
		return strings.Replace(good, old, now, 1)
	}
	changed := func(change func(*Step)) string {
		s := sample(t)
		change(&s)
		return string(encoded(t, s))
	}
	run := func(id string, usage record.Usage) string {
		return changed(func(s *Step) {
			step, err := s.Record()
			must(t, err)
			step.Run.ID, step.Usage = id, &usage
			n, h, err := step.Node(time.UnixMilli(3))
			must(t, err)
			delete(s.Nodes, s.Handle)
			s.Nodes[h], s.Handle = n, h
		})
	}
	for name, c := range map[string]struct{ file, says string }{
		"empty":                     {"", "cut off"},
		"garbage":                   {"\x00\xff\n\n", "first line"},
		"a list":                    {"[]\n", "first line"},
		"deep":                      {strings.Repeat("[", 100_000) + "\n", "first line"},
		"an endless line":           {strings.Repeat("x", 2*maxHeader), "longer than"},
		"cut off in its first line": {header[:30], "cut off"},
		"cut off after it":          {header + "\n", "cut off"},
		"cut off in a node":         {header + "\n" + nodes[:40], "cut off"},
		"cut off in an object":      {good[:len(good)-1], "cut off"},
		"more than it says":         {good + "x", "more in it"},
		"another format":            {replace(`"format":1`, `"format":2`), "this uwf knows 1"},
		"an unknown field":          {replace(`"format":1`, `"format":1,"verdict":"approved"`), "verdict"},
		"a field twice":             {replace(`"format":1`, `"format":1,"format":1`), "first line"},
		"another store":             {replace(testStore, "fedcba9876543210"), "of store fedcba"},
		"a store that is a path":    {replace(testStore, "../../../../etc"), "no store's id"},
		"a thread that is a path":   {replace(`"thread":"`+string(testThread), `"thread":"../../x`), "no thread's id"},
		"another thread":            {changed(func(s *Step) { s.Thread = "01JD0000000000000000000002" }), "of thread 01JD0000000000000000000002"},
		"an entry of another one":   {replace(`"entry":"`+string(testThread), `"entry":"01JD0000000000000000000002`), "not of thread"},
		"an entry that is none":     {replace(`"entry":"`, `"entry":"?`), "entry"},
		"another claim":             {replace(`"nonce":"n0"`, `"nonce":"n1"`), "another claim"},
		"a nonce of many lines":     {replace(`"nonce":"n0"`, `"nonce":"n\n0"`), "nonce"},
		"a model of many lines":     {replace(`"model":"gpt"`, `"model":"gpt\nUwf-By: alice"`), "model"},
		"no handle":                 {replace(`"handle":"`, `"handle":"x`), "no hash"},
		"a handle of another node":  {strings.Replace(good, `"handle":"`+string(sample(t).Handle), `"handle":"`+string(sample(t).Entry.Head), 1), "its step"},
		"no nodes":                  {replace(`"nodes":2`, `"nodes":0`), "0 nodes"},
		"billions of nodes":         {replace(`"nodes":2`, `"nodes":2000000000`), "nodes"},
		"less than no objects":      {replace(`"objects":4`, `"objects":-1`), "-1 objects"},
		"billions of objects":       {replace(`"objects":4`, `"objects":2000000000`), "objects"},
		"objects without a commit":  {replace(`"work":{`, `"nonce2":{`), "nonce2"},
		"a node twice":              {header + "\n" + lines + lines + objects, "twice"},
		"a node of another hash":    {replace("it is", "it ix"), "hashes to"},
		"a node that is none":       {header + "\n{}\n" + lines + objects, "a node of it"},
		"a run that is a path":      {run("../../heads/main", record.Usage{}), "no run"},
		"no run":                    {run("", record.Usage{}), "no run"},
		"less than nothing":         {run("r1", record.Usage{Turns: -1, InputTokens: -5}), ""},
		"more than can be":          {run("r1", record.Usage{InputTokens: 1 << 50}), "numbers that can't be"},
		"a commit that is a path":   {replace(`"commit":"`, `"commit":"../../`), "no commits"},
		"another commit":            {replace(`"commit":"`+sample(t).Work.Commit.String(), `"commit":"`+strings.Repeat("1", 40)), "not the step's"},
		"no commit":                 {replace(`,"commit":"`+sample(t).Work.Commit.String()+`"}`, "}"), "not the step's"},
		"an object of no type":      {header + "\n" + nodes + strings.Replace(objects, "blob", "ofs-delta", 1), "begins no object"},
		"a tag":                     {header + "\n" + nodes + strings.Replace(objects, "blob", "tag", 1), "begins no object"},
		"a size with a sign":        {header + "\n" + nodes + strings.Replace(objects, "blob ", "blob +", 1), "begins no object"},
		"a size of many lines":      {header + "\n" + nodes + "blob " + strings.Repeat("0", 100) + "4\n" + objects, "longer than"},
		"less than an empty object": {header + "\n" + nodes + "blob -4\n" + objects, "more than is taken"},
		"a huge file":               {header + "\n" + nodes + fmt.Sprintf("blob %d\n", workspace.DefaultMaxFile+1) + objects, "more than is taken"},
		"a huge folder":             {header + "\n" + nodes + fmt.Sprintf("tree %d\n", maxTrees+1) + objects, "more than is taken"},
		"an object twice":           {header + "\n" + nodes + strings.Repeat("blob 0\n", 4), "twice"},
		"a pack":                    {"PACK\x00\x00\x00\x02" + good, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Folder{Dir: t.TempDir()}
			must(t, os.Mkdir(filepath.Join(f.Dir, testStore), 0o700))
			path := f.Path(testStore, testThread, "n0")
			must(t, os.WriteFile(path, []byte(c.file), 0o600))
			_, err := f.Read(testStore, testThread)
			var wrong *BadError
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.says) || wrong.Path != path {
				t.Fatalf("%v", err)
			}
			aside, err := f.SetAside(path)
			must(t, err)
			if b, err := os.ReadFile(aside); err != nil || string(b) != c.file {
				t.Errorf("it is not in %s: %v", aside, err)
			}
			if _, err := f.Read(testStore, testThread); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestNotAFile: no link is followed, and nothing but a file is opened.
func TestNotAFile(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, f *Folder, path string){
		"a link to a good file": func(t *testing.T, f *Folder, path string) {
			must(t, os.WriteFile(path+"x", encoded(t, sample(t)), 0o600))
			must(t, os.Symlink(filepath.Base(path)+"x", path))
		},
		"a link that leads out": func(t *testing.T, _ *Folder, path string) { must(t, os.Symlink("/etc/passwd", path)) },
		"a folder":              func(t *testing.T, _ *Folder, path string) { must(t, os.Mkdir(path, 0o700)) },
		"a folder that is a link": func(t *testing.T, f *Folder, path string) {
			elsewhere := &Folder{Dir: t.TempDir()}
			must(t, elsewhere.Write(sample(t)))
			must(t, os.Remove(filepath.Dir(path)))
			must(t, os.Symlink(filepath.Join(elsewhere.Dir, testStore), filepath.Dir(path)))
		},
		"one that is too large": func(t *testing.T, _ *Folder, path string) {
			must(t, os.WriteFile(path, nil, 0o600))
			must(t, os.Truncate(path, MaxFile+1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Folder{Dir: t.TempDir()}
			path := f.Path(testStore, testThread, "n0")
			must(t, os.Mkdir(filepath.Dir(path), 0o700))
			make(t, f, path)
			if _, err := f.Read(testStore, testThread); !errors.As(err, new(*BadError)) {
				t.Errorf("%v", err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, sample(f)))
	s := sample(f)
	s.Work = Work{}
	f.Add(encoded(f, s))
	f.Add([]byte("{\"format\":1}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode(bytes.NewReader(b))
		if err != nil {
			if !errors.As(err, new(*BadError)) {
				t.Errorf("%v", err)
			}
			return
		}
		file := encoded(t, s)
		again, err := Decode(bytes.NewReader(file))
		if err != nil || !reflect.DeepEqual(again.Entry, s.Entry) || !bytes.Equal(encoded(t, again), file) {
			t.Errorf("%v\n%+v\n%+v", err, again, s)
		}
	})
}
