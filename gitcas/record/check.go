package record

import (
	"fmt"

	"github.com/united-workforce/uwf/internal/text"
)

// How a check ended.
const (
	CheckPassed  = "passed"
	CheckFailed  = "failed"
	CheckSkipped = "skipped" // it was not run, or could not; its note says why
)

// NoteAllSkipped is the note of a step that changes no file, since nothing that its agent wrote
// could be kept.
const NoteAllSkipped = "the step changes no file: all that its agent wrote is skipped"

// maxDescribed bounds a check's result for people, in bytes: what stands at a note's end, such
// as that tests are missing, is to be seen.
const maxDescribed = 500

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
	return text.Cut(text.Line(line), maxDescribed)
}

// DescribeEnd is how a check that failed ended: "exit code 1".
func (c Check) DescribeEnd() string {
	if c.Note != "" && c.ExitCode <= 0 {
		return c.Note
	}
	return fmt.Sprintf("exit code %d", c.ExitCode)
}
