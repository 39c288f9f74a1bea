package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/program"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// importer is the program that moves people over. It is needed once, and reads databases: so
// it is not in this one.
const importer = "github.com/united-workforce/uwf/cmd/uwf-import"

// newCmdImport makes `uwf import`, which names that program.
func newCmdImport(f *app.Factory) *cobra.Command {
	install := "go install " + importer + "@" + versionToInstall(f)
	return &cobra.Command{
		Use:   "import [PATH...]",
		Short: "Say what moves threads and workflows of the TypeScript uwf over",
		Long: `Threads and workflows of the TypeScript uwf are moved over by a program of its own,
uwf-import, which is needed once. It lies beside uwf in each release
(https://github.com/united-workforce/uwf/releases), and with Go it is installed by

  ` + install + `

Then, in the repository that the threads are for:

  uwf-import "$HOME/.ocas" "$HOME/.uwf" --dry-run

says what comes over. It needs no settings: what uwf can take over of a config.yaml of the
TypeScript uwf is written to a file to look at, with --settings FILE.`,
		Example:            "  uwf import",
		DisableFlagParsing: true, // they are that program's
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
				return cmd.Help()
			}
			return app.Usagef("what moves threads over is a program of its own: get it with %s, or from the release beside uwf, and type: uwf-import %s", install, strings.Join(lists.Map(args, text.ShellWord), " "))
		},
	}
}

// versionToInstall is that of this binary, where Go can find it by that.
func versionToInstall(f *app.Factory) string {
	if v := program.ReadBuild(f.Release, f.Commit).Version; strings.HasPrefix(v, "v") && !strings.Contains(v, "+") {
		return v
	}
	return "latest"
}
