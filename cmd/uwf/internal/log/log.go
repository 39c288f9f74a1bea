// Package log is `uwf log`: the commits of one thread on the state branch.
package log

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/text"
)

// Options are what `uwf log` works with.
type Options struct {
	Printer output.Printer
	Store   func(context.Context) (*gitcas.Store, error)
	Thread  string
	Limit   int
	Full    bool
}

// NewCmdLog makes `uwf log`. A runF that is not nil replaces the run.
func NewCmdLog(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Store: f.Store}
	cmd := &cobra.Command{
		Use:   "log THREAD",
		Short: "Show a thread's commits on the state branch, or the debug log",
		Long: `Show what happened to a thread, the newest first: its commits on the state branch, as
git log shows them. A thread that has ended has its log too.

With --debug: show what uwf's processes on this machine did, the oldest first: commands,
git sessions, agents, exchanges with models. It lies in logs below the storage root
(~/.uwf), for nobody else to read, and holds no secrets and no prompts.
UWF_DEBUG=1 lets it hold more, UWF_LOG=off switches it off.`,
		Example: `  uwf log 01JY0000000000000000000000
  uwf log --full -n 1 @latest
  uwf log --debug 01JY0000000000000000000000
  uwf log --debug --since 2h -n 50`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: lookup.CompleteThread(f),
		RunE:              app.Run(o, runF, logRun, func(args []string) { o.Thread, o.Printer = args[0], f.Printer() }),
	}
	cmd.Flags().IntVarP(&o.Limit, "limit", "n", 0, "show at most so many commits, or records with --debug; 0 is all")
	cmd.Flags().BoolVar(&o.Full, "full", false, "show whole messages")
	withDebug(cmd, f, &o.Limit, nil)
	cmd.AddCommand(NewCmdClean(f, nil))
	return cmd
}

// entry is one commit.
type entry struct {
	Commit   string    `json:"commit"`
	When     time.Time `json:"when"`
	Author   string    `json:"author"`
	Subject  string    `json:"subject"`
	Body     string    `json:"body,omitempty"`
	Trailers []trailer `json:"trailers"`
}

type trailer struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func logRun(ctx context.Context, o *Options) error {
	if o.Limit < 0 {
		return app.Usagef("--limit is %d: use 0 for all, or a number of commits", o.Limit)
	}
	ref, err := lookup.Parse(o.Thread)
	if err != nil {
		return err
	}
	store, err := o.Store(ctx)
	if err != nil {
		return err
	}
	v, err := store.Load(ctx)
	if err != nil {
		return err
	}
	id, err := ref.Resolve(ctx, store, v)
	if err != nil {
		return err
	}
	list := []entry{}
	err = store.Log(ctx, v, id, func(e gitcas.LogEntry) error {
		list = append(list, newEntry(e))
		if len(list) == o.Limit {
			return gitcas.ErrStop
		}
		return nil
	})
	if errors.Is(err, gitcas.ErrUnknownThread) {
		return app.UnknownThread(v, id)
	}
	if err != nil {
		return err
	}
	return o.Printer.Print(list, func(w *output.Writer) {
		for _, e := range list {
			e.writeText(w, o.Full)
		}
	})
}

func newEntry(e gitcas.LogEntry) entry {
	out := entry{
		Commit: e.Commit.String(), When: e.When.UTC(), Author: e.Author.Name, Subject: e.Subject,
		Body: strings.TrimRight(e.Body, "\n"), Trailers: []trailer{},
	}
	for _, t := range e.Trailers {
		out.Trailers = append(out.Trailers, trailer(t))
	}
	return out
}

// writeText writes a commit: one line, and with full its message and trailers too.
func (e entry) writeText(w *output.Writer, full bool) {
	w.Warn(e.Commit[:10])
	w.Faint("  " + text.Time(e.When) + "  ")
	w.Printf("%s\n", output.Line(e.Subject, 200))
	if !full {
		return
	}
	if e.Body != "" {
		w.Printf("\n%s\n", e.Body)
	}
	w.Printf("\n")
	for _, t := range e.Trailers {
		w.Faint("    " + t.Key + ": ")
		w.Printf("%s\n", output.Line(t.Value, 200))
	}
	w.Printf("\n")
}
