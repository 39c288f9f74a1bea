package agents

import (
	"encoding/json"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Handle is the last line that an agent prints: as JSON, or the 13 characters of
// StepHash alone. Agents may put more keys into the JSON; only these are read.
type Handle struct {
	StepHash node.Hash    `json:"stepHash"`
	Usage    record.Usage `json:"usage"`
}

// String is the JSON line.
func (h Handle) String() string {
	b, err := json.Marshal(h)
	if err != nil { // a NaN cost: the hash alone is a handle too
		return string(h.StepHash)
	}
	return string(b)
}

// ParseHandle reads the last line of an agent's stdout.
func ParseHandle(line string) (Handle, error) {
	if line == "" {
		return Handle{}, ErrNothingPrinted
	}
	bad := func(why string) (Handle, error) { return Handle{}, newHandleError(line, why) }
	if !strings.HasPrefix(line, "{") {
		h, err := node.ParseHash(line)
		if err != nil {
			return bad(err.Error())
		}
		return Handle{StepHash: h}, nil
	}
	var raw struct {
		StepHash *string          `json:"stepHash"`
		Usage    *record.Reported `json:"usage"`
	}
	if err := json.Unmarshal([]byte(line), &raw); err != nil {
		return bad(err.Error())
	}
	if raw.StepHash == nil {
		return bad("the JSON has no stepHash")
	}
	h, err := node.ParseHash(*raw.StepHash)
	if err != nil {
		return bad(err.Error())
	}
	out := Handle{StepHash: h}
	if raw.Usage != nil {
		out.Usage = raw.Usage.Known()
	}
	if u := out.Usage; u.Turns < 0 || u.InputTokens < 0 || u.OutputTokens < 0 || u.CostUSD < 0 || u.DurationMs < 0 {
		return bad("its usage is negative")
	}
	return out, nil
}
