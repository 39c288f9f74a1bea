package commands

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
)

// TestSurface: every command and flag is written down, so that none goes or comes unseen.
func TestSurface(t *testing.T) {
	const file = "testdata/surface.txt"
	var lines []string
	for _, cmd := range allCommands(cli.NewRoot(app.NewAt(".", nil, app.IO{}))) {
		lines = append(lines, describeFlags(cmd)...)
	}
	got := strings.Join(lines, "\n") + "\n"
	if *updateSchemas {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("commands and flags are not those of %s; where that is meant, run this with -update-schemas:\n%s", file, got)
	}
}

// describeFlags is a command and its own flags, a line each.
func describeFlags(cmd *cobra.Command) []string {
	flags := []string{cmd.CommandPath()}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			flags = append(flags, cmd.CommandPath()+" --"+f.Name)
		}
	})
	slices.Sort(flags[1:])
	return flags
}
