// Package testmode says which of the expensive tests a run asked for. It is for
// tests alone; nothing that ships imports it.
package testmode

import (
	"os"
	"strings"
	"testing"
)

// Variable names the words, separated by commas, that a run of the tests is asked
// for besides what it always does: UWF_TEST=processes go test ./...
const Variable = "UWF_TEST"

const processes = "processes"

// Processes skips a test that proves processes (kills, crowds, races, many threads)
// unless UWF_TEST asks for it. Each of these has a small one of its kind in the
// default run.
func Processes(tb testing.TB) {
	tb.Helper()
	if !HasProcesses() {
		tb.Skipf("runs processes at length: set %s=%s", Variable, processes)
	}
}

// HasProcesses reports whether UWF_TEST asks for what proves processes, for a test
// that does less of the same without it.
func HasProcesses() bool { return holds(os.Getenv(Variable), processes) }

func holds(words, wanted string) bool {
	for word := range strings.SplitSeq(words, ",") {
		if strings.TrimSpace(word) == wanted {
			return true
		}
	}
	return false
}
