package step

import (
	"os"
	"testing"

	"github.com/united-workforce/uwf/internal/testmem"
)

func TestMain(m *testing.M) { os.Exit(testmem.Spend(m).Run()) }
