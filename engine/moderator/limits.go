package moderator

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/text"
)

// Limits is how far a thread may go. Zero means no limit.
type Limits struct {
	MaxSteps        int           `json:"maxSteps" yaml:"maxSteps"`
	MaxStepsPerRole int           `json:"maxStepsPerRole" yaml:"maxStepsPerRole"`
	Tokens          int64         `json:"tokens" yaml:"tokens"`   // input and output together
	CostUSD         float64       `json:"costUsd" yaml:"costUsd"` // US dollars
	Wall            time.Duration `json:"wall" yaml:"wall"`       // agents' running time
}

// DefaultLimits are those of a workflow that nothing else is said about.
func DefaultLimits() Limits { return Limits{MaxSteps: 30, MaxStepsPerRole: 10} }

// Tighten gives the lower of two limits, each by itself.
func (l Limits) Tighten(o Limits) Limits {
	return Limits{
		MaxSteps:        LowerLimit(l.MaxSteps, o.MaxSteps),
		MaxStepsPerRole: LowerLimit(l.MaxStepsPerRole, o.MaxStepsPerRole),
		Tokens:          LowerLimit(l.Tokens, o.Tokens),
		CostUSD:         LowerLimit(l.CostUSD, o.CostUSD),
		Wall:            LowerLimit(l.Wall, o.Wall),
	}
}

// MonthLimits are how much all threads of a store may use together in a calendar month,
// by UTC. Zero means no limit.
type MonthLimits struct {
	Tokens  int64   // input and output together
	CostUSD float64 // US dollars
}

// Tighten gives the lower of two limits, each by itself.
func (l MonthLimits) Tighten(o MonthLimits) MonthLimits {
	return MonthLimits{Tokens: LowerLimit(l.Tokens, o.Tokens), CostUSD: LowerLimit(l.CostUSD, o.CostUSD)}
}

// Check says whether the month of a time has something left of the limits, after what was
// used in it. The error is a *LimitError.
func (l MonthLimits) Check(used Totals, at time.Time) error {
	const rounding = 1e-9 // cents do not add up to a limit exactly, in whatever order
	if err := (Limits{Tokens: l.Tokens, CostUSD: l.CostUSD * (1 - rounding)}).checkUsage(used); err != nil {
		err.Limit, err.Month = MonthPrefix+err.Limit, MonthStart(at)
		return err
	}
	return nil
}

// MonthPrefix begins the names of limits on a month.
const MonthPrefix = "month."

// MonthStart is when the calendar month of a time began, by UTC.
func MonthStart(at time.Time) time.Time {
	y, m, _ := at.UTC().Date()
	return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
}

// LowerLimit is the lower of two limits; what is not above zero is none.
func LowerLimit[T cmp.Ordered](a, b T) T {
	var none T
	switch {
	case a <= none:
		return max(b, none)
	case b <= none:
		return a
	}
	return min(a, b)
}

// Totals is what a thread has used so far, dead attempts included.
type Totals struct {
	Steps   int
	PerRole map[string]int
	Tokens  int64
	CostUSD float64
	// Unpriced: it cost more, since nobody knows the price of some tokens.
	Unpriced bool
	Wall     time.Duration
}

// TotalsOf are those of a chain's steps, and of the tries that these name.
func TotalsOf(c record.Counts) Totals {
	all := c.Done
	all.AddAll(c.Tries)
	t := Totals{
		Steps: c.Done.Steps + c.Tries.Steps, PerRole: map[string]int{}, Tokens: all.Tokens, CostUSD: all.CostUSD,
		Unpriced: all.Unpriced, Wall: time.Duration(min(all.DurationMs, maxWall)) * time.Millisecond,
	}
	for _, r := range c.Roles {
		t.PerRole[r.Role] = r.Steps + r.Tries
	}
	return t
}

// maxUsed bounds what a single step counts for, so that no sum of them overflows.
const maxUsed = 1 << 40

// Add counts one step, or one attempt that failed: it was paid for as well. Usage is
// read from nodes that anybody may have written: none makes room for more.
func (t *Totals) Add(role string, u *record.Usage) {
	t.Steps++
	if t.PerRole == nil {
		t.PerRole = map[string]int{}
	}
	t.PerRole[role]++
	if u == nil {
		return
	}
	t.Tokens += clampCount(u.InputTokens) + clampCount(u.OutputTokens)
	t.CostUSD += min(max(u.CostUSD, 0), maxUsed)
	t.Unpriced = t.Unpriced || u.Unpriced
	t.Wall = time.Duration(min(int64(t.Wall/time.Millisecond)+clampCount(u.DurationMs), maxWall)) * time.Millisecond
}

// maxWall is the longest time.Duration, in milliseconds.
const maxWall = math.MaxInt64 / int64(time.Millisecond)

func clampCount(n int64) int64 { return min(max(n, 0), maxUsed) }

// LimitError is a limit that was reached. Limit is its name in the configuration,
// Used and Max are for messages, with their unit.
type LimitError struct {
	Limit string
	Role  string // for maxStepsPerRole
	Used  string
	Max   string
	Month time.Time // when the month began that the limit is on; zero: it is on the thread
}

func (e *LimitError) Error() string {
	who := "the thread"
	switch {
	case !e.Month.IsZero():
		return fmt.Sprintf("limit %s reached: all threads together have used %s of %s in %s; let it go on from %s on, or before that with a higher limits.%s",
			e.Limit, e.Used, e.Max, e.Month.Format("January 2006"), e.Month.AddDate(0, 1, 0).Format("2006-01-02 15:04 UTC"), e.Limit)
	case e.Role != "":
		who = "role " + e.Role
	}
	return fmt.Sprintf("limit %s reached: %s has used %s of %s; raise limits.%s to go on", e.Limit, who, e.Used, e.Max, e.Limit)
}

// Check says whether a further step by role is within the limits. It is asked
// before anything is paid for; the error is a *LimitError.
func (l Limits) Check(t Totals, role string) error {
	switch {
	case l.MaxSteps > 0 && t.Steps >= l.MaxSteps:
		return &LimitError{Limit: "maxSteps", Used: text.Plural(t.Steps, "step"), Max: fmt.Sprint(l.MaxSteps)}
	case l.MaxStepsPerRole > 0 && t.PerRole[role] >= l.MaxStepsPerRole:
		return &LimitError{Limit: "maxStepsPerRole", Role: role, Used: text.Plural(t.PerRole[role], "step"), Max: fmt.Sprint(l.MaxStepsPerRole)}
	}
	if err := l.checkUsage(t); err != nil {
		return err
	}
	if l.Wall > 0 && t.Wall >= l.Wall {
		return &LimitError{Limit: "wall", Used: t.Wall.Round(time.Second).String(), Max: l.Wall.String()}
	}
	return nil
}

// checkUsage is Check of tokens and cost alone; nil: they are within the limits.
func (l Limits) checkUsage(t Totals) *LimitError {
	switch {
	case l.Tokens > 0 && t.Tokens >= l.Tokens:
		return &LimitError{Limit: "tokens", Used: fmt.Sprintf("%d tokens", t.Tokens), Max: fmt.Sprint(l.Tokens)}
	case l.CostUSD > 0 && t.CostUSD >= l.CostUSD:
		used := fmt.Sprintf("$%.2f", t.CostUSD)
		if t.Unpriced {
			used = "at least " + used
		}
		return &LimitError{Limit: "costUsd", Used: used, Max: fmt.Sprintf("$%.2f", l.CostUSD)}
	}
	return nil
}
