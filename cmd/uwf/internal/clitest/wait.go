package clitest

import (
	"testing"
	"time"
)

// hangGuard ends a test that would wait for ever. It judges nothing: what is waited for
// happens, or the test has found that it never does.
const hangGuard = 5 * time.Minute

// WaitUntil waits until something holds.
func WaitUntil(tb testing.TB, holds func() bool) {
	tb.Helper()
	look, late := time.NewTicker(5*time.Millisecond), time.After(hangGuard)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-late:
			tb.Fatal("what was waited for did not happen")
		}
	}
}
