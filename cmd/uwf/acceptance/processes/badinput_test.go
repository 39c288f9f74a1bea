package processes

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/testmode"
)

// goodOutput ends a thread of the loop workflow.
const goodOutput = `output: "---\n$status: done\npart: 1\n---\n"`

// head is a thread's head as git alone shows it.
func (l *lab) head(id string) string {
	l.Helper()
	found := regexp.MustCompile(`(?m)^` + id + `:(?:\n  head:)? (\w{13})$`).FindStringSubmatch(l.bare("show", "uwf-state:threads.yaml"))
	if found == nil {
		l.Fatalf("thread %s is not in threads.yaml", id)
	}
	return found[1]
}

// failing is a step that must fail.
type failing struct {
	*machine
	id, head string
}

// failing starts a thread for a step that must fail.
func (m *machine) failing() failing {
	m.Helper()
	id := m.startThread()
	return failing{m, id, m.head(id)}
}

// fails checks how the step failed: its code, its message and its result, that
// the thread stands where it stood, and that what there was is kept.
func (f failing) fails(j *job, want ...string) {
	f.Helper()
	j.ends(1)
	for _, w := range append(want, "thread step "+f.id, "what there is was kept: git fetch origin refs/uwf/attempts/"+f.id+"/") {
		if !strings.Contains(j.errs.String(), w) {
			f.Errorf("%s\nthe message does not say %q", j, w)
		}
	}
	if strings.Contains(j.errs.String(), "goroutine ") {
		f.Errorf("%s\nit panicked", j)
	}
	var res struct {
		Head, Status string
		Error        struct{ Message string }
	}
	j.json(&res)
	if res.Head != f.head || res.Status != "active" || res.Error.Message == "" {
		f.Errorf("the result is %+v", res)
	}
	if now := f.lab.head(f.id); now != f.head {
		f.Errorf("the head moved from %s to %s", f.head, now)
	}
	if left := f.refs("refs/uwf/claims"); len(left) > 0 {
		f.Errorf("claims are left: %v", left)
	}
	if kept := f.refs("refs/uwf/attempts/" + f.id); len(kept) != 1 || !strings.Contains(f.bare("show", "uwf-state:threads.yaml"), kept[0]) {
		f.Errorf("kept attempts: %v", kept)
	}
}

// TestBadAgents runs agents that break the protocol in every way that one process
// can, each on a thread of its own.
func TestBadAgents(t *testing.T) {
	t.Parallel()
	l := newLab(t, loop, "steps: []", nil)
	l.inside = true
	m := l.machine("a")
	type row struct {
		name, entry string
		flags       []string
		want        []string
	}
	for _, tt := range testmode.Some(3, []row{
		{name: "nothing printed", entry: `handle: "", ` + goodOutput, want: []string{"its step can't be taken", "printed nothing"}},
		{name: "nothing at all", entry: `exit: 0`, want: []string{"printed nothing"}},
		{name: "no handle", entry: `handle: "I am done!", ` + goodOutput, want: []string{"I am done!", "handle"}},
		{name: "handle of nothing", entry: `handle: "0123456789ABC", ` + goodOutput, want: []string{"0123456789ABC", "not among the 3 nodes"}},
		{name: "json without a handle", entry: `handle: '{"done":true}', ` + goodOutput, want: []string{"no stepHash"}},
		{name: "another role", entry: `as: {role: boss}, ` + goodOutput, want: []string{`of role "boss", wanted "worker"`}},
		{name: "another agent", entry: `as: {agent: claude}, ` + goodOutput, want: []string{`names agent "claude", wanted "mock"`}},
		{name: "another start", entry: `as: {start: 0123456789ABC}, ` + goodOutput, want: []string{"belongs to another thread"}},
		{name: "another head", entry: `as: {prev: 0123456789ABC}, ` + goodOutput, want: []string{"does not follow the thread's head"}},
		{name: "exit 1", entry: `exit: 1, stderr: "no disk\n"`, want: []string{"exit code 1", "no disk"}},
		{name: "killed", entry: `kill: true`, want: []string{"killed"}},
		{name: "never ends", entry: `hang: true`, flags: []string{"--step-time", "300ms"}, want: []string{"300ms", "limits.stepTime"}},
		{name: "output of 10 MB", entry: `size: 10485760, ` + goodOutput, want: []string{"10485760 bytes", "too large"}},
		{name: "noise of 10 MB", entry: `flood: 10485760, ` + goodOutput, want: []string{"8388608 bytes"}},
		{name: "garbage in the stage", entry: `stage: {x.json: "{"}, ` + goodOutput, want: []string{"x.json", "not named <HASH>.json"}},
		{name: "forged hash", entry: `stage: {0123456789ABC.json: '{"type":"7VQ43ZSJTEWA7","payload":"x","timestamp":1}'}, ` + goodOutput, want: []string{"0123456789ABC", "has the content of"}},
		{name: "no frontmatter", entry: `output: ["I did it", "Really", "Believe me"]`, want: []string{"after 2 corrections", "frontmatter"}},
		{name: "unknown status", entry: `output: ["---\n$status: maybe\npart: 1\n---\n", "---\n$status: perhaps\npart: 1\n---\n", "---\n$status: nearly\npart: 1\n---\n"]`, want: []string{"after 2 corrections", `"more", "done"`}},
	}...) {
		t.Run(tt.name, func(t *testing.T) {
			f := m.on(t).failing()
			script := f.path(f.id + ".yaml")
			f.write(script, "steps: [{"+tt.entry+"}]\n")
			args := append([]string{"thread", "step", f.id, "--agent", "uwf agent mock '" + script + "'"}, tt.flags...)
			f.fails(f.start(nil, args...), tt.want...)
		})
	}
	// What failed for good can be stepped by an agent that does better.
	l.write(l.script, "steps: [{"+goodOutput+"}]")
	id := m.startThread()
	m.step(nil, id).ends(0)
	m.sound()
}

// on is the machine for a part of a test.
func (m *machine) on(t *testing.T) *machine {
	l := &lab{T: t, inside: m.inside, remotes: m.remotes, dir: m.dir, server: m.server, url: m.url, script: m.script}
	return &machine{lab: l, name: m.name, clone: m.clone, home: m.home}
}

// TestBadStage runs an agent that stages what no kit would.
func TestBadStage(t *testing.T) {
	t.Parallel()
	m := newLab(t, loop, "steps: []", nil).machine("a")
	m.inside = true
	type row struct {
		name  string
		stage func(s *staging)
		want  string
	}
	for _, tt := range testmode.Some(3, []row{
		{"a detail whose schema refers to itself", func(s *staging) {
			schema := s.add(node.MetaSchema, map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "#/properties/a"}}})
			s.step.Detail = s.add(schema, map[string]any{"a": map[string]any{}})
		}, "$ref"},
		{"a detail of an unknown type", func(s *staging) { s.step.Detail = s.add("0123456789ABC", "x") }, "its type 0123456789ABC: no schema that this store knows"},
		{"a detail of 2 MB", func(s *staging) { s.step.Detail = s.add(node.String, strings.Repeat("x", 2<<20)) }, "at most 1048576 are stored"},
		{"a detail of 5 MB", func(s *staging) { s.step.Detail = s.add(node.String, strings.Repeat("x", 5<<20)) }, "more than 4194304 bytes"},
		{"an output of another type", func(s *staging) { s.step.Output = s.add(node.String, "done") }, "the agent's output is of type"},
		{"an output that does not fit", func(s *staging) { s.step.Output = s.add(s.output, map[string]any{"$status": "done", "part": "one"}) }, "part"},
		{"an output that is nowhere", func(s *staging) { s.step.Output = "0123456789ABC" }, "neither staged nor part of the thread"},
		{"a link out of the stage", func(s *staging) { s.more = "ln -s /etc/passwd \"$UWF_STAGE\"/0123456789ABC.json" }, "0123456789ABC.json"},
		{"a pipe", func(s *staging) { s.more = "mkfifo \"$UWF_STAGE\"/0123456789ABC.json" }, "0123456789ABC.json"},
	}...) {
		t.Run(tt.name, func(t *testing.T) {
			f := m.on(t).failing()
			s := f.staging()
			tt.stage(s)
			f.fails(f.start(nil, "thread", "step", f.id, "--agent", s.agent()), tt.want)
		})
	}
}

// staging is what an agent of the test's own leaves behind.
type staging struct {
	failing
	dir    string
	output node.Hash // the type of the role's output
	step   record.Step
	more   string // a command to run besides
}

func (f failing) staging() *staging {
	f.Helper()
	s := &staging{failing: f, dir: f.path("stage-" + f.id)}
	f.check(os.MkdirAll(s.dir, 0o700))
	var thread struct{ Workflow node.Hash }
	f.start(nil, "thread", "show", f.id).ends(0).json(&thread)
	var flow struct {
		Payload struct {
			Roles map[string]struct{ Frontmatter node.Hash }
		}
	}
	f.check(json.Unmarshal([]byte(f.bare("show", "uwf-state:cas/"+string(thread.Workflow)+".json")), &flow))
	s.output = flow.Payload.Roles["worker"].Frontmatter
	s.step = record.Step{
		Start: node.Hash(f.head), Role: "worker", Agent: "sh", StartedAtMs: 1, CompletedAtMs: 2,
		Output: s.add(s.output, map[string]any{"$status": "done", "part": 1}),
		Detail: s.add(record.MockDetailSchema, map[string]any{"sessionId": "s", "role": "worker", "stepIndex": 0}),
	}
	return s
}

// add stages a node without any check.
func (s *staging) add(typ node.Hash, payload any) node.Hash {
	s.Helper()
	n, h, err := node.New(typ, payload, time.UnixMilli(1))
	s.check(err)
	s.put(n, h)
	return h
}

func (s *staging) put(n node.Node, h node.Hash) {
	s.Helper()
	b, err := node.EncodeFile(n)
	s.check(err)
	s.write(filepath.Join(s.dir, string(h)+".json"), string(b))
}

// agent is the command line of an agent that stages it all.
func (s *staging) agent() string {
	s.Helper()
	n, h, err := s.step.Node(time.UnixMilli(1))
	s.check(err)
	s.put(n, h)
	script := s.dir + ".sh"
	s.write(script, fmt.Sprintf("cp '%s'/* \"$UWF_STAGE\" && %s\necho %s\n", s.dir, orTrue(s.more), h))
	return "sh '" + script + "'"
}

func orTrue(command string) string {
	if command == "" {
		return "true"
	}
	return command
}

// TestDaemon: what an agent leaves running is ended, whether its step was good
// or not.
func TestDaemon(t *testing.T) {
	t.Parallel()
	m := newLab(t, loop, "steps: []", nil).machine("a")
	for _, tt := range []struct {
		entry string
		code  int
	}{{goodOutput, 0}, {"exit: 1", 1}} {
		m.write(m.script, "steps: [{daemon: true, "+tt.entry+"}]")
		file := m.path("pid")
		script := m.path("agent.sh")
		m.write(script, "uwf agent mock '"+m.script+"' \"$@\" 2>'"+file+"'\n")
		j := m.start(nil, "thread", "step", m.startThread(), "--agent", "sh '"+script+"'")
		j.ends(tt.code)
		b, err := os.ReadFile(file)
		m.check(err)
		found := regexp.MustCompile(`left process (\d+) behind`).FindSubmatch(b)
		if found == nil {
			t.Fatalf("the agent left no process: %s\n%s", b, j)
		}
		pid, err := strconv.Atoi(string(found[1]))
		m.check(err)
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there (%v)", pid, err)
		}
	}
}
