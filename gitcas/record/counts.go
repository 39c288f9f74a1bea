package record

import (
	"cmp"
	"slices"
)

// Totals is what steps took together. Sums of tokens and time are clamped to what every reader
// of JSON keeps; a cost that would take the sum above maxCost is left out, since it can't be
// believed.
type Totals struct {
	Steps      int     `json:"steps"`
	Tokens     int64   `json:"tokens"` // in and out
	CostUSD    float64 `json:"costUsd"`
	Unpriced   bool    `json:"unpriced,omitempty"` // it cost more: of some tokens nobody knows the price
	DurationMs int64   `json:"durationMs"`
}

// Add adds one step. What an agent says of itself is no number to trust: less than nothing
// counts as nothing, and nothing overflows.
func (t *Totals) Add(u *Usage) {
	t.Steps++
	if u == nil {
		return
	}
	t.Tokens = addClamped(addClamped(t.Tokens, u.InputTokens), u.OutputTokens)
	t.DurationMs = addClamped(t.DurationMs, u.DurationMs)
	if cost := u.CostUSD; cost > 0 && t.CostUSD+cost <= maxCost {
		t.CostUSD += cost
	}
	t.Unpriced = t.Unpriced || u.Unpriced
}

// AddAll adds what other steps took together, and not how many they were.
func (t *Totals) AddAll(o Totals) {
	steps := t.Steps
	t.Add(&Usage{InputTokens: o.Tokens, DurationMs: o.DurationMs, CostUSD: o.CostUSD, Unpriced: o.Unpriced})
	t.Steps = steps
}

func addClamped(a, b int64) int64 { return a + min(max(b, 0), maxSum-a) }

// maxSum is what every reader of JSON or YAML keeps.
const maxSum = 1<<53 - 1

// maxCost is where costs are no longer added up, in US dollars.
const maxCost = 1e12

// Counts is what the steps of a chain took, from the first one to the one that has it.
type Counts struct {
	Done  Totals      `payload:"done"`           // its steps
	Tries Totals      `payload:"tries,optional"` // the tries that led to none, and the steps that were taken back
	Roles []RoleCount `payload:"roles"`          // by name
}

// RoleCount is how often a role worked.
type RoleCount struct {
	Role  string `payload:"role"`
	Steps int    `payload:"steps"`
	Last  int    `payload:"last,optional"` // the number of its last step, from 1
	Tries int    `payload:"tries,optional"`
}

// After is the counts after one more step, and the tries that it names. The zero Counts are
// those before the first one.
func (c Counts) After(s Step, tries []Step) Counts {
	c.Roles = slices.Clone(c.Roles)
	for _, t := range tries {
		c.Tries.Add(t.Usage)
		c.roleCount(t.Role).Tries++
	}
	c.Done.Add(s.Usage)
	own := c.roleCount(s.Role)
	own.Steps++
	own.Last = c.Done.Steps
	return c
}

// Of is how often a role worked.
func (c Counts) Of(role string) RoleCount {
	if i, found := c.findRole(role); found {
		return c.Roles[i]
	}
	return RoleCount{Role: role}
}

func (c *Counts) roleCount(role string) *RoleCount {
	i, found := c.findRole(role)
	if !found {
		c.Roles = slices.Insert(c.Roles, i, RoleCount{Role: role})
	}
	return &c.Roles[i]
}

func (c *Counts) findRole(role string) (int, bool) {
	return slices.BinarySearchFunc(c.Roles, role, func(r RoleCount, name string) int { return cmp.Compare(r.Role, name) })
}

// Equal reports whether two counts are the same.
func (c Counts) Equal(o Counts) bool {
	return c.Done == o.Done && c.Tries == o.Tries && slices.Equal(c.Roles, o.Roles)
}
