package run

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	engine "github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/internal/outage"
)

// TestTellAside: what is told while an agent works has a line of its own on a terminal.
func TestTellAside(t *testing.T) {
	var b bytes.Buffer
	p := &progress{notes: output.Printer{Out: &b}.Text(), raw: &b, now: func() time.Time { return time.Unix(0, 0) }}
	p.showEvent(engine.Event{Kind: "agent", Step: 1, Role: "dev", Agent: "mock", Text: "Begin."})
	p.showWaiting(outage.Wait{Err: errors.New("push: refused"), For: 2 * time.Second, Until: time.Unix(60, 0)})
	p.showEvent(engine.Event{Kind: "notice", Text: "it moved"})
	const live = "\r\x1b[Kstep 1 dev works (mock): Begin.  0s  "
	want := live + "\r\x1b[Kwaiting: push: refused; trying again in 2s, until 00:01:00 UTC\n" + live + "\r\x1b[Knote: it moved\n" + live
	if got := b.String(); got != want {
		t.Errorf("it shows %q, want %q", got, want)
	}
}
