// Package moving has the acceptance tests of uwf-import: what the TypeScript uwf left is moved
// over, and goes on here.
package moving

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, nil) }

// buildImport puts uwf-import on PATH.
func buildImport(t *testing.T) {
	t.Helper()
	// A result in go's cache counts for as long as the files are the same that the test looked at.
	err := filepath.WalkDir("../../../uwf-import", func(name string, _ fs.DirEntry, err error) error {
		_, there := os.Stat(name)
		return errors.Join(err, there)
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "uwf-import"), "github.com/united-workforce/uwf/cmd/uwf-import").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestScripts(t *testing.T) {
	buildImport(t)
	clitest.RunScripts(t)
}
