package thread

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/cmd/uwf/internal/person"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/text"
)

// StartOptions are what `uwf thread start` works with.
type StartOptions struct {
	Factory  *app.Factory
	Workflow string
	Prompt   string
	Base     string
	Cwd      string
	Key      string
	Limits   Limits
	// IncludeUncommitted takes along what is changed in tracked files, and IncludeUntracked
	// untracked files and folders.
	IncludeUncommitted bool
	IncludeUntracked   []string
	// Worker is how the thread will be worked on, where that is known.
	Worker worker.Options

	prompt   string               // what Prompt leads to, once it has been read
	resolved *definition.Resolved // what Workflow leads to
	others   []string             // the workflows that might have been meant where none was named
}

// NewCmdStart makes `uwf thread start`. A runF that is not nil replaces the run.
func NewCmdStart(f *app.Factory, runF func(context.Context, *StartOptions) error) *cobra.Command {
	o := &StartOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "start WORKFLOW",
		Short: "Start a thread",
		Long: `Start a thread of a workflow. Nothing runs yet: step it, or use uwf run.

WORKFLOW is a hash, the path of a YAML file, or a name that is looked up in
.uwf/workflows, .workflow and .workflows of the repository, then in the registry, then among
those that uwf has with it (uwf workflow list).

The agents' work begins at the head of this repository (of the remote's default
branch where state.remote is set), or at the branch, tag or commit of --base. They work
in a copy of it: at its top, in the folder of --cwd, or where an edge's location leads.

The limits of the flags are the thread's own. The lowest counts: of these, of those in
the configuration, and of those in the workflow.

--agent, --model and --provider are tried here, so that what they lack is said at once, and
are repeated with the command that steps the thread: which agent plays a role is no part of
a thread.

` + ChoiceHelp,
		Example: `  uwf thread start solve-issue -p "The parser panics on an empty file"
  uwf thread start ./review.yaml -p @task.md --base release-2
  echo "Fix the typo" | uwf thread start solve-issue -p - --key issue/7 --cost-usd 2.50`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: CompleteWorkflow(f),
		RunE:              app.Run(o, runF, startRun, func(args []string) { o.Workflow = args[0] }),
	}
	StartFlags(cmd, o)
	ChoiceFlags(cmd, f)
	trustFlag(cmd, f)
	return cmd
}

// StartFlags adds the flags that say how a thread is started.
func StartFlags(cmd *cobra.Command, o *StartOptions) {
	cmd.Flags().StringVarP(&o.Prompt, "prompt", "p", "", "what to do: a `TEXT`, @FILE, or - for stdin")
	cmd.Flags().StringVar(&o.Base, "base", "", "begin from this branch, tag or commit (`REF`)")
	cmd.Flags().StringVar(&o.Cwd, "cwd", "", "let roles work in this `FOLDER` of the repository where their edge names none (default: its top)")
	cmd.Flags().StringVar(&o.Key, "key", "", "start only one thread at a time with this `KEY`")
	cmd.Flags().BoolVar(&o.IncludeUncommitted, "include-uncommitted", false, "begin with the uncommitted changes of tracked files, as a commit of the work branch; secrets are refused")
	cmd.Flags().StringArrayVar(&o.IncludeUntracked, "include-untracked", nil, "begin with this untracked `FILE` or folder, too")
	LimitFlags(cmd, &o.Limits)
}

// CompleteWorkflow completes the names of workflows.
func CompleteWorkflow(f *app.Factory) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		files, err := definition.New(f).Files()
		if err != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		// A path will do as well, so files are completed beside the names.
		return slices.Sorted(maps.Keys(files)), cobra.ShellCompDirectiveDefault
	}
}

func startRun(ctx context.Context, o *StartOptions) error {
	if err := o.Prepare(ctx); err != nil {
		return err
	}
	if c := o.Factory.Choice; c.Provider != "" || len(c.Models)+len(c.Agents) > 0 {
		w, err := worker.New(ctx, o.Factory, worker.Options{New: true, AsksNobody: true})
		if err == nil {
			err = CheckReady(w, o.Definition())
		}
		if err != nil {
			return err
		}
	}
	started, err := Start(ctx, o)
	if err != nil {
		return err
	}
	return printStarted(ctx, o.Factory, started)
}

// printStarted prints what thread was started, or was there with its key, and what comes next.
func printStarted(ctx context.Context, f *app.Factory, s thread.Started) error {
	next := [2]string{"step it:", StepCommand(f, s.Thread)}
	if s.Existed {
		now, err := Look(ctx, f, s.Thread)
		if err != nil {
			return err
		}
		next = now.Next[0]
	}
	return f.Printer().Print(s, func(w *output.Writer) {
		switch from := s.ForkedFrom; {
		case s.Existed:
			w.Printf("thread %s is alive with this key; no new one was started\n", s.Thread)
		case from != nil:
			w.Printf("started thread %s of %s with %d steps of %s; next: %s\n", s.Thread, s.Name, from.Steps, from.Thread, s.Role)
		default:
			w.Printf("started thread %s of %s; next: %s\n", s.Thread, s.Name, s.Role)
		}
		if waits := s.Suspended; waits != nil {
			w.Printf("it waits for a person: %s\n", waits.Reason)
			next[0], next[1] = app.NextCommand(waits.Next)
		}
		w.FaintLine(f.DescribePlace(ctx))
		w.FaintLine(next[0] + "  " + next[1])
	})
}

// Start starts a thread as the options say.
func Start(ctx context.Context, o *StartOptions) (s thread.Started, err error) {
	f := o.Factory
	if err := o.Prepare(ctx); err != nil {
		return s, err
	}
	how := o.Worker
	how.New = true
	w, err := person.NewWorker(ctx, f, how)
	if err == nil {
		err = worker.CheckPolicy(w, o.Definition(), o.Limits.Entry())
	}
	if err != nil {
		return s, err
	}
	base, err := f.Base(ctx, w.Store.Remote(), o.Base)
	if err != nil {
		return s, err
	}
	if err := f.CompletePartialClone(ctx, base); err != nil {
		return s, err
	}
	cwd, err := f.WorkFolder(ctx, base, o.Cwd)
	if err != nil {
		return s, err
	}
	id, err := newID(f)
	if err != nil {
		return s, err
	}
	req := thread.StartRequest{ID: id, Workflow: o.resolved.Hash, Nodes: o.resolved.Nodes, Prompt: o.prompt, Cwd: cwd, Key: o.Key, Limits: o.Limits.Entry()}
	if req.Base, req.Objects, err = o.beginFrom(ctx, w, id, base); err != nil {
		return s, errors.Join(err, w.RemoveFolder(ctx, id))
	}
	if s, err = w.Start(ctx, req); len(req.Objects) > 0 && (err != nil || s.Existed) {
		err = errors.Join(err, w.RemoveFolder(ctx, id)) // in which the commit was made
	}
	return s, err
}

// Prepare reads the prompt, which may be in a file or on stdin, and the definition. Start
// does so where nobody has before.
func (o *StartOptions) Prepare(ctx context.Context) (err error) {
	if o.resolved != nil {
		return nil
	}
	r := definition.New(o.Factory)
	if o.Workflow == "" {
		if o.Workflow, o.others, err = r.Usual(ctx); err != nil {
			return err
		}
	}
	resolved, err := r.Resolve(ctx, o.Workflow)
	if err != nil {
		return err
	}
	if o.prompt, err = readPrompt(o.Factory, o.Prompt); err != nil {
		return err
	}
	if strings.TrimSpace(o.prompt) == "" {
		return app.Usagef("the thread needs a prompt: say with -p what is to be done")
	}
	o.resolved = resolved
	return nil
}

// Definition is the one that Prepare read.
func (o *StartOptions) Definition() *workflow.Definition { return o.resolved.Definition }

// TellWorkflow says which definition Prepare read.
func (o *StartOptions) TellWorkflow() string {
	name, from := o.Definition().Name, o.resolved.From
	switch from {
	case definition.FromUWF:
		from = "uwf's own (to change it: uwf workflow new " + name + ")"
	case definition.FromRegistry, definition.FromStore:
		from = "that of the " + from + ", " + string(o.resolved.Hash)
	}
	out := "workflow " + name + ": " + from
	if len(o.others) > 0 {
		out += "; there are " + strings.Join(o.others, ", ") + " besides: uwf run NAME"
	}
	return out
}

// CheckReady says what to set up before anything is started: a thread that nobody can work on
// helps nobody.
func CheckReady(w *worker.Worker, def *workflow.Definition) error {
	if err := worker.CheckChoice(w, def); err != nil {
		return err
	}
	for _, role := range def.RoleNames() {
		if _, _, err := w.Settings.Agent(def, role, ""); err != nil {
			return &app.UsageError{Err: fmt.Errorf("role %s: %w", role, err)}
		}
	}
	return nil
}

// Title is what the thread is about, in a line.
func (o *StartOptions) Title() string { return reading.TitleOfPrompt(o.prompt) }

// StepCommand steps a thread with what the person chose for this run.
func StepCommand(f *app.Factory, id gitcas.ThreadID) string {
	return withChoice(f, "uwf thread step "+string(id))
}

// ContinueCommand goes on with a thread in the same way.
func ContinueCommand(f *app.Factory, id gitcas.ThreadID) string {
	return withChoice(f, "uwf run --continue "+string(id))
}

// withChoice is a command with what the person chose for this run.
func withChoice(f *app.Factory, words string) string {
	add := func(flag string, values ...string) {
		for _, v := range values {
			if v != "" {
				words += " " + flag + " " + text.ShellWord(v)
			}
		}
	}
	add("--agent", f.Choice.Agents...)
	add("--model", f.Choice.Models...)
	add("--provider", f.Choice.Provider)
	return words
}

func newID(f *app.Factory) (gitcas.ThreadID, error) {
	id, err := ulid.New(ulid.Timestamp(f.Now().UTC().Truncate(time.Millisecond)), f.Rand)
	if err != nil {
		return "", fmt.Errorf("make a thread id: %w", err)
	}
	return gitcas.ThreadID(id.String()), nil
}

// Limits are how far one thread may go, as flags say it; 0: not said.
type Limits struct {
	Steps, PerRole int
	Tokens         int64
	Cost           float64
	Time           time.Duration
}

// LimitFlags adds the flags of limits.
func LimitFlags(cmd *cobra.Command, l *Limits) {
	fl := cmd.Flags()
	fl.IntVar(&l.Steps, "max-steps", 0, "let the thread do at most `N` steps")
	fl.IntVar(&l.PerRole, "max-steps-per-role", 0, "let each role do at most `N` steps")
	fl.Int64Var(&l.Tokens, "tokens", 0, "let the thread use at most `N` tokens, input and output together")
	fl.Float64Var(&l.Cost, "cost-usd", 0, "let the thread cost at most so many US `DOLLARS`")
	fl.DurationVar(&l.Time, "wall", 0, "let the agents work for at most this `TIME` together, such as 2h")
	app.RefuseZero(cmd, workflow.LimitFlags()...)
}

// Entry is the limits as a thread's entry holds them.
func (l Limits) Entry() map[string]float64 {
	out := map[string]float64{
		"maxSteps": float64(l.Steps), "maxStepsPerRole": float64(l.PerRole), "tokens": float64(l.Tokens), "costUsd": l.Cost, "wall": l.Time.Seconds(),
	}
	maps.DeleteFunc(out, func(_ string, value float64) bool { return value == 0 })
	if len(out) == 0 {
		return nil
	}
	return out
}
