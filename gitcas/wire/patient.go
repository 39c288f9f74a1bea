package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/outage"
)

// patient is a remote whose reads wait for it.
type patient struct {
	Remote
	policy outage.Policy
}

// Patient returns a remote that asks again, by the policy, where a read meets an outage.
// A push is made once: whether it was taken has to be looked up before it is made again.
func Patient(r Remote, p outage.Policy) Remote { return &patient{r, p} }

// retryUntilAnswered makes a request until it is answered, or nothing is waited for any more.
func retryUntilAnswered[T any](ctx context.Context, p outage.Policy, request func() (T, error)) (T, error) {
	o := p.Begin()
	for {
		got, err := request()
		after, away := IsOutage(err)
		if !away {
			return got, err
		}
		if err := o.WaitToRetry(ctx, err, after); err != nil {
			return got, err
		}
	}
}

// List returns refs, see Remote.
func (p *patient) List(ctx context.Context, prefixes ...string) (Listing, error) {
	return retryUntilAnswered(ctx, p.policy, func() (Listing, error) { return p.Remote.List(ctx, prefixes...) })
}

// Fetch returns objects, see Remote.
func (p *patient) Fetch(ctx context.Context, req FetchRequest) (Objects, error) {
	return retryUntilAnswered(ctx, p.policy, func() (Objects, error) { return p.Remote.Fetch(ctx, req) })
}

// Atomic reports whether the remote offers atomic pushes, see Remote.
func (p *patient) Atomic(ctx context.Context) (bool, error) {
	return retryUntilAnswered(ctx, p.policy, func() (bool, error) { return p.Remote.Atomic(ctx) })
}

// ErrUnsure: a push was not answered, and whether it was taken can't be told. It must not
// be made again before somebody has looked.
var ErrUnsure = errors.New("whether it was done is not known, as nobody answered: look before you do it again")

// PushRefs pushes refs whose values alone say whether they were taken, and waits for the
// remote, by the policy, where it is away. A ref that somebody else moved is ErrLostRace;
// where nobody answered to the end, the error matches ErrUnsure. A server that twice ends without
// a report, and changes nothing, refuses.
func PushRefs(ctx context.Context, r Remote, p outage.Policy, req PushRequest) (time.Time, error) {
	o := p.Begin()
	var failures Refusals
	for unanswered := false; ; {
		at, err := r.Push(ctx, req)
		after, away := IsOutage(err)
		switch {
		case err == nil:
			return at, nil
		case away:
			unanswered = true
			if err := o.WaitToRetry(ctx, err, after); err != nil {
				return at, fmt.Errorf("%w: %w", ErrUnsure, err)
			}
		case !unanswered || !errors.Is(err, ErrLostRace):
			return at, err
		}
		switch taken, terr := CheckPushLanded(ctx, r, req.Updates); {
		case terr != nil:
			return at, fmt.Errorf("%w: %w", ErrUnsure, terr)
		case taken:
			return at, nil
		case !away:
			return at, err
		}
		if refusal := failures.NoteFailure(err); refusal != nil {
			return at, refusal
		}
	}
}

// CheckPushLanded reports whether refs are where a push was to move them.
func CheckPushLanded(ctx context.Context, r Remote, updates []RefUpdate) (bool, error) {
	names := lists.Map(updates, func(u RefUpdate) string { return u.Name })
	l, err := r.List(ctx, names...)
	if err != nil {
		return false, fmt.Errorf("look whether a push was taken that was not answered: %w", err)
	}
	return !slices.ContainsFunc(updates, func(u RefUpdate) bool { return l.Refs[u.Name] != u.New }), nil
}
