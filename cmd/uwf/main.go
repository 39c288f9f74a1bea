// Command uwf runs workflows of AI agents one step at a time, with git as the
// database. See the README.
package main

import (
	"os"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
)

// release is the version that a release is built with, commit what it was built from,
// set by the linker; empty in other builds.
var release, commit string

func main() {
	os.Exit(cli.Main(func() (*app.Factory, error) {
		f, err := app.New()
		if f != nil {
			f.Release, f.Commit = release, commit
		}
		return f, err
	}))
}
