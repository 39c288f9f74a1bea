// Package forge runs `uwf action` as a forge would: events become jobs, jobs dispatch
// jobs, against a fake GitHub and a fake Gitea over a real repository.
package forge

import (
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, nil) }

// maxJobs bounds how many jobs may come of one event.
const maxJobs = 60

// jobDeadline ends a process that hangs, and so the test.
const jobDeadline = 5 * time.Minute
