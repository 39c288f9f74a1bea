package thread

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/internal/text"
)

// ListOptions are what `uwf thread list` works with.
type ListOptions struct {
	Factory *app.Factory

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
	o := &ListOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List threads",
		Long: `List the threads that are alive, the newest first. With --all the ended and cancelled
ones come after them, the one that ended last first.

The statuses: running (a job works on it) · active (to be stepped) · failed (its last
try at the next step failed; to be stepped again) · suspended (waits for a person) ·
ended · cancelled.

On a terminal a thread is a line with the end of its id, which names it as well as the whole
one: its status, the role that is next, its age, its cost, its title.`,
		Example: `  uwf thread list
  uwf thread list --all --limit 20
  uwf thread list --status suspended,failed
  uwf thread list --workflow solve-issue --after 7d --jq '.[].thread'
  uwf thread list --status ended --after 30d --jq '[.[].usage[]?] | group_by(.role, .model)[] | {role: .[0].role, model: .[0].model, costUsd: map(.costUsd) | add}'`,
		Args: cobra.NoArgs,
		RunE: app.Run(o, runF, listRun, func([]string) {}),
	}
	fl := cmd.Flags()
	fl.BoolVar(&o.All, "all", false, "list ended and cancelled threads too")
	fl.StringVar(&o.Status, "status", "", "list only threads of these `STATUSES`, comma-separated: "+strings.Join(listStatuses(), ", "))
	fl.StringVar(&o.After, "after", "", "list only threads started after this `TIME`: 2026-06-04 (local time where no zone is said), 2026-06-04T12:00:00Z, or 7d or 12h ago")
	fl.StringVar(&o.Before, "before", "", "list only threads started before this `TIME`")
	fl.StringVar(&o.Workflow, "workflow", "", "list only threads of this workflow (`NAME` or hash)")
	fl.StringVar(&o.Role, "role", "", "list only threads in which it is this `ROLE`'s turn")
	fl.IntVar(&o.Limit, "limit", 0, "list at most `N` threads; 0 is all")
	fl.IntVar(&o.Limit, "take", 0, "the same as --limit (`N`)")
	fl.IntVar(&o.Offset, "offset", 0, "leave out the first `N` threads")
	fl.IntVar(&o.Offset, "skip", 0, "the same as --offset (`N`)")
	app.RefuseNegative(cmd, "limit", "take", "offset", "skip")
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
	Title       string          `json:"title,omitempty"`
	Steps       int             `json:"steps"`
	CostUSD     float64         `json:"costUsd"` // of its steps
	Unpriced    bool            `json:"unpriced,omitempty"`
	// Usage is what an ended thread took, by role and model; nil: not by role.
	Usage []statefile.RoleUsage `json:"usage,omitempty"`
}

// listStatuses are those that a thread in a list can have.
func listStatuses() []string {
	return []string{
		lookup.Running, string(gitcas.StatusActive), lookup.Failed, string(gitcas.StatusSuspended),
		statefile.ReasonEnded, statefile.ReasonCancelled,
	}
}

// lister collects the threads that fit.
type lister struct {
	*ListOptions
	statuses      []string // nil: live ones, and with All the others too
	after, before time.Time
	view          *gitcas.View
	names         map[node.Hash]string // of workflows
	skip          int
	list          []listed
}

func listRun(ctx context.Context, o *ListOptions) error {
	l := &lister{ListOptions: o, skip: o.Offset, list: []listed{}, names: map[node.Hash]string{}}
	if err := l.readFilter(); err != nil {
		return err
	}
	_, v, err := lookup.Load(ctx, o.Factory.Store)
	if err != nil {
		return err
	}
	l.view = v
	if err := l.addAlive(ctx); err != nil {
		return err
	}
	if err := l.addEnded(ctx); err != nil {
		return err
	}
	return o.Factory.Printer().Print(l.list, l.writeText)
}

// readFilter reads the flags that say which threads are listed.
func (l *lister) readFilter() error {
	for s := range strings.SplitSeq(l.Status, ",") {
		s = strings.ToLower(strings.TrimSpace(s))
		switch {
		case s == "":
		case !slices.Contains(listStatuses(), s):
			near := ""
			if n := app.SuggestNames(s, listStatuses()); len(n) > 0 {
				near = "; did you mean " + n[0] + "?"
			}
			return app.Usagef("--status %.40q: the statuses are %s%s", s, strings.Join(listStatuses(), ", "), near)
		default:
			l.statuses = append(l.statuses, s)
		}
	}
	var err error
	if l.after, err = app.ParseTime("--after", l.After, app.LocalNow(l.Factory)); err == nil {
		l.before, err = app.ParseTime("--before", l.Before, app.LocalNow(l.Factory))
	}
	return err
}

func (l *lister) isFull() bool { return l.Limit > 0 && len(l.list) >= l.Limit }

// addThread takes a thread into the list where it fits. The node of an ended one's workflow
// may be gone from cas/.
func (l *lister) addThread(ctx context.Context, t listed) error {
	name, known := l.names[t.Workflow]
	if !known {
		var err error
		if name, err = reading.WorkflowName(ctx, l.view, t.Workflow); err != nil && !errors.Is(err, node.ErrNotFound) {
			return err
		}
		l.names[t.Workflow] = name
	}
	t.Name = name
	switch {
	case l.statuses != nil && !slices.Contains(l.statuses, t.Status), l.Role != "" && t.NextRole != l.Role,
		l.Workflow != "" && t.Name != l.Workflow && string(t.Workflow) != l.Workflow,
		!l.after.IsZero() && !t.Started.After(l.after), !l.before.IsZero() && !t.Started.Before(l.before):
	case l.skip > 0:
		l.skip--
	case !l.isFull():
		l.list = append(l.list, t)
	}
	return nil
}

// addAlive adds the live threads.
func (l *lister) addAlive(ctx context.Context) error {
	entries := l.view.Threads()
	var flows []node.Hash
	for _, e := range entries {
		flows = append(flows, e.Workflow)
	}
	if err := l.view.Prefetch(ctx, flows...); err != nil {
		return err
	}
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(entries))) {
		e := entries[id]
		t := listed{
			Thread: id, Workflow: e.Workflow, Head: e.Head, Status: lookup.StatusOf(l.view, id, e),
			CurrentRole: turnIn(e).CurrentRole, Key: e.Key, Started: id.Time(), Title: e.Title,
		}
		if u := e.Used; u.Head == e.Head { // else nobody has counted since
			t.Steps, t.CostUSD, t.Unpriced = u.Steps, u.CostUSD, u.Unpriced
		}
		if e.Next != nil {
			since := time.UnixMilli(e.Next.Since).UTC()
			t.NextRole, t.Since = e.Next.Role, &since
		}
		if e.Suspended != nil {
			t.Reason, t.NextRole = e.Suspended.Reason, e.Suspended.Role
		}
		if err := l.addThread(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// addEnded adds the threads that have ended, and reads no more of the history than
// is needed: none ends before it was started. Clocks differ, so a day more is read.
func (l *lister) addEnded(ctx context.Context) error {
	over := func(status string) bool {
		return status == statefile.ReasonEnded || status == statefile.ReasonCancelled
	}
	if l.isFull() || l.statuses == nil && !l.All || l.statuses != nil && !slices.ContainsFunc(l.statuses, over) {
		return nil
	}
	from := l.after
	if !from.IsZero() {
		from = from.Add(-24 * time.Hour)
	}
	return l.view.History(ctx, from, func(e gitcas.Ended) error {
		at := time.UnixMilli(e.CompletedAt).UTC()
		t := listed{Thread: e.Thread, Workflow: e.Workflow, Head: e.Head, Status: e.Reason, Since: &at, Reason: e.Note, Key: e.Key, Started: e.Thread.Time(), Title: e.Title, Steps: len(e.Steps), Usage: e.Usage}
		if u := e.Used; u != nil {
			t.CostUSD, t.Unpriced = u.CostUSD, u.Unpriced
		}
		if err := l.addThread(ctx, t); err != nil || !l.isFull() {
			return err
		}
		return gitcas.ErrStop
	})
}

// shortID is how many characters of a thread's id are shown where people read it: its end, which
// is random, and names the thread as well.
const shortID = 6

// writeLines writes a line a thread that fits the terminal: the title is cut, and what has no room
// is left out, the cost first.
func (l *lister) writeLines(w *output.Writer) {
	const status, age, cost, minTitle = 1, 3, 4, 8
	now := l.Factory.Now()
	rows := make([][]string, len(l.list))
	widths := make([]int, cost+1)
	for i, t := range l.list {
		id := string(t.Thread)
		rows[i] = []string{id[len(id)-shortID:], t.Status, output.Line(cmp.Or(t.NextRole, "–"), 14), text.Age(now.Sub(t.Started)), ""}
		if t.CostUSD > 0 || t.Unpriced {
			rows[i][cost] = text.Dollars(t.CostUSD, t.Unpriced)
		}
		for c, cell := range rows[i] {
			widths[c] = max(widths[c], utf8.RuneCountInString(cell))
		}
	}
	columns, room := len(widths), l.Factory.IO.Columns()-1
	for _, width := range widths {
		room -= width + 2
	}
	for ; columns > age && room < minTitle; columns-- {
		room += widths[columns-1] + 2
	}
	for i, t := range l.list {
		for c, cell := range rows[i][:columns] {
			pad := strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell))
			switch {
			case c == 0:
				w.Bold(cell)
			case c == status:
				colourStatus(w, cell)
			case c >= age:
				pad, cell = "", pad+cell
				fallthrough
			default:
				w.Printf("%s", cell)
			}
			w.Printf("%s  ", pad)
		}
		title := cmp.Or(t.Title, t.Name, string(t.Workflow))
		if t.Reason != "" {
			title += ": " + t.Reason
		}
		w.Println(output.Line(title, max(room, 1)))
	}
}

// colourStatus writes a thread's status in its colour.
func colourStatus(w *output.Writer, status string) {
	switch status {
	case lookup.Running, statefile.ReasonEnded:
		w.Good(status)
	case string(gitcas.StatusSuspended):
		w.Warn(status)
	case lookup.Failed:
		w.Bad(status)
	default:
		w.Faint(status)
	}
}

func (l *lister) writeText(w *output.Writer) {
	if len(l.list) == 0 {
		if len(l.view.Threads()) > 0 || l.All {
			w.Println("no thread fits")
		} else {
			w.Println("no threads; start one with: uwf thread start WORKFLOW -p \"…\"")
		}
		return
	}
	if l.Factory.IO.OutTTY {
		l.writeLines(w)
	} else {
		output.WriteTable(w, []string{"thread", "status", "workflow", "next", "since", "reason"}, l.list, func(t listed) []string {
			since := ""
			if t.Since != nil {
				since = text.TimeIn(*t.Since, w.Zone)
			}
			return []string{string(t.Thread), t.Status, cmp.Or(t.Name, string(t.Workflow)), t.NextRole, since, t.Reason}
		})
	}
	if l.isFull() {
		w.FaintLine("there may be more: --offset continues")
	}
}
