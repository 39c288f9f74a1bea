package fsck

import (
	"bytes"
	"testing"

	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/gitcas/view"
)

// TestUnreadIsTold: a store of which the server does not give all is not simply sound.
func TestUnreadIsTold(t *testing.T) {
	var out bytes.Buffer
	r := result{OK: true, Report: view.Report{Nodes: 40, Threads: 2, Ended: 1, Unread: []view.Problem{{Path: "commit 1", Why: "not found"}}}}
	w := output.Printer{Out: &out}.Text()
	r.writeText(w)
	_ = w.Flush()

	const want = "commit 1: not found\nsound; not checked, as the server doesn't give it: 1; checked nodes: 40, live threads: 2, ended: 1\n"
	if out.String() != want {
		t.Errorf("it says %q, want %q", out.String(), want)
	}
}
