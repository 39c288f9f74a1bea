package condition

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"
)

// What one evaluation may use. The library asks its context before each part of an
// expression that it evaluates, so that is where this is checked. Within a part it
// asks nobody: see guard for what that may take.
//
// Parts decide: they are the same on every machine, while a clock counts what else the
// machine does. The clock is for what is busy without evaluating anything.
const (
	maxParts  = 500_000 // parts of the expression evaluated; a third of a second
	maxTime   = 5 * time.Second
	maxMemory = 96 << 20 // bytes that the heap may grow by
	heapBytes = "/memory/classes/heap/objects:bytes"
)

// What all evaluations over one Thread may use: a role can have many conditions.
const (
	maxAllParts = 2_000_000
	maxAllTime  = 20 * time.Second
)

// maxStuck is when an evaluation is given up that doesn't stop by itself.
const maxStuck = 8 * time.Second

// measure is what evaluations are judged by: the machine's clock and maxMemory, or
// what a test says.
type measure struct {
	now    func() time.Time
	after  func(time.Duration) <-chan time.Time
	memory uint64
}

// budget is the context of one evaluation.
type budget struct {
	context.Context
	measure
	err    error
	parts  int
	ranges int // items that ranges made
	begin  time.Time
	until  time.Time
	sample []metrics.Sample
	heap   uint64 // at most
}

func newBudget(m measure) *budget {
	now := m.now()
	b := &budget{Context: context.Background(), measure: m, sample: []metrics.Sample{{Name: heapBytes}}, begin: now, until: now.Add(maxTime)}
	b.heap = b.inUse() + b.memory
	return b
}

// inUse is what the heap holds; 0 where the runtime doesn't say.
func (b *budget) inUse() uint64 {
	metrics.Read(b.sample)
	if b.sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return b.sample[0].Value.Uint64()
}

// Err counts one part, and is not nil once the budget is spent.
func (b *budget) Err() error {
	b.parts++
	switch {
	case b.parts > maxParts:
		b.err = fmt.Errorf("%w: it evaluates more than %d parts; go through fewer items", ErrTimeout, maxParts)
	case b.parts%32 == 0 && b.now().After(b.until):
		b.err = fmt.Errorf("%w: more than %v", ErrTimeout, maxTime)
	case b.inUse() > b.heap:
		if runtime.GC(); b.inUse() > b.heap {
			b.err = fmt.Errorf("%w: it needs more than %d MB of memory; take a part of the steps or texts", ErrTooLarge, b.memory>>20)
		}
	}
	return b.err
}
