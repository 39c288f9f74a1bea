package statefile

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// MaxHistoryFile is the largest history file that is read, in bytes: all threads
// that ended on one day.
const MaxHistoryFile = 32 << 20

const (
	maxSteps    = 100_000
	maxNoteText = 16 << 10
)

// EncodeEnded writes one history line, with its line break. The error matches
// ErrUnstorable.
func EncodeEnded(e Ended) ([]byte, error) {
	if err := e.checkEnded(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnstorable, err)
	}
	if e.Steps == nil {
		e.Steps = []node.Hash{} // written as [], never as null
	}
	line, err := text.EncodeJSON(e)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnstorable, err)
	}
	return append(line, '\n'), nil
}

// ParseHistory reads a history file and gives each line to visit, the last line
// first. An error of visit ends it and is returned; others name the line and
// match ErrMalformed.
func ParseHistory(data []byte, visit func(Ended) error) error {
	if len(data) > MaxHistoryFile {
		return fmt.Errorf("%w: %d bytes, more than %d", ErrMalformed, len(data), MaxHistoryFile)
	}
	for line := bytes.Count(data, []byte{'\n'}) + 1; len(data) > 0; line-- {
		data = bytes.TrimSuffix(data, []byte{'\n'})
		start := bytes.LastIndexByte(data, '\n') + 1
		e, err := parseEnded(data[start:])
		if err != nil {
			return newMalformedError(max(line-1, 1), "%v", err)
		}
		if err := visit(e); err != nil {
			return err
		}
		data = data[:start]
	}
	return nil
}

func parseEnded(line []byte) (Ended, error) {
	var e Ended
	if err := json.Unmarshal(line, &e); err != nil {
		return Ended{}, err
	}
	return e, e.checkEnded()
}

func (e *Ended) checkEnded() error {
	if err := e.Thread.Check(); err != nil {
		return err
	}
	switch {
	case !e.Head.Valid():
		return fmt.Errorf("head: %.40q is no hash", e.Head)
	case e.Workflow != "" && !e.Workflow.Valid():
		return fmt.Errorf("workflow: %.40q is no hash", e.Workflow)
	case e.Reason != ReasonEnded && e.Reason != ReasonCancelled && e.Reason != ReasonRemoved:
		return fmt.Errorf("reason: %.40q is none of ended, cancelled, removed", e.Reason)
	case !commitOK(e.Commit):
		return fmt.Errorf("commit: %.60q is no commit id", e.Commit)
	case e.Work.Commit != "" && !commitOK(e.Work.Commit):
		return fmt.Errorf("work.commit: %.60q is no commit id", e.Work.Commit)
	case e.Work.Branch != "" && !branchOK(e.Work.Branch):
		return fmt.Errorf("work.branch: %.60q is no branch name", e.Work.Branch)
	case !textOK(e.Key, maxKeyText) || !textOK(e.Note, maxNoteText):
		return fmt.Errorf("key or note: too long")
	case !textOK(e.Title, maxTitleText) || !textOK(e.Result, maxKeyText):
		return fmt.Errorf("title or result: too long")
	case e.By != nil && e.By.Validate() != nil, e.ClosedBy != nil && e.ClosedBy.Validate() != nil:
		return fmt.Errorf("by or closedBy: nobody who can have done it")
	case e.Used != nil && (e.Used.Steps < 0 || e.Used.Tokens < 0 || e.Used.DurationMs < 0 || !amountOK(e.Used.CostUSD)):
		return fmt.Errorf("used: out of range")
	case e.Spent != nil && (!monthOK(e.Spent.Month) || e.Spent.Tokens < 0 || e.Spent.TokensBefore < 0 || !amountOK(e.Spent.CostUSD) || !amountOK(e.Spent.CostBefore)):
		return fmt.Errorf("spent: no month, or out of range")
	case len(e.Usage) > maxSteps || slices.ContainsFunc(e.Usage, RoleUsage.outOfRange):
		return fmt.Errorf("usage: out of range")
	case len(e.Steps) > maxSteps:
		return fmt.Errorf("%d steps, more than %d", len(e.Steps), maxSteps)
	case e.CompletedAt < 0 || e.CompletedAt > maxMillis || e.PR < 0:
		return fmt.Errorf("completedAt or pr: out of range")
	}
	for _, h := range e.Steps {
		if !h.Valid() {
			return fmt.Errorf("steps: %.40q is no hash", h)
		}
	}
	return nil
}

func (u RoleUsage) outOfRange() bool {
	return !textOK(u.Role, maxKeyText) || !textOK(u.Model, maxKeyText) || u.Steps < 0 || u.TokensIn < 0 || u.TokensOut < 0 || !amountOK(u.CostUSD)
}

// maxMillis is the end of year 9999: later dates have no folder.
const maxMillis = 253402300799999

func textOK(s string, maxLen int) bool { return len(s) <= maxLen && utf8.ValidString(s) }

func amountOK(n float64) bool { return n >= 0 && n <= maxAmount }

// maxAmount is more than anyone has, in US dollars.
const maxAmount = 1e15
