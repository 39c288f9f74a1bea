// Package log is `uwf log`: the commits of one thread on the state branch.
package log

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// Options are what `uwf log` works with.
type Options struct {
	Factory *app.Factory
	// Pause waits until the folder is looked at again; it ends with the context.
	Pause func(context.Context) error

	Thread string
	Limit  int // of commits or records; 0: all
	Full   bool

	// Debug shows the debug log; what follows chooses its records.
	Debug   bool
	Since   string
	Process int
	Tag     string
	Follow  bool
}

// NewCmdLog makes `uwf log`. A runF that is not nil replaces the run.
func NewCmdLog(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f, Pause: func(ctx context.Context) error {
		return f.Outages().WithDefaults().Sleep(ctx, lookAgain)
	}}
	cmd := &cobra.Command{
		Use:   "log THREAD",
		Short: "Show a thread's commits on the state branch, or the debug log",
		Long: `Show what happened to a thread, the newest first: its commits on the state branch, as
git log shows them. A thread that has ended has its log too.

With --debug: show what uwf's processes on this machine did, the oldest first: commands,
git sessions, agents, exchanges with models. It lies in logs below the storage root
(~/.uwf), for nobody else to read, and holds no secrets and no prompts.
Its files go after 30 days, and earlier if there are more than 128 MiB of them.
UWF_DEBUG=1 lets it hold more, UWF_LOG=off switches it off.`,
		Example: `  uwf log 01JY0000000000000000000000
  uwf log --full -n 1 @latest
  uwf log --debug 01JY0000000000000000000000
  uwf log --debug --since 2h -n 50`,
		Args: func(c *cobra.Command, args []string) error {
			if o.Debug {
				return cobra.MaximumNArgs(1)(c, args)
			}
			return cobra.ExactArgs(1)(c, args)
		},
		ValidArgsFunction: lookup.CompleteThread(f),
		PreRunE:           func(c *cobra.Command, args []string) error { return o.checkFlags(c.Flags(), args) },
		RunE: app.Run(o, runF, logRun, func(args []string) {
			if len(args) > 0 {
				o.Thread = args[0]
			}
		}),
	}
	fl := cmd.Flags()
	fl.IntVarP(&o.Limit, "limit", "n", 0, "show at most so many commits, or records with --debug; 0 is all")
	fl.BoolVar(&o.Full, "full", false, "show whole messages")
	fl.BoolVar(&o.Debug, "debug", false, "show the debug log of this machine instead: what uwf's processes did")
	fl.StringVar(&o.Since, "since", "", "with --debug: only records after this `TIME`: 2026-06-04 (local time where no zone is said), 2026-06-04T12:00:00Z, or 7d or 12h ago")
	fl.StringVar(&o.Thread, "thread", "", "with --debug: only records of this `THREAD`")
	fl.IntVar(&o.Process, "process", 0, "with --debug: only records of this process (`PID`)")
	fl.StringVar(&o.Tag, "tag", "", "with --debug: only records of this `TAG`")
	fl.BoolVarP(&o.Follow, "follow", "f", false, "with --debug: wait for more records, until interrupted")
	return cmd
}

// checkFlags refuses flags that don't go together.
func (o *Options) checkFlags(flags *pflag.FlagSet, args []string) error {
	for _, name := range []string{"since", "thread", "process", "tag", "follow"} {
		if !o.Debug && flags.Changed(name) {
			return app.Usagef("--%s works with --debug only", name)
		}
	}
	switch {
	case o.Limit < 0:
		return app.Usagef("--limit is %d: use 0 for all, or a number", o.Limit)
	case o.Process < 0:
		return app.Usagef("--process is %d: give the number of a process", o.Process)
	case o.Debug && o.Full:
		return app.Usagef("--full shows messages of commits: leave it or --debug out")
	case len(args) > 0 && o.Thread != "":
		return app.Usagef("the thread is named twice: %s and --thread %s", args[0], o.Thread)
	}
	return nil
}

func logRun(ctx context.Context, o *Options) error {
	if o.Debug {
		return debugRun(ctx, o)
	}
	v, id, err := o.findThread(ctx)
	if err != nil {
		return err
	}
	list := []entry{}
	err = v.Log(ctx, id, func(e view.LogEntry) error {
		list = append(list, newEntry(e))
		if len(list) == o.Limit {
			return gitcas.ErrStop
		}
		return nil
	})
	if errors.Is(err, gitcas.ErrUnknownThread) {
		return life.NewUnknownThreadError(v, id)
	}
	if err != nil {
		return err
	}
	return o.Factory.Printer().Print(list, func(w *output.Writer) {
		for _, e := range list {
			e.writeText(w, o.Full)
		}
	})
}

// findThread finds the thread that was named, in the store.
func (o *Options) findThread(ctx context.Context) (*gitcas.View, gitcas.ThreadID, error) {
	ref, err := lookup.Parse(o.Thread)
	if err != nil {
		return nil, "", err
	}
	_, v, err := lookup.Load(ctx, o.Factory.Store)
	if err != nil {
		return nil, "", err
	}
	id, err := ref.Resolve(ctx, v)
	return v, id, err
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

func newEntry(e view.LogEntry) entry {
	return entry{
		Commit: e.Commit.String(), When: e.When.UTC(), Author: e.Author.Name, Subject: e.Subject,
		Body:     strings.TrimRight(e.Body, "\n"),
		Trailers: lists.Map(e.Trailers, func(t gitcas.Trailer) trailer { return trailer(t) }),
	}
}

// writeText writes a commit: one line, and with full its message and trailers too.
func (e entry) writeText(w *output.Writer, full bool) {
	w.Warn(e.Commit[:10])
	w.Faint("  " + text.TimeIn(e.When, w.Zone) + "  ")
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
