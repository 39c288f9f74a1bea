package artifact

import (
	"os"
	"testing"

	"github.com/united-workforce/uwf/internal/testmode"
)

func TestMain(m *testing.M) { os.Exit(testmode.InMemory(m).Run()) }
