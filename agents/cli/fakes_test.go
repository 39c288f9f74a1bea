package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/agentclitest"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/modeltest"
)

// fakeCases are those of .ci/tools/agents that a fake answers in the same way. Some of the
// recordings end in the middle of tries that no fake makes: they are passed over.
var fakeCases = []struct {
	name, prompt string
	session      string // to resume; "badfinal": what that case left
	change       func(argv []string) []string
}{
	{name: "version", change: func([]string) []string { return []string{"--version"} }},
	{name: "unknown-flag", prompt: "Do it.", change: func(argv []string) []string {
		at := 0
		if !strings.HasPrefix(argv[0], "-") {
			at++ // a command
		}
		return slices.Insert(argv, at, "--no-such-flag")
	}},
	{name: "plain", prompt: "Do it. [[plain]]"},
	{name: "tool", prompt: "Do it."},
	{name: "badfinal", prompt: "Do it. [[badfinal]]"},
	{name: "resume", prompt: "The answer has no frontmatter.", session: "badfinal"},
	{name: "resume-unknown", prompt: "The answer has no frontmatter.", session: "01234567-89ab-4cde-8f01-23456789abcd"},
	{name: "empty", prompt: "Do it. [[empty]]"},
	{name: "cut", prompt: "Do it. [[cut]]"},
	{name: "err400", prompt: "Do it. [[err400]]"},
	{name: "err401", prompt: "Do it. [[err401]]"},
	{name: "err403", prompt: "Do it. [[err403]]"},
	{name: "err429", prompt: "Do it. [[err429]]"},
	{name: "err500", prompt: "Do it. [[err500]]"},
	{name: "err529", prompt: "Do it. [[err529]]"},
}

// unlike are cases in which a fake is known to do something else.
var unlike = map[string]string{
	"claude-code/cut": "it asks again without a stream, and has an answer",
}

// TestFakes: the fakes of agentclitest end as the real programs did, ask the same address with
// the same headers, and print no line, field or word on stderr that those did not; and the parser
// makes the same of both.
func TestFakes(t *testing.T) {
	bin := agentclitest.Install(t, t.TempDir())
	for _, c := range All() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			runs := map[string]*fakeRun{}
			for _, one := range fakeCases {
				want := readRun(t, c, filepath.Join("testdata", c.Program, c.Versions.Tested, one.name))
				if strings.Contains(want.exit, "killed") || unlike[c.Name+"/"+one.name] != "" {
					continue
				}
				r := newFakeRun(t)
				if one.session != "" {
					r.call.Session, r.call.Resume = one.session, true
				}
				if before := runs[one.session]; before != nil {
					r.call.Home, r.work, r.call.Session = before.call.Home, before.work, before.call.Session
				}
				runs[one.name] = r
				argv := c.argv(r.call)
				if one.change != nil {
					argv = one.change(argv)
				}
				r.runFake(c, exec.CommandContext(t.Context(), filepath.Join(bin, c.Program), argv...), one.prompt)
				got := readRun(t, c, filepath.Join(r.dir, "run"))
				if got.session != "" {
					r.call.Session = got.session
				}
				if diff := got.compareWith(want); diff != "" {
					t.Errorf("%s: %s", one.name, diff)
				}
			}
		})
	}
}

// fakeRun is one run of a fake.
type fakeRun struct {
	*testing.T
	dir, work string
	model     modeltest.Server
	call      call
}

func newFakeRun(t *testing.T) *fakeRun {
	t.Helper()
	r := &fakeRun{T: t, dir: t.TempDir()}
	r.work = r.makeFolder("work")
	s := httptest.NewServer(&r.model)
	t.Cleanup(s.Close)
	r.call = usual()
	r.call.URL, r.call.Key, r.call.MCP = s.URL, "key", nil
	r.call.Home, r.call.Temp = r.makeFolder("home"), r.makeFolder("tmp")
	return r
}

func (r *fakeRun) makeFolder(name string) string {
	dir := filepath.Join(r.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		r.Fatal(err)
	}
	return dir
}

// runFake runs a fake as the adapter would, and writes what it did as recordings are written.
func (r *fakeRun) runFake(c CLI, cmd *exec.Cmd, prompt string) {
	r.Helper()
	if c.files != nil {
		if err := WriteHome(r.call.Home, c.files(r.call)); err != nil {
			r.Fatal(err)
		}
	}
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.work, strings.NewReader(prompt), &stdout, &stderr
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.call.Home, "TMPDIR=" + r.call.Temp}, c.environ(r.call)...)
	_ = cmd.Run() // the exit code says it
	var requests strings.Builder
	for _, q := range r.model.Requests() {
		fmt.Fprintf(&requests, "%s %s %d", q.Method, q.URL, q.Status)
		for _, name := range []string{"Accept", "Anthropic-Version", "Authorization", "Content-Encoding", "X-Api-Key", "X-Goog-Api-Key"} {
			if v := q.Header.Get(name); v != "" {
				fmt.Fprintf(&requests, " %s=%q", name, v)
			}
		}
		requests.WriteByte('\n')
	}
	answer, err := os.ReadFile(r.call.answerFile())
	files := map[string]string{".stdout": stdout.String(), ".stderr": stderr.String(), ".exit": fmt.Sprintln(cmd.ProcessState.ExitCode()), ".requests": requests.String()}
	if err == nil {
		files[".last"] = string(answer)
	}
	for kind, text := range files {
		if err := os.WriteFile(filepath.Join(r.dir, "run"+kind), []byte(text), 0o600); err != nil {
			r.Fatal(err)
		}
	}
}

// recordedRun is what is compared of a run.
type recordedRun struct {
	exit, read string
	session    string
	// shapes are the fields of what it printed, lines those of stderr, requests its requests.
	shapes, lines, requests map[string]bool
}

// readRun reads the files of a run whose names begin so.
func readRun(t *testing.T, c CLI, begin string) recordedRun {
	t.Helper()
	read := func(kind string) string {
		b, err := os.ReadFile(begin + kind)
		if err != nil {
			t.Fatal(err)
		}
		return cleanRun(string(b))
	}
	report := readReport(t, c, begin+".stdout")
	run := recordedRun{
		exit: strings.TrimSpace(read(".exit")), read: cleanRun(describeReport(report)), session: report.Session,
		shapes: map[string]bool{}, lines: splitLines(read(".stderr")), requests: splitLines(read(".requests")),
	}
	var all []json.RawMessage
	switch out := read(".stdout"); {
	case c.whole && json.Unmarshal([]byte(out), &all) == nil:
	case c.whole && json.Valid([]byte(out)):
		all = append(all, json.RawMessage(out))
	default:
		for line := range splitLines(out) {
			all = append(all, json.RawMessage(line))
		}
	}
	for _, line := range all {
		var v any
		if json.Unmarshal(line, &v) != nil {
			run.shapes[string(line)] = true // as it stands
			continue
		}
		kind, _ := v.(map[string]any)["type"].(string)
		addShape(run.shapes, kind, v)
	}
	return run
}

// addShape adds each field with what kind of value it has, and the value itself where it is what
// kind of object this is.
func addShape(shapes map[string]bool, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			addShape(shapes, path+"."+name, field)
		}
	case []any:
		for _, one := range v {
			addShape(shapes, path+"[]", one)
		}
	case string:
		if strings.HasSuffix(path, "type") {
			path += "=" + v
		}
		shapes[path+" string"] = true
	default:
		shapes[fmt.Sprintf("%s %T", path, v)] = true
	}
}

func splitLines(text string) map[string]bool {
	lines := map[string]bool{}
	for line := range strings.Lines(text) {
		// What is JSON on lines of its own has another order of fields.
		if line = strings.TrimSuffix(strings.TrimSpace(line), ","); line != "" {
			lines[line] = true
		}
	}
	return lines
}

// differsEachTime are ids, ports and process groups.
var differsEachTime = lazyregexp.New(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\bses_[0-9a-z]{26}|127\.0\.0\.1:\d+|PGID: \d+`)

func cleanRun(text string) string { return differsEachTime.ReplaceAllString(text, "(id)") }

// compareWith says what a fake does that the real program did not.
func (got recordedRun) compareWith(want recordedRun) string {
	var b strings.Builder
	if got.exit != want.exit {
		fmt.Fprintf(&b, "exit code %s, want %s\n", got.exit, want.exit)
	}
	if got.read != want.read {
		fmt.Fprintf(&b, "the parser makes of it\n%swant\n%s", got.read, want.read)
	}
	if !maps.Equal(got.requests, want.requests) {
		fmt.Fprintf(&b, "requests %q, want %q\n", slices.Sorted(maps.Keys(got.requests)), slices.Sorted(maps.Keys(want.requests)))
	}
	for _, which := range []struct {
		name      string
		got, want map[string]bool
	}{{"stdout", got.shapes, want.shapes}, {"stderr", got.lines, want.lines}} {
		for _, one := range slices.Sorted(maps.Keys(which.got)) {
			if !which.want[one] {
				fmt.Fprintf(&b, "%s has %s\n", which.name, one)
			}
		}
		if len(which.got) == 0 && len(which.want) > 0 && len(want.shapes) == 0 {
			fmt.Fprintf(&b, "nothing on %s\n", which.name)
		}
	}
	return b.String()
}
