package log

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/debuglog"
	"github.com/united-workforce/uwf/gitcas"
)

// DebugOptions are what `uwf log --debug` works with.
type DebugOptions struct {
	Printer output.Printer
	Notes   *output.Writer
	Store   func(context.Context) (*gitcas.Store, error)
	Dir     func() (string, error)
	Now     func() time.Time
	// Pause waits until the folder is looked at again; it ends with the context.
	Pause func(context.Context) error

	Debug   bool
	Thread  string
	Since   string
	Process int
	Tag     string
	Follow  bool
	Limit   *int // of the whole command; nil or 0: all
}

// withDebug lets `uwf log` show the debug log as well.
func withDebug(cmd *cobra.Command, f *app.Factory, limit *int, runF func(context.Context, *DebugOptions) error) {
	o := &DebugOptions{Store: f.Store, Dir: f.LogDir, Now: f.Now, Limit: limit, Pause: func(ctx context.Context) error { return pauseBriefly(ctx, f) }}
	if runF == nil {
		runF = debugRun
	}
	cmd.Flags().BoolVar(&o.Debug, "debug", false, "show the debug log of this machine instead: what uwf's processes did")
	cmd.Flags().StringVar(&o.Since, "since", "", "with --debug: only records after this `TIME`: 2026-06-04, 2026-06-04T12:00:00Z, or 7d or 12h ago")
	cmd.Flags().StringVar(&o.Thread, "thread", "", "with --debug: only records of this `THREAD`")
	cmd.Flags().IntVar(&o.Process, "process", 0, "with --debug: only records of this process (`PID`)")
	cmd.Flags().StringVar(&o.Tag, "tag", "", "with --debug: only records of this `TAG`")
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "with --debug: wait for more records, until interrupted")
	commits, args := cmd.RunE, cmd.Args
	cmd.Args = func(c *cobra.Command, a []string) error {
		if o.Debug {
			return cobra.MaximumNArgs(1)(c, a)
		}
		return args(c, a)
	}
	cmd.RunE = func(c *cobra.Command, a []string) error {
		if !o.Debug {
			for _, name := range []string{"since", "thread", "process", "tag", "follow"} {
				if c.Flags().Changed(name) {
					return app.Usagef("--%s works with --debug only", name)
				}
			}
			return commits(c, a)
		}
		if c.Flags().Changed("full") {
			return app.Usagef("--full shows messages of commits: leave it or --debug out")
		}
		if len(a) > 0 && o.Thread != "" {
			return app.Usagef("the thread is named twice: %s and --thread %s", a[0], o.Thread)
		}
		if len(a) > 0 {
			o.Thread = a[0]
		}
		o.Printer, o.Notes = f.Printer(), f.Notes()
		return runF(c.Context(), o)
	}
}

// lookAgain is how often a folder is looked at for more records.
const lookAgain = 300 * time.Millisecond

func pauseBriefly(ctx context.Context, f *app.Factory) error {
	tick, stop := time.After(lookAgain), func() {}
	if f.After != nil {
		tick, stop = f.After(lookAgain)
	}
	defer stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-tick:
		return nil
	}
}

func debugRun(ctx context.Context, o *DebugOptions) error {
	if *o.Limit < 0 {
		return app.Usagef("--limit is %d: use 0 for all, or a number of records", *o.Limit)
	}
	if o.Process < 0 {
		return app.Usagef("--process is %d: give the number of a process", o.Process)
	}
	since, err := app.Moment("--since", o.Since, o.Now())
	if err != nil {
		return err
	}
	thread, err := o.threadID(ctx)
	if err != nil {
		return err
	}
	dir, err := o.Dir()
	if err != nil {
		return err
	}
	r := debuglog.NewReader(dir, debuglog.Filter{Since: since, Thread: thread, PID: o.Process, Tag: o.Tag})
	list := []debuglog.Record{}
	err = r.Next(func(rec debuglog.Record) error {
		if list = append(list, rec); *o.Limit > 0 && len(list) > 2**o.Limit {
			list = append(list[:0], list[len(list)-*o.Limit:]...)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the debug log in %s: %w", dir, err)
	}
	if *o.Limit > 0 && len(list) > *o.Limit {
		list = list[len(list)-*o.Limit:]
	}
	if r.Unreadable > 0 {
		o.Notes.Printf("%d lines in %s are no records and were left out\n", r.Unreadable, dir)
	}
	if o.Follow {
		return o.followLog(ctx, r, list)
	}
	out := make([]record, 0, len(list))
	for _, rec := range list {
		out = append(out, newRecord(rec))
	}
	return o.Printer.Print(out, func(w *output.Writer) {
		for _, rec := range list {
			recordText(w, rec)
		}
	})
}

// threadID is the id that --thread means. A whole one is taken as it is: the store
// may be what the log is read for.
func (o *DebugOptions) threadID(ctx context.Context) (string, error) {
	if o.Thread == "" {
		return "", nil
	}
	if id := gitcas.ThreadID(strings.ToUpper(o.Thread)); id.Valid() {
		return string(id), nil
	}
	ref, err := lookup.Parse(o.Thread)
	if err != nil {
		return "", err
	}
	store, err := o.Store(ctx)
	if err != nil {
		return "", err
	}
	v, err := store.Load(ctx)
	if err != nil {
		return "", err
	}
	id, err := ref.Resolve(ctx, store, v)
	return string(id), err
}

// followLog prints records as they come: text, or a JSON value for each.
func (o *DebugOptions) followLog(ctx context.Context, r *debuglog.Reader, list []debuglog.Record) error {
	show := func(rec debuglog.Record) error {
		return o.Printer.Print(newRecord(rec), func(w *output.Writer) { recordText(w, rec) })
	}
	for _, rec := range list {
		if err := show(rec); err != nil {
			return err
		}
	}
	for {
		if err := o.Pause(ctx); err != nil {
			if errors.Is(err, context.Canceled) {
				return nil // that is how it ends
			}
			return err
		}
		if err := r.Next(show); err != nil {
			return fmt.Errorf("read the debug log: %w", err)
		}
	}
}

// record is one record as it is printed.
type record struct {
	Time   time.Time      `json:"time"`
	Level  string         `json:"level"`
	Tag    string         `json:"tag"`
	Msg    string         `json:"msg"`
	PID    int            `json:"pid"`
	Thread string         `json:"thread,omitempty"`
	Fields map[string]any `json:"fields"` // what else it holds
}

func newRecord(r debuglog.Record) record {
	out := record{Time: r.Time.UTC(), Level: r.Level, Tag: r.Tag, Msg: r.Msg, PID: r.PID, Thread: r.Thread, Fields: map[string]any{}}
	for _, f := range r.Rest {
		out.Fields[f.Key] = f.Value
	}
	return out
}

func recordText(w *output.Writer, r debuglog.Record) {
	w.Faint(r.Time.UTC().Format("2006-01-02 15:04:05.000 UTC") + "  ")
	level := fmt.Sprintf("%-5s", r.Level)
	if r.Level == "warn" || r.Level == "error" {
		w.Warn(level)
	} else {
		w.Printf("%s", level)
	}
	w.Printf("  %-8s  %d  %s", output.Line(r.Tag, 8), r.PID, output.Line(r.Msg, 80))
	if r.Thread != "" {
		w.Printf("  thread=%s", output.Line(r.Thread, 26))
	}
	for _, f := range r.Rest {
		if text := plainValue(f.Value); text != "" {
			w.Faint("  " + output.Line(f.Key, 40) + "=")
			w.Printf("%s", output.Line(text, 300))
		}
	}
	w.Printf("\n")
}

// plainValue is a field's value; empty where it says nothing.
func plainValue(v any) string {
	if n, ok := v.(json.Number); ok {
		return n.String()
	}
	if list, ok := v.([]any); ok && len(list) == 0 {
		return ""
	}
	return config.Plain(v)
}
