package thread

import (
	"io"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/internal/app"
)

// TestExportToTerminal: what agents wrote never gets to a terminal as it is.
func TestExportToTerminal(t *testing.T) {
	f := app.NewAt(t.TempDir(), nil, app.IO{Out: io.Discard, Err: io.Discard, OutTTY: true})
	err := exportRun(t.Context(), &ExportOptions{Factory: f, Threads: []string{"@latest"}, File: "-"})
	if app.ExitCodeOf(err) != app.CodeUsage || !strings.Contains(err.Error(), "no text for a terminal") {
		t.Errorf("%v", err)
	}
}
