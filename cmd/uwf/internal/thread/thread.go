// Package thread is `uwf thread`: starting threads, stepping them and looking at
// them. The protocol is engine/thread's; this package reads flags and prints.
package thread

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
)

// NewCmdThread makes `uwf thread`.
func NewCmdThread(f *app.Factory) *cobra.Command {
	return app.Group(&cobra.Command{
		Use:   "thread",
		Short: "Start threads, step them, look at them",
		Long: `Start threads, step them, look at them.

A thread is one run of a workflow: a chain of steps that only ever grows. It lies on
the state branch, so every clone and every CI job sees the same threads.`,
		Example: `  uwf thread start solve-issue -p "The parser panics on an empty file"
  uwf thread step 01JY0000000000000000000000
  uwf thread show 01JY0000000000000000000000`,
	},
		NewCmdStart(f, nil), NewCmdStep(f, nil), NewCmdShow(f, nil), NewCmdList(f, nil),
		NewCmdSteps(f, nil), NewCmdStepDetails(f, nil), NewCmdRead(f, nil),
		NewCmdResume(f, nil), NewCmdCancel(f, nil),
	)
}

// source is where a command reads a thread from.
type source struct {
	Store func(context.Context) (*gitcas.Store, error)
}

// found is a thread as it stands: alive on the tip, or ended.
type found struct {
	store *gitcas.Store
	view  *gitcas.View // the thread is readable through it
	id    gitcas.ThreadID
	entry gitcas.Entry
	ended *gitcas.Ended
}

// parseID reads a THREAD argument.
func parseID(s string) (gitcas.ThreadID, error) {
	id := gitcas.ThreadID(strings.ToUpper(s))
	if !id.Valid() {
		return "", app.Usagef("%q is no thread id: 26 characters of 0-9 and A-Z (see: uwf thread list --all)", s)
	}
	return id, nil
}

// find reads a thread, alive or ended.
func (s source) find(ctx context.Context, arg string) (*found, error) {
	id, err := parseID(arg)
	if err != nil {
		return nil, err
	}
	store, err := s.Store(ctx)
	if err != nil {
		return nil, err
	}
	v, err := store.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	out := &found{store: store, view: v, id: id}
	var alive bool
	if out.entry, alive = v.Entry(id); alive {
		return out, nil
	}
	e, ok, err := store.FindEnded(ctx, v, id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, app.UnknownThread(v, id)
	}
	out.ended = &e
	out.entry = gitcas.Entry{Head: e.Head, Workflow: e.Workflow, Key: e.Key, Work: e.Work, PR: e.PR}
	if out.view, err = store.LoadEnded(ctx, v, e); err != nil {
		return nil, err
	}
	return out, nil
}

// status is a thread's status as people see it: running while a claim counts.
func (f *found) status() string {
	if f.ended != nil {
		return f.ended.Reason
	}
	if c, ok := f.view.Claim(f.id); ok && c.Head == f.entry.Head && f.entry.Status == gitcas.StatusActive && thread.ClaimAlive(c.Claim, f.view.Time()) {
		return "running"
	}
	return string(f.entry.Status)
}

// readPrompt reads the value of -p: a text, @file, or - for stdin.
func readPrompt(f *app.Factory, value string) (string, error) {
	const maxPrompt = 1 << 20
	name, isFile := strings.CutPrefix(value, "@")
	switch {
	case value == "-":
		name = "-"
	case !isFile:
		return value, nil
	}
	b, err := f.ReadInput(name, maxPrompt)
	if err != nil {
		return "", fmt.Errorf("read the prompt: %w", err)
	}
	return string(b), nil
}
