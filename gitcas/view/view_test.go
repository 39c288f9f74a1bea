package view

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// TestUsedAddsUp: numbers that agents make up neither overflow nor go back.
func TestUsedAddsUp(t *testing.T) {
	step := func(in, out int64, cost float64) ChainStep {
		return ChainStep{Hash: "0000000000000", Step: record.Step{Usage: &record.Usage{InputTokens: in, OutputTokens: out, DurationMs: in, CostUSD: cost}}}
	}
	c := Chain{Steps: []ChainStep{step(math.MaxInt64, 1, 0.5), step(-5, math.MaxInt64, -1), step(1, 1, math.Inf(1)), {Hash: "0000000000001"}}}
	var err error
	if c.Counts, err = c.Count("", nil); err != nil {
		t.Fatal(err)
	}
	if u := c.Used(); u != (statefile.Used{Head: "0000000000001", Steps: 4, Tokens: 1<<53 - 1, CostUSD: 0.5, DurationMs: 1<<53 - 1}) {
		t.Errorf("%+v", u)
	}
}

// FuzzClaim: a commit of any bytes is a claim or refused.
func FuzzClaim(f *testing.F) {
	_, objs := ClaimUpdate("01KN0000000000000000000001", nil, &Claim{Run: "r", Attempt: 1, Head: "0123456789ABC", Died: []string{"q.1"}}, time.Unix(1, 0))
	f.Add(objs[0].Data)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseClaim(wire.NewObject(plumbing.CommitObject, data))
		if err != nil {
			return
		}
		_, objs := ClaimUpdate("01KN0000000000000000000001", nil, &c, time.Unix(1, 0))
		if again, err := ParseClaim(objs[0].Object); err != nil || fmt.Sprint(again) != fmt.Sprint(c) {
			t.Fatalf("%+v, %+v, %v", c, again, err)
		}
	})
}
