// Package inbox is `uwf inbox`: the threads that wait for a person, of the store that is meant here
// and of the person's own.
package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/text"
)

// Options are what `uwf inbox` works with.
type Options struct{ Factory *app.Factory }

// NewCmdInbox makes `uwf inbox`. A runF that is not nil replaces the run.
func NewCmdInbox(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	return &cobra.Command{
		Use:   "inbox",
		Short: "List what waits for you",
		Long: `List the threads that wait for a person, those that waited longest first, with what they ask
and the command that lets each go on: questions, pauses, limits that were reached, and steps
that failed. The threads are those of this repository, wherever it keeps them, and those that
you started outside of any.`,
		Example: "  uwf inbox\n  uwf inbox --jq '.[].thread'",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, inboxRun, func([]string) {}),
	}
}

// Where a thread is kept.
const (
	here = "here" // in the store that is meant where one stands
	own  = "own"  // in the person's own
)

// waiting is one thread that waits.
type waiting struct {
	Thread gitcas.ThreadID `json:"thread"`
	Name   string          `json:"name"` // the workflow's
	Title  string          `json:"title,omitempty"`
	Store  string          `json:"store"` // here, or own
	Status string          `json:"status"`
	Role   string          `json:"role,omitempty"`
	Reason string          `json:"reason,omitempty"`
	Since  *time.Time      `json:"since,omitempty"`
	// For and Command are what to do, and how.
	For     string `json:"for,omitempty"`
	Command string `json:"command,omitempty"`
}

func inboxRun(ctx context.Context, o *Options) error {
	f := o.Factory
	list := []waiting{}
	loc, err := f.Locate(ctx)
	if err != nil {
		return err
	}
	add := func(store *gitcas.Store, err error, where string) error {
		var found []waiting
		if err == nil {
			found, err = listWaiting(ctx, store, where)
		}
		if errors.Is(err, gitcas.ErrNoStore) {
			return nil // nothing was started there yet
		}
		list = append(list, found...)
		return err
	}
	store, err := f.Store(ctx)
	if err = add(store, err, here); err == nil && loc.Kind != app.PersonalStore {
		store, err = app.OwnStore(f)
		err = add(store, err, own)
	}
	if err != nil {
		return err
	}
	slices.SortStableFunc(list, func(a, b waiting) int { return cmp.Compare(sinceOf(a), sinceOf(b)) })
	return f.Printer().Print(list, func(w *output.Writer) { writeText(w, list, f.Now()) })
}

func sinceOf(t waiting) int64 {
	if t.Since == nil {
		return 0
	}
	return t.Since.UnixMilli()
}

// listWaiting are the threads of a store that wait for a person.
func listWaiting(ctx context.Context, store *gitcas.Store, where string) ([]waiting, error) {
	v, err := store.Load(ctx)
	if err != nil {
		return nil, err
	}
	var out []waiting
	threads := v.Threads()
	for _, id := range slices.Sorted(maps.Keys(threads)) {
		e := threads[id]
		t := waiting{Thread: id, Title: e.Title, Store: where, Status: lookup.StatusOf(v, id, e)}
		if t.Status != string(gitcas.StatusSuspended) && t.Status != lookup.Failed {
			continue
		}
		if t.Name, err = reading.WorkflowName(ctx, v, e.Workflow); err != nil && !errors.Is(err, node.ErrNotFound) {
			return nil, err
		}
		if n := e.Next; n != nil {
			at := time.UnixMilli(n.Since).UTC()
			t.Role, t.Since = n.Role, &at
		}
		if s := e.Suspended; s != nil {
			t.Role, t.Reason = s.Role, s.Reason
			if t.Since == nil && s.By == nil {
				at, err := lastStepTime(ctx, v, id, e.Head)
				if err != nil {
					return nil, err
				}
				t.Since = &at
			}
		}
		if t.For, t.Command = app.NextCommand(life.WaysOn(id, e)); t.Status == lookup.Failed {
			t.For, t.Command = "try again:", "uwf run --continue "+string(id)
		}
		t.For = strings.TrimSuffix(t.For, ":")
		out = append(out, t)
	}
	return out, nil
}

// lastStepTime is when the last step was done, which asked or after which a thread could not go
// on: the entry doesn't say it. Before the first step it is when the thread was started.
func lastStepTime(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, head node.Hash) (time.Time, error) {
	n, err := v.In(ctx, gitcas.Place{Thread: id}).Get(head)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the last step of thread %s: %w", id, err)
	}
	if s, err := record.ParseStep(n); err == nil && s.CompletedAtMs > 0 {
		return time.UnixMilli(s.CompletedAtMs).UTC(), nil
	}
	return id.Time().UTC(), nil
}

// maxReason is how much is shown of what a thread waits for, in characters.
const maxReason = 300

func writeText(w *output.Writer, list []waiting, now time.Time) {
	if len(list) == 0 {
		w.Println("nothing waits for you")
		return
	}
	for i, t := range list {
		if i > 0 {
			w.Println()
		}
		w.Bold(output.Line(cmp.Or(t.Title, t.Name, string(t.Thread)), 70))
		w.Faint("  " + t.Name)
		if t.Since != nil {
			w.Faint(", for " + text.Age(now.Sub(*t.Since)))
		}
		w.Println()
		what := t.Status
		if t.Role != "" {
			what = t.Role + ", " + what
		}
		if t.Reason != "" {
			what += ": " + output.Line(t.Reason, maxReason)
		}
		w.Printf("  %s\n", what)
		if t.Command != "" {
			in := ""
			if t.Store == own {
				in = " (outside of a repository)"
			}
			w.Printf("  %s%s:  %s\n", t.For, in, t.Command)
		}
	}
}
