// Package cli is the command line of uwf as a whole: all commands under their root,
// and one run of it, from its arguments to its exit code. What a command does is in
// the command's own package.
package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/internal/program"
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
	ctx, stop := program.EndOnSignal(context.Background(), f.IO)
	defer stop()
	// Agents run as the same user: what is in our environment is not for them.
	if err := agents.Conceal(); err != nil {
		f.Exposed = err
	}
	return Execute(ctx, f, os.Args[1:])
}

// Execute runs one command line and reports its error on stderr; it returns the exit
// code. Nothing of it is the process's own but what the Factory gives it.
func Execute(ctx context.Context, f *app.Factory, args []string) int {
	return program.Execute(ctx, f, NewRoot(f), args)
}
