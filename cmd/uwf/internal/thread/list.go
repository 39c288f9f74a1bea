package thread

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// ListOptions are what `uwf thread list` works with.
type ListOptions struct {
	source
	Printer output.Printer
	All     bool
}

// NewCmdList makes `uwf thread list`. A runF that is not nil replaces the run.
func NewCmdList(f *app.Factory, runF func(context.Context, *ListOptions) error) *cobra.Command {
	o := &ListOptions{source: source{Store: f.Store}}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List threads",
		Long:    "List the threads that are alive, the newest first; with --all the ended ones too.",
		Example: "  uwf thread list\n  uwf thread list --all",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Printer = f.Printer()
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return listRun(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.All, "all", false, "list ended and cancelled threads too")
	return cmd
}

// listed is one thread in the JSON of `uwf thread list`.
type listed struct {
	Thread   gitcas.ThreadID `json:"thread"`
	Status   string          `json:"status"`
	Workflow string          `json:"workflow"`
	Head     node.Hash       `json:"head"`
	NextRole string          `json:"nextRole,omitempty"`
	Since    *time.Time      `json:"since,omitempty"`
	Reason   string          `json:"reason,omitempty"`
}

func listRun(ctx context.Context, o *ListOptions) error {
	store, err := o.Store(ctx)
	if err != nil {
		return err
	}
	v, err := store.Load(ctx)
	if err != nil {
		return err
	}
	names := map[node.Hash]string{}
	name := func(h node.Hash) string {
		if _, ok := names[h]; !ok && h != "" {
			// An ended thread's workflow may be gone from cas/: its hash says enough.
			if n, err := workflowName(ctx, v, h); err == nil {
				names[h] = n
			} else {
				names[h] = string(h)
			}
		}
		return names[h]
	}
	list := []listed{}
	for id, e := range v.Threads() {
		l := listed{Thread: id, Status: string(e.Status), Workflow: name(e.Workflow), Head: e.Head}
		if c, ok := v.Claim(id); ok && c.Head == e.Head && e.Status == gitcas.StatusActive && thread.ClaimAlive(c.Claim, v.Time()) {
			l.Status = "running"
		}
		if e.Next != nil {
			since := time.UnixMilli(e.Next.Since).UTC()
			l.NextRole, l.Since = e.Next.Role, &since
		}
		if e.Suspended != nil {
			l.Reason = e.Suspended.Reason
		}
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b listed) int { return strings.Compare(string(b.Thread), string(a.Thread)) })
	if o.All {
		err := store.History(ctx, v, func(e gitcas.Ended) error {
			at := time.UnixMilli(e.CompletedAt).UTC()
			list = append(list, listed{Thread: e.Thread, Status: e.Reason, Workflow: name(e.Workflow), Head: e.Head, Since: &at, Reason: e.Note})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return o.Printer.Print(list, func(w *output.Writer) {
		if len(list) == 0 {
			w.Println("no threads; start one with: uwf thread start WORKFLOW -p \"…\"")
			return
		}
		rows := make([][]string, len(list))
		for i, l := range list {
			since := ""
			if l.Since != nil {
				since = l.Since.Format(time.DateTime)
			}
			rows[i] = []string{string(l.Thread), l.Status, l.Workflow, l.NextRole, since, l.Reason}
		}
		w.Table([]string{"thread", "status", "workflow", "next", "since", "reason"}, rows)
	})
}
