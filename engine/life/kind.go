// Package life is what may become of a thread: what counts as claimed, as failed and as over
// a limit, and how an entry changes by what jobs and people do. It is pure: everything is
// worked out from entries and claims as they were read.
package life

import (
	"context"
	"errors"
	"slices"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Kind is what an error means to whoever asked for a deed.
type Kind int

// The kinds of errors.
const (
	KindDone      Kind = iota // none: advanced, or ended
	KindFailed                // the step failed
	KindUsage                 // wrong usage or invalid definition
	KindSuspended             // waits for a person
	KindNotYours              // moved, claimed, cancelled or ended: not as it would have to be
	KindDamaged               // store damaged or unreadable
	KindLimit                 // a limit is reached
)

// KindOf says of which kind an error is: of this package, of the Store or of a definition.
func KindOf(err error) Kind {
	var own *Error
	isAny := func(kinds ...error) bool {
		return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
	}
	switch {
	case err == nil:
		return KindDone
	case isAny(gitcas.ErrDamaged): // first: trying again does not help
		return KindDamaged
	case errors.As(err, new(*FailedError)):
		return KindFailed
	case errors.As(err, &own):
		return own.Kind
	case errors.As(err, new(*UnknownThreadError)), errors.As(err, new(*workflow.InvalidError)),
		isAny(workflow.ErrNoWorkflow, gitcas.ErrNoStore, gitcas.ErrUnknownThread, gitcas.ErrInvalid, gitcas.ErrLocalDiffers):
		return KindUsage
	case isAny(context.Canceled, wire.ErrLostRace):
		// Interrupted, or others were faster until the time was up: nothing is
		// wrong with the store.
		return KindFailed
	case isAny(node.ErrNotFound, record.ErrNotRecord), errors.As(err, new(*wire.Error)):
		return KindDamaged
	}
	return KindFailed
}
