package agents

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Why an agent's run gave no step: the causes in a task.AgentError.
var (
	// ErrNothingPrinted: the last line of stdout must be the StepNode's handle.
	ErrNothingPrinted = errors.New("it printed nothing: the last line on stdout must be its StepNode's hash")
	// ErrStopped: the job is being ended; the context's own cause is wrapped too.
	ErrStopped = errors.New("it was stopped")
)

// CommandError: the agent's command line can't be run.
type CommandError struct {
	Line string
	Why  string
	Fix  string
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("agent command %q: %s; %s", e.Line, e.Why, e.Fix)
}

// HandleError: the last line on stdout is no handle of a staged StepNode.
type HandleError struct {
	Line string // as printed, shortened
	Why  string
}

func (e *HandleError) Error() string {
	return fmt.Sprintf("its last line on stdout, %q, is no handle of a staged StepNode: %s", e.Line, e.Why)
}

// ExitError: the agent's process ended with an exit code other than 0.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// SignalError: somebody else's signal ended the agent's process.
type SignalError struct{ Signal syscall.Signal }

func (e *SignalError) Error() string {
	msg := fmt.Sprintf("killed by signal %d (%s)", int(e.Signal), e.Signal)
	if e.Signal == syscall.SIGKILL {
		msg += "; the system does that when memory runs out"
	}
	return msg
}

// TimeoutError: the agent ran longer than it may.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("it had not ended after %s; raise the timeout, or give the role less to do", e.After)
}

// OutputError: the agent printed more on stdout than is read.
type OutputError struct{ Limit int64 }

func (e *OutputError) Error() string {
	return fmt.Sprintf("it printed more than %d bytes on stdout; only the handle belongs there, everything else on stderr", e.Limit)
}

// StageError: what the agent staged can't be read as nodes.
type StageError struct {
	Name string // the file's name in UWF_STAGE, or empty
	Why  string
	Err  error
}

func (e *StageError) Error() string {
	msg := "staged nodes: "
	if e.Name != "" {
		msg += fmt.Sprintf("%q ", e.Name)
	}
	msg += e.Why
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg
}

func (e *StageError) Unwrap() error { return e.Err }
