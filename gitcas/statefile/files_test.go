package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/node"
)

func TestRegistry(t *testing.T) {
	set := map[string]*RegistryEntry{
		"plain": {Hash: h1}, "@ocas/x": {Hash: h2, Timestamp: 9}, "no": {Hash: h1, History: []RegistryVersion{{h1, 0}, {h2, 8}}}, "with: space #": {Hash: h1},
	}
	file, err := NewRegistry().With(set)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseRegistry(file.Encode())
	if err != nil {
		t.Fatalf("%v\n%s", err, file.Encode())
	}
	for name, want := range set {
		if got := back.All()[name]; !reflect.DeepEqual(got, *want) {
			t.Errorf("%s: %+v, want %+v", name, got, *want)
		}
	}
	if back, err = back.With(map[string]*RegistryEntry{"plain": nil, "no": nil, "@ocas/x": nil, "with: space #": nil}); err != nil || string(back.Encode()) != "{}\n" {
		t.Errorf("all removed: %q, %v", back.Encode(), err)
	}
	long := strings.Repeat("x", maxName+1)
	for name, tc := range map[string]struct{ text, want string }{
		"empty":                {"", "the file is empty"},
		"twice":                {"a: " + h1 + "\na: " + h1 + "\n", `line 2: "a" is there twice`},
		"no name":              {"\"\": " + h1 + "\n", `line 1: a key is empty`},
		"long name":            {long + ": " + h1 + "\n", "is no name"},
		"spaces":               {"\" a\": " + h1 + "\n", `line 1: " a" is no name`},
		"control":              {"\"a\\nb\": " + h1 + "\n", `line 1: "a\nb" is no name`},
		"no hash":              {"a: {timestamp: 1}\n", "line 1: no hash"},
		"bad hash":             {"a: x\n", `line 1: hash: "x" is no hash`},
		"list":                 {"a: [" + h1 + "]\n", "line 1: an entry is a hash or a mapping"},
		"unknown key":          {"a: {hash: " + h1 + ", x: 1}\n", `line 1: the entry: unknown key "x"`},
		"timestamp":            {"a: {hash: " + h1 + ", timestamp: -1}\n", `line 1: timestamp: "-1" is no whole number`},
		"history is text":      {"a: {hash: " + h1 + ", history: x}\n", "line 1: history is no list of at most 10000 versions"},
		"long history":         {"a: {hash: " + h1 + ", history: [" + strings.Repeat("{hash: "+h1+"}, ", maxVersions+1) + "]}\n", "line 1: history is no list of at most 10000 versions"},
		"version without hash": {"a: {hash: " + h1 + ", history: [{timestamp: 1}]}\n", "line 1: history: no hash"},
		"version is text":      {"a: {hash: " + h1 + ", history: [" + h1 + "]}\n", "line 1: history is no mapping"},
		"unknown in a version": {"a: {hash: " + h1 + ", history: [{hash: " + h1 + ", by: me}]}\n", `line 1: history: unknown key "by"`},
		"version's timestamp":  {"a: {hash: " + h1 + ", history: [{hash: " + h1 + ", timestamp: x}]}\n", `line 1: history.timestamp: "x" is no whole number`},
	} {
		if _, err := ParseRegistry([]byte(tc.text)); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	many := make([]RegistryVersion, maxVersions+1)
	for i := range many {
		many[i].Hash = h1
	}
	for name, e := range map[string]RegistryEntry{
		" a": {Hash: h1}, "a\xff": {Hash: h1}, "hash": {Hash: "x"}, "timestamp": {Hash: h1, Timestamp: -1}, "long history": {Hash: h1, History: many},
		"version": {Hash: h1, History: []RegistryVersion{{"x", 1}}}, "version's timestamp": {Hash: h1, History: []RegistryVersion{{h1, -1}}},
	} {
		if _, err := NewRegistry().With(map[string]*RegistryEntry{name: &e}); !errors.Is(err, ErrUnstorable) {
			t.Errorf("%s is written: %v", name, err)
		}
	}
}

func TestVersion(t *testing.T) {
	want := Version{Store: strings.Repeat("0a", 16), Atomic: true}
	text, err := EncodeVersion(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseVersion(text); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ParseVersion([]byte("format: 3\nshape: new\nstore: ?\n")); !errors.Is(err, ErrFormat) {
		t.Errorf("a new format: %v", err)
	}
	if _, err := ParseVersion([]byte("format: 1\n")); !errors.Is(err, ErrUnreleased) || !errors.Is(err, ErrFormat) {
		t.Errorf("the format before the first release: %v", err)
	}
	version := func(store, atomic string) string { return "format: 2\nstore: " + store + "\natomic: " + atomic + "\n" }
	id := strings.Repeat("0", 16)
	limited, err := EncodeVersion(Version{Store: want.Store, Atomic: true, Refs: 2})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseVersion(limited); err != nil || got != (Version{Store: want.Store, Atomic: true, Refs: 2}) || string(limited) != string(text)+"refs: 2\n" {
		t.Errorf("%q: %+v, %v", limited, got, err)
	}
	limited = append(limited, "hash: sha256"...)
	if limited, err = SetVersionRefs(limited, 1); err != nil || string(limited) != string(text)+"hash: sha256\nrefs: 1\n" {
		t.Errorf("%q, %v", limited, err)
	}
	if got, err := ParseVersion([]byte(string(text) + "refs: 0\n")); err != nil || got != want {
		t.Errorf("no bound: %+v, %v", got, err)
	}
	for _, n := range []int{0, -1, 10_000} {
		if _, err := SetVersionRefs(text, n); !errors.Is(err, ErrUnstorable) {
			t.Errorf("%d refs are written: %v", n, err)
		}
	}
	for name, tc := range map[string]struct{ text, want string }{
		"refs in words":     {string(text) + "refs: two\n", "is no number"},
		"refs below zero":   {string(text) + "refs: -1\n", "is no number"},
		"refs with a plus":  {string(text) + "refs: +2\n", "is no number"},
		"refs from zero":    {string(text) + "refs: 02\n", "is no number"},
		"too many refs":     {string(text) + "refs: 10000\n", "is no number"},
		"no refs":           {string(text) + "refs:\n", "is no number"},
		"refs twice":        {string(text) + "refs: 2\nrefs: 2\n", "line 5: not one more"},
		"empty":             {"", "no format"},
		"no value":          {"format\n", "line 1: not one more"},
		"no format":         {"store: " + id + "\natomic: true\n", "no format"},
		"twice":             {string(text) + "format: 2\n", "line 4: not one more"},
		"short store":       {version(id[1:], "true"), "is no store id"},
		"long store":        {version(strings.Repeat("0", 65), "true"), "is no store id"},
		"path for a store":  {version(id[1:]+"/", "true"), "is no store id"},
		"store in capitals": {version(id[1:]+"A", "true"), "is no store id"},
		"no atomic":         {"format: 2\nstore: " + id + "\n", "neither true nor false"},
		"atomic":            {version(id, "yes"), "neither true nor false"},
		"large":             {string(text) + strings.Repeat("#", MaxVersionFile), "more than 4096"},
	} {
		if _, err := ParseVersion([]byte(tc.text)); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	if _, err := EncodeVersion(Version{Store: "../../../../../../x"}); !errors.Is(err, ErrUnstorable) {
		t.Errorf("a path for a store is written: %v", err)
	}
	if got, err := ParseVersion([]byte(string(text) + "# more\nhash: sha256\n")); err != nil || got != want {
		t.Errorf("an unknown key: %+v, %v", got, err)
	}
}

func ended(n int) Ended {
	return Ended{Thread: ThreadID(fmt.Sprintf("01KN%022d", n)), Workflow: h1, Head: h1, CompletedAt: 1_772_366_400_000, Reason: ReasonEnded,
		Commit: strings.Repeat("a", 40), Key: "k<&>", Steps: []node.Hash{h1, h2}, PR: 4, Work: Work{Branch: "uwf/x"}}
}

func TestHistory(t *testing.T) {
	var file []byte
	for i := range 3 {
		line, err := EncodeEnded(ended(i))
		if err != nil {
			t.Fatal(err)
		}
		file = append(file, line...)
	}
	var got []Ended
	if err := ParseHistory(file, func(e Ended) error { got = append(got, e); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := []Ended{ended(2), ended(1), ended(0)}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(string(file), `"key":"k<&>"`) {
		t.Errorf("escaped for HTML: %s", file)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"no JSON": {"x", "line 1: jsontext: invalid character"}, "cut": {string(file[:40]), "line 1: jsontext: unexpected EOF"}, "blank": {"\n\n", "unexpected EOF"},
		"large": {string(make([]byte, MaxHistoryFile+1)), "bytes, more than"}, "second line": {string(file) + "{}\n", `line 4: not a thread id: ""`},
	} {
		if err := ParseHistory([]byte(tc.text), func(Ended) error { return nil }); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	line := strings.SplitAfter(string(file), "\n")[0]
	for _, branch := range []string{"-x", "../../heads/main", "a..b", "a b", "a~1", "x.lock", "a\\nb", "/a", "a/", "@{1}", strings.Repeat("a", maxBranch+1)} {
		text := strings.Replace(line, `"branch":"uwf/x"`, `"branch":"`+branch+`"`, 1)
		err := ParseHistory([]byte(text), func(Ended) error { return nil })
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "no branch name") {
			t.Errorf("branch %q: %v", branch, err)
		}
	}
	for _, u := range []RoleUsage{{Steps: -1}, {TokensIn: -1}, {TokensOut: -1}, {CostUSD: -1}, {Role: strings.Repeat("a", maxKeyText+1)}, {Model: "\xff"}} {
		e := ended(1)
		e.Usage = []RoleUsage{u}
		if _, err := EncodeEnded(e); !errors.Is(err, ErrUnstorable) || !strings.Contains(err.Error(), "usage: out of range") {
			t.Errorf("%+v: %v", u, err)
		}
	}
	stop := errors.New("stop")
	if err := ParseHistory(file, func(Ended) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("a visit's error: %v", err)
	}
}

// TestEndedRefused: a history line that names what can't be is neither read nor written.
func TestEndedRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Ended)
		want   string
	}{
		"thread":          {func(e *Ended) { e.Thread = "x" }, `not a thread id: "x"`},
		"head":            {func(e *Ended) { e.Head = "x" }, `head: "x" is no hash`},
		"workflow":        {func(e *Ended) { e.Workflow = "x" }, `workflow: "x" is no hash`},
		"reason":          {func(e *Ended) { e.Reason = "tired" }, `reason: "tired" is none of`},
		"commit":          {func(e *Ended) { e.Commit = "HEAD" }, `commit: "HEAD" is no commit id`},
		"short commit":    {func(e *Ended) { e.Commit = "abc" }, `commit: "abc" is no commit id`},
		"work's commit":   {func(e *Ended) { e.Work.Commit = "HEAD" }, `work.commit: "HEAD" is no commit id`},
		"work's branch":   {func(e *Ended) { e.Work.Branch = "../../tags/v1" }, `work.branch: "../../tags/v1" is no branch name`},
		"key":             {func(e *Ended) { e.Key = strings.Repeat("x", maxKeyText+1) }, "key or note: too long"},
		"note":            {func(e *Ended) { e.Note = strings.Repeat("x", maxNoteText+1) }, "key or note: too long"},
		"title":           {func(e *Ended) { e.Title = strings.Repeat("x", maxTitleText+1) }, "title or result: too long"},
		"result":          {func(e *Ended) { e.Result = strings.Repeat("x", maxKeyText+1) }, "title or result: too long"},
		"by":              {func(e *Ended) { e.By = &By{Kind: "admin"} }, "by or closedBy: nobody who can have done it"},
		"closedBy":        {func(e *Ended) { e.ClosedBy = &By{Kind: "forge"} }, "by or closedBy: nobody who can have done it"},
		"used steps":      {func(e *Ended) { e.Used = &Cost{Steps: -1} }, "used: out of range"},
		"used tokens":     {func(e *Ended) { e.Used = &Cost{Tokens: -1} }, "used: out of range"},
		"used time":       {func(e *Ended) { e.Used = &Cost{DurationMs: -1} }, "used: out of range"},
		"used cost":       {func(e *Ended) { e.Used = &Cost{CostUSD: -1} }, "used: out of range"},
		"spent month":     {func(e *Ended) { e.Spent = &Spent{Month: "2026-13"} }, "spent: no month, or out of range"},
		"spent tokens":    {func(e *Ended) { e.Spent = &Spent{Month: "2026-11", Tokens: -1} }, "spent: no month, or out of range"},
		"tokens before":   {func(e *Ended) { e.Spent = &Spent{Month: "2026-11", TokensBefore: -1} }, "spent: no month, or out of range"},
		"spent cost":      {func(e *Ended) { e.Spent = &Spent{Month: "2026-11", CostUSD: -1} }, "spent: no month, or out of range"},
		"cost before":     {func(e *Ended) { e.Spent = &Spent{Month: "2026-11", CostBefore: -1} }, "spent: no month, or out of range"},
		"many steps":      {func(e *Ended) { e.Steps = slices.Repeat([]node.Hash{h1}, maxSteps+1) }, "100001 steps, more than 100000"},
		"step":            {func(e *Ended) { e.Steps = []node.Hash{h1, "x"} }, `steps: "x" is no hash`},
		"before all time": {func(e *Ended) { e.CompletedAt = -1 }, "completedAt or pr: out of range"},
		"year 10000":      {func(e *Ended) { e.CompletedAt = maxMillis + 1 }, "completedAt or pr: out of range"},
		"pr":              {func(e *Ended) { e.PR = -1 }, "completedAt or pr: out of range"},
	} {
		e := ended(0)
		tc.change(&e)
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := ParseHistory(line, func(Ended) error { return nil }); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s is read: %v, want %s", name, err, tc.want)
		}
		if _, err := EncodeEnded(e); !errors.Is(err, ErrUnstorable) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s is written: %v, want %s", name, err, tc.want)
		}
	}
}

func FuzzRegistry(f *testing.F) {
	f.Add([]byte("a: " + h1 + "\n\"b c\":\n  hash: " + h1 + "\n  history:\n    - hash: " + h1 + "\n      timestamp: 4\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := ParseRegistry(data)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		set := map[string]*RegistryEntry{}
		for name, e := range file.All() {
			set[name] = &e
		}
		again, err := file.With(set)
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseRegistry(again.Encode())
		if err != nil || !reflect.DeepEqual(back.All(), file.All()) {
			t.Fatalf("%v\n%s", err, again.Encode())
		}
	})
}

func FuzzVersion(f *testing.F) {
	f.Add([]byte("format: 1\nstore: 0000000000000000\natomic: true\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := ParseVersion(data)
		if err != nil {
			return
		}
		text, err := EncodeVersion(v)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParseVersion(text); err != nil || back != v {
			t.Fatalf("%+v, %v", back, err)
		}
	})
}

func FuzzHistory(f *testing.F) {
	line, err := EncodeEnded(ended(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(line, line...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var all []Ended
		if err := ParseHistory(data, func(e Ended) error { all = append(all, e); return nil }); err != nil {
			return
		}
		for _, e := range all {
			text, err := EncodeEnded(e)
			if err != nil {
				t.Fatal(err)
			}
			if err := ParseHistory(text, func(Ended) error { return nil }); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
		}
	})
}
