package gitcas

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// Bounds of the waits between two tries of Update: full jitter below a bound that
// doubles from the one to the other.
const (
	firstWait = 20 * time.Millisecond
	mostWait  = 5 * time.Second
)

// maxUnreachable is how many requests may go without an answer between two pushes
// that had one.
const maxUnreachable = 5

// leastTries are made whatever the clock says: one slow answer must not end an
// Update that lost a single race.
const leastTries = 4

// Update pushes what build makes of a view, and when another job was first, or
// nobody knows whether the push was taken, reads the store again and asks build
// once more. A nil change means that nothing is left to do: the view is returned
// as it is. An error of build ends the Update and is returned.
//
// build must look for its own change in the view: after a lost reply it may be
// there. ids are the threads that build looks at.
func (s *Store) Update(ctx context.Context, v *View, build func(*View) (*Change, error), ids ...ThreadID) (*View, error) {
	deadline := s.o.Now().Add(s.o.RetryFor)
	silent := 0
	for try := 0; ; try++ {
		c, err := build(v)
		if err != nil {
			return nil, err
		}
		if c == nil {
			return v, nil
		}
		next, err := s.Push(ctx, v, c)
		if err == nil {
			return next, nil
		}
		for {
			if silent, err = s.mayRetry(ctx, err, try, silent, deadline); err != nil {
				return nil, err
			}
			if err := s.o.Sleep(ctx, s.wait(try)); err != nil {
				return nil, fmt.Errorf("update the state branch: %w", err)
			}
			next, err = s.Reload(ctx, v, ids...)
			if err == nil {
				v = next
				break
			}
		}
	}
}

// mayRetry returns the number of requests so far that had no answer, or the error
// that ends the Update.
func (s *Store) mayRetry(ctx context.Context, err error, try, silent int, deadline time.Time) (int, error) {
	switch {
	case ctx.Err() != nil:
		return 0, err
	case errors.Is(err, wire.ErrUnreachable):
		// A server that talks without end has cost minutes: once more, to see whether
		// the push was taken, is enough.
		if silent++; silent >= maxUnreachable || silent > 1 && errors.Is(err, wire.ErrTooLong) {
			return 0, fmt.Errorf("update the state branch: given up after %d tries: %w", silent, err)
		}
	case errors.Is(err, ErrLostRace):
		silent = 0
	default:
		return 0, err
	}
	if try >= leastTries && s.o.Now().After(deadline) {
		return 0, fmt.Errorf("update the state branch: given up after %s: %w", s.o.RetryFor, err)
	}
	return silent, nil
}

// wait is the time before a try: anything from zero to a bound that grows, so
// that jobs which collided spread out.
func (s *Store) wait(try int) time.Duration {
	bound := mostWait
	if try < 8 {
		bound = min(firstWait<<try, mostWait)
	}
	return time.Duration(s.o.Jitter() * float64(bound))
}
