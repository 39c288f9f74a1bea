package log

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/debuglog"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/lists"
)

// lookAgain is how often a folder is looked at for more records.
const lookAgain = 300 * time.Millisecond

func debugRun(ctx context.Context, o *Options) error {
	since, err := app.ParseTime("--since", o.Since, app.LocalNow(o.Factory))
	if err != nil {
		return err
	}
	thread, err := o.threadID(ctx)
	if err != nil {
		return err
	}
	dir, err := o.Factory.LogDir()
	if err != nil {
		return err
	}
	r := debuglog.NewReader(dir, debuglog.Filter{Since: since, Thread: thread, PID: o.Process, Tag: o.Tag})
	list := []debuglog.Record{}
	err = r.Next(func(rec debuglog.Record) error {
		if list = append(list, rec); o.Limit > 0 && len(list) > o.Limit {
			list = list[1:]
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the debug log in %s: %w", dir, err)
	}
	if r.Unreadable > 0 {
		o.Factory.Notes().Printf("%d lines in %s are no records and were left out\n", r.Unreadable, dir)
	}
	if o.Follow {
		return o.followLog(ctx, r, list)
	}
	return o.Factory.Printer().Print(lists.Map(list, newRecord), func(w *output.Writer) {
		for _, rec := range list {
			recordText(w, rec)
		}
	})
}

// threadID is the id that --thread means. A whole one is taken as it is: the store
// may be what the log is read for.
func (o *Options) threadID(ctx context.Context) (string, error) {
	if o.Thread == "" {
		return "", nil
	}
	if id := gitcas.ThreadID(strings.ToUpper(o.Thread)); id.Valid() {
		return string(id), nil
	}
	_, id, err := o.findThread(ctx)
	return string(id), err
}

// followLog prints records as they come: text, or a JSON value for each.
func (o *Options) followLog(ctx context.Context, r *debuglog.Reader, list []debuglog.Record) error {
	show := func(rec debuglog.Record) error {
		return o.Factory.Printer().Print(newRecord(rec), func(w *output.Writer) { recordText(w, rec) })
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
	w.Faint(r.Time.In(w.Zone).Format("2006-01-02 15:04:05.000 MST") + "  ")
	level := fmt.Sprintf("%-5s", r.Level)
	if r.Level == "warn" {
		w.Warn(level)
	} else {
		w.Printf("%s", level)
	}
	w.Printf("  %-8s  %d  %s", output.Line(r.Tag, 8), r.PID, output.Line(r.Msg, 80))
	if r.Thread != "" {
		w.Printf("  thread=%s", output.Line(r.Thread, 26))
	}
	for _, f := range r.Rest {
		if text := config.Plain(f.Value); text != "" && text != "[]" {
			w.Faint("  " + output.Line(f.Key, 40) + "=")
			w.Printf("%s", output.Line(text, 300))
		}
	}
	w.Printf("\n")
}
