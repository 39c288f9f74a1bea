// Package settings has the acceptance tests of settings and set-up: configuration, init, doctor, and the commands' own help.
package settings

import (
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, nil) }

func TestScripts(t *testing.T) { clitest.RunScripts(t) }
