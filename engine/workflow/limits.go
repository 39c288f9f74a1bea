package workflow

import (
	"math"
	"strings"
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
	e := c.root.Get("limits")
	if e == nil || e.Val.Kind == strictyaml.Bad || e.Val.IsNull() {
		return
	}
	if e.Val.Kind != strictyaml.Map {
		c.problems.Add(e.Pos, len(e.Key), "write a map, such as limits: {maxSteps: 20}", "`limits` must be a map, this is %s", e.Val.KindName())
		return
	}
	c.unknownKeys(e.Val, "`limits`", limitKeys()...)
	var l Limits
	for _, key := range limitKeys() {
		if at := e.Val.Get(key); at != nil && at.Val.Kind != strictyaml.Bad {
			if wrong, fix := l.setLimit(key, at.Val.Plain()); wrong != "" {
				c.problems.Add(at.Val.Pos, at.Val.Length(), fix, "`limits.%s` %s, this is %s", key, wrong, showScalar(at.Val))
			}
		}
	}
	if l != (Limits{}) {
		c.limits = &l
	}
}

// setLimit gives one limit its value, and says what is wrong with that.
func (l *Limits) setLimit(key string, v any) (wrong, fix string) {
	if key == "wall" {
		text, _ := v.(string)
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 || d > maxLimit*time.Second {
			return "must be a duration above zero", "write it as 45m or 2h30m"
		}
		l.Wall = d
		return "", ""
	}
	n, whole := v.(int64)
	f, isFloat := v.(float64)
	if isFloat && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		n, whole = int64(f), true
	}
	if key == "costUsd" {
		if whole {
			f = float64(n)
		}
		if (!whole && !isFloat) || f <= 0 || f > maxLimit || math.IsNaN(f) {
			return "must be a number of US dollars above zero", "write it as 2.50"
		}
		l.CostUSD = f
		return "", ""
	}
	most := int64(maxLimit)
	if key == "tokens" {
		most = 1 << 50
	}
	if !whole || n <= 0 || n > most {
		return "must be a whole number above zero", "write a number such as 20"
	}
	switch key {
	case "maxSteps":
		l.MaxSteps = int(n)
	case "maxStepsPerRole":
		l.MaxStepsPerRole = int(n)
	case "tokens":
		l.Tokens = n
	default:
		return "is not known", "known are: " + strings.Join(limitKeys(), ", ")
	}
	return "", ""
}

// toPayload is the limits as a workflow node has them.
func (l *Limits) toPayload() map[string]any {
	out := map[string]any{}
	if l.MaxSteps > 0 {
		out["maxSteps"] = int64(l.MaxSteps)
	}
	if l.MaxStepsPerRole > 0 {
		out["maxStepsPerRole"] = int64(l.MaxStepsPerRole)
	}
	if l.Tokens > 0 {
		out["tokens"] = l.Tokens
	}
	if l.CostUSD > 0 {
		out["costUsd"] = l.CostUSD
	}
	if l.Wall > 0 {
		out["wall"] = l.Wall.String()
	}
	return out
}
