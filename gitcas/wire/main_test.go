package wire_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/united-workforce/uwf/internal/testmode"
)

// TestMain fails the package when a remote leaves goroutines behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(testmode.InMemory(m)) }
