package step

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// ListOptions are what `uwf thread steps` works with.
type ListOptions struct {
	Factory *app.Factory
	Thread  string
}

// NewCmdList makes `uwf thread steps`. A runF that is not nil replaces the run.
func NewCmdList(f *app.Factory, runF func(context.Context, *ListOptions) error) *cobra.Command {
	o := &ListOptions{Factory: f}
	return lookup.TakeThread(f, &cobra.Command{
		Use:   "steps THREAD",
		Short: "List a thread's steps, with what each cost",
		Long: `List a thread's steps, the oldest first: role, result, agent, time, tokens, cost and
commit of the work branch. What people said, and attempts that failed, stand before the step that was done
at last; as text, those at the step that is still to be done stand at the end.

The first of the steps in the JSON is the thread's start: its hash, workflow, prompt and
timestamp.`,
		Example: "  uwf thread steps 01JY0000000000000000000000\n  uwf thread steps @latest --jq '.steps[1:][] | \"\\(.step) \\(.role) \\(.result)\"'",
		RunE:    app.Run(o, runF, listRun, func(args []string) { o.Thread = args[0] }),
	})
}

// listing is the JSON of `uwf thread steps`.
type listing struct {
	Thread   gitcas.ThreadID `json:"thread"`
	Workflow node.Hash       `json:"workflow"`
	Name     string          `json:"name"`
	Steps    []entry         `json:"steps"` // the thread's start, and what came of it
}

// entry is the start of a thread, or one of its steps.
type entry struct {
	Hash node.Hash `json:"hash"`
	*beginning
	*shown
	Timestamp int64 `json:"timestamp"` // milliseconds
}

// beginning is what only the start of a thread has.
type beginning struct {
	Workflow node.Hash `json:"workflow"`
	Prompt   string    `json:"prompt"`
}

func listRun(ctx context.Context, o *ListOptions) error {
	t, err := lookup.Find(ctx, o.Factory.Store, o.Thread)
	if err != nil {
		return err
	}
	out, list, err := readAll(ctx, t)
	if err != nil {
		return err
	}
	p, pending := o.Factory.Printer(), []attempt.Summary{}
	if p.Chosen() == output.Text {
		if pending, err = t.Attempts(ctx); err != nil {
			return err
		}
	}
	return p.Print(out, func(w *output.Writer) {
		if len(list)+len(pending) == 0 {
			w.Printf("no step has been done%s\n", firstStep(t))
			return
		}
		w.Table(stepTable(list, pending))
	})
}

// firstStep says how the first step of a thread is done, where it can be.
func firstStep(t *lookup.Thread) string {
	if t.Status() != string(gitcas.StatusActive) {
		return ""
	}
	return " yet; do the first one with: uwf thread step " + string(t.ID)
}

// stepTable has a row for each step, and for each attempt that failed before one.
func stepTable(list []shown, pending []attempt.Summary) (head []string, rows [][]string) {
	head = []string{"step", "role", "result", "agent", "took", "tokens", "cost", "commit", "checks"}
	for _, s := range list {
		n := strconv.Itoa(s.Step)
		for _, said := range s.Said {
			// Who it was stands where an agent's name does.
			rows = append(rows, []string{n, s.Role, said.did, "by " + nameOf(said.By), "", "", "", "", ""})
		}
		rows = append(rows, lists.Map(s.Failed, func(a attempt.Summary) []string { return failedRow(n, a) })...)
		commit := ""
		if s.Work != nil {
			commit = s.Work.Commit[:min(10, len(s.Work.Commit))]
		}
		rows = append(rows, append([]string{n, s.Role, s.Result, s.Agent, text.Took(s.DurationMs)}, append(costCells(s.Usage), commit, tallyChecks(s.Checks))...))
	}
	next := strconv.Itoa(len(list) + 1)
	rows = append(rows, lists.Map(pending, func(a attempt.Summary) []string { return failedRow(next, a) })...)
	if slices.ContainsFunc(rows, func(row []string) bool { return len(row) > len(head) }) {
		head = append(head, "error")
	}
	const checks = 8
	if !slices.ContainsFunc(rows, func(row []string) bool { return row[checks] != "" }) {
		head = slices.Delete(head, checks, checks+1)
		for i, row := range rows {
			rows[i] = slices.Delete(row, checks, checks+1)
		}
	}
	return head, rows
}

// tallyChecks is how a step's checks ended, in a few words: "test passed, lint failed".
func tallyChecks(all []record.Check) string {
	return strings.Join(lists.Map(all, func(c record.Check) string { return c.Name + " " + c.Status }), ", ")
}

// failedRow is the row of an attempt that led to no step.
func failedRow(step string, a attempt.Summary) []string {
	took := ""
	if a.Usage != nil {
		took = text.Took(a.Usage.DurationMs)
	}
	return append([]string{step, a.Role, outcome(a), a.Agent, took}, append(costCells(a.Usage), "", "", a.Error)...)
}

// costCells are the cells of tokens and cost.
func costCells(u *record.Usage) []string {
	if u == nil {
		return []string{"", ""}
	}
	return []string{strconv.FormatInt(u.InputTokens+u.OutputTokens, 10), text.Dollars(u.CostUSD, u.Unpriced)}
}

// readAll reads a thread's start and all of its steps.
func readAll(ctx context.Context, t *lookup.Thread) (listing, []shown, error) {
	chain, err := t.View.ReadChain(ctx, t.ID)
	if err != nil {
		return listing{}, nil, err
	}
	start := beginning{Workflow: chain.Start.Workflow, Prompt: chain.Start.Prompt}
	out := listing{
		Thread: t.ID, Workflow: start.Workflow,
		Steps: []entry{{Hash: chain.StartHash, Timestamp: chain.StartedAt, beginning: &start}},
	}
	if out.Name, err = reading.WorkflowName(ctx, t.View, start.Workflow); err != nil {
		return listing{}, nil, err
	}
	results, err := t.Results(ctx)
	if err != nil {
		return listing{}, nil, err
	}
	list := make([]shown, len(chain.Steps))
	for i, s := range chain.Steps {
		if list[i], err = readStep(ctx, t, i+1, s, results[i]); err != nil {
			return listing{}, nil, err
		}
		out.Steps = append(out.Steps, entry{Hash: s.Hash, Timestamp: s.Timestamp, shown: &list[i]})
	}
	return out, list, nil
}
