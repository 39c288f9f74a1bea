package initialize

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// toolchains are files of a repository whose tests need what is not in uwf's container.
var toolchains = []string{
	"go.mod", "package.json", "pyproject.toml", "requirements.txt", "setup.py", "Cargo.toml", "pom.xml", "build.gradle", "build.gradle.kts",
	"Gemfile", "composer.json", "mix.exs", "Package.swift", "CMakeLists.txt", "deno.json", "build.sbt", "pubspec.yaml", "global.json",
}

// maxDepth is how many folders down a toolchain is looked for: packages/group/name/part.
const maxDepth = 4

// foreignFolders hold what others made, or what tests read.
var foreignFolders = []string{"node_modules", "vendor", "third_party", "testdata"}

// findToolchains finds them in what git keeps or would: nothing that is ignored. Those nearest
// to the top come first, of a folder's in the order above.
func findToolchains(ctx context.Context, f *app.Factory, root *os.Root) (found []string) {
	args := []string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--full-name", "--"}
	args = append(args, lists.Map(toolchains, func(name string) string { return ":(top,glob)**/" + name })...)
	out, err := app.GitHere(ctx, f, args...)
	if err != nil {
		return nil // jobs work in the container then, and a flag says otherwise
	}
	for name := range strings.SplitSeq(out, "\x00") {
		folders := strings.Split(name, "/")
		folders = folders[:len(folders)-1]
		if len(folders) > maxDepth || slices.ContainsFunc(folders, func(s string) bool { return s[0] == '.' || slices.Contains(foreignFolders, s) }) {
			continue
		}
		if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() { // git lists what was deleted, too
			found = append(found, name)
		}
	}
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), strings.Compare(path.Dir(a), path.Dir(b)),
			cmp.Compare(slices.Index(toolchains, path.Base(a)), slices.Index(toolchains, path.Base(b))))
	})
	return slices.Compact(found)
}

// nameTools says which file decided, and what else there is.
func nameTools(tools []string) string {
	switch n := len(tools); {
	case n == 1:
		return tools[0] + " is here"
	case n <= 3:
		return tools[0] + " is here, and so is " + strings.Join(tools[1:], ", ")
	}
	return fmt.Sprintf("%s is here, and so is %s, and %d more", tools[0], strings.Join(tools[1:3], ", "), len(tools)-3)
}

// testsBelow is the command that runs the tests of the folders that have a toolchain, where
// neither the settings nor a file at the top says how; empty: one does, or none is known.
func testsBelow(root *os.Root, tools []string) string {
	detect := func(folder string) string {
		read := func(name string) ([]byte, bool) {
			info, err := root.Lstat(path.Join(folder, name))
			if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
				return nil, false
			}
			data, err := root.ReadFile(path.Join(folder, name))
			return data, err == nil
		}
		found, _ := checks.Detect("test", checks.Folder{Read: read, List: func() []string { return app.FileNames(root.FS(), folder) }})
		return found.Command
	}
	var settings struct{ Checks map[string]any }
	if data, err := root.ReadFile(".uwf/config.yaml"); err == nil {
		_ = yaml.Unmarshal(data, &settings) // what is wrong in it the checks say
	}
	if _, said := settings.Checks["test"]; said || detect(".") != "" {
		return ""
	}
	var commands, seen []string
	for _, file := range tools {
		folder := path.Dir(file)
		if command := detect(folder); command != "" && !slices.Contains(seen, folder) {
			commands, seen = append(commands, fmt.Sprintf("(cd %s && %s)", text.ShellWord(folder), command)), append(seen, folder)
		}
	}
	return strings.Join(commands, " && ")
}
