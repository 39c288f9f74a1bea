package thread

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// WaitOptions are what `uwf thread wait` works with.
type WaitOptions struct {
	Factory *app.Factory
	Thread  string
	For     string
	Timeout time.Duration
}

// What can be waited for, besides the statuses.
const forStep = "step"

// The pace of asking: at once where something happened just now, seldom where
// nothing has for long. Each time only refs are listed.
const (
	firstPause = time.Second
	lastPause  = 15 * time.Second
)

// NewCmdWait makes `uwf thread wait`. A runF that is not nil replaces the run.
func NewCmdWait(f *app.Factory, runF func(context.Context, *WaitOptions) error) *cobra.Command {
	o := &WaitOptions{Factory: f}
	cmd := lookup.TakeThread(f, &cobra.Command{
		Use:     "wait THREAD",
		Aliases: []string{"join"},
		Short:   "Wait until a thread ends or waits for a person",
		Long: `Wait until a thread ends, is cancelled or waits for a person, and say which. Others
step it: this command runs nothing.

With --for it waits for something else: running, that a job works on it; step, that
its head moves; suspended; ended, also through waiting for a person. That is exit
code 0 then.

Exit codes: 0 ended, or what --for names · 1 the time of --timeout is over · 3 waits
for a person · 4 cancelled, or removed · 5 store damaged or unreadable`,
		Example: `  uwf thread wait 01JY0000000000000000000000 --timeout 10m
  uwf thread wait 01JY0000000000000000000000 --for ended --jq .status`,
		RunE: app.Run(o, runF, waitRun, func(args []string) { o.Thread = args[0] }),
	})
	cmd.Flags().StringVar(&o.For, "for", "", "wait for `WHAT`: running, suspended, ended or step (default: ended, or waiting for a person)")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 0, "wait no longer than this `TIME`, such as 10m; 0 is for ever")
	app.RefuseNegative(cmd, "timeout")
	app.AllowValues(cmd, "for", lookup.Running, string(gitcas.StatusSuspended), statefile.ReasonEnded, forStep)
	return cmd
}

// waited is the JSON of `uwf thread wait`.
type waited struct {
	Thread    gitcas.ThreadID   `json:"thread"`
	Status    string            `json:"status"`
	Head      node.Hash         `json:"head"`
	NextRole  string            `json:"nextRole,omitempty"`
	Suspended *gitcas.Suspended `json:"suspended,omitempty"`
	Note      string            `json:"note,omitempty"`
	TimedOut  bool              `json:"timedOut,omitempty"`
}

func waitRun(ctx context.Context, o *WaitOptions) error {
	t, err := lookup.Find(ctx, o.Factory.Store, o.Thread)
	if err != nil {
		return err
	}
	return (&waiter{WaitOptions: o, first: t.Entry.Head, pause: firstPause}).waitForThread(ctx, t)
}

// waiter looks at a thread again and again.
type waiter struct {
	*WaitOptions
	first node.Hash          // the head in the beginning
	refs  map[string]wire.ID // as they were when the thread was read
	pause time.Duration
	seen  func(context.Context, *lookup.Thread) error // is told of the thread where it has changed; nil: nobody
	over  func()                                      // is called before the result is printed; nil: nobody
}

func (w *waiter) waitForThread(ctx context.Context, t *lookup.Thread) error {
	var over <-chan time.Time
	if w.Timeout > 0 {
		ch, stop := w.Factory.After(w.Timeout)
		defer stop()
		over = ch
	}
	for {
		if done, code := w.isOver(t); done {
			return w.reportThread(t, code, false)
		}
		tick, stop := w.Factory.After(w.pause)
		select {
		case <-ctx.Done():
			stop()
			return fmt.Errorf("wait for thread %s: %w", t.ID, ctx.Err())
		case <-over:
			stop()
			return w.reportThread(t, app.CodeFailed, true)
		case <-tick:
		}
		now, err := w.readAgain(ctx, t)
		if err != nil {
			return err
		}
		t = now
	}
}

// isOver says whether the waiting is over, and with which exit code.
func (w *waiter) isOver(t *lookup.Thread) (bool, int) {
	status := t.Status()
	switch status {
	case statefile.ReasonCancelled, statefile.ReasonRemoved:
		return true, app.CodeNotYours
	case statefile.ReasonEnded:
		return true, app.CodeOK
	}
	switch w.For {
	case forStep:
		if t.Entry.Head != w.first {
			return true, app.CodeOK
		}
	case statefile.ReasonEnded:
		return false, 0
	case status:
		return true, app.CodeOK
	}
	return status == string(gitcas.StatusSuspended), app.CodeSuspended
}

// readAgain reads the thread again where one of its refs has moved. Time alone changes
// nothing: a claim that nobody renews is no end of the waiting.
func (w *waiter) readAgain(ctx context.Context, t *lookup.Thread) (*lookup.Thread, error) {
	l, err := t.Store.Remote().List(ctx, t.Store.Branch(), layout.ClaimRef(t.ID))
	if err != nil {
		return nil, fmt.Errorf("wait for thread %s: %w", t.ID, err)
	}
	if maps.Equal(l.Refs, w.refs) {
		w.pause = min(w.pause*3/2, lastPause)
		return t, nil
	}
	w.refs, w.pause = l.Refs, firstPause
	now, err := lookup.RefTo(t.ID).FindThread(ctx, t.Store)
	if err == nil && w.seen != nil {
		err = w.seen(ctx, now)
	}
	return now, err
}

func (w *waiter) reportThread(t *lookup.Thread, code int, timedOut bool) error {
	out := waited{Thread: t.ID, Status: t.Status(), Head: t.Entry.Head, Suspended: t.Entry.Suspended, TimedOut: timedOut}
	if w.over != nil {
		w.over()
	}
	if t.Entry.Next != nil {
		out.NextRole = t.Entry.Next.Role
	}
	if t.Ended != nil {
		out.Note = t.Ended.Note
	}
	err := w.Factory.Printer().Print(out, func(p *output.Writer) {
		p.Printf("thread %s is %s", out.Thread, out.Status)
		switch {
		case timedOut:
			p.Printf(" still, after %s", w.Timeout)
		case out.Suspended != nil:
			what, command := app.NextCommand(life.WaysOn(out.Thread, t.Entry))
			p.Printf(": %s\n%s  %s", out.Suspended.Reason, what, command)
		case out.Note != "":
			p.Printf(": %s", out.Note)
		}
		p.Println()
	})
	if err == nil && code != 0 {
		return &app.Exit{Code: code}
	}
	return err
}
