package gateway

import (
	"cmp"
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
	Unknown  bool
	Model    string // of which that is so
	SetPrice string // how its price is set; may be empty
}

func (e *BudgetError) Error() string {
	switch {
	case e.Unknown:
		return fmt.Sprintf("a cost budget of $%.4f is set, but what the model %s costs is unknown: %s",
			e.Budget.CostUSD, e.Model, cmp.Or(e.SetPrice, "set its price in the configuration"))
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
	running  int           // requests under way
	unknown  *Model        // whose answer cost nobody knows what
	changed  chan struct{} // closed and replaced when a request is settled
}

func newLedger(b Budget) *ledger { return &ledger{budget: b, changed: make(chan struct{})} }

// reserveBudget lets a request in; the error is a *BudgetError or ctx's.
func (l *ledger) reserveBudget(ctx context.Context, s spending) error {
	for {
		l.mu.Lock()
		if err := l.checkNotSpent(); err != nil {
			l.mu.Unlock()
			return err
		}
		if !l.isOver(spending{l.spent.tokens + l.reserved.tokens, l.spent.cost + l.reserved.cost}) {
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

// checkOpen says why no request is let in any more; nil: some may be. It is a
// *BudgetError.
func (l *ledger) checkOpen() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.checkNotSpent()
}

// checkNotSpent is checkOpen with the lock held.
func (l *ledger) checkNotSpent() error {
	if l.unknown == nil && !l.isOver(l.spent) {
		return nil
	}
	err := &BudgetError{Budget: l.budget, Tokens: l.spent.tokens, Cost: l.spent.cost}
	if m := l.unknown; m != nil {
		err.Unknown, err.Model, err.SetPrice = true, m.Name, m.SetPrice
	}
	return err
}

func (l *ledger) isOver(s spending) bool {
	return l.budget.Tokens > 0 && s.tokens >= l.budget.Tokens ||
		l.budget.CostUSD > 0 && s.cost >= l.budget.CostUSD
}

// settleSpent replaces what was reserved by what was spent. unknown is the model where
// tokens were spent whose cost nobody knows.
func (l *ledger) settleSpent(reserved, spent spending, unknown *Model) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved.tokens -= reserved.tokens
	l.reserved.cost -= reserved.cost
	if l.running--; l.running == 0 {
		l.reserved = spending{} // no rounding stays behind
	}
	l.spent.tokens += spent.tokens
	l.spent.cost += spent.cost
	if unknown != nil && l.budget.CostUSD > 0 {
		l.unknown = unknown
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// What a request is expected to have at most where neither it nor the model's
// configuration says, in tokens.
const (
	defaultOutput = 8192
	defaultWindow = 200_000
)

// expectUsage estimates from above what a request will spend. It is what counts where
// the provider's answer can't be read to its end.
func expectUsage(r *dialect.Request, size int, m *Model) dialect.Usage {
	u := dialect.Usage{In: dialect.Estimate(size), HasIn: true, HasOut: true}
	if r.Outside {
		u.In = max(u.In, int64(cmp.Or(m.Window, defaultWindow)))
	}
	if r.Dialect == dialect.Messages { // it may ask for all of it to be kept for an hour
		u.CacheWrite, u.CacheHour = u.In, u.In
	}
	u.Out = int64(cmp.Or(r.MaxOutput, m.MaxOutput, defaultOutput)) * int64(r.Choices)
	return u
}

// atLeast is what an answer that was cut counts for: what the provider said of the
// input, and as much output as was reserved, or more where more came.
func atLeast(expected dialect.Usage, a dialect.Answer) dialect.Usage {
	u := a.Usage
	if !u.HasIn {
		u = expected
	}
	u.Out = max(a.Usage.Out, expected.Out, dialect.Estimate(a.Bytes))
	u.HasCost = false
	return u
}

// completeUsage fills what a provider left out of its usage: the input by the
// request's size, the output by what was written.
func completeUsage(u dialect.Usage, size, written int) dialect.Usage {
	if !u.HasIn {
		u.In, u.HasIn = dialect.Estimate(size), true
	}
	if !u.HasOut {
		u.Out, u.HasOut = max(u.Out, dialect.Estimate(written)), true
	}
	return u
}

// meterUsage tells the Meter what a request cost.
func (g *Gateway) meterUsage(in, out int64, usd float64, priced bool) {
	switch {
	case g.o.Meter == nil:
	case priced:
		g.o.Meter.Add(in, out, usd)
	default:
		g.o.Meter.AddUnpriced(in, out)
	}
}

// costOf is what usage costs in US dollars: as the provider says, else by the
// model's price. known is false where neither is there.
func (m *Model) costOf(u dialect.Usage) (usd float64, known bool) {
	if u.HasCost {
		return u.CostUSD, true
	}
	if m.Price == nil {
		return 0, false
	}
	hour := min(u.CacheHour, u.CacheWrite)
	read := min(u.CacheRead, max(0, u.In-u.CacheWrite))
	plain := max(0, u.In-u.CacheWrite-read)
	p := m.Price
	written := (float64(u.CacheWrite-hour) + hourWrite*float64(hour)) * p.CacheWrite
	return (float64(plain)*p.Input + float64(read)*p.CachedInput + written + float64(u.Out)*p.Output) / 1e6, true
}
