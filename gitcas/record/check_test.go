package record

import (
	"strings"
	"testing"
	"time"
)

func TestDescribeCheck(t *testing.T) {
	for _, c := range []struct {
		check Check
		want  string
	}{
		{Check{Name: "test", Status: CheckPassed, DurationMs: 3200}, "test passed, 3.2s"},
		{Check{Name: "test", Status: CheckPassed, DurationMs: 99}, "test passed"},
		{Check{Name: "test", Status: CheckPassed, DurationMs: 100}, "test passed, 100ms"},
		{Check{Name: "test", Status: CheckPassed, ExitCode: 3}, "test passed"},
		{Check{Name: "test", Status: CheckFailed, ExitCode: 1, DurationMs: 61_000, Note: "on main, too"}, "test failed, exit code 1, 1m1s: on main, too"},
		{Check{Name: "test", Status: CheckFailed, Note: "it ran too long"}, "test failed: it ran too long"},
		{Check{Name: "lint", Status: CheckSkipped, Note: "there is no command"}, "lint skipped: there is no command"},
		{Check{Name: "a\nb", Status: CheckFailed, Note: "x\r\n\ty\u2028\x1b[31m"}, "a b failed: x y\ufffd\ufffd[31m"},
		{Check{}, ""},
	} {
		if got := c.check.Describe(); got != c.want && strings.TrimSpace(got) != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := (Check{Name: "test", Status: CheckFailed, Note: strings.Repeat("ü", 5_000)}).Describe(); len(got) > 500 || !strings.HasSuffix(got, "ü…") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

// TestChecksRoundTrip: the results of a step are read as they were written, and no others are.
func TestChecksRoundTrip(t *testing.T) {
	s := Step{Start: "0000000000001", Role: "a", Output: "0000000000002", Detail: "0000000000003", Agent: "m", Cwd: ".", Checks: []Check{
		{Name: "test", Status: CheckFailed, ExitCode: 2, DurationMs: 1200, Note: "n", Output: "a\nb"}, {Name: "lint", Status: CheckPassed}, {Name: "e2e", Status: CheckSkipped, Note: "none"},
	}}
	n, _, err := s.Node(time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseStep(n)
	if err != nil || len(got.Checks) != 3 || got.Checks[0] != s.Checks[0] || got.Checks[1] != s.Checks[1] || got.Checks[2] != s.Checks[2] {
		t.Errorf("%+v %v", got.Checks, err)
	}
	s.Checks[0].Status = "great"
	if n, _, err := s.Node(time.UnixMilli(1)); err == nil {
		if got, err := ParseStep(n); err == nil {
			t.Errorf("%+v", got.Checks)
		}
	}
}
