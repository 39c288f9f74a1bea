package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
)

// UsageByRole divides what a thread took, all, by role and model: among the steps of its chain and
// the tries that they name. What neither took is of the role rest, whose step never came to be. The
// rows' sums are those of all. get finds the thread's records.
func (c Chain) UsageByRole(all statefile.Cost, rest string, get func(node.Hash) (node.Node, error)) ([]statefile.RoleUsage, error) {
	var rows []statefile.RoleUsage
	for _, s := range c.Steps {
		rows = addRow(rows, &all, s.Role, 1, s.Usage)
		tries, err := TriesOf(s.PreviousAttempts, get)
		if err != nil {
			return nil, fmt.Errorf("what step %s took: %w", s.Hash, err)
		}
		for _, t := range tries {
			rows = addRow(rows, &all, t.Role, 0, t.Usage)
		}
	}

	const rounded = 1e-9 // US dollars
	if all.Steps > 0 || all.Tokens > 0 || all.CostUSD > rounded {
		rows = addRow(rows, &all, rest, all.Steps, &record.Usage{InputTokens: all.Tokens, CostUSD: all.CostUSD})
	}
	return rows, nil
}

// addRow adds what a step took to its row, as far as there is as much left, and takes it from left.
func addRow(rows []statefile.RoleUsage, left *statefile.Cost, role string, steps int, u *record.Usage) []statefile.RoleUsage {
	if u == nil {
		u = &record.Usage{}
	}
	i, found := slices.BinarySearchFunc(rows, statefile.RoleUsage{Role: role, Model: u.Model}, func(a, b statefile.RoleUsage) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Model, b.Model))
	})
	if !found {
		rows = slices.Insert(rows, i, statefile.RoleUsage{Role: role, Model: u.Model})
	}

	r := &rows[i]
	r.Steps += takeFrom(&left.Steps, steps)
	r.TokensIn += takeFrom(&left.Tokens, u.InputTokens)
	r.TokensOut += takeFrom(&left.Tokens, u.OutputTokens)
	r.CostUSD += takeFrom(&left.CostUSD, u.CostUSD)
	return rows
}

func takeFrom[N int | int64 | float64](left *N, n N) N {
	n = min(max(n, 0), *left)
	*left -= n
	return n
}
