package wire

import (
	"context"
	"errors"
	"strings"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
)

// Names of the operations in errors.
const (
	opList  = "list refs"
	opFetch = "fetch"
	opPush  = "push"
)

// asError is what became of a push's updates as its error: nil when everything was taken, a
// *PartialError when some of it was, and else the refusal that says most: a lost race only
// when nothing worse stands beside it, because trying again would not help with the rest.
func (e *PartialError) asError(updates []RefUpdate) error {
	if len(e.Refused) == 0 {
		return nil
	}
	if len(e.Applied) > 0 {
		return e
	}
	var worst *RemoteError
	for _, u := range updates {
		if r := e.Refused[u.Name]; r != nil && (worst == nil || weighRefusal(r) > weighRefusal(worst)) {
			worst = r
		}
	}
	return worst
}

// weighRefusal orders refusals by how much they say.
func weighRefusal(e *RemoteError) int {
	switch {
	case !errors.Is(e.Kind, ErrLostRace):
		return 2
	case strings.Contains(e.Detail, "atomic") && !strings.Contains(e.Detail, "'"):
		return 0 // only says that another update of the push was refused
	}
	return 1
}

// NewError turns any error into a *RemoteError of its kind.
func NewError(op, url string, err error) *RemoteError {
	var e *RemoteError
	if errors.As(err, &e) {
		return e
	}
	kind := fault.KindOf(err)
	detail := fault.OneLine(err.Error())
	detail = strings.TrimPrefix(strings.TrimPrefix(detail, kind.Error()), ": ")
	if errors.Is(kind, ErrSHA256) {
		detail = "" // it says all
	}
	e = &RemoteError{Op: op, URL: url, Kind: kind, Detail: detail}
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded, ErrTooLong, fault.ErrNoWay} {
		if errors.Is(err, cause) {
			e.cause = cause
		}
	}
	_, e.MostRefs, _ = fault.TooManyRefs(detail)
	e.spoke = errors.Is(err, fault.ErrRefused)
	e.empty = op == opPush && errors.Is(err, fault.ErrNothing)
	var later *fault.LaterError
	if errors.As(err, &later) {
		e.RetryAfter = later.After
	}
	return e
}
