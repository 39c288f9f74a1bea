// Package cli is the command line of uwf as a whole: all commands under their root,
// and one run of it, from its arguments to its exit code. What a command does is in
// the command's own package.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/engine/deadline"
)

// Main is the program, on the process's own arguments, environment and streams; it
// returns the exit code.
func Main(factory func() (*app.Factory, error)) int {
	// An agent's watcher, and its process on its way into the sandbox, do nothing else
	// first.
	if code, ours := agents.RunHelper(os.Args, os.Environ()); ours {
		return code
	}
	f, err := factory()
	if err != nil {
		fmt.Fprintf(os.Stderr, "uwf: %s\n", output.Clean(err.Error()))
		return 1
	}
	ctx, stop := endOnSignal(context.Background(), f.IO)
	defer stop()
	// Agents run as the same user: what is in our environment is not for them.
	if err := agents.Conceal(); err != nil {
		f.Exposed = err
	}
	return Execute(ctx, f, os.Args[1:])
}

// endOnSignal ends a context where this process is asked to end. Ctrl-C at a terminal is
// a person's word: the cause is deadline.ErrStopped. Whatever else asks (a CI system, a
// service manager, a script) does so to a job, whose step then failed.
func endOnSignal(parent context.Context, streams app.IO) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			if s == os.Interrupt && (streams.InTTY || streams.OutTTY || streams.ErrTTY) {
				cancel(deadline.ErrStopped)
				return
			}
			cancel(nil)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// Execute runs one command line and reports its error on stderr; it returns the exit
// code. Nothing of it is the process's own but what the Factory gives it.
func Execute(ctx context.Context, f *app.Factory, args []string) int {
	var began bool
	start := time.Now()
	f.Stopping = ctx.Done()
	root := NewRoot(f)
	onRun(root, func(c *cobra.Command) {
		began = true
		var flags []string
		c.Flags().Visit(func(flag *pflag.Flag) { flags = append(flags, flag.Name) })
		words := args
		if c.Annotations[app.SecretArguments] != "" {
			words = nil
		}
		f.LogCommand(c.CommandPath(), flags, words)
	})
	defer f.CloseLog()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !began && !errors.As(err, new(*app.UnknownError)) {
		// Cobra's own errors, about arguments and flags, come before any command runs.
		err = explainMistake(cmd, err)
	}
	msg, code := app.Message(err), app.ExitCodeOf(err)
	if advice := f.Advice(err); advice != "" && msg != "" {
		msg += "\n" + advice
	}
	if msg != "" {
		f.Notes().Printf("uwf: %s\n", strings.TrimRight(f.CleanMessage(msg), "\n"))
	}
	if began {
		f.LogExit(cmd.CommandPath(), code, msg, time.Since(start))
	}
	return code
}

// onRun calls fn before any command below cmd runs.
func onRun(cmd *cobra.Command, fn func(*cobra.Command)) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(c *cobra.Command, args []string) error {
			fn(c)
			return run(c, args)
		}
	}
	for _, c := range cmd.Commands() {
		onRun(c, fn)
	}
}
