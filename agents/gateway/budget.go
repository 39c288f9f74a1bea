package gateway

import (
	"context"
	"fmt"
	"sync"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// BudgetError says that a budget is spent.
type BudgetError struct {
	Budget Budget
	Tokens int64 // spent
	Cost   float64
	// Unknown: the cost can't be told, because the model has no price and the
	// provider reports none. A cost budget can't be kept then.
	Unknown bool
}

func (e *BudgetError) Error() string {
	switch {
	case e.Unknown:
		return fmt.Sprintf("a cost budget of $%.4f is set, but what the model costs is unknown: set its price in the configuration", e.Budget.CostUSD)
	case e.Budget.Tokens > 0 && e.Tokens >= e.Budget.Tokens:
		return fmt.Sprintf("the token budget is spent: %d of %d tokens", e.Tokens, e.Budget.Tokens)
	default:
		return fmt.Sprintf("the cost budget is spent: $%.4f of $%.4f", e.Cost, e.Budget.CostUSD)
	}
}

// spending is an amount, spent or expected.
type spending struct {
	tokens int64
	cost   float64
}

// ledger keeps the budget. A request is let in while what is spent and what the
// others under way are expected to spend is below the budget; so what is spent
// in the end exceeds it by one request at most, however many come at once. A
// request that only those others keep out waits for them.
type ledger struct {
	budget Budget

	mu       sync.Mutex
	spent    spending
	reserved spending
	running  int // requests under way
	unknown  bool
	changed  chan struct{} // closed and replaced when a request is settled
}

func newLedger(b Budget) *ledger { return &ledger{budget: b, changed: make(chan struct{})} }

// reserve lets a request in; the error is a *BudgetError or ctx's.
func (l *ledger) reserve(ctx context.Context, s spending) error {
	for {
		l.mu.Lock()
		if l.unknown || l.over(l.spent) {
			err := &BudgetError{Budget: l.budget, Tokens: l.spent.tokens, Cost: l.spent.cost, Unknown: l.unknown}
			l.mu.Unlock()
			return err
		}
		if !l.over(spending{l.spent.tokens + l.reserved.tokens, l.spent.cost + l.reserved.cost}) {
			l.reserved.tokens += s.tokens
			l.reserved.cost += s.cost
			l.running++
			l.mu.Unlock()
			return nil
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

func (l *ledger) over(s spending) bool {
	return l.budget.Tokens > 0 && s.tokens >= l.budget.Tokens ||
		l.budget.CostUSD > 0 && s.cost >= l.budget.CostUSD
}

// settle replaces what was reserved by what was spent. known is false where
// tokens were spent whose cost nobody knows.
func (l *ledger) settle(reserved, spent spending, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved.tokens -= reserved.tokens
	l.reserved.cost -= reserved.cost
	if l.running--; l.running == 0 {
		l.reserved = spending{} // no rounding stays behind
	}
	l.spent.tokens += spent.tokens
	l.spent.cost += spent.cost
	if !known && l.budget.CostUSD > 0 {
		l.unknown = true
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// defaultOutput is what an answer is expected to have at most where neither the
// request nor the model's configuration says: tokens.
const defaultOutput = 8192

// expect estimates from above what a request will spend.
func expect(r *dialect.Request, size int, m *Model) dialect.Usage {
	out := r.MaxOutput
	if out == 0 {
		out = m.MaxOutput
	}
	if out == 0 {
		out = defaultOutput
	}
	return dialect.Usage{In: dialect.Estimate(size), Out: int64(out) * int64(min(r.Choices, 128)), HasIn: true, HasOut: true}
}

// complete fills what a provider left out of its usage: the input by the
// request's size, the output by what was written.
func complete(u dialect.Usage, size, written int) dialect.Usage {
	if !u.HasIn {
		u.In, u.HasIn = dialect.Estimate(size), true
	}
	if !u.HasOut {
		u.Out, u.HasOut = max(u.Out, dialect.Estimate(written)), true
	}
	return u
}

// cost is what usage costs in US dollars: as the provider says, else by the
// model's price. known is false where neither is there.
func (m *Model) cost(u dialect.Usage) (usd float64, known bool) {
	if u.HasCost {
		return u.CostUSD, true
	}
	if m.Price == nil {
		return 0, false
	}
	p := *m.Price
	if p.CacheRead == 0 {
		p.CacheRead = p.Input
	}
	if p.CacheWrite == 0 {
		p.CacheWrite = p.Input * 1.25
	}
	plain := max(0, u.In-u.CacheRead-u.CacheWrite)
	return (float64(plain)*p.Input + float64(u.CacheRead)*p.CacheRead +
		float64(u.CacheWrite)*p.CacheWrite + float64(u.Out)*p.Output) / 1e6, true
}
