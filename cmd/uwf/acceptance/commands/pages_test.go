package commands

import (
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const top = "../../../.."

// TestPagesCiteWhatIsThere: the tests and the files that pages for people name are there.
// SECURITY.md names a test for what it claims.
func TestPagesCiteWhatIsThere(t *testing.T) {
	tests := testNames(t)
	pages, err := filepath.Glob(top + "/docs/*.md")
	more, _ := filepath.Glob(top + "/docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"SECURITY.md", "CONTRIBUTING.md", "README.md", "llms.txt"} {
		pages = append(pages, filepath.Join(top, name))
	}
	test := regexp.MustCompile(`\b((?:Test|Fuzz|Benchmark)[A-Z]\w+)\b`)
	file := regexp.MustCompile("`((?:cmd|engine|gitcas|agents|internal|docs|examples|\\.ci|\\.github)(?:/[\\w.-]+)+)/?`")
	for _, page := range append(pages, more...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		named := test.FindAllSubmatch(text, -1)
		for _, m := range named {
			if !tests[string(m[1])] {
				t.Errorf("%s names %s, which is not there", filepath.Base(page), m[1])
			}
		}
		if filepath.Base(page) == "SECURITY.md" && len(named) < 30 {
			t.Errorf("SECURITY.md names only %d tests", len(named))
		}
		for _, m := range file.FindAllSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(top, string(m[1]))); err != nil {
				t.Errorf("%s names %s, which is not there", filepath.Base(page), m[1])
			}
		}
	}
}

// testNames are the names of all tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	fn := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range fn.FindAllSubmatch(text, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// TestPackagesPage: docs/packages.md has the first sentence of each package's documentation.
func TestPackagesPage(t *testing.T) {
	said := map[string]string{}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "testdata" || name == ".git" || name == ".ci") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(top, filepath.Dir(path))
		if says := new(doc.Package).Synopsis(file.Doc.Text()); says != "" || said[folder] == "" {
			said[filepath.ToSlash(folder)] = says
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	const command = "go test ./cmd/uwf/acceptance/commands -run TestPackagesPage -update-schemas"
	var b strings.Builder
	b.WriteString("# All packages\n\nWhat each is for, in the first words of its documentation (`go doc ./engine/lease`); `" +
		strings.Replace(command, "test ", "test\n", 1) +
		"` writes this page.\n[design](design.md) draws how they stand upon each other.\n")
	last := ""
	for _, folder := range slices.Sorted(maps.Keys(said)) {
		if said[folder] == "" {
			t.Errorf("package %s has no documentation", folder)
		}
		if unit, _, _ := strings.Cut(folder, "/"); unit != last {
			last = unit
			fmt.Fprintf(&b, "\n## %s\n\n", unit)
		}
		what := regexp.MustCompile(`^(Package|Command) \w+ `).ReplaceAllString(said[folder], "")
		fmt.Fprintf(&b, "- `%s` %s\n", folder, what)
	}
	page := filepath.Join(top, "docs", "packages.md")
	if *updateSchemas {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	is, want := strings.Split(string(old), "\n"), strings.Split(b.String(), "\n")
	for i := range max(len(is), len(want)) {
		has, says := lineAt(is, i), lineAt(want, i)
		if has != says {
			t.Fatalf("docs/packages.md is out of date; write it with\n\t%s\nIts line %d is\n\t%s\nand the packages say\n\t%s", command, i+1, has, says)
		}
	}
}

// lineAt is a line, or says that the text has ended.
func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}
