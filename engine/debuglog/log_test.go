package debuglog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/debuglog"
	"github.com/united-workforce/uwf/engine/redact"
)

var when = time.Date(2026, 6, 4, 12, 0, 0, 0, time.UTC)

func now() time.Time { return when }

const secret = "not-a-real-secret-4711"

func redactor(t *testing.T) debuglog.Redactor {
	t.Helper()
	red, err := redact.New(redact.Options{Secrets: []redact.Secret{{Name: "K", Value: secret}}})
	if err != nil {
		t.Fatal(err)
	}
	return red
}

func TestRecord(t *testing.T) {
	var out bytes.Buffer
	l := debuglog.New(debuglog.Options{Out: &out, Now: now, PID: 7})
	l.Redact(redactor(t))
	l.Info("00000001", "done", slog.String("thread", "T"), slog.Any("list", []string{"a", "b" + secret}), slog.Duration("took", 1500*time.Microsecond),
		slog.Bool("ok", true), slog.Any("odd", struct{ K string }{secret}), slog.Group("g", slog.Int("n", 3), slog.String("s", secret)), slog.Time("at", when), slog.String(secret, "x"))
	want := `{"time":"2026-06-04T12:00:00.000Z","level":"info","msg":"done","pid":7,"tag":"00000001","thread":"T","list":["a","b[redacted:K]"],"took":1.5,"ok":true,"odd":"{[redacted:K]}","g":"[n=3 s=[redacted:K]]","at":"2026-06-04 12:00:00 +0000 UTC","`
	if got := out.String(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "}\n") || strings.Contains(got[len(want)+len(secret):], secret) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	out.Reset()
	l.Debug("00000002", "quiet")
	l.LogOutcome(nil, "00000003", "fine")
	l.LogOutcome(errors.New("no: "+secret), "00000004", "bad")
	if got := out.String(); strings.Contains(got, "quiet") || !strings.Contains(got, `"level":"info","msg":"fine","pid":7,"tag":"00000003"`) ||
		!strings.Contains(got, `"level":"warn","msg":"bad","pid":7,"tag":"00000004"`) || !strings.Contains(got, `"error":"no: [redacted:K]"`) {
		t.Errorf("%s", got)
	}
	out.Reset()
	l.Info("00000005", "long", slog.String("s", strings.Repeat("ü", 5000)), slog.String("split", strings.Repeat("x", 2040)+secret))
	if got := out.String(); len(got) > 6<<10 || !json.Valid([]byte(got)) || strings.Contains(got, secret[:8]) {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	out.Reset()
	l.SetThread("ABOUT")
	l.Info("00000009", "of it")
	l.Info("0000000C", "of another", slog.String("thread", "OTHER"))
	if got := out.String(); strings.Count(got, `"thread":"ABOUT"`) != 1 || strings.Count(got, `"thread":`) != 2 {
		t.Errorf("%s", got)
	}
	for _, none := range []*debuglog.Logger{nil, {}, debuglog.New(debuglog.Options{})} {
		none.SetThread("T")
		none.Redact(redactor(t))
		none.Info("00000006", "nowhere")
	}
}

type broken struct{}

func (broken) Value(any) (any, int, error) { return secret, 0, errors.New("can't") }

// What can't be searched for secrets is not written: only numbers, and the words of
// this program.
func TestFailsClosed(t *testing.T) {
	for name, red := range map[string]debuglog.Redactor{"none": nil, "broken": broken{}} {
		var out bytes.Buffer
		l := debuglog.New(debuglog.Options{Out: &out, Now: now})
		l.Redact(red)
		l.Info("00000007", "m", slog.String("s", secret), slog.Any("l", []string{secret}), slog.Int("n", 5), slog.Any("e", errors.New(secret)), slog.Any("own", debuglog.OwnText("uwf show")))
		if got := out.String(); strings.Contains(got, secret) || !strings.Contains(got, `"n":5`) || !strings.Contains(got, `"own":"uwf show"`) || !strings.Contains(got, `"unredacted":3`) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Lines of many writers don't tear, whatever happens to the folder.
func TestParallel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			files := debuglog.OpenFiles(dir, now) // as a process of its own
			l := debuglog.New(debuglog.Options{Out: files, Now: now, PID: w + 1})
			l.Redact(redactor(t))
			for i := range 100 {
				l.Info("00000008", "line", slog.Int("i", i), slog.String("s", strings.Repeat("x", i*10)))
			}
			if err := files.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	r := debuglog.NewReader(dir, debuglog.Filter{})
	seen := map[int]int{}
	if err := r.Next(func(rec debuglog.Record) error { seen[rec.PID]++; return nil }); err != nil || r.Unreadable > 0 || len(seen) != 8 || seen[3] != 100 {
		t.Errorf("%v, %d unreadable, %v", err, r.Unreadable, seen)
	}
	for _, path := range []string{dir, filepath.Join(dir, "2026-06-04.jsonl")} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, dir string) string {
	t.Helper()
	files, err := debuglog.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		out = append(out, f.Name)
	}
	return strings.Join(out, " ")
}

func TestRotation(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "2026-06-04.jsonl", strings.Repeat("x", debuglog.MaxFile))
	write(t, dir, "2026-06-03.jsonl", "x")
	write(t, dir, "2026-05-01.jsonl", "too old")
	write(t, dir, "2026-05-20.10.jsonl", "x")
	write(t, dir, "2026-05-20.2.jsonl", "x")
	write(t, dir, "notes.txt", "not ours")
	at := when
	files := debuglog.OpenFiles(dir, func() time.Time { return at })
	for range 2 {
		if _, err := files.Write([]byte("line\n")); err != nil {
			t.Fatal(err)
		}
	}
	at = at.Add(24 * time.Hour)
	if _, err := files.Write([]byte("line\n")); err != nil {
		t.Fatal(err)
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); got != "2026-05-20.2.jsonl 2026-05-20.10.jsonl 2026-06-03.jsonl 2026-06-04.jsonl 2026-06-04.2.jsonl 2026-06-05.jsonl" {
		t.Error(got)
	}
	// Too much altogether: the oldest go.
	for i := range 9 {
		name := filepath.Join(dir, fmt.Sprintf("2026-06-0%d.9.jsonl", i+1))
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, debuglog.MaxFile)); err != nil {
			t.Fatal(err)
		}
	}
	at = when.Add(7 * 24 * time.Hour)
	files = debuglog.OpenFiles(dir, func() time.Time { return at })
	if _, err := files.Write([]byte("line\n")); err != nil {
		t.Fatal(err)
	}
	_ = files.Close()
	if got := names(t, dir); strings.Contains(got, "2026-05") || strings.Contains(got, "06-01.9") || !strings.Contains(got, "06-09.9") {
		t.Error(got)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Error("a file that is no log is gone")
	}
}

// Nothing here may hang or follow a link, and after a failure nothing more is tried.
func TestHostileFolder(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	write(t, filepath.Dir(victim), "victim", "mine")
	if err := os.Symlink(victim, filepath.Join(dir, "2026-06-04.jsonl")); err != nil {
		t.Skip(err)
	}
	files := debuglog.OpenFiles(dir, now)
	if _, err := files.Write([]byte("line\n")); err == nil {
		t.Error("wrote through a link")
	}
	if err := os.Remove(filepath.Join(dir, "2026-06-04.jsonl")); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Write([]byte("line\n")); err == nil || names(t, dir) != "" {
		t.Errorf("went on after a failure: %v", err)
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "mine" {
		t.Errorf("%q %v", b, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "2026-06-04.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	files = debuglog.OpenFiles(dir, now)
	if _, err := files.Write([]byte("line\n")); err == nil {
		t.Error("wrote into a folder")
	}
	files = debuglog.OpenFiles(victim, now)
	if _, err := files.Write([]byte("line\n")); err == nil {
		t.Error("made a folder of a file")
	}
}

// Where there is nothing of uwf's yet, nothing is made; what was said before comes
// into the log once there is.
func TestWaitsForItsPlace(t *testing.T) {
	root := filepath.Join(t.TempDir(), "home", ".uwf")
	files := debuglog.OpenFiles(filepath.Join(root, "logs"), now)
	for range 5000 {
		if _, err := files.Write([]byte("a line that waits\n")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Dir(root)); err == nil {
		t.Fatal("it made a folder")
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Write([]byte("last\n")); err != nil {
		t.Fatal(err)
	}
	_ = files.Close()
	b, err := os.ReadFile(filepath.Join(root, "logs", "2026-06-04.jsonl"))
	if err != nil || !strings.HasPrefix(string(b), "a line") || !strings.HasSuffix(string(b), "waits\nlast\n") || len(b) > 65<<10 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestReader(t *testing.T) {
	dir := t.TempDir()
	line := func(minute int, rest string) string {
		return fmt.Sprintf(`{"time":"2026-06-04T12:%02d:00.000Z","level":"info","tag":"0000000A","msg":"m"%s}`, minute, rest) + "\n"
	}
	write(t, dir, "2026-06-03.jsonl", `{"time":"2026-06-03T12:00:00.000Z","level":"info","tag":"0000000B","msg":"old","pid":1}`+"\n")
	write(t, dir, "2026-06-04.jsonl", line(1, `,"pid":1,"thread":"T"`)+"garbage\n{}\n\xff\n"+strings.Repeat("x", 2<<20)+"\n"+line(2, `,"pid":2,"list":["a"],"n":1.5`)+`{"time":"2026-06-04T12:03`)
	read := func(f debuglog.Filter) (out []string, r *debuglog.Reader) {
		r = debuglog.NewReader(dir, f)
		if err := r.Next(func(rec debuglog.Record) error {
			out = append(out, fmt.Sprint(rec))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return out, r
	}
	all, r := read(debuglog.Filter{})
	if len(all) != 3 || r.Unreadable != 4 {
		t.Errorf("%d records, %d unreadable", len(all), r.Unreadable)
	}
	if want := "{2026-06-04 12:02:00 +0000 UTC info 0000000A m 2  [{list [a]} {n 1.5}]}"; all[2] != want {
		t.Errorf("got  %s\nwant %s", all[2], want)
	}
	for _, x := range []struct {
		f    debuglog.Filter
		want int
	}{
		{debuglog.Filter{Since: when.Add(90 * time.Second)}, 1},
		{debuglog.Filter{Thread: "T"}, 1},
		{debuglog.Filter{PID: 1}, 2},
		{debuglog.Filter{Tag: "0000000b"}, 1},
		{debuglog.Filter{Thread: "none"}, 0},
	} {
		if got, _ := read(x.f); len(got) != x.want {
			t.Errorf("%+v: %d records", x.f, len(got))
		}
	}
	// The line that was not whole comes when it is.
	f, err := os.OpenFile(filepath.Join(dir, "2026-06-04.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`:00.000Z","msg":"later"}` + "\n"); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	var later []string
	if err := r.Next(func(rec debuglog.Record) error { later = append(later, rec.Msg); return nil }); err != nil || len(later) != 1 || later[0] != "later" {
		t.Errorf("%v %q", err, later)
	}
	stop := errors.New("stop")
	if err := debuglog.NewReader(dir, debuglog.Filter{}).Next(func(debuglog.Record) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	if err := debuglog.NewReader(filepath.Join(dir, "none"), debuglog.Filter{}).Next(nil); err != nil {
		t.Error(err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"time":"2026-06-04T12:00:00.000Z","level":"info","tag":"0","msg":"m","pid":1,"a":{"b":[1]},"a":2}` + "\n"))
	f.Add([]byte("{\"time\":1}\n[\n{\"time\":\"\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		write(t, dir, "2026-06-04.jsonl", string(text))
		if err := debuglog.NewReader(dir, debuglog.Filter{}).Next(func(r debuglog.Record) error {
			if r.Time.IsZero() {
				t.Fatalf("%v is no record", r)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// Every place that writes records has a tag of its own, in the tree as it is.
func TestTagsAreUnique(t *testing.T) {
	tag := regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{8}$`)
	places := map[string]string{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		tree, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return nil //nolint:nilerr // the compiler says that
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			at, text, isLog := tagOf(call)
			if !isLog {
				return true
			}
			place := fmt.Sprintf("%s:%d", path, files.Position(at).Line)
			if before, taken := places[text]; taken {
				t.Errorf("%s: the tag %s stands at %s already", place, text, before)
			}
			if !tag.MatchString(text) {
				t.Errorf("%s: %q is no tag: eight characters of 0-9 and A-Z without I, L, O, U", place, text)
			}
			places[text] = place
			return true
		})
		return nil
	})
	if err != nil || len(places) < 10 {
		t.Errorf("%d places found: %v", len(places), err)
	}
}

// tagOf is the tag of a call of a Logger's method: one called Info, Debug or LogOutcome
// with the tag as a literal, followed by a literal message.
func tagOf(call *ast.CallExpr) (at token.Pos, tag string, ok bool) {
	sel, isSel := call.Fun.(*ast.SelectorExpr)
	if !isSel {
		return 0, "", false
	}
	i := map[string]int{"Info": 0, "Debug": 0, "LogOutcome": 1}
	n, known := i[sel.Sel.Name]
	if !known || len(call.Args) < n+2 {
		return 0, "", false
	}
	text := func(e ast.Expr) (string, bool) {
		lit, isLit := e.(*ast.BasicLit)
		if !isLit || lit.Kind != token.STRING {
			return "", false
		}
		s, err := strconv.Unquote(lit.Value)
		return s, err == nil
	}
	tag, ok = text(call.Args[n])
	_, message := text(call.Args[n+1])
	return call.Args[n].Pos(), tag, ok && message
}
