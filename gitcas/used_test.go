package gitcas

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestUsed: an entry says what its chain says, whoever sets it.
func TestUsed(t *testing.T) {
	s := Open(wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), testOptions())
	id, fork := threadID(1), threadID(2)
	mustPush(t, s, mustInit(t, s), startChange(t, id, "p"))
	v := mustLoad(t, s, id)
	if u, known := mustEntry(t, v, id).Known(); known {
		t.Errorf("a thread without steps used %+v", u)
	}
	for n := 1; n <= 3; n++ {
		v = mustPush(t, s, v, stepChange(t, v, id, "developer", strings.Repeat("x", n)))
		if u, known := mustEntry(t, v, id).Known(); !known || u.Steps != n {
			t.Errorf("after step %d: %+v, %t", n, u, known)
		}
	}
	// A fork counts what it shares, and going back takes steps off again.
	e := mustEntry(t, v, id)
	first := e
	c, err := v.ReadChain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	first.Head = c.Steps[0].Hash
	v = mustPush(t, s, v, &Change{Subject: "fork", Forks: map[ThreadID]ThreadID{fork: id}, Threads: map[ThreadID]*Entry{fork: {Head: c.Steps[1].Hash}, id: &first}})
	for id, want := range map[ThreadID]int{id: 1, fork: 2} {
		if u, known := mustEntry(t, v, id).Known(); !known || u.Steps != want {
			t.Errorf("%s: %+v, %t", id, u, known)
		}
	}
	// Who has not read the chain says nothing.
	v = mustLoad(t, s)
	e = mustEntry(t, v, id)
	e.Head = c.Steps[2].Hash
	v = mustPush(t, s, v, &Change{Subject: "blind", Threads: map[ThreadID]*Entry{id: &e}})
	if u, known := mustEntry(t, v, id).Known(); known {
		t.Errorf("not counted, and yet %+v", u)
	}
	mustSound(t, s)
}

// TestFsckUsed: an entry that lies about its chain.
func TestFsckUsed(t *testing.T) {
	for says, lie := range map[string]func(u *Used){
		"says 3 steps":                  func(u *Used) { u.Steps = 3 },
		"steps, 1 tokens, ":             func(u *Used) { u.Tokens++ },
		" and 1 ms; its":                func(u *Used) { u.DurationMs++ },
		"tokens, cost unknown and 0":    func(u *Used) { u.Unpriced = true },
		"tokens, $0.5000 and 0 ms; its": func(u *Used) { u.CostUSD += 0.5 },
	} {
		s := Open(wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), testOptions())
		id := threadID(1)
		threadWithSteps(t, s, id, 2)
		v := mustLoad(t, s, id)
		e := mustEntry(t, v, id)
		lie(&e.Used)
		mustPush(t, s, v, &Change{Subject: "lie", Threads: map[ThreadID]*Entry{id: &e}})
		r, err := s.Fsck(t.Context(), false)
		if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Why, says) {
			t.Errorf("%s: %+v, %v", says, r.Problems, err)
		}
	}
}

// TestTotalCostRefuses: what can't be read of a failed attempt can't be added up.
func TestTotalCostRefuses(t *testing.T) {
	const failed, before node.Hash = "0000000000001", "0000000000002"
	step, _, err := record.Step{Role: "r", PreviousAttempts: []node.Hash{before}}.Node(time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	last, _, err := record.Step{Role: "r"}.Node(time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	c := Chain{Steps: []ChainStep{{Step: record.Step{PreviousAttempts: []node.Hash{failed}}}}}
	away := errors.New("away")
	for name, get := range map[string]func(node.Hash) (node.Node, error){
		"missing":               node.Map{}.Get,
		"away":                  func(node.Hash) (node.Node, error) { return last, away },
		"no step":               node.Map{failed: {Type: node.String, Payload: "x"}}.Get,
		"one before it is gone": node.Map{failed: step}.Get,
	} {
		if cost, err := c.Count("", get); err == nil {
			t.Errorf("%s: %+v", name, cost)
		}
	}
}

// TestUsageByRole: what a thread took is divided by role and model, and nothing of it is lost or
// invented.
func TestUsageByRole(t *testing.T) {
	const failed, before node.Hash = "0000000000001", "0000000000002"
	use := func(in, out int64, cost float64, model string) *record.Usage {
		return &record.Usage{InputTokens: in, OutputTokens: out, CostUSD: cost, Model: model}
	}
	made := func(s record.Step) node.Node {
		s.Start, s.Output, s.Detail = failed, failed, failed
		n, _, err := s.Node(time.UnixMilli(1))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	tries := node.Map{
		failed: made(record.Step{Role: "developer", Usage: use(4, 0, 0.25, "big"), PreviousAttempts: []node.Hash{before}}),
		before: made(record.Step{Role: "developer", Usage: use(1, 1, 0, "small")}),
	}
	c := Chain{Steps: []ChainStep{
		{Step: record.Step{Role: "developer", Usage: use(10, 5, 0.5, "big")}},
		{Step: record.Step{Role: "reviewer", Usage: use(-7, 3, -1, "")}},
		{Step: record.Step{Role: "developer", Usage: use(20, 2, 1, "big"), PreviousAttempts: []node.Hash{failed}}},
		{Step: record.Step{Role: "a person"}},
	}}
	counts, err := c.Count("threads/x", tries.Get)
	if err != nil {
		t.Fatal(err)
	}
	all := counts.Done
	all.AddAll(counts.Tries)
	own := []statefile.RoleUsage{
		{Role: "a person", Steps: 1},
		{Role: "developer", Model: "big", Steps: 2, TokensIn: 34, TokensOut: 7, CostUSD: 1.75},
		{Role: "developer", Model: "small", TokensIn: 1, TokensOut: 1},
		{Role: "reviewer", Steps: 1, TokensOut: 3},
	}
	more := all
	more.Tokens, more.CostUSD = more.Tokens+100, more.CostUSD+2
	less := Cost{Steps: 4, Tokens: 12, CostUSD: 0.25}
	for name, tc := range map[string]struct {
		all  Cost
		rest string
		want []statefile.RoleUsage
	}{
		"all is on record":      {all, "x", own},
		"tries without a step":  {more, "reviewer", append(slices.Clone(own[:3]), statefile.RoleUsage{Role: "reviewer", Steps: 1, TokensIn: 100, TokensOut: 3, CostUSD: 2})},
		"the sums were clamped": {less, "", []statefile.RoleUsage{own[0], {Role: "developer", Model: "big", Steps: 2, TokensIn: 10, TokensOut: 2, CostUSD: 0.25}, {Role: "developer", Model: "small"}, {Role: "reviewer", Steps: 1}}},
	} {
		rows, err := c.UsageByRole(tc.all, tc.rest, tries.Get)
		if err != nil || !slices.Equal(rows, tc.want) {
			t.Errorf("%s:\n%+v, %v, want\n%+v", name, rows, err, tc.want)
		}
	}
	for _, get := range []func(node.Hash) (node.Node, error){node.Map{}.Get, node.Map{failed: {Type: node.String, Payload: "x"}}.Get} {
		if rows, err := c.UsageByRole(all, "", get); err == nil {
			t.Errorf("a try can't be read: %+v", rows)
		}
	}
}
