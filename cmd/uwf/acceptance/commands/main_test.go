// Package commands has the acceptance tests of every command alike: its help and
// examples, the schema of its JSON, what it prints on terminals, and what it makes of
// hostile texts.
package commands

import (
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, nil) }
