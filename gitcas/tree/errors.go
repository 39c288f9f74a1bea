package tree

import (
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lists"
)

var (
	// ErrDamaged: the store can't be trusted as it is. Every *DamagedError
	// matches it (exit code 5).
	ErrDamaged = errors.New("the store is damaged or unreadable")
	// ErrContent: a file on the state branch is not what it has to be.
	ErrContent = errors.New("unexpected content on the state branch")
	// ErrInvalid: a change or an argument that can never be stored.
	ErrInvalid = errors.New("not storable")
)

// DamagedError says what of the store can't be read or trusted. It matches
// ErrDamaged and its Kind.
type DamagedError struct {
	What      string  // the file, ref or commit
	Why       string  // what is wrong with it
	Kind      error   // ErrContent, or what else is wrong
	LastKnown wire.ID // the last state commit known to be good; zero when unknown
	Restore   string  // the command that restores it, or what else to do; may be empty
	Err       error   // the cause; may be nil
}

func (e *DamagedError) Error() string {
	s := fmt.Sprintf("%s: %v: %s", e.What, e.Kind, e.Why)
	if !e.LastKnown.IsZero() {
		s += fmt.Sprintf("; last known commit %s", e.LastKnown)
	}
	if e.Restore != "" {
		s += "; " + e.Restore
	}
	return s
}

// Unwrap makes the error match ErrDamaged, its kind and its cause.
func (e *DamagedError) Unwrap() []error {
	return lists.Filter([]error{ErrDamaged, e.Kind, e.Err}, func(err error) bool { return err != nil })
}

// Damaged is the error for a file that is not what it has to be.
func Damaged(path, format string, args ...any) *DamagedError {
	return &DamagedError{What: path, Why: fmt.Sprintf(format, args...), Kind: ErrContent}
}

// DamagedBy is Damaged with a cause.
func DamagedBy(path string, err error) *DamagedError {
	return &DamagedError{What: path, Why: err.Error(), Kind: ErrContent, Err: err}
}

// DamagedUnlessWire says of a check that failed on a file that the file is
// damaged, unless the remote, or a file that it refers to, is to blame.
func DamagedUnlessWire(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*wire.RemoteError)), errors.Is(err, ErrDamaged):
		return fmt.Errorf("check %s: %w", path, err)
	}
	return DamagedBy(path, err)
}
