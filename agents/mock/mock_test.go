package mock

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/agenttest"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

func TestParse(t *testing.T) {
	s, err := Parse("s.yaml", []byte(`
# a comment
steps:
  - role: planner
    step: 1
    visit: 2
    attempt: 3
    output: [one, "two"]
    delay: 250ms
    write: {a.txt: "x", b/c.txt: ""}
    delete: [d]
    commands: ["true"]
    usage: {turns: 1, inputTokens: 2, outputTokens: 3, costUsd: 0.5}
    stderr: e
    stdout: o
    size: 9
    flood: 8
    daemon: true
    stage: {x: "y"}
    handle: ""
    as: {role: r, agent: a, start: C700MP4XFW7FA, prev: 2MDX6NVDDVP4H}
  - {hang: true}
  - {exit: 0}
  - {kill: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	e := s.Entries[0]
	switch {
	case len(s.Entries) != 4, e.Line != 4, e.Role != "planner", e.Step != 1, e.Visit != 2, e.Attempt != 3,
		strings.Join(e.Outputs, ",") != "one,two", e.Delay != 250*time.Millisecond, len(e.Write) != 2, len(e.Delete) != 1,
		len(e.Commands) != 1, e.Usage.Turns != 1, e.Usage.InputTokens != 2, e.Usage.OutputTokens != 3, e.Usage.CostUSD != 0.5,
		e.Stderr != "e", e.Stdout != "o", e.Size != 9, e.Flood != 8, !e.Daemon, e.Stage["x"] != "y", e.Handle == nil, *e.Handle != "",
		e.As != As{Role: "r", Agent: "a", Start: "C700MP4XFW7FA", Prev: "2MDX6NVDDVP4H"}:
		t.Errorf("parsed %+v", s)
	}
	if !s.Entries[1].Hang || s.Entries[2].Exit == nil || *s.Entries[2].Exit != 0 || !s.Entries[3].Kill {
		t.Errorf("parsed %+v", s.Entries[1:])
	}
}

func TestParseSaysWhatIsWrongAndWhere(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "s.yaml:1:1: no steps"},
		{"[]", "s.yaml:1:1: must be a map"},
		{"steps: []", "no steps"},
		{"steps: {}", "s.yaml:1:8: steps: must be a list"},
		{"steps:\n  - outptu: x", `s.yaml:2:5: steps[0].outptu: unknown key; did you mean "output"?`},
		{"steps:\n  - {}", "s.yaml:2:5: steps[0]: an entry needs an output"},
		{"steps:\n  - just text", "s.yaml:2:5: steps[0]: must be a map"},
		{"steps:\n  - output: {a: b}", "s.yaml:2:13: steps[0].output: must be text, this is a map"},
		{"steps:\n  - output: [a, {b: c}]", "s.yaml:2:17: steps[0].output[1]: must be text"},
		{"steps:\n  - {output: x, step: 0}", "must be a whole number from 1"},
		{"steps:\n  - {output: x, step: one}", "must be a whole number"},
		{"steps:\n  - {output: x, step: 99999999999999999999}", "s.yaml:2:23: steps[0].step: must be a whole number"},
		{"steps:\n  - {exit: 18446744073709551615}", "s.yaml:2:12: steps[0].exit: must be a whole number from 0 to 255"},
		{"steps:\n  - {output: x, delay: 3}", "s.yaml:2:24: steps[0].delay: must be a time such as 90s"},
		{"steps:\n  - {output: x, delay: -1s}", "must be a time"},
		{"steps:\n  - {output: x, delay: [1s]}", "s.yaml:2:24: steps[0].delay: must be a time"},
		{"steps:\n  - {output: x, hang: maybe}", "must be true or false"},
		{"steps:\n  - {exit: 256}", "must be a whole number from 0 to 255"},
		{"steps:\n  - {exit: -1}", "must be a whole number from 0"},
		{"steps:\n  - {output: x, write: [a]}", "steps[0].write: must be a map (name: value), this is a list"},
		{"steps:\n  - {output: x, write: {a: x, a: y}}", `duplicate key "a"`},
		{"steps:\n  - {output: x, output: y}", `duplicate key "output"`},
		{"steps:\n  - {output: x, as: {start: abc}}", "must be a node's hash"},
		{"steps:\n  - {output: x, as: {start: [C700MP4XFW7FA]}}", "s.yaml:2:29: steps[0].as.start: must be text, this is a list"},
		{"steps:\n  - {output: x, usage: {costUsd: much}}", "steps[0].usage.costUsd: must be a number, 0 or more"},
		{"steps:\n  - {output: x, usage: {costUsd: 1e13}}", "must be a number, 0 or more"},
		{"steps:\n  - {output: x, usage: {costUsd: .nan}}", "must be a number, 0 or more"},
		{"steps:\n  - {output: x, usage: {costUsd: -1}}", "must be a number, 0 or more"},
		{"steps:\n  - &a {output: x}\n  - *a", "s.yaml:2:5: the anchor &a is not read here"},
		{"steps:\n  - &a {output: x}\n  - *a", "s.yaml:3:5: the alias *a is not read here"},
		{"steps:\n  - {output: !!binary eA==}", "the tag !!binary is not allowed"},
		{"steps: [{output: x}]\n---\nsteps: []", "more than one YAML document"},
		{"steps: [", "s.yaml:1:1: not valid YAML"},
		{"steps: [{hang: true, exit: 999, wat: 1}]", "steps[0].wat: unknown key"},
		{strings.Repeat(" ", strictyaml.MaxFile+1), "the limit is"},
	}
	for _, tt := range tests {
		_, err := Parse("s.yaml", []byte(tt.text))
		var e *ScriptError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60q: %v, want %q", tt.text, err, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("steps: [{output: x, as: {start: C700MP4XFW7FA}}]"))
	f.Add([]byte("steps:\n  - &a\n    output: *a"))
	f.Add([]byte("? {a: b}\n: c"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse("f", b)
		if (err == nil) == (len(s.Entries) == 0) {
			t.Errorf("%d entries, error %v", len(s.Entries), err)
		}
	})
}

func TestPick(t *testing.T) {
	s := Script{Entries: []Entry{
		{Line: 1, Role: "a", Step: 2}, {Line: 2, Role: "a", Visit: 2}, {Line: 3, Role: "a", Attempt: 2}, {Line: 4, Role: "b"}, {Line: 5, Step: 9},
	}}
	tests := []struct {
		m    Moment
		line int
	}{
		{Moment{"a", 2, 2, 2}, 1}, {Moment{"a", 3, 2, 2}, 2}, {Moment{"a", 3, 1, 2}, 3}, {Moment{"b", 2, 1, 1}, 4},
		{Moment{"c", 9, 1, 1}, 5}, {Moment{"a", 1, 1, 1}, 0},
	}
	for _, tt := range tests {
		e, err := s.Pick(tt.m)
		if (err == nil) != (tt.line != 0) || e.Line != tt.line {
			t.Errorf("Pick(%+v) = line %d, %v; want %d", tt.m, e.Line, err, tt.line)
		}
	}
}

// A script of the TypeScript uwf is played by the number of the step, and its role must be
// the one whose turn it is.
func TestPickInOrder(t *testing.T) {
	const loop = "steps:\n- {role: dev, output: one}\n- {role: rev, output: two}\n- {role: dev, output: three}\n"
	s, err := Parse("s.yaml", []byte(loop))
	if err != nil || !s.InOrder {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, tt := range []struct {
		m           Moment
		want, fails string
	}{
		{Moment{"dev", 1, 1, 1}, "one", ""},
		{Moment{"rev", 2, 1, 1}, "two", ""},
		{Moment{"dev", 3, 2, 1}, "three", ""},
		{Moment{"dev", 3, 2, 2}, "three", ""}, // tried again
		{Moment{"dev", 2, 2, 1}, "", "has role rev for step 2 (line 3), and it is the turn of dev"},
		{Moment{"rev", 4, 2, 1}, "", "ends after 3 steps: it has no entry for step 4, of role rev"},
	} {
		e, err := s.Pick(tt.m)
		if err == nil && (tt.fails != "" || e.Outputs[0] != tt.want) || err != nil && (tt.fails == "" || !strings.Contains(err.Error(), tt.fails)) {
			t.Errorf("%+v: %v, %v; want %s%s", tt.m, e.Outputs, err, tt.want, tt.fails)
		}
	}
	// Scripts of ours stay what they are.
	for text, want := range map[string]bool{
		"steps: [{role: a, output: x}, {role: b, output: y}]":                                false,
		"steps: [{role: a, output: x}, {output: y}, {role: a, output: z}]":                   false,
		"steps: [{role: a, visit: 1, output: x}, {role: a, output: y}]":                      false,
		"steps: [{role: a, output: [x, y]}, {role: a, output: z}]":                           false,
		"steps: [{role: a, output: x}, {role: a, exit: 3}]":                                  false,
		"steps: [{role: a, output: x}, {role: b, output: y}, {role: b, output: z}]":          true,
		"steps: [{role: a, step: 1, output: x}, {role: b, output: y}, {role: b, output: z}]": false,
	} {
		if s, err := Parse("s.yaml", []byte(text)); err != nil || s.InOrder != want {
			t.Errorf("%s: in order: %v, %v", text, s.InOrder, err)
		}
	}
}

// The second visit of a role is known from the thread's chain, the second attempt
// from what failed before.
func TestMomentOfATask(t *testing.T) {
	task := agenttest.Task(t)
	task.PreviousAttempts = []node.Hash{"C700MP4XFW7FA"}
	p := agenttest.NewProcess(t, task)
	script := Script{Entries: []Entry{
		{Visit: 1, Outputs: []string{"no"}}, {Step: 1, Outputs: []string{"no"}}, {Attempt: 1, Outputs: []string{"no"}},
		{Visit: 2, Step: 2, Attempt: 2, Outputs: []string{"---\n$status: done\n---\nyes"}},
	}}
	if err := agents.RunAdapter(t.Context(), &Agent{Script: script, Stdout: p.Out}, p.Process); err != nil {
		t.Fatal(err)
	}
	if body := p.Nodes(t)[*p.Step(t).Body].Payload; body != "yes" {
		t.Errorf("body %q", body)
	}
}

func TestEditsStayInTheWorkspace(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(outside, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, e := range []Entry{
		{Write: map[string]string{"../x": "y"}}, {Write: map[string]string{outside: "y"}}, {Delete: []string{outside}},
		{Write: map[string]string{"link": "y"}},
	} {
		task := agenttest.Task(t)
		if err := os.Symlink(outside, filepath.Join(task.Workspace, "link")); err != nil {
			t.Fatal(err)
		}
		e.Outputs = []string{"---\n$status: done\n---\n"}
		p := agenttest.NewProcess(t, task)
		if err := agents.RunAdapter(t.Context(), &Agent{Script: Script{Entries: []Entry{e}}, Stdout: io.Discard}, p.Process); err == nil {
			t.Errorf("%+v went through", e)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "kept" {
		t.Errorf("the file outside: %q, %v", b, err)
	}
}

func TestCrashHasItsCode(t *testing.T) {
	p := agenttest.NewProcess(t, agenttest.Task(t))
	code := 7
	err := agents.RunAdapter(t.Context(), &Agent{Script: Script{Entries: []Entry{{Exit: &code}}}, Stdout: io.Discard}, p.Process)
	var crash *CrashError
	if !errors.As(err, &crash) || crash.ExitCode() != 7 {
		t.Errorf("error %v", err)
	}
	if n := len(p.Nodes(t)); n != 1 {
		t.Errorf("%d nodes staged before the crash", n)
	}
}
