// Command uwf-import moves the threads and workflows of the TypeScript uwf over, once:
// uwf-import --help says what it reads.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/internal/program"
	"github.com/united-workforce/uwf/cmd/uwf-import/internal/importer"
)

// release is the version that a release is built with, commit what it was built from,
// set by the linker; empty in other builds.
var release, commit string

func main() { os.Exit(runProgram()) }

func runProgram() int {
	f, err := app.New()
	if err != nil {
		fmt.Fprintf(os.Stderr, "uwf-import: %s\n", output.Clean(err.Error()))
		return 1
	}
	f.Release, f.Commit = release, commit
	ctx, stop := program.EndOnSignal(context.Background(), f.IO)
	defer stop()
	return program.Execute(ctx, f, importer.NewRoot(f), os.Args[1:])
}
