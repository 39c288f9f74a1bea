package liquid

import (
	"errors"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/engine/workflow/template"
)

// What one rendering may use.
const (
	maxTurns = 200_000         // writes, turns of loops, and filters applied
	maxBytes = 32 << 20        // bytes that filters and captures make
	maxTime  = 2 * time.Second // between checks lies one filter over one output
)

// ErrTimeout is wrapped by the error for a template that takes too long.
var ErrTimeout = errors.New("the template takes too long")

// budget is what is left to one rendering. The zero value has nothing to give and
// is for compiling only.
type budget struct {
	turns, bytes int
	now          func() time.Time
	until        time.Time
	err          error
}

func newBudget(now func() time.Time) *budget {
	return &budget{turns: maxTurns, bytes: maxBytes, now: now, until: now().Add(maxTime)}
}

func (b *budget) failWith(err error) {
	if b.err == nil {
		b.err = err
	}
}

// useTurn takes one turn that made so many bytes.
func (b *budget) useTurn(bytes int) error {
	b.turns--
	b.bytes -= bytes
	switch {
	case b.turns < 0:
		b.failWith(fmt.Errorf("%w: it repeats more than %d times", template.ErrTooLong, maxTurns))
	case b.bytes < 0:
		b.failWith(fmt.Errorf("%w: its filters make more than %d bytes", template.ErrTooLong, maxBytes))
	case b.turns%64 == 0 && b.now().After(b.until):
		b.failWith(ErrTimeout)
	}
	return b.err
}

// spendOrPanic is use for where only a panic leads out; Render recovers it.
func (b *budget) spendOrPanic(bytes int) {
	if err := b.useTurn(bytes); err != nil {
		panic(err)
	}
}
