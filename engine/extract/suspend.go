package extract

import (
	"strings"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/internal/text"
)

// maxReason is how much of a body becomes the reason where none is given, in bytes.
const maxReason = 4 << 10

// Suspension reads an answer that asks for a person: the status $SUSPEND and a
// reason. asks is false where the answer says something else, or can't be read. A
// reason that is missing is taken from the text under the frontmatter; without
// that too, the error says so. The Result's Output is {$status, reason}.
func Suspension(answer string) (r Result, asks bool, err error) {
	field := map[string]any{"type": "string"}
	r, unread := Frontmatter(answer, map[string]any{
		"type":       "object",
		"properties": map[string]any{"$status": field, "status": field, "reason": field},
	})
	asks = unread == nil && workflow.AsksForPerson(r.Output)
	if !asks { // nor is an answer that can't be read a question
		return Result{}, false, nil
	}
	reason, _ := r.Output["reason"].(string)
	if strings.TrimSpace(reason) == "" {
		reason = text.Cut(r.Body, maxReason)
	}
	if strings.TrimSpace(reason) == "" {
		return Result{}, true, &OutputError{
			Reason: ErrInvalid, Detail: "$status is $SUSPEND, but the field reason, which says what you need to know, is missing",
		}
	}
	r.Output, r.Status = map[string]any{"$status": workflow.Suspend, "reason": reason}, workflow.Suspend
	return r, true, nil
}
