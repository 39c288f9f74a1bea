// Package processes proves what only processes can prove: that kills, signals, races,
// bad agents, bad servers and damage lose nothing, and that no secret gets out.
package processes

import (
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, map[string]func(){"uwf-logged": loggedMain}) }
