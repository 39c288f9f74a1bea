package screen

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

const known = "hunter2-hunter2"

// token is put together, so that no scanner takes this file for a leak; other is a second one.
func token() string { return "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6" }
func other() string { return "gl" + "pat-" + "aB3dE6gH9jK2mN5pQ8sT" }

func sumOf(s string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(s))) }

func redactor(t *testing.T, allow ...string) *redact.Redactor {
	t.Helper()
	r, err := redact.New(redact.Options{Secrets: []redact.Secret{{Name: "KEY", Value: known}}, Allow: allow,
		Patterns: []redact.Pattern{{Name: "ticket", Expr: `T-[0-9]{6}`}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// changed is one change of a test: text before and now; "-" where there is none.
type changed struct {
	path, before, now string
	mode              filemode.FileMode
	held              bool // the first parent has the new content, somewhere
}

// folder is a snapshot of changes, and how the files were.
type folder struct {
	snap workspace.Snapshot
	old  map[wire.ID][]byte
	read [][]wire.ID // what was asked for
}

func newFolder(list ...changed) *folder {
	f := &folder{old: map[wire.ID][]byte{}}
	for _, c := range list {
		mode := c.mode
		if mode == 0 {
			mode = filemode.Regular
		}
		change := workspace.Change{Path: c.path, Kind: workspace.Added, Mode: mode}
		if c.before != "-" {
			o := wire.NewObject(plumbing.BlobObject, []byte(c.before))
			f.old[o.ID] = o.Data
			change.Kind, change.Old, change.OldMode = workspace.Modified, o.ID, filemode.Regular
		}
		if c.now == "-" {
			change.Kind, change.Blob, change.Mode = workspace.Deleted, change.Old, 0
		} else {
			o := wire.NewObject(plumbing.BlobObject, []byte(c.now))
			change.Blob, change.Size = o.ID, int64(len(c.now))
			if !c.held {
				f.snap.Objects = append(f.snap.Objects, wire.PackObject{Object: o})
			}
		}
		f.snap.Changes = append(f.snap.Changes, change)
	}
	return f
}

func (f *folder) Read(_ context.Context, ids []wire.ID) (map[wire.ID][]byte, error) {
	f.read = append(f.read, ids)
	out := map[wire.ID][]byte{}
	for _, id := range ids {
		data, ok := f.old[id]
		if !ok {
			return nil, fmt.Errorf("%s is gone", id)
		}
		out[id] = data
	}
	return out, nil
}

// places are what a search found, in short.
func places(t *testing.T, err error) []string {
	t.Helper()
	var found *FoundError
	if err != nil && !errors.As(err, &found) {
		t.Fatal(err)
	}
	var out []string
	if found != nil {
		for _, f := range found.Findings {
			out = append(out, fmt.Sprintf("%s %s:%d %s", f.Part, f.Path, f.Line, f.Secret))
		}
	}
	return out
}

func wide(s string) string {
	return "\xff\xfe" + strings.Join(strings.Split(s, ""), "\x00") + "\x00"
}

// TestSearch: what stops a change, and what doesn't.
func TestSearch(t *testing.T) {
	big := strings.Repeat("\x00 binary ", 2<<20)
	for name, c := range map[string]struct {
		allow []string
		files []changed
		want  []string
	}{
		"nothing":                    {files: []changed{{path: "a", before: "-", now: "text\n"}, {path: "b", before: "x", now: "-"}}},
		"a known secret":             {files: []changed{{path: "a", before: "-", now: "x\ny = " + known}}, want: []string{"content a:2 KEY"}},
		"one that was there":         {files: []changed{{path: "a", before: known, now: known + "\n"}}, want: []string{"content a:1 KEY"}},
		"in a name":                  {files: []changed{{path: "d/" + known, before: "-", now: ""}}, want: []string{"name d/" + known + ":0 KEY"}},
		"in a deleted name":          {files: []changed{{path: known, before: "x", now: "-"}}},
		"in a link":                  {files: []changed{{path: "l", before: "-", now: "../" + known, mode: filemode.Symlink}}, want: []string{"target l:0 KEY"}},
		"in a binary":                {files: []changed{{path: "b", before: "-", now: "\x00\x01" + wide(known)[2:]}}, want: []string{"content b:1 KEY"}},
		"in UTF-16":                  {files: []changed{{path: "b", before: "-", now: wide("a\n" + known)}}, want: []string{"content b:2 KEY"}},
		"an allowed file":            {allow: []string{"path:a"}, files: []changed{{path: "a", before: "-", now: known}}, want: []string{"content a:1 KEY"}},
		"a token":                    {files: []changed{{path: "a", before: "-", now: "x\n\n" + token()}}, want: []string{"content a:3 github-token"}},
		"a token twice":              {files: []changed{{path: "a", before: "-", now: token() + "\n" + token() + " " + token()}}, want: []string{"content a:1 github-token", "content a:2 github-token"}},
		"in two files":               {files: []changed{{path: "a", before: "-", now: token()}, {path: "b", before: "-", now: other()}}, want: []string{"content a:1 github-token", "content b:1 gitlab-token"}},
		"a token in a name":          {files: []changed{{path: token(), before: "-", now: ""}}, want: []string{"name " + token() + ":0 github-token"}},
		"in the name it had":         {files: []changed{{path: token(), before: "", now: "x"}}},
		"a token in a link":          {files: []changed{{path: "l", before: "-", now: token(), mode: filemode.Symlink}}, want: []string{"target l:0 github-token"}},
		"a token in a binary":        {files: []changed{{path: "b", before: "-", now: "\x00" + token()}}},
		"a token in UTF-16":          {files: []changed{{path: "b", before: "-", now: wide("x\n" + token())}}, want: []string{"content b:2 github-token"}},
		"a pattern":                  {files: []changed{{path: "a", before: "-", now: "T-123456"}}, want: []string{"content a:1 ticket"}},
		"only beside secrets":        {files: []changed{{path: "a", before: "-", now: "https://me:hunter3-hunter3@host Authorization: Bearer abcdef0123456789abcdef"}}},
		"an example":                 {files: []changed{{path: "a", before: "-", now: "AKIAIOSFODNN7EXAMPLE"}}},
		"another line":               {files: []changed{{path: "a", before: token() + "\n", now: "x\n" + token() + "\n"}}},
		"indented, quoted":           {files: []changed{{path: "a", before: token() + "\n", now: "\tkey: \"" + token() + "\",\n"}}},
		"one more":                   {files: []changed{{path: "a", before: token(), now: token() + " " + other()}}, want: []string{"content a:1 gitlab-token"}},
		"renamed and changed":        {files: []changed{{path: "a", before: token(), now: "-"}, {path: "b", before: "-", now: "x" + token()}}},
		"moved to another":           {files: []changed{{path: "a", before: "x " + token(), now: "x "}, {path: "b", before: "y", now: "y " + token()}}},
		"was a link":                 {files: []changed{{path: "a", before: token(), now: token(), mode: filemode.Symlink}}},
		"the parent has the content": {files: []changed{{path: "b", before: "-", now: token() + known, held: true}}},
		"allowed by its text":        {allow: []string{token()}, files: []changed{{path: "a", before: "-", now: token()}}},
		"allowed by its sum":         {allow: []string{sumOf(token())}, files: []changed{{path: "a", before: "-", now: token() + " " + other()}}, want: []string{"content a:1 gitlab-token"}},
		"an allowed token file":      {allow: []string{"path:/test/"}, files: []changed{{path: "test/a", before: "-", now: token()}, {path: "test/" + token(), before: "-", now: ""}, {path: "a", before: "-", now: other()}}, want: []string{"content a:1 gitlab-token"}},
		"a large binary":             {files: []changed{{path: "b", before: "x", now: big}}, want: []string{"file b:0 "}},
		"an allowed large binary":    {allow: []string{"path:*.bin"}, files: []changed{{path: "x.bin", before: "-", now: big}, {path: "y.bin", before: "-", now: big + known}}, want: []string{"content y.bin:1 KEY"}},
		"a binary of the limit":      {files: []changed{{path: "b", before: "-", now: big[:MaxBinary]}}},
		"a large text":               {files: []changed{{path: "t", before: "-", now: strings.Repeat("an ordinary line\n", 1<<20) + token()}}, want: []string{"content t:1048577 github-token"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(c.files...)
			if got := places(t, Search(t.Context(), f.snap, redactor(t, c.allow...), f.Read)); !reflect.DeepEqual(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// TestReadsOnlyWhatItMust: files are read as they were only where a token was found, and
// others than its own only where that doesn't explain it.
func TestReadsOnlyWhatItMust(t *testing.T) {
	for name, c := range map[string]struct {
		files []changed
		want  []int // how many files each time
	}{
		"no token":      {[]changed{{path: "a", before: "x", now: "y"}}, nil},
		"a new file":    {[]changed{{path: "a", before: "-", now: token()}}, nil},
		"its own":       {[]changed{{path: "a", before: token(), now: "x" + token()}, {path: "b", before: "x", now: "y"}}, []int{1}},
		"others, too":   {[]changed{{path: "a", before: "x", now: token()}, {path: "b", before: "y", now: "z"}, {path: "c", before: "v", now: "-"}}, []int{1, 2}},
		"a known value": {[]changed{{path: "a", before: "x", now: known}}, nil},
	} {
		f := newFolder(c.files...)
		_ = places(t, Search(t.Context(), f.snap, redactor(t), f.Read))
		var got []int
		for _, ids := range f.read {
			got = append(got, len(ids))
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: read %v, want %v", name, got, c.want)
		}
	}
}

// TestSubmodule: what took the place of a submodule was no file before.
func TestSubmodule(t *testing.T) {
	f := newFolder(changed{path: "a", before: "x", now: token()})
	f.snap.Changes[0].OldMode = filemode.Submodule
	if got := places(t, Search(t.Context(), f.snap, redactor(t), f.Read)); len(got) != 1 || len(f.read) > 0 {
		t.Errorf("%q, read %v", got, f.read)
	}
}

// cannotFind is a Redactor that fails.
type cannotFind struct{ *redact.Redactor }

func (cannotFind) Find(b []byte) ([]redact.Finding, error) {
	if len(b) > 3 {
		return nil, redact.ErrTooLarge
	}
	return nil, nil
}

// TestFailsClosed: what can't be searched, and a file that can't be read as it was, stops
// the change.
func TestFailsClosed(t *testing.T) {
	f := newFolder(changed{path: "a", before: "-", now: "long"})
	if err := Search(t.Context(), f.snap, cannotFind{redactor(t)}, f.Read); !errors.Is(err, redact.ErrTooLarge) || !strings.Contains(err.Error(), "check a for secrets") {
		t.Error(err)
	}
	f = newFolder(changed{path: "long", before: "-", now: ""})
	if err := Search(t.Context(), f.snap, cannotFind{redactor(t)}, f.Read); !errors.Is(err, redact.ErrTooLarge) {
		t.Error(err)
	}
	f = newFolder(changed{path: "a", before: "x", now: token()})
	f.old = nil
	var found *FoundError
	if err := Search(t.Context(), f.snap, redactor(t), f.Read); !errors.As(err, &found) || len(found.Findings) != 1 || !strings.Contains(err.Error(), "is gone") {
		t.Error(err)
	}
	// A file that was too large to be searched explains nothing.
	f = newFolder(changed{path: "a", before: "x", now: token()})
	for id := range f.old {
		f.old[id] = make([]byte, redact.DefaultMaxBytes+1)
	}
	if got := places(t, Search(t.Context(), f.snap, redactor(t), f.Read)); len(got) != 1 {
		t.Errorf("%q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f = newFolder(changed{path: "a", before: "-", now: "x"})
	if err := Search(ctx, f.snap, redactor(t), f.Read); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestFoundMessage: the message says where, never what, and what to write to allow it; that
// lets it through.
func TestFoundMessage(t *testing.T) {
	files := []changed{
		{path: "d/key", before: "-", now: "x\n" + token()}, {path: "ticket [1]* ", before: "-", now: "T-123456"},
		{path: "l", before: "-", now: other(), mode: filemode.Symlink}, {path: "b", before: "-", now: strings.Repeat("\x00", MaxBinary+1)},
	}
	f := newFolder(files...)
	err := Search(t.Context(), f.snap, redactor(t), f.Read)
	if err == nil {
		t.Fatal("nothing was found")
	}
	text := err.Error()
	for _, want := range []string{
		"the agent wrote what looks like a token (github-token) into d/key:2\n", "(ticket) into ticket [1]* :1\n", "into the target of the link l\n",
		"the agent wrote b, a binary file of 10485761 bytes, and none of more than 10485760 is searched for secrets\n",
		"no such file was pushed", ".uwf/config.yaml", "redact:\n  allow:\n    - \"sha256:", `    - "path:/ticket \\[1]\\*\\ "`, `    - "path:/b"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("doesn't say %q:\n%s", want, text)
		}
	}
	for _, secret := range []string{token(), other(), "T-123456"} {
		if strings.Contains(text, secret) {
			t.Errorf("the message tells %s:\n%s", secret, text)
		}
	}
	var allow []string
	for line := range strings.Lines(text) {
		if entry, ok := strings.CutPrefix(line, "    - "); ok {
			var plain string
			if _, err := fmt.Sscanf(entry, "%q", &plain); err != nil {
				t.Fatal(err)
			}
			allow = append(allow, plain)
		}
	}
	if err := Search(t.Context(), f.snap, redactor(t, allow...), f.Read); err != nil || len(allow) != 4 {
		t.Errorf("with %q it is still refused: %v", allow, err)
	}

	f = newFolder(changed{path: "a", before: "-", now: known}, changed{path: "b", before: "-", now: "x"})
	err = Search(t.Context(), f.snap, redactor(t), f.Read)
	if want := "the agent wrote a secret (KEY) into a:1\nnothing of the folder was pushed: take the secret out of the agent's reach, or out of the file, and run the step again"; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}

	var many []changed
	for i := range 30 {
		many = append(many, changed{path: fmt.Sprintf("f%02d", i), before: "-", now: token()})
	}
	// A file full of them takes no longer.
	many = append(many, changed{path: "many", before: "-", now: strings.Repeat(token()+"\n", 100_000)})
	f = newFolder(many...)
	err = Search(t.Context(), f.snap, redactor(t), f.Read)
	var found *FoundError
	if !errors.As(err, &found) || len(found.Paths()) != 31 || !strings.Contains(err.Error(), "into f19:1\nand 100010 more\nno such") || strings.Count(err.Error(), "sha256:") != 1 {
		t.Errorf("%v", err)
	}
}
