package workflow

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// HistoryOptions are what `uwf workflow history` works with.
type HistoryOptions struct {
	Factory *app.Factory
	Name    string
}

// NewCmdHistory makes `uwf workflow history`. A runF that is not nil replaces the
// run.
func NewCmdHistory(f *app.Factory, runF func(context.Context, *HistoryOptions) error) *cobra.Command {
	o := &HistoryOptions{Factory: f}
	return &cobra.Command{
		Use:   "history NAME",
		Short: "Show the versions of a registered workflow, and what changed",
		Long: `Show every version that was registered under a name, the present one first: its
hash, when it was registered, and what it changed of the one before.`,
		Example:           "  uwf workflow history solve-issue",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRegistered(f),
		RunE:              app.Run(o, runF, historyRun, func(args []string) { o.Name = args[0] }),
	}
}

// version is one line of a name's history.
type version struct {
	Hash node.Hash `json:"hash"`
	// Timestamp is when it was registered, in milliseconds.
	Timestamp int64 `json:"timestamp"`
	Current   bool  `json:"current"`
	// Changes says what it changed of the version before it, in words; of the first
	// one it is empty.
	Changes []string `json:"changes"`
	// Error says why it can't be read.
	Error string `json:"error,omitempty"`
}

func historyRun(ctx context.Context, o *HistoryOptions) error {
	r, err := findRegistered(ctx, o.Factory, o.Name)
	if err != nil {
		return err
	}
	known, err := readShared(ctx, r.view)
	if err != nil {
		return err
	}
	list := versionsOf(known, r)
	return o.Factory.Printer().Print(list, func(w *output.Writer) {
		for _, l := range list {
			l.writeText(w)
		}
	})
}

func versionsOf(known node.Getter, r registered) []version {
	var list []version
	for i, v := range r.listVersions() {
		list = append(list, version{Hash: v.Hash, Timestamp: v.Timestamp, Current: i == 0, Changes: []string{}})
	}
	var before *workflow.Definition
	for i := len(list) - 1; i >= 0; i-- {
		d, err := workflow.FromNode(known, list[i].Hash)
		if err != nil {
			// One version that is damaged or was removed doesn't hide the others.
			list[i].Error, before = err.Error(), nil
			continue
		}
		if before != nil {
			list[i].Changes = append(list[i].Changes, describeChanges(before, d)...)
		}
		before = d
	}
	return list
}

func (l version) writeText(w *output.Writer) {
	w.Bold(string(l.Hash))
	if l.Timestamp != 0 {
		w.Printf("  %s", text.TimeIn(time.UnixMilli(l.Timestamp), w.Zone))
	}
	if l.Current {
		w.Good("  current")
	}
	w.Println()
	if l.Error != "" {
		w.Bad("  " + output.Line(l.Error, 200))
		w.Println()
	}
	for _, c := range l.Changes {
		w.Printf("  %s\n", c)
	}
}
