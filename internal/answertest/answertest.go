// Package answertest reads recorded answers of other engines, and holds docs/workflows.md against
// the differences that tests know of.
package answertest

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// ReadJSON reads a file of JSON.
func ReadJSON(t *testing.T, file string, into any) {
	t.Helper()

	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// CheckDecisions wants a case for each row of a table in docs/workflows.md, and a row
// for each decision. The test runs three folders below the root.
func CheckDecisions(t *testing.T, table string, decided map[string]string, isKnown func(source string) bool) {
	t.Helper()

	data, err := os.ReadFile("../../../docs/workflows.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(data), "| in "+table+" |")
	rows, _, _ = strings.Cut(rows, "\n\n")

	said := map[string]bool{}
	for _, line := range strings.Split(rows, "\n")[2:] {
		said[strings.TrimSpace(strings.Split(line, "|")[1])] = true
	}

	used := map[string]bool{}
	for source, row := range decided {
		used[row] = true
		if !said[row] || !isKnown(source) {
			t.Errorf("%s: no such case, or no row %q in docs/workflows.md", source, row)
		}
	}

	if len(used) != len(said) {
		t.Errorf("docs/workflows.md has %d rows about %s, and %d are tried", len(said), table, len(used))
	}
}
