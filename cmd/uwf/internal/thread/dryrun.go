package thread

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/internal/text"
)

// planned is the JSON of `uwf thread step --dry-run`.
type planned struct {
	step.Plan
	DryRun bool `json:"dryRun"`
	// Characters of the prompt, and about how many tokens that is.
	Characters int               `json:"promptCharacters"`
	Tokens     int               `json:"promptTokens"`
	Limits     extent            `json:"limits"`
	Used       extent            `json:"used"`
	Error      *thread.StepError `json:"error,omitempty"`
}

// extent is how far a thread may go, or has gone; of limits 0 is none.
type extent struct {
	Steps        int     `json:"steps"`
	StepsPerRole int     `json:"stepsPerRole"` // used: of the role whose turn it is
	Tokens       int64   `json:"tokens"`
	CostUSD      float64 `json:"costUsd"`
	Unpriced     bool    `json:"unpriced,omitempty"`
	WallMs       int64   `json:"wallMs"`
}

// perToken is how many characters make a token, roughly: prose has more, code
// fewer.
const perToken = 4

func limitsOf(l moderator.Limits) extent {
	return extent{Steps: l.MaxSteps, StepsPerRole: l.MaxStepsPerRole, Tokens: l.Tokens, CostUSD: l.CostUSD, WallMs: l.Wall.Milliseconds()}
}

func usedOf(t moderator.Totals, role string) extent {
	return extent{Steps: t.Steps, StepsPerRole: t.PerRole[role], Tokens: t.Tokens, CostUSD: t.CostUSD, Unpriced: t.Unpriced, WallMs: t.Wall.Milliseconds()}
}

// dryRun prints what the next step would do. Nothing is claimed, written or paid.
func (o *StepOptions) dryRun(ctx context.Context, w *worker.Worker, req step.Request) error {
	plan, planErr := w.Plan(ctx, req)
	if planErr != nil && plan.Workflow == "" {
		return planErr // nothing is known of it
	}
	n := utf8.RuneCountInString(plan.Prompt)
	p := planned{Plan: plan, DryRun: true, Characters: n, Tokens: (n + perToken - 1) / perToken, Limits: limitsOf(plan.Limits), Used: usedOf(plan.Used, plan.Role)}
	if planErr != nil {
		p.Error = &thread.StepError{Message: planErr.Error()}
	}
	if err := o.Factory.Printer().Print(p, p.writeText); err != nil {
		return err
	}
	return planErr
}

func (p planned) writeText(w *output.Writer) {
	s := sheet{w}
	s.writeLine("thread", "%s of %s", p.Thread, p.Name)
	switch {
	case p.Suspended != nil:
		s.writeLine("waits", "role %s: %s", p.Suspended.Role, p.Suspended.Reason)
	case p.Done:
		s.writeLine("step", "none: the thread is at its end")
	case p.Role != "":
		s.writeLine("step", "%d, nothing of it was done: this is a dry run", p.Step)
		s.writeLine("role", "%s", p.Role)
		if p.Command != "" {
			s.writeLine("agent", "%s (%s)", p.Agent, p.Command)
		}
	}
	if m := p.Model; m != nil {
		s.writeLine("model", "%s: %s of %s", m.Alias, m.Name, m.Provider)
	}
	if p.Location != "" {
		s.writeLine("folder", "%s", p.Location)
	}
	s.writeLine("used", "%s", p.Used.formatAgainst(p.Limits))
	if p.Prompt == "" {
		return
	}
	s.writeLine("prompt", "%d characters, about %d tokens", p.Characters, p.Tokens)
	s.Println()
	s.Printf("%s\n", p.Prompt)
}

// formatAgainst says what was used of what is allowed.
func (e extent) formatAgainst(limit extent) string {
	of := func(text string, none bool, max string) string {
		if none {
			return text
		}
		return text + " of " + max
	}
	out := of(fmt.Sprint(e.Steps), limit.Steps == 0, fmt.Sprint(limit.Steps)) + " steps"
	out += ", " + of(fmt.Sprint(e.StepsPerRole), limit.StepsPerRole == 0, fmt.Sprint(limit.StepsPerRole)) + " by this role"
	out += ", " + of(fmt.Sprint(e.Tokens), limit.Tokens == 0, fmt.Sprint(limit.Tokens)) + " tokens"
	out += ", " + of(text.Dollars(e.CostUSD, e.Unpriced), limit.CostUSD == 0, fmt.Sprintf("$%.2f", limit.CostUSD))
	return out + ", " + of(formatWall(e.WallMs), limit.WallMs == 0, formatWall(limit.WallMs))
}
