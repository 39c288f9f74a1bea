package forge

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Kinds of errors.
var (
	ErrForbidden   = errors.New("not allowed")
	ErrAuth        = errors.New("the token is not accepted")
	ErrNotFound    = errors.New("not found")
	ErrExists      = errors.New("it is there already")
	ErrNoChanges   = errors.New("there is nothing to merge")
	ErrInvalid     = errors.New("the forge refuses the request")
	ErrLimited     = errors.New("too many requests")
	ErrUnreachable = errors.New("the forge can't be reached, or fails")
	ErrUnreadable  = errors.New("the forge's answer can't be read")
)

// CallError is a call that failed. Its text says what was being done and why it failed.
type CallError struct {
	Do      string // "create a pull request for uwf/01J…"
	Kind    error  // one of the Err… sentinels
	Status  int    // the HTTP status; 0: there was no answer
	Message string // the forge's own words; may be empty
	// Need is the permission that the forge says is missing ("pull_requests=write").
	Need string
	// Retry is when to try again, where the forge says so.
	Retry time.Duration
	// Unsure: the request may have been carried out.
	Unsure bool
	// Cause is what happened below, such as the context's error; may be nil.
	Cause error

	final bool // trying again helps nobody
}

// isPassing reports whether the call may be made again: the forge lets nobody in for a while,
// or is away, and what was asked for was not done.
func (e *CallError) isPassing() bool {
	return errors.Is(e, ErrLimited) || errors.Is(e, ErrUnreachable) && !e.Unsure && !e.final
}

func (e *CallError) Error() string {
	msg := fmt.Sprintf("%s: %v", e.Do, e.Kind)
	if e.Status != 0 {
		msg += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		msg += ": " + e.Message
	}
	if e.Need != "" {
		msg += "; the token needs " + e.Need
	}
	if e.Unsure {
		msg += "; it may have been carried out all the same"
	}
	return msg
}

// Unwrap gives the kind and the cause.
func (e *CallError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// IsUnsure reports whether a call failed that may have been carried out.
func IsUnsure(err error) bool {
	var e *CallError
	return errors.As(err, &e) && e.Unsure
}

// IsRefused reports whether a forge said no, so that asking again does not help.
func IsRefused(err error) bool {
	kinds := []error{ErrForbidden, ErrAuth, ErrNotFound, ErrInvalid}
	return !IsUnsure(err) && slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}
