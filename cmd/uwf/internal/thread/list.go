package thread

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// ListOptions are what `uwf thread list` works with.
type ListOptions struct {
	Open    lookup.Open
	Printer output.Printer
	Now     func() time.Time

	All      bool
	Status   string
	After    string
	Before   string
	Workflow string
	Role     string
	Limit    int
	Offset   int
}

// NewCmdList makes `uwf thread list`. A runF that is not nil replaces the run.
func NewCmdList(f *app.Factory, runF func(context.Context, *ListOptions) error) *cobra.Command {
	o := &ListOptions{Open: f.Store, Now: f.Now}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List threads",
		Long: `List the threads that are alive, the newest first. With --all the ended and cancelled
ones come after them, the one that ended last first.

The statuses: running (a job works on it) · active (to be stepped) · failed (its last
try at the next step failed; to be stepped again) · suspended (waits for a person) ·
ended · cancelled.`,
		Example: `  uwf thread list
  uwf thread list --all --limit 20
  uwf thread list --status suspended,failed
  uwf thread list --workflow solve-issue --after 7d --jq '.[].thread'`,
		Args: cobra.NoArgs,
		RunE: app.Run(o, runF, listRun, func([]string) { o.Printer = f.Printer() }),
	}
	fl := cmd.Flags()
	fl.BoolVar(&o.All, "all", false, "list ended and cancelled threads too")
	fl.StringVar(&o.Status, "status", "", "list only threads of these `STATUSES`, comma-separated: "+strings.Join(listStatuses(), ", "))
	fl.StringVar(&o.After, "after", "", "list only threads started after this `TIME`: 2026-06-04, 2026-06-04T12:00:00Z, or 7d or 12h ago")
	fl.StringVar(&o.Before, "before", "", "list only threads started before this `TIME`")
	fl.StringVar(&o.Workflow, "workflow", "", "list only threads of this workflow (`NAME` or hash)")
	fl.StringVar(&o.Role, "role", "", "list only threads in which it is this `ROLE`'s turn")
	fl.IntVar(&o.Limit, "limit", 0, "list at most `N` threads; 0 is all")
	fl.IntVar(&o.Limit, "take", 0, "the same as --limit (`N`)")
	fl.IntVar(&o.Offset, "offset", 0, "leave out the first `N` threads")
	fl.IntVar(&o.Offset, "skip", 0, "the same as --offset (`N`)")
	app.CompleteFlag(cmd, "status", listStatuses()...)
	return cmd
}

// listed is one thread in the JSON of `uwf thread list`.
type listed struct {
	Thread      gitcas.ThreadID `json:"thread"`
	Workflow    node.Hash       `json:"workflow"`
	Name        string          `json:"name,omitempty"` // the workflow's; empty: its node is gone
	Head        node.Hash       `json:"head"`
	Status      string          `json:"status"`
	CurrentRole *string         `json:"currentRole"`
	NextRole    string          `json:"nextRole,omitempty"`
	Since       *time.Time      `json:"since,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	Key         string          `json:"key,omitempty"`
	Started     time.Time       `json:"startedAt"`
}

// lister collects the threads that fit.
type lister struct {
	*ListOptions
	filter filter
	view   *gitcas.View
	names  map[node.Hash]string // of workflows
	skip   int
	list   []listed
}

func listRun(ctx context.Context, o *ListOptions) error {
	flt, err := o.newFilter()
	if err != nil {
		return err
	}
	store, err := o.Open(ctx)
	if err != nil {
		return err
	}
	v, err := store.Load(ctx)
	if err != nil {
		return err
	}
	l := &lister{ListOptions: o, filter: flt, view: v, names: map[node.Hash]string{}, skip: o.Offset, list: []listed{}}
	if err := l.addAlive(ctx); err != nil {
		return err
	}
	if flt.wantsOver() && !l.isFull() {
		if err := l.addEnded(ctx, store); err != nil {
			return err
		}
	}
	return o.Printer.Print(l.list, l.writeText)
}

func (l *lister) isFull() bool { return l.Limit > 0 && len(l.list) >= l.Limit }

// addThread takes a thread into the list where it fits.
func (l *lister) addThread(t listed) {
	switch {
	case !l.filter.fitsFilter(t):
	case l.skip > 0:
		l.skip--
	case !l.isFull():
		l.list = append(l.list, t)
	}
}

// addAlive adds the live threads.
func (l *lister) addAlive(ctx context.Context) error {
	entries := l.view.Threads()
	ids := make([]gitcas.ThreadID, 0, len(entries))
	flows := make([]node.Hash, 0, len(entries))
	for id, e := range entries {
		ids, flows = append(ids, id), append(flows, e.Workflow)
	}
	if err := l.view.Prefetch(ctx, flows...); err != nil {
		return err
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	for _, id := range ids {
		e := entries[id]
		t := listed{
			Thread: id, Workflow: e.Workflow, Head: e.Head, Status: lookup.Status(l.view, id, e),
			CurrentRole: turnIn(e).CurrentRole, Key: e.Key, Started: id.Time(),
		}
		if e.Next != nil {
			since := time.UnixMilli(e.Next.Since).UTC()
			t.NextRole, t.Since = e.Next.Role, &since
		}
		if e.Suspended != nil {
			t.Reason, t.NextRole = e.Suspended.Reason, e.Suspended.Role
		}
		var err error
		if t.Name, err = l.workflowName(ctx, e.Workflow); err != nil {
			return err
		}
		l.addThread(t)
	}
	return nil
}

// addEnded adds the threads that have ended, and reads no more of the history than
// is needed.
func (l *lister) addEnded(ctx context.Context, store *gitcas.Store) error {
	return store.HistorySince(ctx, l.view, l.filter.historyFrom(), func(e gitcas.Ended) error {
		at := time.UnixMilli(e.CompletedAt).UTC()
		t := listed{Thread: e.Thread, Workflow: e.Workflow, Head: e.Head, Status: e.Reason, Since: &at, Reason: e.Note, Key: e.Key, Started: e.Thread.Time()}
		var err error
		if t.Name, err = l.workflowName(ctx, e.Workflow); err != nil {
			return err
		}
		if l.addThread(t); l.isFull() {
			return gitcas.ErrStop
		}
		return nil
	})
}

// workflowName is the name of a workflow; empty where its node is gone from cas/, as that
// of an ended thread may be.
func (l *lister) workflowName(ctx context.Context, h node.Hash) (string, error) {
	name, ok := l.names[h]
	if ok || h == "" {
		return name, nil
	}
	name, err := lookup.WorkflowName(ctx, l.view, h)
	if errors.Is(err, node.ErrNotFound) {
		name, err = "", nil
	}
	l.names[h] = name
	return name, err
}

func (l *lister) writeText(w *output.Writer) {
	if len(l.list) == 0 {
		if l.filter.any || l.All || l.Offset > 0 {
			w.Println("no thread fits")
		} else {
			w.Println("no threads; start one with: uwf thread start WORKFLOW -p \"…\"")
		}
		return
	}
	rows := make([][]string, len(l.list))
	for i, t := range l.list {
		since := ""
		if t.Since != nil {
			since = text.Time(*t.Since)
		}
		rows[i] = []string{string(t.Thread), t.Status, cmp.Or(t.Name, string(t.Workflow)), t.NextRole, since, t.Reason}
	}
	w.Table([]string{"thread", "status", "workflow", "next", "since", "reason"}, rows)
	if l.isFull() {
		w.Faint("there may be more: --offset continues")
		w.Println()
	}
}
