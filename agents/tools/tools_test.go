package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xeipuuv/gojsonschema"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// workspace makes a folder with files and opens tools over it.
func workspace(t *testing.T, o Options, files map[string]string) *Set {
	t.Helper()
	o.Dir = t.TempDir()
	for name, text := range files {
		put(t, filepath.Join(o.Dir, name), text)
	}
	if o.Environ == nil {
		o.Environ = []string{"PATH=" + os.Getenv("PATH")}
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, s *Set, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// call does a call that must succeed.
func call(t *testing.T, s *Set, name string, args map[string]any) string {
	t.Helper()
	out, err := s.Call(t.Context(), name, toJSON(t, args))
	if err != nil {
		t.Fatalf("%s(%v): %v", name, args, err)
	}
	return out
}

// refused does a call that must fail with words for the model.
func refused(t *testing.T, s *Set, name string, args map[string]any, want string) {
	t.Helper()
	out, err := s.Call(t.Context(), name, toJSON(t, args))
	var e *CallError
	if !errors.As(err, &e) {
		t.Errorf("%s(%v) = %q, %v; want a *CallError", name, args, out, err)
		return
	}
	if !strings.Contains(e.Msg, want) {
		t.Errorf("%s(%v): %q does not say %q", name, args, e.Msg, want)
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type m = map[string]any

func TestReadFile(t *testing.T) {
	s := workspace(t, Options{}, map[string]string{
		"a.txt": "one\ntwo\nthree\n", "empty": "", "bin": "a\x00b", "latin1": "caf\xe9",
		"long.txt": strings.Repeat("0123456789\n", 10_000),
	})
	put(t, filepath.Join(filepath.Dir(s.dir), "outside.txt"), "secret")
	tests := []struct {
		args m
		want string
	}{
		{m{"path": "a.txt"}, "one\ntwo\nthree\n"},
		{m{"path": "./a.txt"}, "one\ntwo\nthree\n"},
		{m{"path": s.dir + "/a.txt"}, "one\ntwo\nthree\n"},
		{m{"path": "a.txt", "offset": 2}, "two\nthree\n[lines 2–3 of 3]"},
		{m{"path": "a.txt", "limit": 1}, "one\n[lines 1–1 of 3; go on with offset 2]"},
		{m{"path": "a.txt", "offset": 2, "limit": 1}, "two\n[lines 2–2 of 3; go on with offset 3]"},
		{m{"path": "empty"}, "[the file is empty]"},
	}
	for _, tt := range tests {
		if got := call(t, s, "read_file", tt.args); got != tt.want {
			t.Errorf("read_file(%v) = %q, want %q", tt.args, got, tt.want)
		}
	}
	long := call(t, s, "read_file", m{"path": "long.txt"})
	if len(long) > defaultMaxResult || !strings.Contains(long, "go on with offset") {
		t.Errorf("a long file gave %d bytes, ending in %q", len(long), long[len(long)-60:])
	}
	refused(t, s, "read_file", m{"path": "none"}, "no such file")
	refused(t, s, "read_file", m{"path": "bin"}, "binary")
	refused(t, s, "read_file", m{"path": "latin1"}, "binary")
	refused(t, s, "read_file", m{"path": "."}, "not a file")
	refused(t, s, "read_file", m{"path": ""}, "empty")
	refused(t, s, "read_file", m{"path": "a.txt", "offset": 9}, "3 lines")
	refused(t, s, "read_file", m{"path": "../outside.txt"}, "outside")
	refused(t, s, "read_file", m{"path": "/etc/hostname"}, "outside")
	refused(t, s, "read_file", m{"path": "a.txt", "lines": 3}, "unknown field")
}

func TestHostileFiles(t *testing.T) {
	s := workspace(t, Options{}, map[string]string{"real.txt": "text", ".git/config": "[core]", "sub/.git/HEAD": "x", "sub/a.txt": "inner"})
	outside := filepath.Join(t.TempDir(), "outside.txt")
	put(t, outside, "secret")
	at := func(name string) string { return filepath.Join(s.dir, name) }
	for _, err := range []error{
		syscall.Mkfifo(at("fifo"), 0o644),
		os.Symlink(outside, at("abs")),
		os.Symlink("../"+filepath.Base(outside), at("up")),
		os.Symlink(".git", at("innocent")),
		os.Symlink("sub", at("good")),
		os.Symlink("loop", at("loop")),
		os.Symlink("/dev/zero", at("zero")),
		os.Symlink("sub/../.git/config", at("round")),
		os.Link(at("real.txt"), at("hard.txt")),
		os.Truncate(at("real.txt"), 4),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	big, err := os.Create(at("big"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(big.Truncate(1<<40), big.Close()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"fifo": "named pipe", "abs": "out of the workspace", "up": "out of the workspace", "loop": "symlinks",
		"zero": "out of the workspace", "big": "bytes", "innocent/config": ".git", "round": ".git",
		".git/config": ".git", ".GIT/config": ".git", ".git./config": ".git", ".git /config": ".git",
		"git~1/config": ".git", "GIT~1/config": ".git", ".g\u200cit/config": ".git", ".git::$INDEX_ALLOCATION/config": ".git",
		"sub/.git/HEAD": ".git", "sub/../.git/config": ".git", "new/.git/config": "none that could be made",
	} {
		refused(t, s, "read_file", m{"path": path}, want)
		if path == "big" {
			continue // writing replaces it
		}
		refused(t, s, "edit_file", m{"path": path, "old_text": "a", "new_text": "b"}, want)
		if path == "fifo" || path == "loop" {
			continue
		}
		refused(t, s, "write_file", m{"path": path, "content": "x"}, want)
	}
	refused(t, s, "write_file", m{"path": "fifo", "content": "x"}, "can't be written")
	refused(t, s, "write_file", m{"path": "sub", "content": "x"}, "folder")
	refused(t, s, "write_file", m{"path": ".", "content": "x"}, "folder")
	if got := call(t, s, "read_file", m{"path": "good/a.txt"}); got != "inner" {
		t.Errorf("through a symlink that stays inside: %q", got)
	}
	if got := call(t, s, "read_file", m{"path": "hard.txt"}); got != "text" {
		t.Errorf("a hard link: %q", got)
	}
	call(t, s, "write_file", m{"path": "hard.txt", "content": "new"})
	if got := content(t, s, "real.txt"); got != "text" {
		t.Errorf("writing one name of a file changed the other: %q", got)
	}
	if got := content(t, s, ".git/config"); got != "[core]" {
		t.Errorf(".git was changed: %q", got)
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "secret" {
		t.Errorf("a file outside was changed: %q, %v", b, err)
	}
}

// The searches pass over what can't or must not be read.
func TestSearchesPassOverHostileFiles(t *testing.T) {
	s := workspace(t, Options{}, map[string]string{".git/config": "needle", "a.txt": "needle", "bin": "needle\x00", "node_modules/x/b.txt": "needle"})
	if err := errors.Join(
		syscall.Mkfifo(filepath.Join(s.dir, "fifo"), 0o644),
		os.Symlink(".git", filepath.Join(s.dir, "link")),
		os.Symlink("/etc", filepath.Join(s.dir, "etc")),
	); err != nil {
		t.Fatal(err)
	}
	if got := call(t, s, "grep", m{"pattern": "needle"}); got != "a.txt:1: needle" {
		t.Errorf("grep = %q", got)
	}
	if got := call(t, s, "glob", m{"pattern": "**"}); got != "a.txt\nbin" {
		t.Errorf("glob = %q", got)
	}
	if got := call(t, s, "glob", m{"pattern": "node_modules/**/*.txt"}); got != "node_modules/x/b.txt" {
		t.Errorf("glob of node_modules = %q", got)
	}
	want := "a.txt  6\nbin  7\netc -> /etc\nfifo  (a named pipe)\nlink -> .git\nnode_modules/\n"
	if got := call(t, s, "list_dir", m{}); got != want {
		t.Errorf("list_dir = %q, want %q", got, want)
	}
	refused(t, s, "list_dir", m{"path": "etc"}, "out of the workspace")
	refused(t, s, "grep", m{"pattern": "x", "path": "link"}, ".git")
}

func TestWriteFile(t *testing.T) {
	s := workspace(t, Options{}, map[string]string{"run.sh": "#!/bin/sh\n"})
	if err := os.Chmod(filepath.Join(s.dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	call(t, s, "write_file", m{"path": "deep/er/new.txt", "content": "hello\n"})
	if got := content(t, s, "deep/er/new.txt"); got != "hello\n" {
		t.Errorf("content %q", got)
	}
	call(t, s, "write_file", m{"path": "run.sh", "content": "#!/bin/sh\nexit 1\n"})
	for _, tt := range [][2]string{{"a\r\nb\r\n", "A\r\nB\r\n"}, {"a\r\nb\n", "A\nB\n"}} {
		call(t, s, "write_file", m{"path": "deep/er/new.txt", "content": tt[0]})
		call(t, s, "write_file", m{"path": "deep/er/new.txt", "content": "A\nB\n"})
		if got := content(t, s, "deep/er/new.txt"); got != tt[1] {
			t.Errorf("%q became %q, want %q", tt[0], got, tt[1])
		}
	}
	info, err := os.Stat(filepath.Join(s.dir, "run.sh"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the mode was not kept: %v, %v", info.Mode(), err)
	}
	refused(t, s, "write_file", m{"path": "a"}, "content is missing")
	refused(t, s, "write_file", m{"path": "a", "content": strings.Repeat("x", maxWrite+1)}, "bytes")
	entries, err := os.ReadDir(s.dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("temporary files were left: %v, %v", entries, err)
	}
}

func TestEditFile(t *testing.T) {
	tests := []struct {
		name, text, old, new, want, err string
	}{
		{"once", "a\nb\nc\n", "b\n", "B\n", "a\nB\nc\n", ""},
		{"delete", "a\nb\nc\n", "b\n", "", "a\nc\n", ""},
		{"dollar is no reference", "x = 1", "1", "$1", "x = $1", ""},
		{"crlf", "a\r\nb\r\nc\r\n", "a\nb\n", "A\nB\nx\n", "A\r\nB\r\nx\r\nc\r\n", ""},
		{"crlf for a new line", "a\r\nb\r\nc\r\n", "b", "B\nx", "a\r\nB\r\nx\r\nc\r\n", ""},
		{"crlf at the end", "a\r\nb", "b", "B\nx", "a\r\nB\r\nx", ""},
		{"mixed, in an LF line", "a\nb\nc\r\n", "b", "B\nx", "a\nB\nx\nc\r\n", ""},
		{"mixed, in a CRLF line", "a\nb\r\nc\n", "b", "B\nx", "a\nB\r\nx\r\nc\n", ""},
		{"mixed, over both", "a\nb\r\nc\nd\n", "a\nb\nc\n", "A\n", "A\nd\n", ""},
		{"the line end alone", "a\r\nb\r\n", "\r\nb", "\nb", "a\nb\r\n", ""},
		{"none", "a\nb\n", "q", "r", "", "not in f; read the file again"},
		{"a line that is like it", "one\n\treturn total + 1\nthree\n", "return totals + 1", "r", "", "the nearest lines there are\n2: \treturn total + 1\ncopy the passage"},
		{"a passage that is like it", "a\nfunc f() {\n\treturn 1\n}\nfunc g() {\n\treturn 2\n}\n", "func g() {\n\treturn 3\n}", "r", "", "5: func g() {\n6: \treturn 2\n7: }\n"},
		{"like it by chance", "return\nif x {\n", "nothing of the kind stands there", "r", "", "not in f; read the file again"},
		{"blanks", "if x {\n\treturn\n}\n", "if x {\n    return\n}", "", "", "lines 1–3 differ from it only in blanks"},
		{"twice", "a\nb\na\n", "a", "c", "", "2 times in f (lines 1, 3)"},
		{"overlap counts once", "aaa", "aa", "b", "ba", ""},
		{"empty", "a", "", "b", "", "old_text is empty"},
		{"same", "a", "a", "a", "", "the same"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := workspace(t, Options{}, map[string]string{"f": tt.text})
			args := m{"path": "f", "old_text": tt.old, "new_text": tt.new}
			if tt.err != "" {
				refused(t, s, "edit_file", args, tt.err)
				tt.want = tt.text
			} else {
				call(t, s, "edit_file", args)
			}
			if got := content(t, s, "f"); got != tt.want {
				t.Errorf("content %q, want %q", got, tt.want)
			}
		})
	}
}

func TestGlob(t *testing.T) {
	files := map[string]string{}
	for _, f := range []string{"a.go", "b.ts", "src/c.go", "src/d/e.go", "src/d/e.tsx", "x[1].go", "src/.hidden"} {
		files[f] = ""
	}
	s := workspace(t, Options{}, files)
	tests := []struct{ pattern, path, want string }{
		{"*.go", "", "a.go src/c.go src/d/e.go x[1].go"},
		{"./*.go", "", "a.go src/c.go src/d/e.go x[1].go"},
		{"src/*.go", "", "src/c.go"},
		{"src/**/*.go", "", "src/c.go src/d/e.go"},
		{"**/*.{ts,tsx}", "", "b.ts src/d/e.tsx"},
		{"**/[ab].*", "", "a.go b.ts"},
		{"**/[!ab].go", "", "src/c.go src/d/e.go"},
		{"?.ts", "", "b.ts"},
		{`x\[1\].go`, "", "x[1].go"},
		{"*.go", "src", "src/c.go src/d/e.go"},
		{"d/*", "src", "src/d/e.go src/d/e.tsx"},
		{"*.rs", "", "[no file found]"},
	}
	for _, tt := range tests {
		args := m{"pattern": tt.pattern}
		if tt.path != "" {
			args["path"] = tt.path
		}
		if got := strings.ReplaceAll(call(t, s, "glob", args), "\n", " "); got != tt.want {
			t.Errorf("glob(%v) = %q, want %q", args, got, tt.want)
		}
	}
	for _, bad := range []string{"", "{a", "[", "[]", strings.Repeat("*", maxPattern+1)} {
		refused(t, s, "glob", m{"pattern": bad}, "glob")
	}
}

func FuzzCompileGlob(f *testing.F) {
	for _, p := range []string{"**/*.go", "a[!b-", "{a,{b}}", `\`, "[^]", "[[:alpha:]]", "a**b/?", "[z-a]", "\xff*"} {
		f.Add(p, "src/a.go")
	}
	f.Fuzz(func(t *testing.T, pattern, file string) {
		re, err := compileGlob(pattern)
		if err == nil {
			re.MatchString(file)
		}
	})
}

func FuzzIsGit(f *testing.F) {
	f.Add("readme")
	f.Fuzz(func(t *testing.T, name string) {
		if strings.EqualFold(name, ".git") && !isGit(name) {
			t.Errorf("%q is let through", name)
		}
	})
}

func TestGrep(t *testing.T) {
	s := workspace(t, Options{}, map[string]string{
		"a.go": "package a\r\nfunc A() {}\n", "b/b.go": "func B() {}", "c.txt": "FUNC\n",
		"many": strings.Repeat("hit\n", 1000), "wide": strings.Repeat("w", 5000) + "\n",
	})
	tests := []struct {
		args m
		want string
	}{
		{m{"pattern": `func \w+`}, "a.go:2: func A() {}\nb/b.go:1: func B() {}"},
		{m{"pattern": "func", "ignore_case": true, "glob": "*.txt"}, "c.txt:1: FUNC"},
		{m{"pattern": "func", "path": "b"}, "b/b.go:1: func B() {}"},
		{m{"pattern": "func", "path": "a.go"}, "a.go:2: func A() {}"},
		{m{"pattern": "^package a$"}, "a.go:1: package a"},
		{m{"pattern": "nothing"}, "[no line found]"},
	}
	for _, tt := range tests {
		if got := call(t, s, "grep", tt.args); got != tt.want {
			t.Errorf("grep(%v) = %q, want %q", tt.args, got, tt.want)
		}
	}
	many := call(t, s, "grep", m{"pattern": "hit"})
	if n := strings.Count(many, "many:"); n != maxMatches || !strings.Contains(many, "there may be more") {
		t.Errorf("%d matches shown, ending %q", n, many[len(many)-60:])
	}
	if wide := call(t, s, "grep", m{"pattern": "www"}); len(wide) > maxLine+20 {
		t.Errorf("a wide line gave %d bytes", len(wide))
	}
	refused(t, s, "grep", m{"pattern": `a(?=b)`}, "RE2")
	refused(t, s, "grep", m{"pattern": ""}, "empty")
	refused(t, s, "grep", m{"pattern": "a", "path": "none"}, "no such file")
}

func TestRunCommand(t *testing.T) {
	s := workspace(t, Options{AllowShell: true, Environ: []string{"PATH=" + os.Getenv("PATH"), "ONLY=this"}}, map[string]string{"a.txt": "text\n"})
	tests := []struct{ command, want string }{
		{"cat a.txt", "text\n[exit code 0]"},
		{"echo out; echo err >&2; exit 3", "out\nerr\n[exit code 3]"},
		{"cat", "[exit code 0]"}, // stdin is empty
		{"printf 'no newline'", "no newline\n[exit code 0]"},
		{"kill -9 $$", "[ended by signal 9 (killed)]"},
		{"echo $ONLY$HOME$UWF_STAGE", "this\n[exit code 0]"},
		{"printf 'a\\000b\\377'", "a\uFFFDb\uFFFD\n[exit code 0]"},
		{"sleep 3600 & echo hi", "hi\n[exit code 0; processes left in the background were ended]"},
	}
	for _, tt := range tests {
		if got := call(t, s, "run_command", m{"command": tt.command}); got != tt.want {
			t.Errorf("run_command(%q) = %q, want %q", tt.command, got, tt.want)
		}
	}
	refused(t, s, "run_command", m{"command": " "}, "empty")
	call(t, s, "write_file", m{"path": "sub/dir/f.txt", "content": "x"})
	if got := call(t, s, "run_command", m{"command": "ls", "cwd": "sub/dir"}); got != "f.txt\n[exit code 0]" {
		t.Errorf("in a folder: %q", got)
	}
	refused(t, s, "run_command", m{"command": "ls", "cwd": "../.."}, "outside")
	refused(t, s, "run_command", m{"command": "ls", "cwd": "none"}, "no such file")
	s = workspace(t, Options{AllowShell: true, Explain: func(output string) string {
		if output == "" {
			return ""
		}
		return "[why " + strings.TrimSpace(output) + "]"
	}}, nil)
	for command, want := range map[string]string{"echo no": "no\n[why no]\n[exit code 0]", "true": "[exit code 0]"} {
		if got := call(t, s, "run_command", m{"command": command}); got != want {
			t.Errorf("explained, run_command(%q) = %q, want %q", command, got, want)
		}
	}
}

func TestRunCommandLimits(t *testing.T) {
	s := workspace(t, Options{AllowShell: true, MaxResult: 4096}, nil)
	var got string
	for _, seconds := range []int{1, 10, 100} { // more where a shell takes longer to begin
		got = call(t, s, "run_command", m{"command": "echo begun; sleep 3600", "timeout_seconds": seconds})
		if strings.Contains(got, "begun") {
			break
		}
	}
	if !strings.HasPrefix(got, "begun\n[killed after 1") {
		t.Errorf("timeout: %q", got)
	}
	got = call(t, s, "run_command", m{"command": "echo first; seq 100000; echo last"})
	if len(got) > 4096 || !strings.HasPrefix(got, "first\n") || !strings.HasSuffix(got, "last\n[exit code 0]") || !strings.Contains(got, "left out") {
		t.Errorf("long output: %d bytes: %.60q … %q", len(got), got, got[len(got)-40:])
	}
	got = call(t, s, "run_command", m{"command": "yes"})
	if !strings.Contains(got, "stopped: it printed more than") {
		t.Errorf("endless output: %q", got[len(got)-80:])
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("claim lost")
	time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
	if _, err := s.Call(ctx, "run_command", `{"command":"sleep 3600"}`); !errors.Is(err, cause) {
		t.Errorf("a cancelled command: %v", err)
	}
}

func TestShellGate(t *testing.T) {
	s := workspace(t, Options{}, nil)
	refused(t, s, "run_command", m{"command": "true"}, "not allowed")
	refused(t, s, "rm", m{}, "there are: read_file, write_file")
	// All roles have the same tools, whatever is allowed.
	open := workspace(t, Options{AllowShell: true}, nil)
	if got, want := fmt.Sprint(s.Definitions()), fmt.Sprint(open.Definitions()); got != want {
		t.Errorf("offered are %s, and %s with the gate open", got, want)
	}
}

func TestArgumentsThatAreNone(t *testing.T) {
	s := workspace(t, Options{}, map[string]string{"a": "x"})
	for _, args := range []string{`{"path":"a"`, `[]`, `{"path":1}`, `{"path":"a"}{}`, `{"path":"a"} x`, `"a"`, strings.Repeat("x", maxArguments+1)} {
		_, err := s.Call(t.Context(), "read_file", args)
		var e *CallError
		if !errors.As(err, &e) {
			t.Errorf("read_file(%.40s): %v", args, err)
		}
	}
	if out, err := s.Call(t.Context(), "list_dir", ""); err != nil || out != "a  1\n" {
		t.Errorf("list_dir without arguments = %q, %v", out, err)
	}
}

// The schemas say what the code takes: valid JSON schemas, and every example of a
// call fits them.
func TestDefinitions(t *testing.T) {
	s := workspace(t, Options{AllowShell: true}, nil)
	examples := map[string]m{
		"read_file": {"path": "a", "offset": 1, "limit": 2}, "write_file": {"path": "a", "content": ""},
		"edit_file": {"path": "a", "old_text": "x", "new_text": "y"}, "list_dir": {"path": "a"},
		"glob": {"pattern": "*", "path": "a"}, "grep": {"pattern": "x", "path": "a", "glob": "*", "ignore_case": true},
		"run_command": {"command": "true", "cwd": ".", "timeout_seconds": 5},
	}
	for _, d := range s.Definitions() {
		ex, ok := examples[d.Name]
		if !ok {
			t.Errorf("no example for %s", d.Name)
			continue
		}
		res, err := gojsonschema.Validate(gojsonschema.NewBytesLoader(d.Parameters), gojsonschema.NewGoLoader(ex))
		if err != nil || !res.Valid() {
			t.Errorf("%s: %v %v", d.Name, err, res)
		}
		// The code knows every property of the schema, and no other.
		var schema struct{ Properties map[string]any }
		if err := json.Unmarshal(d.Parameters, &schema); err != nil {
			t.Fatal(err)
		}
		if len(schema.Properties) != len(ex) {
			t.Errorf("%s: %d properties, %d in the example", d.Name, len(schema.Properties), len(ex))
		}
		var wrong *CallError
		if _, err := s.Call(t.Context(), d.Name, toJSON(t, ex)); errors.As(err, &wrong) && strings.Contains(wrong.Msg, "unknown field") {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
}

func TestResultsAreBounded(t *testing.T) {
	files := map[string]string{}
	for i := range 1200 {
		files[fmt.Sprintf("a-rather-long-name-for-a-file-%04d", i)] = ""
	}
	s := workspace(t, Options{MaxResult: 2048}, files)
	for name, args := range map[string]m{"list_dir": {}, "glob": {"pattern": "**"}} {
		got := call(t, s, name, args)
		if len(got) > 2048+60 || !strings.Contains(got, "left out") {
			t.Errorf("%s gave %d bytes", name, len(got))
		}
	}
}
