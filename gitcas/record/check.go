package record

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/internal/text"
)

// How a check ended.
const (
	CheckPassed  = "passed"
	CheckFailed  = "failed"
	CheckSkipped = "skipped" // it was not run; its note says why
)

// Describe is a check's result for people, on one line: "test failed, exit code 1, 3.2s: …".
func (c Check) Describe() string {
	line := c.Name + " " + c.Status
	if c.Status == CheckFailed && c.ExitCode > 0 {
		line += fmt.Sprintf(", exit code %d", c.ExitCode)
	}
	if c.DurationMs >= 100 { // else it took 0s
		line += ", " + text.Took(c.DurationMs)
	}
	if c.Note != "" {
		line += ": " + c.Note
	}
	return text.OneLine(line)
}

// DescribeChecks are the results of several, one after the other; empty: there are none.
func DescribeChecks(all []Check) string {
	lines := make([]string, len(all))
	for i, c := range all {
		lines[i] = c.Describe()
	}
	return strings.Join(lines, "; ")
}
