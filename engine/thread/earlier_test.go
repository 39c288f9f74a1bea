package thread_test

import (
	"math"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// TestEarlierRefuses: what an entry says of earlier attempts is anybody's.
func TestEarlierRefuses(t *testing.T) {
	const nowhere node.Hash = "0000000000000"
	const noRef = "refs/heads/main"
	for name, c := range map[string]struct {
		do   func(f *fixture, l *attempt.Ledger, read *reading.Thread) error
		want string
	}{
		"a ref that is none": {func(f *fixture, l *attempt.Ledger, read *reading.Thread) error {
			_, _, err := l.ReadErrorSteps(f.Context(), &gitcas.View{}, []string{noRef})
			return err
		},
			`read the earlier attempt refs/heads/main: `},
		"a ref that is none, counted": {func(f *fixture, l *attempt.Ledger, read *reading.Thread) error {
			_, err := l.CountUsed(f.Context(), []string{noRef})
			return err
		},
			`read the earlier attempt refs/heads/main: `},
		"a step that is nowhere, counted": {func(f *fixture, l *attempt.Ledger, read *reading.Thread) error {
			read.Entry.Next = &gitcas.Next{Poked: nowhere}
			_, err := l.CountUsed(f.Context(), nil)
			return err
		}, "read the earlier attempt 0000000000000: node not found"},
		"a step that is nowhere": {func(_ *fixture, l *attempt.Ledger, read *reading.Thread) error {
			_, err := l.ReadStep(nowhere)
			return err
		}, "read the earlier attempt 0000000000000: node not found"},
		"a step that is none": {func(_ *fixture, l *attempt.Ledger, read *reading.Thread) error {
			l.Nodes.Add(gitcas.Place{Thread: testThread}, nowhere, node.Node{Type: node.String, Payload: "x"})
			_, err := l.ReadStep(nowhere)
			return err
		}, "read the earlier attempt 0000000000000: "},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				read := &reading.Thread{ID: testThread, In: gitcas.Nodes{}.In, View: &gitcas.View{}}
				if err := c.do(f, attempt.NewLedger(f.engine("r1", 1).Store, read, ""), read); err == nil || !strings.Contains(err.Error(), c.want) {
					f.Errorf("%v, want %s", err, c.want)
				}
			})
		})
	}
}

func TestCheckLimits(t *testing.T) {
	for name, c := range map[string]struct {
		own  map[string]float64
		want string // empty: fine
	}{
		"unknown":     {map[string]float64{"steps": 1}, `there is no limit "steps"`},
		"zero":        {map[string]float64{"maxSteps": 0}, "limit maxSteps can't be 0"},
		"no number":   {map[string]float64{"maxSteps": math.NaN()}, "limit maxSteps can't be NaN"},
		"too large":   {map[string]float64{"wall": 1<<31 + 1}, "limit wall can't be 2.147483649e+09"},
		"the largest": {map[string]float64{"wall": 1 << 31}, ""},
	} {
		err := life.CheckLimits(c.own)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
