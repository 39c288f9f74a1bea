package thread

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/person"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// ForkOptions are what `uwf thread fork` works with.
type ForkOptions struct {
	Factory  *app.Factory
	Step     string
	FromRole string
	Key      string
	Limits   Limits
}

// NewCmdFork makes `uwf thread fork`. A runF that is not nil replaces the run.
func NewCmdFork(f *app.Factory, runF func(context.Context, *ForkOptions) error) *cobra.Command {
	o := &ForkOptions{Factory: f}
	cmd := lookup.TakeThread(f, &cobra.Command{
		Use:   "fork STEP|THREAD",
		Short: "Start a thread that begins with the steps of another one",
		Long: `Start a thread that begins with the steps of another one, alive or ended: the steps up
to the one that is named, or all of them. THREAD:0 shares the task alone. The steps are
shared, not copied, and the work goes on from the commit that the last of them left, on
a branch of its own.

With --from-role it begins just before the last step of that role, at or before the
step that is named, so that the role works again. Nothing runs yet: step it.`,
		Example: `  uwf thread fork 01JY0000000000000000000000:1
  uwf thread fork 01JY0000000000000000000000 --from-role developer`,
		RunE: app.Run(o, runF, forkRun, func(args []string) { o.Step = args[0] }),
	})
	cmd.Flags().StringVar(&o.FromRole, "from-role", "", "let this `ROLE` work again")
	cmd.Flags().StringVar(&o.Key, "key", "", "start only one thread at a time with this `KEY`")
	LimitFlags(cmd, &o.Limits)
	return cmd
}

func forkRun(ctx context.Context, o *ForkOptions) error {
	f := o.Factory
	w, err := person.NewWorker(ctx, f, worker.Options{})
	if err == nil {
		err = worker.CheckOwnLimits(f, o.Limits.Entry())
	}
	if err != nil {
		return err
	}
	req := thread.ForkRequest{Key: o.Key, Limits: o.Limits.Entry()}
	if req.From, req.Steps, err = forkPoint(ctx, f, o.Step, o.FromRole); err != nil {
		return err
	}
	if req.ID, err = newID(f); err != nil {
		return err
	}
	started, err := w.Fork(ctx, req)
	if err != nil {
		return err
	}
	return printStarted(ctx, f, started)
}

// forkPoint finds the thread to fork, and how many of its steps the new one shares;
// -1 is all of them.
func forkPoint(ctx context.Context, f *app.Factory, arg, role string) (gitcas.ThreadID, int, error) {
	t, steps, err := forkedSteps(ctx, f, arg)
	if err != nil {
		return "", 0, err
	}
	if role == "" {
		return t.ID, steps, nil
	}
	chain, err := t.View.ReadChain(ctx, t.ID)
	if err != nil {
		return "", 0, err
	}
	if steps < 0 || steps > len(chain.Steps) {
		steps = len(chain.Steps)
	}
	var roles []string
	for i := steps; i > 0; i-- {
		if chain.Steps[i-1].Role == role {
			return t.ID, i - 1, nil
		}
		roles = append(roles, chain.Steps[i-1].Role)
	}
	return "", 0, &app.UnknownError{
		What: fmt.Sprintf("step among the first %d of thread %s is by role", steps, t.ID), ID: role,
		Near: app.SuggestNames(role, roles), See: "uwf thread steps " + string(t.ID),
	}
}

// forkedSteps reads the argument: THREAD, THREAD:N with N from 0, or the hash of a step or of the
// thread's start.
func forkedSteps(ctx context.Context, f *app.Factory, arg string) (*lookup.Thread, int, error) {
	if _, err := node.ReadHash(arg); err == nil {
		s, err := lookup.FindStep(ctx, f.Store, arg)
		if err == nil || errors.Is(err, lookup.ErrStart) {
			return s.Thread, s.N, nil
		}
		if !errors.As(err, new(*app.UnknownError)) { // else it may be the beginning of an id
			return nil, 0, err
		}
	}
	name, num, numbered := strings.Cut(arg, ":")
	steps := -1
	if numbered {
		var err error
		if steps, err = strconv.Atoi(num); err != nil || steps < 0 {
			return nil, 0, app.Usagef("%.80q is no step: %q is no number from 0", arg, num)
		}
	}
	t, err := lookup.Find(ctx, f.Store, name)
	return t, steps, err
}
