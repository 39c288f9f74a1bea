package workflow

import (
	"maps"
	"math"
	"time"

	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

// MaxLimit is where limits end: every larger one is as good as none, and would not fit a
// duration. It is in the limit's own unit, wall in seconds.
const MaxLimit = 1 << 31

// LimitKind is what can be limited of a thread. It has one name, maxSteps, which is
// --max-steps where people type it.
type LimitKind struct {
	Name  string // in definitions, settings, entries and errors
	Flag  string // the same, in commands and comments
	Value string // what people write there
	On    string // the limited quantity, in words
}

// LimitKinds are all kinds of limits, in the order of messages.
func LimitKinds() []LimitKind {
	return []LimitKind{
		{"maxSteps", "max-steps", "N", "steps"},
		{"maxStepsPerRole", "max-steps-per-role", "N", "steps of one role"},
		{"tokens", "tokens", "N", "tokens"},
		{"costUsd", "cost-usd", "DOLLARS", "cost"},
		{"wall", "wall", "TIME", "time"},
	}
}

// FindLimit is the kind of limit that has a name; the zero value where there is none.
func FindLimit(name string) LimitKind {
	for _, k := range LimitKinds() {
		if k.Name == name {
			return k
		}
	}
	return LimitKind{}
}

// LimitNames are the names of all kinds of limits.
func LimitNames() []string {
	return lists.Map(LimitKinds(), func(k LimitKind) string { return k.Name })
}

// LimitFlags are how people type all kinds of limits.
func LimitFlags() []string {
	return lists.Map(LimitKinds(), func(k LimitKind) string { return k.Flag })
}

// readLimits reads how far a thread may go.
func (c *compiler) readLimits() {
	e := c.partOf("limits", "", "write a map, such as limits: {maxSteps: 20}", maxEdges)
	if e == nil {
		return
	}
	c.reportUnknownKeys(e.Val, "`limits`", LimitNames()...)
	var l Limits
	for _, key := range LimitNames() {
		if at := e.Val.Get(key); at != nil && at.Val.Kind != strictyaml.Bad {
			if wrong, fix := l.setLimit(key, at.Val.Plain()); wrong != "" {
				c.reportValue(at.Val, fix, "`limits.%s` %s, this is %s", key, wrong, showScalar(at.Val))
			}
		}
	}
	if l != (Limits{}) {
		c.def.Limits = &l
	}
}

// setLimit gives one limit its value, and says what is wrong with that.
func (l *Limits) setLimit(key string, v any) (wrong, fix string) {
	var n float64 // 0 where it is no number
	switch v := v.(type) {
	case int64:
		n = float64(v)
	case float64:
		n = v
	}
	text, _ := v.(string)
	wall, _ := time.ParseDuration(text) // 0 where it is none
	isWhole := func(most float64) bool { return n == math.Trunc(n) && n > 0 && n <= most }
	switch {
	case key == "wall" && wall > 0 && wall <= MaxLimit*time.Second:
		l.Wall = wall
	case key == "wall":
		return "must be a duration above zero", "write it as 45m or 2h30m"
	case key == "costUsd" && n > 0 && n <= MaxLimit:
		l.CostUSD = n
	case key == "costUsd":
		return "must be a number of US dollars above zero", "write it as 2.50"
	case key == "tokens" && isWhole(1<<50):
		l.Tokens = int64(n)
	case key == "maxSteps" && isWhole(MaxLimit):
		l.MaxSteps = int(n)
	case key == "maxStepsPerRole" && isWhole(MaxLimit):
		l.MaxStepsPerRole = int(n)
	default:
		return "must be a whole number above zero", "write a number such as 20"
	}
	return "", ""
}

// toPayload is the limits as a workflow node has them.
func (l *Limits) toPayload() map[string]any {
	out := map[string]any{
		"maxSteps": int64(l.MaxSteps), "maxStepsPerRole": int64(l.MaxStepsPerRole), "tokens": l.Tokens, "costUsd": l.CostUSD, "wall": l.Wall.String(),
	}
	maps.DeleteFunc(out, func(_ string, v any) bool { return v == int64(0) || v == 0.0 || v == "0s" })
	return out
}
