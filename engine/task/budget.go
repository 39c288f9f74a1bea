package task

import (
	"math"
)

// Budget bounds what one agent run may use; 0: no bound.
type Budget struct {
	Tokens  int64
	CostUSD float64
}

// TenthsBegun is how many tenths of the budget a usage has begun.
func (b Budget) TenthsBegun(tokens int64, costUSD float64) int {
	return countTenths(float64(tokens), float64(b.Tokens)) + countTenths(costUSD, b.CostUSD)
}

// Charge is what a job is charged for a usage as long as it may grow unseen: the tenths of
// the budget that were begun, each whole.
func (b Budget) Charge(tokens int64, costUSD float64) (int64, float64) {
	whole := func(used, budget float64) float64 { return max(used, float64(countTenths(used, budget))*budget/10) }
	return max(tokens, int64(math.Ceil(whole(float64(tokens), float64(b.Tokens))))), whole(costUSD, b.CostUSD)
}

// countTenths is how many tenths of a budget are begun; none where there is no budget.
func countTenths(used, budget float64) int {
	if budget <= 0 {
		return 0
	}
	return int(min(math.Floor(max(used, 0)/budget*10)+1, 10))
}
