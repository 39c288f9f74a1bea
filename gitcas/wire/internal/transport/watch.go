package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
)

// Causes of a context that ended because of the other side.
var (
	errSilent  = errors.New("silent for too long")
	errEndless = errors.New("not done for too long")
)

// leastRate is how many bytes of a request and its answer prolong its time by a
// second: what a poor connection still carries. The amount is bounded where it is
// read, and so the time is.
const leastRate = 64 << 10

// watch ends an operation's context when no bytes have moved for a while, and when
// it takes too long although they do: a server may talk for ever.
type watch struct {
	ctx            context.Context
	cancel         context.CancelCauseFunc
	silence, total time.Duration
	began          time.Time

	mu      sync.Mutex
	moved   int64 // bytes, both ways
	silent  *time.Timer
	endless *time.Timer
	stopped bool
}

func newWatch(ctx context.Context, o Options) *watch {
	w := &watch{silence: o.Timeout, total: o.Total, began: time.Now()}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.silent = time.AfterFunc(w.silence, func() { w.cancel(errSilent) })
	w.endless = time.AfterFunc(w.total, func() { w.cancel(errEndless) })
	return w
}

// noteMoved notes a sign of life of n bytes.
func (w *watch) noteMoved(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	w.moved += int64(n)
	w.silent.Reset(w.silence)
	w.endless.Reset(time.Until(w.began.Add(w.timeLimit())))
}

// timeLimit is how long the operation may take, by what has moved so far.
func (w *watch) timeLimit() time.Duration {
	return w.total + time.Duration(w.moved/leastRate)*time.Second
}

func (w *watch) stopWatch() {
	w.mu.Lock()
	w.stopped = true
	w.silent.Stop()
	w.endless.Stop()
	w.mu.Unlock()
	w.cancel(nil)
}

// explainBreak says that it was the other side's silence, or its talking, that broke an
// operation.
func (w *watch) explainBreak(err error) error {
	if err == nil {
		return nil
	}
	switch cause := context.Cause(w.ctx); {
	case errors.Is(cause, errSilent):
		return fmt.Errorf("%w: no sign of life for %s", fault.ErrUnreachable, w.silence)
	case errors.Is(cause, errEndless):
		w.mu.Lock()
		defer w.mu.Unlock()
		return fmt.Errorf("%w: still not done after %s, though the connection is alive; run it again later, and if it stays so ask who runs the server", fault.ErrTooLong, w.timeLimit())
	}
	return err
}

// watched is a reader whose every byte is a sign of life.
type watched struct {
	r io.Reader
	w *watch
}

func (r *watched) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if n > 0 {
		r.w.noteMoved(n)
	}
	return n, err
}
