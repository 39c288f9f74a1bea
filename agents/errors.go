package agents

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/united-workforce/uwf/internal/text"
)

// Why an agent's run gave no step: the causes in a task.AgentError.
var (
	// ErrNothingPrinted: the last line of stdout must be the StepNode's handle.
	ErrNothingPrinted = errors.New("it printed nothing: the last line on stdout must be its StepNode's hash")
	// ErrStopped: the job is being ended; the context's own cause is wrapped too.
	ErrStopped = errors.New("it was stopped")
	// ErrStage: what the agent staged can't be read as nodes.
	ErrStage = errors.New("staged nodes")
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

// ExitError: the agent's process ended with an exit code other than 0.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// newHandleError: the last line on stdout is no handle of a staged StepNode.
func newHandleError(line, why string) error {
	return fmt.Errorf("its last line on stdout, %q, is no handle of a staged StepNode: %s", text.Cut(line, 80), why)
}

// newSignalError: somebody else's signal ended the agent's process.
func newSignalError(signal syscall.Signal) error {
	why := ""
	if signal == syscall.SIGKILL {
		why = "; the system does that when memory runs out"
	}
	return fmt.Errorf("killed by signal %d (%s)%s", int(signal), signal, why)
}
