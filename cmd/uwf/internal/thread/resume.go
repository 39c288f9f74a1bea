package thread

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
)

// ResumeOptions are what `uwf thread resume` works with.
type ResumeOptions struct {
	Factory *app.Factory
	Thread  string
	Answer  string
	Limits  Limits
	Take    bool
}

// NewCmdResume makes `uwf thread resume`. A runF that is not nil replaces the run.
func NewCmdResume(f *app.Factory, runF func(context.Context, *ResumeOptions) error) *cobra.Command {
	o := &ResumeOptions{Factory: f}
	cmd := lookup.TakeThread(f, &cobra.Command{
		Use:   "resume THREAD",
		Short: "Let a thread go on: one that waits for a person, or one that has ended",
		Long: `Let a suspended thread go on. The role that waits is told what it asked and what you
answer: a question needs one. Where none was asked (a pause, a limit), it just goes on
without. A thread that reached a limit needs a higher one: its own limits are raised by
the flags, those of the configuration there.

What you say is kept with your name, as git has it, and that counts for no approval. Where
the workflow wants one, the forge is asked whose token you have here.

After somebody rewrote its work branch (a squash, say; a mere rebase needs no word),
--take-branch has it go on from the branch as it is, without the commits that are gone from it.

A thread that has ended goes on too, where its workflow says with whom: by the resume
edge of $START. Nothing runs yet: step it.`,
		Example: `  uwf thread resume 01JY0000000000000000000000 -p "Use the second variant"
  uwf thread resume 01JY0000000000000000000000 -p "Both of them" --max-steps 60`,
		RunE: app.Run(o, runF, resumeRun, func(args []string) { o.Thread = args[0] }),
	})
	cmd.Flags().StringVarP(&o.Answer, "prompt", "p", "", "the answer: a `TEXT`, @FILE, or - for stdin")
	cmd.Flags().BoolVar(&o.Take, "take-branch", false, "go on from the work branch as it is now")
	LimitFlags(cmd, &o.Limits)
	return cmd
}

func resumeRun(ctx context.Context, o *ResumeOptions) error {
	return releaseThread(ctx, o.Factory, o.Thread, func(w *worker.Worker, id gitcas.ThreadID) error {
		answer, err := readPrompt(o.Factory, o.Answer)
		if err == nil {
			err = worker.CheckOwnLimits(o.Factory, o.Limits.Entry())
		}
		if err != nil {
			return err
		}
		return w.Resume(ctx, thread.ResumeRequest{Thread: id, Text: answer, Limits: o.Limits.Entry(), TakeBranch: o.Take})
	})
}
