package layout

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/node"
)

const (
	id ThreadID  = "01KN0000000000000000000001"
	h1 node.Hash = "0123456789ABC"
	h2 node.Hash = "1234567890123"
)

func TestThreadID(t *testing.T) {
	for s, want := range map[ThreadID]bool{
		"01ARZ3NDEKTSV4RRFFQ69G5FAV": true, "06EXAMP1E00000000000000000": true, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ": true,
		"": false, "81ARZ3NDEKTSV4RRFFQ69G5FAV": false, "/1ARZ3NDEKTSV4RRFFQ69G5FAV": false, "01ARZ3NDEKTSV4RRFFQ69G5FA": false, "01ARZ3NDEKTSV4RRFFQ69G5FAU": false,
		"01arz3ndektsv4rrffq69g5fav": false, "01ARZ3NDEKTSV4RRFFQ69G5F/V": false, "../../../../../../../../../": false,
	} {
		err := s.Check()
		if (err == nil) != want || s.Valid() != want || err != nil && !errors.Is(err, ErrBadThreadID) {
			t.Errorf("%q: %v", s, err)
		}
	}
	if got := ThreadID("01ARZ3NDEKTSV4RRFFQ69G5FAV").Time(); got.UnixMilli() != 1469922850259 {
		t.Errorf("the time of a ULID: %s", got)
	}
	// 2026-03-01T12:00:00Z as the TypeScript uwf writes it: shifted left by two.
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ms, digits := uint64(at.UnixMilli())<<2, ""
	for range 10 {
		digits = string(idAlphabet[ms&31]) + digits
		ms >>= 5
	}
	if got := ThreadID(digits + "0000000000000000").Time(); !strings.HasPrefix(digits, "06") || !got.Equal(at) {
		t.Errorf("%s: %s, want %s", digits, got, at)
	}
}

// TestChildOf: a folder has entries of certain names, and the same name is nothing elsewhere.
func TestChildOf(t *testing.T) {
	own, record := OwnFileOf(h1, h2), FileOf(h1)
	known := map[Kind]map[string]Kind{
		RootFolder:    {"README.md": TextFile, "VERSION": VersionFile, "threads.yaml": ThreadsFile, "registry.yaml": RegistryFile, "history": HistoryFolder, "cas": CasFolder, "threads": ThreadsFolder, "former": FormerFolder},
		CasFolder:     {record: NodeFile},
		ThreadsFolder: {string(id): ThreadFolder},
		ThreadFolder:  {record: NodeFile, own: OwnFile, "detail": DetailFolder, "pages": PagesFolder},
		DetailFolder:  {string(h1): NodeFolder},
		NodeFolder:    {record: NodeFile},
		PagesFolder:   {"index.md": PageFile, "00-task.md": PageFile, "123456-a_b.c-d.md": PageFile, "11-20.md": PageFile, "13-20.md": PageFile, "11-20.jsonl.md": PageFile},
		HistoryFolder: {"2026": YearFolder},
		YearFolder:    {"01-01.jsonl": DayFile, "12-31.jsonl": DayFile, "11-20.md": DayPage},
		FormerFolder:  {FormerName(id): FormerFile, FormerName(h1): FormerFile},
		AttemptFolder: {"thread": ThreadFolder, "cas": CasFolder, "work": WorkFolder, "error.txt": TextFile, "unlinked.txt": TextFile},
		WorkFolder:    {},
		NodeFile:      {},
	}
	names := []string{
		"", ".", "..", "readme.md", "x", "a/b", string(h1)[1:] + ".json", strings.ToLower(record), record + "x", own + ".json", strings.TrimSuffix(own, ".json"), string(h1), string(h1) + "..json", "." + record, string(h1) + ".x.json",
		"index.md.", "1-a.md", "1234567-a.md", "01-.md", "01-a/b.md", "01-" + strings.Repeat("a", 101) + ".md", "26", "20260", "13-01.jsonl", "1-1.jsonl", "01-01.jsonl.", string(id), string(h1) + ".JSONL", "." + FormerName(id), string(id) + "..jsonl", strings.ToLower(FormerName(h1)), ".jsonl", "01-32.jsonl", "13-20.md", "11-20.jsonl.md",
	}
	for _, children := range known {
		for name := range children {
			names = append(names, name)
		}
	}
	for kind, children := range known {
		for _, name := range names {
			if got := kind.ChildOf(name); got != children[name] {
				t.Errorf("%q in a folder of kind %d: %d, want %d", name, kind, got, children[name])
			}
		}
	}
}

func TestPlaces(t *testing.T) {
	folder := "threads/" + string(id)
	for want, p := range map[string]Place{
		"cas/" + FileOf(h2):                                 {},
		folder + "/" + FileOf(h2):                           {Thread: id},
		folder + "/" + OwnFileOf(h1, h2):                    {Thread: id, Of: h1},
		folder + "/detail/" + string(h1) + "/" + FileOf(h2): {Thread: id, Of: h1, Detail: true},
	} {
		if got := p.Path(h2); got != want || !strings.HasPrefix(got, p.String()) || strings.HasSuffix(p.String(), ".json") {
			t.Errorf("%s in %s, want %s", got, p, want)
		}
		in := p
		if !p.Detail {
			in.Of = ""
		}
		if at, h, ok := in.NodeAt(p.File(h2)); at != p || h != h2 || !ok {
			t.Errorf("%s is read as %s in %s", p.File(h2), h, at)
		}
	}
	for _, p := range []Place{{}, {Thread: id, Of: h1, Detail: true}} {
		if _, _, ok := p.NodeAt(OwnFileOf(h1, h2)); ok {
			t.Errorf("%s holds what a record of another folder refers to", p)
		}
	}
}

// TestPagePaths: a page has its place in a thread's folder.
func TestPagePaths(t *testing.T) {
	id := string(id)
	for _, path := range []string{"", id + "/01-a.md", "threads/" + id, "threads/" + id + "/pages/01.md", "threads/x/pages/01-a.md", "threads/" + id + "/pages/1-a.md", "threads/" + id + "/pages/" + id + "-a.md", "threads/" + id + "/01-a.md", "threads/" + id + "/pages/x/01-a.md", "/" + id + "/pages/01-a.md"} {
		if _, name, ok := ParsePage(path); ok {
			t.Errorf("%s is a page, %s", path, name)
		}
	}
	for path, want := range map[string]int{IndexPath(ThreadID(id)): 0, TaskPath(ThreadID(id)): 0, PagePath(ThreadID(id), 7, "a/../\x00b"): 7, PagePath(ThreadID(id), 12345, ""): 12345} {
		of, name, ok := ParsePage(path)
		if !ok || path != "threads/"+string(of)+"/pages/"+name || PageNumber(name) != want || PagesFolder.ChildOf(name) != PageFile {
			t.Errorf("%s: %s, %s, %d", path, of, name, PageNumber(name))
		}
	}
}

func TestHistoryNames(t *testing.T) {
	year, day := HistoryFile(time.UnixMilli(1_772_366_400_000))
	if year != "2026" || day != "03-01.jsonl" {
		t.Errorf("history/%s/%s", year, day)
	}
	if p := DayPageOf("history/2026/11-20.jsonl"); p != "history/2026/11-20.md" || DayFileOf(p) != "history/2026/11-20.jsonl" {
		t.Error(p)
	}
}

func TestRefs(t *testing.T) {
	for name, want := range map[string]Ref{
		ClaimRef(id):                                {Kind: ClaimKind, Thread: id},
		ClaimRef(id) + "/x":                         {Kind: ClaimKind},
		ClaimRef("x"):                               {Kind: ClaimKind},
		AttemptRef(id, "17.3/é", 2):                 {Kind: AttemptKind, Thread: id, Run: "17-3--", Attempt: 2},
		AttemptRef(id, "", 0):                       {Kind: AttemptKind, Thread: id, Run: "unnamed"},
		AttemptRef(id, strings.Repeat("x", 200), 1): {Kind: AttemptKind, Thread: id, Run: strings.Repeat("x", 100), Attempt: 1},
		AttemptRefs(id) + "run":                     {Kind: AttemptKind, Thread: id},
		AttemptRefs(id) + ".1":                      {Kind: AttemptKind, Thread: id},
		AttemptRefs(id) + "run.-1":                  {Kind: AttemptKind, Thread: id},
		AttemptRefs(id) + "run.x":                   {Kind: AttemptKind, Thread: id},
		AttemptRefs("x") + "run.1":                  {Kind: AttemptKind},
		Trials + "0123/1":                           {Kind: TrialKind},
		StoreRef:                                    {Kind: OtherKind},
		Heads + WorkBranch(id):                      {Kind: OtherKind},
	} {
		if got := ParseRef(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// FuzzNames: what is taken for a name of the layout is written in the same way, and leads
// nowhere else.
func FuzzNames(f *testing.F) {
	for _, name := range []string{FileOf(h1), OwnFileOf(h1, h2), IndexPath(id), PagePath(id, 3, "dev"), AttemptRef(id, "run", 1), "2026", "11-20.md"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for k := range WorkFolder + 1 {
			if k.ChildOf(name) != Foreign && (strings.ContainsAny(name, "/\\\x00\n ") || strings.HasPrefix(name, ".")) {
				t.Errorf("%q is taken for a name", name)
			}
		}
		if of, h, ok := ParseNodeFile(name); ok && name != (Place{Thread: id, Of: of}).File(h) {
			t.Errorf("%q is no %s of %q", name, h, of)
		}
		if of, page, ok := ParsePage(name); ok && (!of.Valid() || PagesFolder.ChildOf(page) != PageFile) {
			t.Errorf("%q is taken for the page %q of %q", name, page, of)
		}
		if r := ParseRef(name); r.Run != "" && !strings.HasPrefix(name, AttemptRefs(r.Thread)+r.Run+".") {
			t.Errorf("%q is taken for %+v", name, r)
		}
	})
}
