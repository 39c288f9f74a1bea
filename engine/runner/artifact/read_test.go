package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/engine/step/seal"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// sample is an artifact with everything in it.
func sample(t testing.TB) Artifact {
	t.Helper()
	n, h, err := node.New(node.String, "body", time.UnixMilli(1))
	must(t, err)
	id := wire.NewObject(3, []byte("x")).ID
	return Artifact{
		Thread: testThread, Head: h, Step: 2, Role: "developer", Agent: "builtin",
		Handle: h, Nodes: map[node.Hash]node.Node{h: n}, Stderr: "err",
		Usage: record.Usage{Turns: 2, InputTokens: 10, OutputTokens: 5, DurationMs: 1500, CostUSD: 0.25},
		Files: []workspace.Edit{
			{Path: "a", Mode: filemode.Regular, Data: []byte("new"), Old: id},
			{Path: "b/gone", Old: id},
			{Path: "b/run", Mode: filemode.Executable, Data: []byte{}},
			{Path: "l", Mode: filemode.Symlink, Data: []byte("a")},
		},
	}
}

func written(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x")
	must(t, Write(dir, sample(t)))
	return dir
}

func TestRoundTrip(t *testing.T) {
	for _, failure := range []*Failure{nil, {Reason: "gave up", Detail: "here"}} {
		want := sample(t)
		if want.Failure = failure; failure != nil {
			want.Handle = ""
		}
		dir := filepath.Join(t.TempDir(), "x")
		must(t, Write(dir, want))
		got, err := Read(dir)
		must(t, err)
		same := slices.EqualFunc(got.Files, want.Files, func(a, b workspace.Edit) bool {
			return a.Path == b.Path && a.Mode == b.Mode && a.Old == b.Old && bytes.Equal(a.Data, b.Data)
		})
		if !same || !maps.Equal(got.Nodes, want.Nodes) {
			t.Errorf("%+v", got)
		}
		if (got.Failure == nil) != (failure == nil) || failure != nil && *got.Failure != *failure {
			t.Errorf("%+v", got.Failure)
		}
		got.Files, got.Listed, got.Nodes, got.Failure = nil, nil, nil, nil
		want.Files, want.Nodes, want.Failure, want.Format = nil, nil, nil, Format
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if !bytes.Equal(a, b) {
			t.Errorf("%s\n%s", a, b)
		}
	}
}

func TestNone(t *testing.T) {
	empty := t.TempDir()
	for _, dir := range []string{empty, filepath.Join(empty, "absent")} {
		if _, err := Read(dir); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// TestHostile: whatever is not as Write leaves it is refused, and named.
func TestHostile(t *testing.T) {
	edit := func(change func(m map[string]any)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			raw, err := os.ReadFile(filepath.Join(dir, manifestName))
			must(t, err)
			var m map[string]any
			must(t, json.Unmarshal(raw, &m))
			change(m)
			raw, err = json.Marshal(m)
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, manifestName), raw, 0o644))
		}
	}
	set := func(key string, v any) func(t *testing.T, dir string) {
		return edit(func(m map[string]any) { m[key] = v })
	}
	file := func(n int, key string, v any) func(t *testing.T, dir string) {
		return edit(func(m map[string]any) { m["files"].([]any)[n].(map[string]any)[key] = v })
	}
	path := func(p string) func(t *testing.T, dir string) { return file(0, "path", p) }
	replace := func(name, data string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, name)))
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644))
		}
	}
	link := func(name, target string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, name)))
			must(t, os.Symlink(target, filepath.Join(dir, name)))
		}
	}
	remove := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, name))) }
	}
	outside := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(outside, []byte("secret"), 0o644))

	for name, c := range map[string]struct {
		do   func(t *testing.T, dir string)
		says string
	}{
		"no manifest":           {remove(manifestName), "artifact.json: it is missing"},
		"no nodes":              {remove(nodesName), "nodes.jsonl: it is missing"},
		"a file is missing":     {remove("files/1"), "files/1: it is missing"},
		"all files are missing": {remove("files"), "files/1: it is missing"},
		"something else":        {replace("run.sh", "x"), "run.sh"},
		"many other things": {func(t *testing.T, dir string) {
			for n := range 10 {
				must(t, os.Mkdir(filepath.Join(dir, strconv.Itoa(n)), 0o755))
			}
		}, ".: there is more in the folder"},
		"another file": {replace("files/5", "x"), "files/5: it belongs to no file"},
		"many other files": {func(t *testing.T, dir string) {
			for n := range 10 {
				replace(fmt.Sprintf("files/1%d", n), "x")(t, dir)
			}
		}, "files: there is more in the folder"},
		"a deleted file's data":   {replace("files/2", "x"), "files/2"},
		"a number in other words": {replace("files/01", "x"), "files"},
		"a folder as a file": {func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "files/1")))
			must(t, os.Mkdir(filepath.Join(dir, "files/1"), 0o755))
		}, "no regular file"},
		"a link as a file":       {link("files/1", outside), "no regular file"},
		"a link inside":          {link("files/1", "3"), "no regular file"},
		"a link as the manifest": {link(manifestName, outside), "no regular file"},
		"a link as the folder":   {link("files", filepath.Dir(outside)), "no folder"},
		"a file as the folder":   {replace("files", "x"), "no folder"},
		"no JSON":                {replace(manifestName, "{"), "artifact.json"},
		"a list":                 {replace(manifestName, "[]"), "cannot unmarshal array"},
		"a key twice": {func(t *testing.T, dir string) {
			raw, err := os.ReadFile(filepath.Join(dir, manifestName))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, manifestName), bytes.Replace(raw, []byte("{"), []byte(`{"step":3,`), 1), 0o644))
		}, "twice"},
		"invalid UTF-8":           {replace(manifestName, "{\"thread\":\"\xff\"}"), "artifact.json"},
		"another format":          {set("format", 2), "use the same version"},
		"an unknown field":        {set("token", "x"), "token"},
		"a wrong type":            {set("step", "1"), "artifact.json"},
		"a thread":                {set("thread", "../x"), "thread"},
		"a head":                  {set("head", "x"), "head"},
		"a step":                  {set("step", 0), "step"},
		"a huge step":             {set("step", 1e9), "step"},
		"a role":                  {set("role", "a\nb"), "role"},
		"an empty role":           {set("role", ""), "role"},
		"a long role":             {set("role", strings.Repeat("x", 2000)), "role"},
		"an agent":                {set("agent", "\x1b[0m"), "agent"},
		"a base, of old":          {set("base", strings.Repeat("1", 40)), "base"},
		"an answer":               {set("answer", "x"), "answer"},
		"the zero id":             {file(0, "old", strings.Repeat("0", 40)), "old"},
		"a handle":                {set("handle", "x"), "handle"},
		"a handle of no node":     {set("handle", "0000000000000"), "not among"},
		"usage below zero":        {set("usage", map[string]any{"inputTokens": -1}), "usage"},
		"usage beyond measure":    {set("usage", map[string]any{"outputTokens": 1e15}), "usage"},
		"a cost beyond measure":   {set("usage", map[string]any{"costUsd": 1e300}), "usage"},
		"years":                   {set("usage", map[string]any{"durationMs": 1e12}), "usage"},
		"long stderr":             {set("stderr", strings.Repeat("x", maxText+1)), "stderr"},
		"a failure without words": {set("failure", map[string]any{"reason": ""}), "failure"},
		"a long failure":          {set("failure", map[string]any{"reason": strings.Repeat("x", maxText+1)}), "failure"},
		"a mode":                  {file(0, "mode", "100666"), "mode"},
		"a submodule":             {file(0, "mode", "160000"), "mode"},
		"a folder's mode":         {file(0, "mode", "40000"), "mode"},
		"an old id":               {file(0, "old", "xyz"), "old"},
		"an old id of few digits": {file(0, "old", "abxyz"), "old"},
		"an empty path":           {path(""), "path"},
		"an absolute path":        {path("/etc/passwd"), "path"},
		"a path upward":           {path("../x"), "path"},
		"a path upward inside":    {path("b/../../x"), "path"},
		"a dot":                   {path("./x"), "path"},
		"two slashes":             {path("b//x"), "path"},
		"a slash at the end":      {path("b/"), "path"},
		".git":                    {path(".git/hooks/pre-commit"), "path"},
		".GIT":                    {path("b/.GiT/config"), "path"},
		"git~1":                   {path("GIT~1/config"), "path"},
		".git with a dot":         {path(".git./config"), "path"},
		".git with a stream":      {path(".git::$INDEX_ALLOCATION/x"), "path"},
		"a backslash to .git":     {path(`b\.git\config`), "path"},
		"invisible .git":          {path(".g\u200cit/config"), "path"},
		"a NUL":                   {path("a\x00b"), "path"},
		"a line end":              {path("a\nb"), "path"},
		"a long path":             {path(strings.Repeat("a/", 3000) + "b"), "path"},
		"a link upward":           {replace("files/4", "../x"), "leads out"},
		"a link to the root":      {replace("files/4", "/etc/passwd"), "leads out"},
		"a link to .git":          {replace("files/4", ".git/config"), "leads out"},
		"a link to nothing":       {replace("files/4", ""), "leads out"},
		"a link with a NUL":       {replace("files/4", "a\x00b"), "leads out"},
		"nodes of no JSON":        {replace(nodesName, "x\n"), "nodes.jsonl:1: read a node: read JSON"},
		"more nodes than may be":  {replace(nodesName, strings.Repeat("\n", 2*seal.MaxDrafts+1)), "more nodes than"},
		"a node of another hash":  {replace(nodesName, `{"hash":"0000000000000","type":"`+string(node.String)+`","payload":"x","timestamp":1}`+"\n"), "nodes.jsonl:1"},
		"a node twice": {func(t *testing.T, dir string) {
			raw, err := os.ReadFile(filepath.Join(dir, nodesName))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, nodesName), append(raw, raw...), 0o644))
		}, "twice"},
		"a manifest too large": {func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, manifestName), maxManifest+1)) }, "at most"},
		"a file too large": {func(t *testing.T, dir string) {
			must(t, os.Truncate(filepath.Join(dir, "files/1"), workspace.DefaultMaxFile+1))
		}, "at most"},
		"nodes too large": {func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, nodesName), 100<<20)) }, "at most"},
		"too many files": {edit(func(m map[string]any) {
			m["files"] = slices.Repeat([]any{map[string]any{"path": "x", "mode": "deleted"}}, maxFiles+1)
		}), "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := written(t)
			c.do(t, dir)
			a, err := Read(dir)
			var bad *BadError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q (%+v)", err, c.says, a.Role)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("a message of %d bytes", len(err.Error()))
			}
		})
	}
	t.Run("files too large together", func(t *testing.T) {
		root, err := os.OpenRoot(written(t))
		must(t, err)
		defer root.Close()
		r := reader{root: root, total: workspace.DefaultMaxTotal - 2}
		if _, err := r.readFile(1, listedFile{Path: "a", Mode: "100644"}); err == nil || !strings.Contains(err.Error(), "with it there are more than") {
			t.Errorf("three bytes too much: %v", err)
		}
	})
	t.Run("below a file", func(t *testing.T) {
		if _, err := Read(filepath.Join(outside, "x")); err == nil || errors.Is(err, ErrNone) {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("a file as all of it", func(t *testing.T) {
		if _, err := Read(outside); !errors.As(err, new(*BadError)) {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("a link as all of it", func(t *testing.T) {
		l := filepath.Join(t.TempDir(), "l")
		must(t, os.Symlink(written(t), l))
		if _, err := Read(l); err == nil {
			t.Error("it was followed")
		}
	})
}

// FuzzRead: what Read takes can be applied to a folder without harm to anything else,
// and written and read again.
func FuzzRead(f *testing.F) {
	read := func(t testing.TB, dir, name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		return b
	}
	dir := written(f)
	f.Add(read(f, dir, manifestName), read(f, dir, nodesName), []byte("data"))
	f.Add(bytes.ReplaceAll(read(f, dir, manifestName), []byte(`"l"`), []byte(`"b/l"`)), read(f, dir, nodesName), []byte("../a"))
	f.Fuzz(func(t *testing.T, manifest, nodes, data []byte) {
		top := t.TempDir()
		dir, to := filepath.Join(top, "x"), filepath.Join(top, "to", "deep")
		must(t, os.MkdirAll(filepath.Join(dir, filesName), 0o755))
		must(t, os.MkdirAll(to, 0o755))
		must(t, os.WriteFile(filepath.Join(dir, manifestName), manifest, 0o644))
		must(t, os.WriteFile(filepath.Join(dir, nodesName), nodes, 0o644))
		for _, n := range []string{"1", "3", "4"} {
			must(t, os.WriteFile(filepath.Join(dir, filesName, n), data, 0o644))
		}
		a, err := Read(dir)
		if err != nil {
			var bad *BadError
			if !errors.As(err, &bad) {
				t.Error(err)
			}
			return
		}
		before := everything(t, dir)
		_ = workspace.Apply(to, a.Files) // may fail: names can be too long for the system
		if everything(t, dir) != before {
			t.Error("something outside was changed")
		}
		left, err := os.ReadDir(filepath.Join(top, "to"))
		if err != nil || len(left) != 1 {
			t.Errorf("something was made outside: %v %v", left, err)
		}
		again := filepath.Join(top, "again")
		must(t, Write(again, a))
		if b, err := Read(again); err != nil || len(b.Files) != len(a.Files) || b.Role != a.Role {
			t.Errorf("%+v %v", b, err)
		}
	})
}
