package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/agents/internal/headtail"
	"github.com/united-workforce/uwf/agents/internal/proc"
)

const (
	// grace is what a server gets between SIGTERM and SIGKILL. With cancelWait it is less than
	// what this process itself gets.
	grace = 400 * time.Millisecond
	// keepStderr is how much of the end of stderr is shown, in bytes.
	keepStderr = 4 << 10
)

// process is a server that runs.
type process struct {
	*Client
	input  *os.File       // its stdin
	output *io.PipeReader // its stdout
	errs   headtail.Tail
	stop   context.CancelFunc
	done   chan struct{} // closed when it has ended, and all that it started
	left   error         // what could not be ended; read after done
}

// startProcess starts a server. It runs until endProcess, and not with a context: it is told to
// cancel its turn before it is ended.
func startProcess(mark string, argv []string, dir string, env []string) (*process, error) {
	stdin, input, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe for its input: %w", err)
	}
	output, stdout := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	p := &process{Client: NewClient(output, input), input: input, output: output, errs: headtail.Tail{Keep: keepStderr}, stop: stop, done: make(chan struct{})}
	p.Client.Environ = env
	go func() {
		defer close(p.done)
		res, err := proc.NewRunner(mark).Run(ctx, proc.Spec{
			Argv: argv, Dir: dir, Env: env, Stdin: stdin, Stdout: stdout, Stderr: &p.errs, Grace: grace,
			Started: func(int) { _ = stdin.Close() }, // so that the end of the server is the end of the pipe
		})
		_ = stdin.Close() // of a server that did not start; closed twice it does nothing
		if errors.As(err, new(*proc.LeftoverError)) {
			p.left = err
		}
		_ = stdout.CloseWithError(describeEnd(res, err)) // never fails
	}()
	return p, nil
}

// describeEnd says how a server ended that nobody had asked to.
func describeEnd(res proc.Result, err error) error {
	switch {
	case err != nil:
		return err
	case res.Stopped != nil:
		return res.Stopped
	case res.Signal == syscall.SIGKILL:
		return errors.New("it was killed; the system does that when memory runs out")
	case res.Signal != 0:
		return fmt.Errorf("it was ended by signal %d (%s)", int(res.Signal), res.Signal)
	}
	return fmt.Errorf("it ended with exit code %d", res.Code)
}

// endProcess ends the server and all that it started, and waits for that. The error says what
// could not be ended.
func (p *process) endProcess() error {
	p.Close()
	_ = p.input.Close()  // it is ended in any case
	_ = p.output.Close() // so that what it still prints is dropped
	p.stop()
	<-p.done
	return p.left
}
