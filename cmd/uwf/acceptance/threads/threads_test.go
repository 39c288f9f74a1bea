// Package threads has the acceptance tests of threads: starting, stepping, steering, listing and reading them.
package threads

import (
	"testing"
	_ "time/tzdata" // of times.txtar; the machine may have none

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, nil) }

func TestScripts(t *testing.T) { clitest.RunScripts(t) }
