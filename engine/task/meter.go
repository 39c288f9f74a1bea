package task

import (
	"sync/atomic"

	"github.com/united-workforce/uwf/gitcas/record"
)

// Meter counts what a running agent spends. It is safe for concurrent use.
type Meter struct {
	in, out, turns atomic.Int64
	microUSD       atomic.Int64
	unpriced       atomic.Bool
	bell           atomic.Pointer[chan struct{}] // rung when something was counted
}

// Listen returns a channel that tells that something was counted since it was read last.
func (m *Meter) Listen() <-chan struct{} {
	bell := make(chan struct{}, 1)
	m.bell.Store(&bell)
	return bell
}

// Add counts one model call: input and output tokens, and its price in US dollars.
func (m *Meter) Add(in, out int64, costUSD float64) {
	m.in.Add(in)
	m.out.Add(out)
	m.turns.Add(1)
	m.microUSD.Add(int64(costUSD*1e6 + 0.5))
	if bell := m.bell.Load(); bell != nil {
		select {
		case *bell <- struct{}{}:
		default:
		}
	}
}

// AddUnpriced counts one model call whose price nobody knows.
func (m *Meter) AddUnpriced(in, out int64) {
	m.unpriced.Store(true)
	m.Add(in, out, 0)
}

// Tokens is the number of input and output tokens together.
func (m *Meter) Tokens() int64 { return m.in.Load() + m.out.Load() }

// Usage is what was counted so far, without a duration.
func (m *Meter) Usage() record.Usage {
	return record.Usage{
		Turns: int(m.turns.Load()), InputTokens: m.in.Load(), OutputTokens: m.out.Load(),
		CostUSD: float64(m.microUSD.Load()) / 1e6, Unpriced: m.unpriced.Load(),
	}
}
