package wire_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/united-workforce/uwf/internal/testmem"
)

// TestMain fails the package when a remote leaves goroutines behind.
func TestMain(m *testing.M) {
	// A server that refused a body leaves its connection half a second to be read.
	goleak.VerifyTestMain(testmem.Spend(m), goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}
