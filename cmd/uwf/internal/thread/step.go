package thread

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas/node"
)

// StepOptions are what `uwf thread step` works with.
type StepOptions struct {
	Factory    *app.Factory
	Worker     worker.Options
	Thread     string
	ExpectHead string
}

// NewCmdStep makes `uwf thread step`. A runF that is not nil replaces the run.
func NewCmdStep(f *app.Factory, runF func(context.Context, *StepOptions) error) *cobra.Command {
	o := &StepOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "step THREAD",
		Short: "Do one step: moderator, agent, extract; then exit",
		Long: `Do exactly one step of a thread and exit: the moderator says whose turn it is, the
agent works in the workspace, its output is checked and committed. A step that fails
leaves the thread where it was and keeps what it produced.

A command of --agent is looked up from here and runs in the workspace, so give files
among its arguments by absolute paths.

Exit codes: 0 advanced or ended · 1 the step failed · 2 wrong usage or invalid
definition · 3 suspended, waits for a person · 4 not yours to step: moved, claimed,
cancelled or ended · 5 store damaged or unreadable · 6 limit reached`,
		Example: `  uwf thread step 01JY0000000000000000000000
  uwf thread step 01JY0000000000000000000000 --agent "uwf agent mock script.yaml"`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Thread = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return stepRun(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.ExpectHead, "expect-head", "", "step only if the thread's head is `HASH`")
	cmd.Flags().StringVar(&f.ExpectStore, "expect-store", "", "step only if the store's id, in VERSION of the state branch, is `ID`")
	WorkerFlags(cmd, &o.Worker)
	return cmd
}

// WorkerFlags adds the flags that say how this process works.
func WorkerFlags(cmd *cobra.Command, o *worker.Options) {
	fl := cmd.Flags()
	fl.StringVar(&o.Agent, "agent", "", "use this `AGENT`: an alias of the configuration, or a command line")
	fl.StringVar(&o.Workspace, "workspace", "", "let agents work in `DIR`, which is made equal to the work branch first (default: a folder of the thread's own)")
	fl.StringVar(&o.Record, "record", "", "record the conversation with the model into the cassette `FILE`")
	fl.StringVar(&o.Replay, "replay", "", "replay the model from the cassette `FILE`; no model is asked")
	fl.BoolVar(&o.AllowShell, "allow-shell", false, "let the builtin agent run commands")
	fl.DurationVar(&o.Timeout, "timeout", 0, "stop an agent after this `TIME`, such as 20m")
}

func stepRun(ctx context.Context, o *StepOptions) error {
	id, err := parseID(o.Thread)
	if err != nil {
		return err
	}
	req := thread.StepRequest{Thread: id, Agent: o.Worker.Agent}
	if o.ExpectHead != "" {
		if req.ExpectHead, err = node.ParseHash(o.ExpectHead); err != nil {
			return app.Usagef("--expect-head: %w", err)
		}
	}
	if o.Factory.IO.ErrTTY {
		o.Worker.Stderr = o.Factory.IO.Err
	}
	o.Worker.Observe = func(ev thread.Event) {
		if ev.Kind == "notice" {
			o.Factory.Notes().Printf("note: %s\n", ev.Text)
		}
	}
	w, err := worker.New(ctx, o.Factory, o.Worker)
	if err != nil {
		return err
	}
	if err := w.Use(ctx, id); err != nil {
		return err
	}
	res, stepErr := w.Step(ctx, req)
	w.Leave(ctx)
	if stepErr != nil && res.Head == "" {
		return stepErr // no thread was found: there is no result
	}
	err = o.Factory.Printer().Print(res, func(p *output.Writer) { PrintResult(p, res) })
	if stepErr != nil {
		return stepErr
	}
	if res.Done {
		err = errors.Join(err, w.Tidy(id))
	}
	return err
}

// PrintResult writes a step's result for people.
func PrintResult(w *output.Writer, r thread.Result) {
	switch {
	case r.Role == "":
		return // nothing was done; the error says why
	case r.Done:
		w.Printf("step %d: ", r.Step)
		w.Bold(r.Role)
		w.Printf(" → %s; the thread has ended\n", r.Result)
	case r.Suspended != nil:
		w.Printf("step %d: ", r.Step)
		w.Bold(r.Role)
		w.Printf(" → %s; the thread waits for a person:\n  %s\n", r.Result, r.Suspended.Reason)
		w.Faint(fmt.Sprintf("answer:  uwf thread resume %s -p \"…\"", r.Thread))
		w.Println()
	default:
		w.Printf("step %d: ", r.Step)
		w.Bold(r.Role)
		w.Printf(" → %s; next: %s\n", r.Result, r.NextRole)
	}
	if u := r.Usage; u != nil {
		w.Faint(fmt.Sprintf("%d tokens in, %d out, $%.4f, %s", u.InputTokens, u.OutputTokens, u.CostUSD,
			(time.Duration(u.DurationMs) * time.Millisecond).Round(100*time.Millisecond)))
		w.Println()
	}
}
