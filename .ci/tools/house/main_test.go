package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module is a module in which each value is known.
var module = map[string]string{
	"go.mod":    "module example.org/m\n\ngo 1.26\n",
	"README.md": "# m\n\n## What it promises\n\n1. One.\n2. Two,\n   as said.\n\n## More\n\n1. None.\n",
	"cmd/uwf/acceptance/commands/testdata/surface.txt": "m\nm --flag\n",
	"main.go": "package main\n\nimport \"example.org/m/used\"\n\n// main runs.\nfunc main() { used.Do() }\n",
	"used/used.go": `// Package used is used.
package used

type doer interface{ act() }

type T struct{}

func (T) act()          {}
func (*T) look()        {} // a comment behind code
func (t *T) findAll()   {}
func (T) Do()           {}
func Do()               { _ = ` + "`a\n\nb`" + ` }

/*
Two lines
of words.
*/
`,
	"used/used_test.go":            "package used\n\nfunc TestDo(t int) {}\nfunc Testless() {}\nfunc FuzzDo() {}\nfunc TestMain() {}\n",
	"used/testdata/script/a.txtar": "exec m\n",
	"fake/fake.go":                 "package fake\n\nfunc one() {}\n",
	"tools/go.mod":                 "module example.org/tools\n",
	"cmd/uwf-import/main.go":       "package main\n\nfunc main() {}\n",
	"tools/main.go":                "package main\n\nfunc a() {}\n",
}

func writeModule(t *testing.T) string {
	root := t.TempDir()
	for name, text := range module {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestMeasure(t *testing.T) {
	h, err := measure(writeModule(t))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"code": 3 + 10, "import": 2, "comments": 6.0 / 15, "one-word": 50, "shared": 1, "receiver": 4, "package": 10,
		"tests": 3, "surface": 2, "promises": 2,
	}
	for name, got := range h.values() {
		if got != want[name] {
			t.Errorf("%s is %v, want %v", name, got, want[name])
		}
	}
	if len(want) != len(valueNames()) {
		t.Errorf("%d values are checked, and there are %d", len(want), len(valueNames()))
	}
}

func TestBars(t *testing.T) {
	root := writeModule(t)
	file := filepath.Join(t.TempDir(), "bars.txt")
	for bars, says := range map[string]string{
		"code <= 13":                            "",
		"code <= 12":                            "1 of the bars",
		"code <= 13 # a comment":                "",
		"code <= 13 5":                          "not a name",
		"tests >= 4":                            "1 of the bars",
		"receiver <= 2\ntests >= 4\ncode <= 13": "2 of the bars",
		"":                                      "holds no bars",
		"# nothing":                             "holds no bars",
		"code < 12":                             "not a name",
		"code <= many":                          "not a name",
		"code <= 1 x":                           "not a name",
		"lines <= 1":                            "nothing is measured",
	} {
		if err := os.WriteFile(file, []byte(bars), 0o644); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err := run(root, file, 3, &out)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: %v, want %q\n%s", bars, err, says, out.String())
		}
	}
}
