// Package step is about the steps of a thread: listing them, showing one, reading
// them as a story. Its commands are those of `uwf step`, and `uwf thread steps`,
// `step-details` and `read`. It changes nothing.
package step

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// NewCmdStep makes `uwf step`. More are commands of steps that other packages
// have.
func NewCmdStep(f *app.Factory, more ...*cobra.Command) *cobra.Command {
	list, show := NewCmdList(f, nil), NewCmdShow(f, nil)
	list.Use, list.Aliases = "list THREAD", nil
	list.Example = "  uwf step list 01JY0000000000000000000000"
	show.Use, show.Aliases = "show STEP", nil
	show.Example = "  uwf step show 01JY0000000000000000000000:2"
	return app.Group(&cobra.Command{
		Use:   "step",
		Short: "Look at the steps of threads",
		Long: `Look at the steps of threads. To do a step, use uwf thread step.

A STEP is THREAD:N, where N counts from 1, or the step's hash.`,
		Example: `  uwf step list 01JY0000000000000000000000
  uwf step show 01JY0000000000000000000000:2`,
	}, append([]*cobra.Command{list, show, NewCmdReadStep(f, nil)}, more...)...)
}

// shown is one step as it is printed.
type shown struct {
	Step        int               `json:"step"`
	Hash        node.Hash         `json:"hash"`
	Role        string            `json:"role"`
	Result      string            `json:"result"`
	Output      any               `json:"output"`
	Body        string            `json:"body,omitempty"`
	Detail      node.Hash         `json:"detail"`
	Agent       string            `json:"agent"`
	Timestamp   int64             `json:"timestamp"` // milliseconds
	DurationMs  int64             `json:"durationMs"`
	StartedAt   time.Time         `json:"startedAt"`
	CompletedAt time.Time         `json:"completedAt"`
	EdgePrompt  string            `json:"edgePrompt"`
	Usage       *record.Usage     `json:"usage"`
	Work        *record.Work      `json:"work,omitempty"`
	Run         *record.Run       `json:"run,omitempty"`
	Checks      []record.Check    `json:"checks,omitempty"`
	Notes       []string          `json:"notes,omitempty"`
	Failed      []attempt.Summary `json:"previousAttempts,omitempty"`
	// By is who let the step happen; Said is what people said before it.
	By   *record.By `json:"by,omitempty"`
	Said []spoken   `json:"said,omitempty"`
}

// spoken is what a person said before a step.
type spoken struct {
	Do       string     `json:"do"` // resume or poke
	Role     string     `json:"role"`
	Question string     `json:"question,omitempty"`
	Text     string     `json:"text"`
	By       *record.By `json:"by,omitempty"`
	At       time.Time  `json:"at"`

	did string // what that did
}

// outcome is what became of an attempt that led to no step.
func outcome(a attempt.Summary) string {
	switch a.Phase {
	case "poked":
		return "taken back"
	case life.PhaseStopped:
		return "stopped"
	}
	return "failed"
}

// readStep makes step n of a chain, which decided result, readable.
func readStep(ctx context.Context, t *lookup.Thread, n int, s gitcas.ChainStep, result string) (shown, error) {
	out := shown{
		Step: n, Hash: s.Hash, Role: s.Role, Result: result, Detail: s.Detail, Agent: s.Agent, Timestamp: s.Timestamp, EdgePrompt: s.EdgePrompt,
		StartedAt: time.UnixMilli(s.StartedAtMs).UTC(), CompletedAt: time.UnixMilli(s.CompletedAtMs).UTC(),
		DurationMs: s.CompletedAtMs - s.StartedAtMs, Usage: s.Usage, Work: s.Work, Run: s.Run, Checks: s.Checks, Notes: s.Notes, By: s.By,
	}
	own := t.View.In(ctx, gitcas.Place{Thread: t.ID, Of: s.Hash})
	o, err := own.Get(s.Output)
	if err != nil {
		return out, fmt.Errorf("output of step %d: %w", n, err)
	}
	out.Output = o.Payload
	if s.Body != nil {
		b, err := own.Get(*s.Body)
		if err != nil {
			return out, fmt.Errorf("body of step %d: %w", n, err)
		}
		out.Body, _ = b.Payload.(string)
	}
	words, err := (&reading.Thread{ID: t.ID, In: t.In(ctx)}).WordsBefore(s.Hash, s.Step)
	if err != nil {
		return out, fmt.Errorf("what was said before step %d: %w", n, err)
	}
	for _, w := range words {
		out.Said = append(out.Said, spoken{w.Do, w.Role, w.Question, w.Text, w.By, time.UnixMilli(w.AtMs).UTC(), w.Did()})
	}
	if out.Failed, err = t.AttemptsBefore(ctx, s); err != nil {
		return out, fmt.Errorf("attempts before step %d: %w", n, err)
	}
	return out, nil
}
