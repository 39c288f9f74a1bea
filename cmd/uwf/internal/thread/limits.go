package thread

import (
	"maps"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
)

// Limits are how far one thread may go, as flags say it; 0: not said.
type Limits struct {
	Steps, PerRole int
	Tokens         int64
	Cost           float64
	Time           time.Duration
}

// LimitFlags adds the flags of limits.
func LimitFlags(cmd *cobra.Command, l *Limits) {
	fl := cmd.Flags()
	fl.IntVar(&l.Steps, "max-steps", 0, "let the thread do at most `N` steps")
	fl.IntVar(&l.PerRole, "max-steps-per-role", 0, "let each role do at most `N` steps")
	fl.Int64Var(&l.Tokens, "max-tokens", 0, "let the thread use at most `N` tokens, input and output together")
	fl.Float64Var(&l.Cost, "max-cost", 0, "let the thread cost at most so many US `DOLLARS`")
	fl.DurationVar(&l.Time, "max-time", 0, "let the agents work for at most this `TIME` together, such as 2h")
	app.RefuseZero(cmd, "max-steps", "max-steps-per-role", "max-tokens", "max-cost", "max-time")
}

// Entry is the limits as a thread's entry holds them.
func (l Limits) Entry() map[string]float64 {
	out := map[string]float64{
		"maxSteps": float64(l.Steps), "maxStepsPerRole": float64(l.PerRole), "tokens": float64(l.Tokens), "costUsd": l.Cost, "wall": l.Time.Seconds(),
	}
	maps.DeleteFunc(out, func(_ string, value float64) bool { return value == 0 })
	if len(out) == 0 {
		return nil
	}
	return out
}
