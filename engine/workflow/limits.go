package workflow

import (
	"maps"
	"math"
	"time"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

// maxLimit is where limits end: every larger one is as good as none.
const maxLimit = 1 << 31

// limitKeys are what a definition may limit, in the order of messages.
func limitKeys() []string {
	return []string{"maxSteps", "maxStepsPerRole", "tokens", "costUsd", "wall"}
}

// readLimits reads how far a thread may go.
func (c *compiler) readLimits() {
	e := c.partOf("limits", "", "write a map, such as limits: {maxSteps: 20}", maxEdges)
	if e == nil {
		return
	}
	c.unknownKeys(e.Val, "`limits`", limitKeys()...)
	var l Limits
	for _, key := range limitKeys() {
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
	case key == "wall" && wall > 0 && wall <= maxLimit*time.Second:
		l.Wall = wall
	case key == "wall":
		return "must be a duration above zero", "write it as 45m or 2h30m"
	case key == "costUsd" && n > 0 && n <= maxLimit:
		l.CostUSD = n
	case key == "costUsd":
		return "must be a number of US dollars above zero", "write it as 2.50"
	case key == "tokens" && isWhole(1<<50):
		l.Tokens = int64(n)
	case key == "maxSteps" && isWhole(maxLimit):
		l.MaxSteps = int(n)
	case key == "maxStepsPerRole" && isWhole(maxLimit):
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
