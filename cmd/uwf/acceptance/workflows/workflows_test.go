// Package workflows has the acceptance tests of workflow definitions: validating, showing, keeping and running them.
package workflows

import (
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, nil) }

func TestScripts(t *testing.T) { clitest.RunScripts(t) }
