// Package agents is the suite that every agent CLI has to pass, run by uwf as people run it:
// the real programs where UWF_AGENTS_BIN names the folder that they are in, as
// .ci/agents/install prints it, else the fakes of package agentclitest. The model is package
// modeltest's.
package agents

import (
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/internal/agentclitest"
)

func TestMain(m *testing.M) { clitest.Main(m, agentclitest.Programs()) }
