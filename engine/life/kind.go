// Package life is what may become of a thread: what counts as claimed, as failed and as over
// a limit, and how an entry changes by what jobs and people do. It is pure: everything is
// worked out from entries and claims as they were read.
package life

import (
	"context"
	"errors"

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
	var (
		failed    *FailedError
		deliver   *DeliverError
		usage     *UsageError
		suspended *SuspendedError
		notYours  *NotYoursError
		refused   *RefusedError
		limit     *LimitError
		stuck     *StuckError
		unknown   *UnknownThreadError
		invalid   *workflow.InvalidError
		wireErr   *wire.Error
	)
	switch {
	case err == nil:
		return KindDone
	case errors.Is(err, gitcas.ErrDamaged): // first: trying again does not help
		return KindDamaged
	case errors.As(err, &failed), errors.As(err, &deliver):
		return KindFailed
	case errors.As(err, &usage), errors.As(err, &unknown), errors.As(err, &stuck), errors.As(err, &invalid), errors.Is(err, workflow.ErrNoWorkflow),
		errors.Is(err, gitcas.ErrNoStore), errors.Is(err, gitcas.ErrUnknownThread), errors.Is(err, gitcas.ErrInvalid), errors.Is(err, gitcas.ErrLocalDiffers):
		return KindUsage
	case errors.As(err, &suspended):
		return KindSuspended
	case errors.As(err, &notYours), errors.As(err, &refused):
		return KindNotYours
	case errors.As(err, &limit):
		return KindLimit
	case errors.Is(err, context.Canceled), errors.Is(err, wire.ErrLostRace):
		// Interrupted, or others were faster until the time was up: nothing is
		// wrong with the store.
		return KindFailed
	case errors.Is(err, node.ErrNotFound), errors.Is(err, record.ErrNotRecord), errors.As(err, &wireErr):
		return KindDamaged
	}
	return KindFailed
}
