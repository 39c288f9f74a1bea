package statefile

import (
	"errors"
	"strings"
	"testing"
)

func TestMapThreads(t *testing.T) {
	const file = `# people's note
01KN0000000000000000000001: AAAAAAAAAAAAA
01KN0000000000000000000002:
  head: BBBBBBBBBBBBB
  # said by hand: word
  status: suspended
  key: "a word"
  suspended:
    role: dev
    reason: word
  unknown:
    deep: [word, 7]
01KN0000000000000000000003:
  head: CCCCCCCCCCCCC   # a person's layout
`
	threads, err := ParseThreads([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	same, err := threads.Map(func(_ ThreadID, e Entry) Entry { return e }, func(s string) string { return s })
	if err != nil || string(same.Encode()) != file {
		t.Fatalf("%v:\n%s", err, same.Encode())
	}
	swap := strings.NewReplacer("word", "thing")
	got, err := threads.Map(func(_ ThreadID, e Entry) Entry {
		if e.Head == "AAAAAAAAAAAAA" {
			e.Head = "DDDDDDDDDDDDD"
		}
		e.Key = swap.Replace(e.Key)
		if e.Suspended != nil {
			e.Suspended.Reason = swap.Replace(e.Suspended.Reason)
		}
		return e
	}, swap.Replace)
	if err != nil {
		t.Fatal(err)
	}
	text := string(got.Encode())
	if strings.Contains(text, "word") || !strings.Contains(text, ": DDDDDDDDDDDDD\n") || !strings.Contains(text, "# a person's layout") {
		t.Errorf("it became\n%s", text)
	}
	back, err := ParseThreads([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := back.Get("01KN0000000000000000000002"); e.Key != "a thing" || e.Suspended.Reason != "thing" || !strings.Contains(back.lines[1].extra, "thing") || !strings.Contains(back.lines[1].extra, "7") {
		t.Errorf("entry %+v", e)
	}
	keep := func(_ ThreadID, e Entry) Entry { return e }
	for name, tc := range map[string]struct {
		edit func(ThreadID, Entry) Entry
		text *strings.Replacer
		want string
	}{
		"no hash":                    {func(_ ThreadID, e Entry) Entry { e.Head = "no hash"; return e }, swap, `not storable: the entry "01KN0000000000000000000001": it could not be read back: malformed: line 1: head: "no hash"`},
		"keys that are no more YAML": {keep, strings.NewReplacer("unknown", "\"unknown"), "it could not be read back: malformed: line 8: not valid YAML: "},
		"keys that are known":        {keep, strings.NewReplacer("unknown", "pause"), `it could not be read back: malformed: line 10: pause: unknown key "deep"`},
	} {
		if _, err := threads.Map(tc.edit, tc.text.Replace); !errors.Is(err, ErrUnstorable) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	if e, _ := threads.Get("01KN0000000000000000000002"); e.Suspended.Reason != "word" {
		t.Error("the original changed")
	}
}

func TestMapRegistry(t *testing.T) {
	const file = "# names\none: AAAAAAAAAAAAA\ntwo:\n  hash: BBBBBBBBBBBBB # by hand\n  history:\n    - hash: AAAAAAAAAAAAA\n"
	r, err := ParseRegistry([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	keep := func(s string) string { return s }
	same, err := r.Map(func(_ string, e RegistryEntry) RegistryEntry { return e }, keep)
	if err != nil || string(same.Encode()) != file {
		t.Fatalf("%v:\n%s", err, same.Encode())
	}
	got, err := r.Map(func(_ string, e RegistryEntry) RegistryEntry {
		for i := range e.History {
			e.History[i].Hash = "CCCCCCCCCCCCC"
		}
		return e
	}, keep)
	if err != nil || !strings.Contains(string(got.Encode()), "- hash: CCCCCCCCCCCCC") || !strings.Contains(string(got.Encode()), "one: AAAAAAAAAAAAA\n") {
		t.Fatalf("%v:\n%s", err, got.Encode())
	}
	if r.All()["two"].History[0].Hash != "AAAAAAAAAAAAA" {
		t.Error("the original changed")
	}
	if _, err := r.Map(func(_ string, e RegistryEntry) RegistryEntry { e.Hash = ""; return e }, keep); err == nil {
		t.Error("an entry that can't be stored is written")
	}
}
