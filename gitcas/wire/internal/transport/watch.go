package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
)

// errIdle is the cause of a context that ended because the other side was
// silent for too long.
var errIdle = errors.New("silent for too long")

// watch ends an operation's context when no bytes have moved for a while.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	d      time.Duration
}

func newWatch(ctx context.Context, d time.Duration) *watch {
	w := &watch{d: d}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(d, func() { w.cancel(errIdle) })
	return w
}

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// explain says that it was the silence that broke an operation.
func (w *watch) explain(err error) error {
	if err != nil && errors.Is(context.Cause(w.ctx), errIdle) {
		return fmt.Errorf("%w: no sign of life for %s", fault.ErrUnreachable, w.d)
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
		r.w.timer.Reset(r.w.d)
	}
	return n, err
}
