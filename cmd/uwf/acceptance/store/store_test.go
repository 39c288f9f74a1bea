// Package store has the acceptance tests of the store: nodes, damage, purging, collecting and importing.
package store

import (
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, nil) }

func TestScripts(t *testing.T) { clitest.RunScripts(t) }
