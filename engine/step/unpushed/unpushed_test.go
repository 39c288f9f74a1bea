package unpushed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
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

// TestClear: what earlier jobs left of a store goes, and nothing else in the folder.
func TestClear(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "artifact")
	f := &Folder{Dir: dir}
	must(t, f.Clear(testStore)) // there is no folder
	old := sample(t)
	old.Nonce = "old"
	must(t, f.Write(old))
	must(t, f.Write(sample(t)))
	other := sample(t)
	other.Store = "fedcba9876543210"
	must(t, f.Write(other))
	mine := filepath.Join(dir, "mine")
	must(t, os.WriteFile(mine, []byte("x"), 0o600))
	must(t, f.Clear(testStore))
	must(t, f.Clear(testStore))
	if _, err := os.Lstat(filepath.Join(dir, testStore)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store's folder is left: %v", err)
	}
	must(t, f.Clear("mine"))
	must(t, f.Clear("."))
	must(t, f.Clear("../artifact"))
	for _, path := range []string{mine, f.Path(other.Store, testThread, "n0")} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	if err := (&Folder{Dir: link}).Clear(other.Store); err == nil || !strings.Contains(err.Error(), "remove it by hand") {
		t.Errorf("a link was followed: %v", err)
	}
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "x"), nil, 0o600))
	must(t, os.Symlink(outside, filepath.Join(dir, testStore)))
	must(t, f.Clear(testStore))
	if _, err := os.Stat(filepath.Join(outside, "x")); err != nil {
		t.Errorf("what a link leads to was removed: %v", err)
	}
}

// TestHolds: a step of the thread is one whose file is whole.
func TestHolds(t *testing.T) {
	f := &Folder{Dir: filepath.Join(t.TempDir(), "artifact")}
	if f.Holds(testThread) {
		t.Error("there is no folder")
	}
	must(t, f.Write(sample(t)))
	if !f.Holds(testThread) || f.Holds("01JD0000000000000000000002") {
		t.Error("the step is not told from another thread's")
	}
	path := f.Path(testStore, testThread, "n0")
	for _, end := range []string{half, badSuffix} {
		must(t, os.Rename(path, path+end))
		if f.Holds(testThread) {
			t.Errorf("%s is taken for a step", end)
		}
		must(t, os.Rename(path+end, path))
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
	s = sample(t)
	s.Thread = "../../x"
	if err := f.Write(s); err == nil || !strings.Contains(err.Error(), "no id that can name a file") {
		t.Errorf("a thread that is a path: %v", err)
	}
	s = sample(t)
	s.Entry.Head = "no hash"
	if err := f.Write(s); err == nil {
		t.Error("an entry that nobody could read was written")
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
	full := f.Path(testStore, testThread, "n1") + half
	must(t, os.MkdirAll(filepath.Join(full, "x"), 0o700))
	s = sample(t)
	s.Nonce = "n1"
	if err := f.Write(s); err == nil || !strings.Contains(err.Error(), "directory not empty") {
		t.Errorf("over a folder: %v", err)
	}
	for dir, says := range map[string]string{file: "mkdir", filepath.Join(file, "below"): "mkdir", link: "is no folder"} {
		if err := (&Folder{Dir: dir}).Write(sample(t)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s was taken for a folder: %v", dir, err)
		}
	}
	if _, err := (&Folder{Dir: link}).Read(testStore, testThread); err == nil || !strings.Contains(err.Error(), "read the sealed step of thread "+string(testThread)) {
		t.Errorf("a link was followed: %v", err)
	}
	if _, err := (&Folder{Dir: t.TempDir()}).Read(testStore, testThread); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without one of the store: %v", err)
	}
	if _, err := f.SetAside("not/in/it"); err == nil || !strings.Contains(err.Error(), "relative") {
		t.Errorf("a path of another folder: %v", err)
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
	says := func(change func(*record.Step)) string {
		return changed(func(s *Step) {
			step, err := s.Record()
			must(t, err)
			change(&step)
			n, h, err := step.Node(time.UnixMilli(3))
			must(t, err)
			delete(s.Nodes, s.Handle)
			s.Nodes[h], s.Handle = n, h
		})
	}
	run := func(id string, usage record.Usage) string {
		return says(func(s *record.Step) { s.Run.ID, s.Usage = id, &usage })
	}
	handle := `"handle":"` + string(sample(t).Handle)
	two := sample(t)
	entries, err := statefile.NewThreads().With(map[gitcas.ThreadID]*gitcas.Entry{two.Thread: &two.Entry, "01JD0000000000000000000002": &two.Entry})
	must(t, err)
	entriesOfTwo, err := json.Marshal(string(entries.Encode()))
	must(t, err)
	entryOfOne := regexp.MustCompile(`"entry":"(?:[^"\\]|\\.)*"`).FindString(good)
	for name, c := range map[string]struct{ file, says string }{
		"empty":                      {"", "cut off"},
		"garbage":                    {"\x00\xff\n\n", "first line"},
		"a list":                     {"[]\n", "first line"},
		"deep":                       {strings.Repeat("[", 100_000) + "\n", "first line"},
		"an endless line":            {strings.Repeat("x", 2*maxHeader), "longer than"},
		"cut off in its first line":  {header[:30], "cut off"},
		"cut off after it":           {header + "\n", "cut off"},
		"cut off in a node":          {header + "\n" + nodes[:40], "cut off"},
		"cut off in an object":       {good[:len(good)-1], "cut off"},
		"more than it says":          {good + "x", "more in it"},
		"another format":             {replace(`"format":1`, `"format":2`), "this uwf knows 1"},
		"an unknown field":           {replace(`"format":1`, `"format":1,"verdict":"approved"`), "verdict"},
		"a field twice":              {replace(`"format":1`, `"format":1,"format":1`), "first line"},
		"another store":              {replace(testStore, "fedcba9876543210"), "of store fedcba"},
		"a store that is a path":     {replace(testStore, "../../../../etc"), "no store's id"},
		"a thread that is a path":    {replace(`"thread":"`+string(testThread), `"thread":"../../x`), "no thread's id"},
		"another thread":             {changed(func(s *Step) { s.Thread = "01JD0000000000000000000002" }), "of thread 01JD0000000000000000000002"},
		"an entry of another one":    {replace(`"entry":"`+string(testThread), `"entry":"01JD0000000000000000000002`), "not of thread"},
		"an entry that is none":      {replace(`"entry":"`, `"entry":"?`), "entry"},
		"another claim":              {replace(`"nonce":"n0"`, `"nonce":"n1"`), "another claim"},
		"a nonce of many lines":      {replace(`"nonce":"n0"`, `"nonce":"n\n0"`), "nonce"},
		"a model of many lines":      {replace(`"model":"gpt"`, `"model":"gpt\nUwf-By: alice"`), "model"},
		"no handle":                  {replace(`"handle":"`, `"handle":"x`), "no hash"},
		"a handle of another node":   {strings.Replace(good, handle, `"handle":"`+string(sample(t).Entry.Head), 1), "its step: "},
		"a handle of no node":        {strings.Replace(good, handle, `"handle":"0000000000000`, 1), "its step: node not found"},
		"entries of two threads":     {replace(entryOfOne, `"entry":`+string(entriesOfTwo)), "not of thread " + string(testThread) + " alone"},
		"a step without a run":       {says(func(s *record.Step) { s.Run = nil }), "no run"},
		"less than no attempt":       {says(func(s *record.Step) { s.Run.Attempt = -1 }), "no run"},
		"attempts without end":       {says(func(s *record.Step) { s.Run.Attempt = maxAttempt + 1 }), "no run"},
		"a role of many lines":       {says(func(s *record.Step) { s.Role = "a\nUwf-By: alice" }), "no role"},
		"no role":                    {says(func(s *record.Step) { s.Role = "" }), "no role"},
		"a long role":                {says(func(s *record.Step) { s.Role = strings.Repeat("x", maxName+1) }), "no role"},
		"an agent of many lines":     {says(func(s *record.Step) { s.Agent = "\x1b[0m" }), "no role or agent"},
		"nothing taken":              {says(func(s *record.Step) { s.Usage = nil }), "numbers that can't be"},
		"a base that is a path":      {replace(`"from":"`, `"from":"../../`), "no commits"},
		"no base's id":               {replace(`"from":"`+sample(t).Work.From.String(), `"from":"`+strings.Repeat("0", 40)), "no commits"},
		"a node of another step":     {header + "\n" + strings.Replace(nodes, `{"hash"`, `{"of":"0000000000000","hash"`, 1) + objects, "of another step"},
		"an object of no known type": {header + "\n" + nodes + strings.Replace(objects, "blob", "blub", 1), "begins no object"},
		"cut off in a file":          {header + "\n" + nodes + "blob 9\nabc", "3 bytes of a blob of 9"},
		"a commit that isn't there":  {strings.Replace(header, `"objects":4`, `"objects":0`, 1) + "\n" + nodes, "its work commit is not in it"},
		"a tree as the commit":       {replace(`"commit":"`+sample(t).Work.Commit.String(), `"commit":"`+sample(t).Work.From.String()), ""},
		"files and no such commit":   {changed(func(s *Step) { delete(s.Work.Objects, s.Work.Commit) }), "its work commit is not in it"},
		"files without a commit": {changed(func(s *Step) {
			delete(s.Work.Objects, s.Work.Commit)
			s.Work.Commit = wire.ZeroID
		}), "none is and there are files"},
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
		"more than anybody has":     {run("r1", record.Usage{CostUSD: 1e300}), "numbers that can't be"},
		"years":                     {run("r1", record.Usage{DurationMs: 1e11}), "numbers that can't be"},
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
			if !errors.As(err, &wrong) || !strings.Contains(wrong.Why, c.says) || wrong.Path != path {
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
			says := map[bool]string{true: "at most", false: "it is"}[name == "one that is too large"]
			var wrong *BadError
			if _, err := f.Read(testStore, testThread); !errors.As(err, &wrong) || !strings.Contains(wrong.Why, says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestUnreadable: a disk that fails says nothing of what was written there.
func TestUnreadable(t *testing.T) {
	s := sample(t)
	delete(s.Work.Objects, wire.NewObject(plumbing.BlobObject, nil).ID)
	good := string(encoded(t, s))
	broken := errors.New("input/output error")
	for n := range good {
		_, err := Decode(io.MultiReader(strings.NewReader(good[:n]), iotest.ErrReader(broken)))
		if !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", n, err)
		}
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
