// Package program is one run of a program: from its arguments, environment and streams to
// its exit code. Which commands it has, others say.
package program

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/deadline"
)

// AddOutput gives a root the flags that say how results are printed. printsJSON tells of each
// command whether its result can be printed as JSON.
func AddOutput(f *app.Factory, root *cobra.Command, printsJSON func(*cobra.Command) bool) {
	var query string
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if query != "" && !printsJSON(cmd) {
			return app.Usagef("%s prints no JSON: leave --jq out", cmd.CommandPath())
		}
		return f.ChooseOutput(query)
	}
	root.SilenceUsage, root.SilenceErrors = true, true
	root.Flags().BoolP("version", "V", false, "print the version")
	root.SetVersionTemplate("{{.Version}}\n")
	root.PersistentFlags().StringVar(&f.Format, "format", "", "print results as `FORMAT`: json, yaml or text (default: text on a terminal, else json)")
	app.CompleteFlag(root, "format", "json", "yaml", "text")
	root.PersistentFlags().StringVar(&query, "jq", "", "print what this jq `EXPRESSION` makes of the JSON result: texts as they are, one value a line")
	root.SetIn(f.IO.In)
	root.SetOut(f.IO.Out)
	root.SetErr(f.IO.Err)
}

// EndOnSignal ends a context where this process is asked to end. Ctrl-C at a terminal is
// a person's word: the cause is deadline.ErrStopped. Whatever else asks (a CI system, a
// service manager, a script) does so to a job, whose step then failed.
func EndOnSignal(parent context.Context, streams app.IO) (context.Context, func()) {
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
func Execute(ctx context.Context, f *app.Factory, root *cobra.Command, args []string) int {
	var began bool
	start := time.Now()
	f.Stopping = ctx.Done()
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
		f.Notes().Printf("%s: %s\n", root.Name(), strings.TrimRight(f.CleanMessage(msg), "\n"))
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
