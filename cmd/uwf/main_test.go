package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"uwf": faultyMain, "uwf-measured": measuredMain})
}

// TestScripts runs what a person could type, in real processes on real
// repositories.
func TestScripts(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"thread":   makeThread,
			"grow":     grow,
			"take":     take,
			"near":     near,
			"gocache":  gocache,
			"provider": fakeProvider,
			"ocas":     oldStore,
		},
	})
}

// TestTerminal checks what people see: text, coloured unless they say no, and in
// it no escape but our own.
func TestTerminal(t *testing.T) {
	for _, tt := range []struct {
		environ []string
		want    string
	}{
		{nil, "^\x1b\\[1mone\x1b\\[0m\x1b\\[2m  [0-9A-Z]{13}  flow.yaml\x1b\\[0m\n\\\\x1b\\]0;owned"},
		{[]string{"NO_COLOR=1"}, `^one  [0-9A-Z]{13}  flow.yaml\n\\x1b\]0;owned`},
		{[]string{"TERM=dumb"}, `^one  [0-9A-Z]{13}  flow.yaml\n`},
	} {
		dir := t.TempDir()
		flow := strings.ReplaceAll(oneRole, "description: d\nroles", `description: "\x1b]0;owned\a\u202e"`+"\nroles")
		if err := os.WriteFile(filepath.Join(dir, "flow.yaml"), []byte(flow), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		f := &app.Factory{
			IO:      app.IO{In: strings.NewReader(""), Out: &out, Err: &errs, OutTTY: true, ErrTTY: true},
			Environ: tt.environ, Dir: dir, Now: time.Now,
		}
		if code := execute(t.Context(), f, []string{"workflow", "show", "flow.yaml"}); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		if !regexp.MustCompile(tt.want).MatchString(out.String()) {
			t.Errorf("%v: %q", tt.environ, out.String())
		}
	}
}

const oneRole = `name: one
description: d
roles:
  dev:
    description: d
    goal: g
    capabilities: []
    procedure: p
    output: o
    frontmatter: {type: object, properties: {$status: {const: done}}, required: [$status]}
graph:
  $START: {_: {role: dev, prompt: go}}
  dev: {done: {role: $END, prompt: bye}}
`

// setup gives each script a home of its own, so that nothing of the machine's
// user is read.
func setup(e *testscript.Env) error {
	home := filepath.Join(e.WorkDir, "home")
	config := filepath.Join(home, ".gitconfig")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(config, []byte("[user]\n\tname = someone\n\temail = someone@example.com\n[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n"), 0o600); err != nil {
		return err
	}
	e.Setenv("HOME", home)
	e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	e.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	return nil
}

// exits CODE PROGRAM [ARG]... runs a program that must end with that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG]...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// grow FILE BYTES makes a file of that size.
func grow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: grow FILE BYTES")
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(errors.Join(f.Truncate(n), f.Close()))
}

// thread REPOSITORY ID STEPS [ended] puts a thread with that many steps on the
// state branch of a repository. Outputs and subjects hold terminal escapes.
func makeThread(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: thread REPOSITORY ID STEPS [ended]")
	}
	steps, err := strconv.Atoi(args[2])
	ts.Check(err)
	remote, err := wire.Dial(ts.MkAbs(args[0]), wire.DialOptions{})
	ts.Check(err)
	w := threadWriter{store: gitcas.Open(remote, gitcas.Options{Now: func() time.Time { return when }}), id: gitcas.ThreadID(args[1])}
	heads, err := w.write(context.Background(), steps, len(args) > 3)
	ts.Check(err)
	for i, h := range heads {
		ts.Setenv(fmt.Sprintf("STEP%d", i), string(h))
	}
	ts.Setenv("DETAIL", string(w.detail))
	ts.Setenv("OUTPUT", string(w.output))
}

// threadWriter makes a thread without running any agent.
type threadWriter struct {
	store          *gitcas.Store
	id             gitcas.ThreadID
	detail, output node.Hash // of the last step
	entry          gitcas.Entry
	steps          []node.Hash
	endedAt        time.Time // zero: when
}

// write returns the hashes of the start and of each step.
func (w *threadWriter) write(ctx context.Context, steps int, ended bool) ([]node.Hash, error) {
	v, err := w.store.Init(ctx)
	if err != nil {
		return nil, err
	}
	if v, err = w.start(ctx, v); err != nil {
		return nil, err
	}
	heads := []node.Hash{w.entry.Head}
	for i := range steps {
		if v, err = w.step(ctx, v, heads, i); err != nil {
			return nil, err
		}
		heads = append(heads, w.entry.Head)
	}
	w.steps = heads[1:]
	if ended {
		err = w.end(ctx, v)
	}
	return heads, err
}

var when = time.Date(2026, 6, 4, 12, 0, 0, 0, time.UTC)

func (w *threadWriter) start(ctx context.Context, v *gitcas.View) (*gitcas.View, error) {
	schema := record.Schemas()[record.StartSchema]
	flow, flowHash, err := node.New(record.WorkflowSchema, map[string]any{
		"name": "two", "description": "d", "roles": map[string]any{}, "graph": map[string]any{}}, when)
	if err != nil {
		return nil, err
	}
	n, h, err := record.Start{Workflow: flowHash, Prompt: "do it"}.Node(when)
	if err != nil {
		return nil, err
	}
	w.entry = gitcas.Entry{Head: h, Status: gitcas.StatusActive, Workflow: flowHash}
	return w.store.Push(ctx, v, &gitcas.Change{
		Subject: "start · two", Threads: map[gitcas.ThreadID]*gitcas.Entry{w.id: &w.entry},
		Nodes: []gitcas.PlacedNode{
			{Hash: record.StartSchema, Node: schema},
			{Hash: record.StepSchema, Node: record.Schemas()[record.StepSchema]},
			{Hash: record.WorkflowSchema, Node: record.Schemas()[record.WorkflowSchema]},
			{Hash: record.MockDetailSchema, Node: record.Schemas()[record.MockDetailSchema]},
			{Hash: flowHash, Node: flow},
			{Hash: h, Node: n, Place: gitcas.Place{Thread: w.id}},
		},
	})
}

func (w *threadWriter) step(ctx context.Context, v *gitcas.View, heads []node.Hash, i int) (*gitcas.View, error) {
	detail, dh, err := node.New(record.MockDetailSchema, map[string]any{"sessionId": string(w.id), "role": "dev", "stepIndex": i}, when)
	if err != nil {
		return nil, err
	}
	out, oh, err := node.New(node.String, fmt.Sprintf("\x1b[31moutput %d\x1b[0m", i), when)
	if err != nil {
		return nil, err
	}
	s := record.Step{Start: heads[0], Role: "dev", Output: oh, Detail: dh, Agent: "mock"}
	if i > 0 {
		s.Prev = &heads[i]
	}
	n, h, err := s.Node(when)
	if err != nil {
		return nil, err
	}
	w.detail, w.output = dh, oh
	w.entry.Head = h
	e := w.entry
	return w.store.Push(ctx, v, &gitcas.Change{
		Subject:  fmt.Sprintf("dev → done · two · step %d", i+1),
		Body:     "\x1b]0;owned\x07 Uwf-Head: forged",
		Trailers: []gitcas.Trailer{{Key: "Uwf-Thread", Value: string(w.id)}, {Key: "Uwf-Head", Value: string(h)}},
		Threads:  map[gitcas.ThreadID]*gitcas.Entry{w.id: &e},
		Nodes: []gitcas.PlacedNode{
			{Hash: dh, Node: detail, Place: gitcas.Place{Thread: w.id, Detail: true}},
			{Hash: oh, Node: out, Place: gitcas.Place{Thread: w.id}},
			{Hash: h, Node: n, Place: gitcas.Place{Thread: w.id}},
		},
	})
}

func (w *threadWriter) end(ctx context.Context, v *gitcas.View) error {
	e := w.entry
	e.Status = gitcas.StatusEnded
	at := w.endedAt
	if at.IsZero() {
		at = when
	}
	_, err := w.store.Push(ctx, v, &gitcas.Change{
		Subject: "end · two", Threads: map[gitcas.ThreadID]*gitcas.Entry{w.id: &e},
		Archive: []gitcas.Ended{{Thread: w.id, Workflow: e.Workflow, Head: e.Head, CompletedAt: at.UnixMilli(), Reason: "ended", Steps: w.steps}},
	})
	return err
}
