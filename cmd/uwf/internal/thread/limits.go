package thread

import (
	"errors"
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	notZero(cmd, "max-steps", "max-steps-per-role", "max-tokens", "max-cost", "max-time")
}

// notZero lets flags refuse 0, which stands for a flag that was not given: who types
// it wants none at all, and would get no limit.
func notZero(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		flag := cmd.Flags().Lookup(name)
		flag.Value = nonzero{flag.Value}
	}
}

type nonzero struct{ pflag.Value }

func (v nonzero) Set(s string) error {
	if err := v.Value.Set(s); err != nil {
		return err
	}
	if zero := v.String(); zero == "0" || zero == "0s" {
		return errZero
	}
	return nil
}

var errZero = errors.New("give a number above 0, or leave the flag out")

// Entry is the limits as a thread's entry holds them.
func (l Limits) Entry() (map[string]float64, error) {
	out := map[string]float64{}
	for _, one := range []struct {
		flag, name string
		value      float64
	}{
		{"--max-steps", "maxSteps", float64(l.Steps)},
		{"--max-steps-per-role", "maxStepsPerRole", float64(l.PerRole)},
		{"--max-tokens", "tokens", float64(l.Tokens)},
		{"--max-cost", "costUsd", l.Cost},
		{"--max-time", "wall", l.Time.Seconds()},
	} {
		switch {
		case one.value == 0:
		case one.value < 0 || math.IsNaN(one.value) || math.IsInf(one.value, 0):
			return nil, app.Usagef("%s: give a number above 0", one.flag)
		default:
			out[one.name] = one.value
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}
