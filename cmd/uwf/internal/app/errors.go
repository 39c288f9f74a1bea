package app

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
)

// UsageError is a mistake in how a command was called, or in a file that it was
// given: exit code 2.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// ExitCode is that of wrong usage.
func (e *UsageError) ExitCode() int { return CodeUsage }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// UnknownError says that nothing has the id or name that a command was given:
// exit code 2.
type UnknownError struct {
	What string // "node", "thread", "workflow", …
	ID   string
	Near []string // what may have been meant
	See  string   // a command that lists what there is; may be empty
	Hint string   // what else to do; may be empty
}

func (e *UnknownError) Error() string {
	s := fmt.Sprintf("no %s %q", e.What, e.ID)
	if len(e.Near) > 0 {
		s += "; did you mean " + strings.Join(e.Near, ", ") + "?"
	} else if e.See != "" {
		s += " (see: " + e.See + ")"
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// ExitCode is that of wrong usage.
func (e *UnknownError) ExitCode() int { return CodeUsage }

// UnknownThread is the error for a thread that a store does not have, with the
// live ones that are near.
func UnknownThread(v *gitcas.View, id gitcas.ThreadID) error {
	return unknownThread(id, maps.Keys(v.Threads()))
}

func unknownThread(id gitcas.ThreadID, alive iter.Seq[gitcas.ThreadID]) error {
	var ids []string
	for t := range alive {
		ids = append(ids, string(t))
	}
	return &UnknownError{What: "thread", ID: string(id), Near: Near(string(id), ids), See: "uwf thread list --all"}
}

// Exit ends the command with a code and without a message: the result that was
// printed says it all.
type Exit struct{ Code int }

func (e *Exit) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// ExitCode is the code.
func (e *Exit) ExitCode() int { return e.Code }

// ExitCode is the exit code that an error stands for (DESIGN §6). An error that
// knows its own has a method ExitCode.
func ExitCode(err error) int {
	var own interface{ ExitCode() int }
	var invalid *workflow.InvalidError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &own):
		return own.ExitCode()
	case errors.As(err, &invalid), errors.Is(err, gitcas.ErrNoStore), errors.Is(err, gitcas.ErrUnknownThread),
		errors.Is(err, gitcas.ErrInvalid), errors.Is(err, gitcas.ErrLocalDiffers):
		return CodeUsage
	}
	return exitCodes[life.KindOf(err)]
}

// Message is what stderr says of an error; empty when nothing more is to be said.
func Message(err error) string {
	var quiet *Exit
	var invalid *workflow.InvalidError
	var unknown *life.UnknownThreadError
	switch {
	case err == nil, errors.As(err, &quiet):
		return ""
	case errors.As(err, &invalid):
		return invalid.Report()
	case errors.As(err, &unknown):
		return unknownThread(unknown.Thread, slices.Values(unknown.Alive)).Error()
	case errors.Is(err, context.Canceled):
		return "interrupted: " + err.Error() + NextLines(err)
	}
	if advice := remoteAdvice(err); advice != "" {
		return strings.TrimRight(err.Error(), "\n") + NextLines(err) + "\n" + advice
	}
	return err.Error() + NextLines(err)
}

// The exit codes. They are part of the interface: scripts and jobs branch on them.
const (
	CodeOK        = 0 // advanced, or ended
	CodeFailed    = 1 // the step failed
	CodeUsage     = 2 // wrong usage or invalid definition
	CodeSuspended = 3 // waits for a person
	CodeNotYours  = 4 // moved, claimed, cancelled or ended: not as it would have to be
	CodeDamaged   = 5 // store damaged or unreadable
	CodeLimit     = 6 // a limit is reached
)

var exitCodes = map[life.Kind]int{
	life.KindDone: CodeOK, life.KindFailed: CodeFailed, life.KindUsage: CodeUsage, life.KindSuspended: CodeSuspended,
	life.KindNotYours: CodeNotYours, life.KindDamaged: CodeDamaged, life.KindLimit: CodeLimit,
}
