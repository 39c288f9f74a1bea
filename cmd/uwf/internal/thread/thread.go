// Package thread is `uwf thread`: starting threads, stepping them, steering them
// and looking at them. The protocol is engine/thread's; this package reads flags
// and prints.
package thread

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/person"
	"github.com/united-workforce/uwf/cmd/uwf/internal/result"
	"github.com/united-workforce/uwf/cmd/uwf/internal/step"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// NewCmdThread makes `uwf thread`.
func NewCmdThread(f *app.Factory) *cobra.Command {
	cmd := app.Group(&cobra.Command{
		Use:   "thread",
		Short: "Start threads, step them, steer them, look at them",
		Long: `Start threads, step them, steer them, look at them.

A thread is one run of a workflow: a chain of steps that only ever grows. It lies on
the state branch, so every clone and every CI job sees the same threads.

A THREAD is named by its id, by the first or the last four or more characters of it where
they are those of one thread only (live threads go before ended ones), or by @latest, the
one that was started last. A STEP is THREAD:N, where N counts from 1, or its hash.`,
		Example: `  uwf thread start solve-issue -p "The parser panics on an empty file"
  uwf thread step @latest
  uwf thread show 01JY0000000000000000000000`,
	})
	addSection(cmd, "run", "Start and step:", NewCmdStart(f, nil), NewCmdStep(f, nil), NewCmdFork(f, nil), NewCmdWait(f, nil), NewCmdWatch(f, nil))
	addSection(cmd, "look", "Look:", NewCmdList(f, nil), NewCmdShow(f, nil), step.NewCmdList(f, nil), step.NewCmdShow(f, nil), step.NewCmdRead(f, nil))
	addSection(cmd, "take", "Take the result:", result.NewCmdDiff(f, nil), result.NewCmdApply(f, nil), result.NewCmdPull(f, nil), NewCmdExport(f, nil))
	addSection(cmd, "steer", "Steer:", NewCmdResume(f, nil), NewCmdPause(f, nil), NewCmdRetry(f, nil), NewCmdPoke(f, nil), NewCmdCancel(f, nil), NewCmdRemove(f, nil))
	return cmd
}

// addSection adds commands under a heading of the help.
func addSection(parent *cobra.Command, id, title string, commands ...*cobra.Command) {
	parent.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, c := range commands {
		c.GroupID = id
		parent.AddCommand(c)
	}
}

// standing is how a live thread stands: the JSON of the commands that change it.
type standing struct {
	Workflow node.Hash       `json:"workflow"`
	Name     string          `json:"name"`
	Thread   gitcas.ThreadID `json:"thread"`
	Head     node.Hash       `json:"head"`
	Done     bool            `json:"done"`
	Status   string          `json:"status"`
	turn
}

// turn is whose turn it is, or who waits for a person and why, by the predecessor's
// keys: null says that there is nobody.
type turn struct {
	CurrentRole    *string `json:"currentRole"`
	SuspendedRole  *string `json:"suspendedRole"`
	SuspendMessage *string `json:"suspendMessage"`
}

// turnIn is the turn that a live thread's entry tells of.
func turnIn(e gitcas.Entry) turn {
	switch {
	case e.Suspended != nil:
		return turn{SuspendedRole: &e.Suspended.Role, SuspendMessage: &e.Suspended.Reason}
	case e.Next != nil && e.Next.Role != "":
		return turn{CurrentRole: &e.Next.Role}
	}
	return turn{}
}

// readStanding reads how a thread stands after what was done to it.
func readStanding(ctx context.Context, f *app.Factory, w *worker.Worker, id gitcas.ThreadID) (shown, error) {
	t, err := lookup.RefTo(id).FindThread(ctx, w.Store)
	var s shown
	if err == nil {
		s, err = readShown(ctx, f, t)
	}
	if err != nil {
		err = fmt.Errorf("it is done, but how thread %s stands now can't be read: %w", id, err)
	}
	return s, err
}

// openWorker puts a worker together that changes threads without running an agent, and
// finds the thread that an argument names.
func openWorker(ctx context.Context, f *app.Factory, arg string) (*worker.Worker, gitcas.ThreadID, error) {
	ref, err := lookup.Parse(arg)
	if err != nil {
		return nil, "", err
	}
	w, err := person.NewWorker(ctx, f, worker.Options{})
	if err != nil {
		return nil, "", err
	}
	id, err := ref.ID(ctx, w.Store)
	return w, id, err
}

// releaseThread does something to a thread that lets it go on, and prints how it stands then and
// what comes next.
func releaseThread(ctx context.Context, f *app.Factory, arg string, deed func(*worker.Worker, gitcas.ThreadID) error) error {
	w, id, err := openWorker(ctx, f, arg)
	if err != nil {
		return err
	}
	if err := deed(w, id); err != nil {
		return err
	}
	s, err := readStanding(ctx, f, w, id)
	if err != nil {
		return err
	}
	return f.Printer().Print(s.standing, func(p *output.Writer) {
		switch {
		case s.Status != string(gitcas.StatusActive): // all roles are done, or somebody was faster
			p.Printf("thread %s is %s\n", id, s.Status)
		case s.limit != nil:
			p.Printf("thread %s goes on until its next step: %v\n", id, s.limit)
			for _, next := range s.nextCommands()[:2] {
				p.Printf("  %s  %s\n", next[0], next[1])
			}
		default:
			p.Printf("thread %s goes on; step it:  uwf thread step %s\n", id, id)
		}
	})
}

// readPrompt reads the value of -p: a text, @file, or - for stdin.
func readPrompt(f *app.Factory, value string) (string, error) {
	const maxPrompt = 1 << 20
	name, isFile := strings.CutPrefix(value, "@")
	if !isFile && value != "-" {
		return value, nil
	}
	b, err := f.ReadInput(name, maxPrompt)
	if err != nil {
		return "", fmt.Errorf("read the prompt: %w", err)
	}
	return string(b), nil
}
