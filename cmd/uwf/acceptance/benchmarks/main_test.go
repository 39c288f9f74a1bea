// Package benchmarks measures whole commands, as processes, beside native git.
package benchmarks

import (
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/internal/testmode"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){"uwf-measured": measuredMain})
}

func TestBenchmarksStart(t *testing.T) {
	testmode.StartBenchmarks(t, ".")
}
