package wire

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
)

// Names of the operations in errors.
const (
	opList  = "list refs"
	opFetch = "fetch"
	opPush  = "push"
)

// pushResult is what became of each update of one push.
type pushResult struct {
	order   []string
	applied []string
	refused map[string]*Error
}

func newPushResult(req PushRequest) *pushResult {
	r := &pushResult{refused: make(map[string]*Error)}
	for _, u := range req.Updates {
		r.order = append(r.order, u.Name)
	}
	return r
}

func (r *pushResult) noteApplied(name string)             { r.applied = append(r.applied, name) }
func (r *pushResult) noteRefused(name string, why *Error) { r.refused[name] = why }
func (r *pushResult) hasResult(name string) bool          { return slices.Contains(r.order, name) }

// asError is nil when everything was taken, a *PartialError when some of it was,
// and else the refusal that says most: a lost race only when nothing worse
// stands beside it, because trying again would not help with the rest.
func (r *pushResult) asError(url string) error {
	if len(r.refused) == 0 {
		return nil
	}
	if len(r.applied) > 0 {
		return &PartialError{URL: url, Applied: r.applied, Refused: r.refused}
	}
	var worst *Error
	for _, name := range r.order {
		e := r.refused[name]
		if e != nil && (worst == nil || weighRefusal(e) > weighRefusal(worst)) {
			worst = e
		}
	}
	return worst
}

// isAtomicEcho tells an update that was refused only because another of the
// same push was.
func isAtomicEcho(e *Error) bool {
	return errors.Is(e.Kind, ErrLostRace) && strings.Contains(e.Detail, "atomic") && !strings.Contains(e.Detail, "'")
}

// weighRefusal orders refusals by how much they say.
func weighRefusal(e *Error) int {
	switch {
	case isAtomicEcho(e):
		return 0 // only says that another update of the push was refused
	case errors.Is(e.Kind, ErrLostRace):
		return 1
	}
	return 2
}

// NewError turns any error into an *Error of its kind.
func NewError(op, url string, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	kind := fault.KindOf(err)
	detail := fault.OneLine(err.Error())
	detail = strings.TrimPrefix(strings.TrimPrefix(detail, kind.Error()), ": ")
	e = &Error{Op: op, URL: url, Kind: kind, Detail: detail}
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded, ErrTooLong, fault.ErrNoWay} {
		if errors.Is(err, cause) {
			e.cause = cause
		}
	}
	_, e.MostRefs, _ = fault.TooManyRefs(detail)
	e.spoke = errors.Is(err, fault.ErrRefused)
	var later *fault.LaterError
	if errors.As(err, &later) {
		e.RetryAfter = later.After
	}
	return e
}
