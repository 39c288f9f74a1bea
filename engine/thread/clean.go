package thread

import (
	"fmt"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// Redactor removes secrets. Every method fails closed: what can't be checked is
// an error, never passed on.
type Redactor interface {
	// Value returns v with secrets replaced in all its strings, and how many.
	Value(v any) (any, int, error)
	// Find lists the secrets that b holds.
	Find(b []byte) ([]redact.Finding, error)
	// AllowsFile says whether a file may hold what looks like a token, and be too large
	// to be looked through.
	AllowsFile(path string) bool
}

// CleanText is a text without secrets, whatever it is.
func CleanText(r Redactor, what, s string) (string, error) {
	clean, _, err := r.Value(s)
	if err != nil {
		return "", fmt.Errorf("check the %s for secrets: %w", what, err)
	}
	s, _ = clean.(string)
	return s, nil
}

// cleanReason is why a person stops a thread, or uwf makes it wait.
func cleanReason(r Redactor, reason string) (string, error) {
	reason, err := CleanText(r, "reason", reason)
	return text.Cut(reason, life.MaxReason), err
}

// cleanWords is what a person says to a thread.
func cleanWords(r Redactor, what, s string) (string, error) {
	s, err := CleanText(r, what, s)
	if err == nil && len(s) > reading.MaxPrompt {
		err = life.Usagef("the %s has %d bytes; at most %d are taken: put long texts on the work branch", what, len(s), reading.MaxPrompt)
	}
	return s, err
}

// redactedError is an error whose text held a secret: of an agent's stderr, say.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }

func (e *redactedError) Unwrap() error { return e.err }

// CleanError takes secrets out of what an error says.
func CleanError(r Redactor, err error) error {
	text, found, rerr := r.Value(err.Error())
	switch {
	case rerr != nil:
		return &redactedError{"the step ended with an error that could not be checked for secrets, so it is not shown: " + rerr.Error(), err}
	case found == 0:
		return err
	}
	clean, _ := text.(string)
	return &redactedError{clean, err}
}

// refuseSecret refuses what holds a secret that is known by its value. One that only
// looks like a secret may be an example.
func refuseSecret(r Redactor, what string, v any) error {
	text, err := node.FormatJSON(v)
	if err != nil {
		return fmt.Errorf("check %s for secrets: %w", what, err)
	}
	found, err := r.Find(text)
	if err != nil {
		return fmt.Errorf("check %s for secrets: %w", what, err)
	}
	for _, f := range found {
		if f.Known {
			return life.Usagef("%s holds a secret (%s); take it out: what is stored can be read by everybody who can read the repository", what, f.Name)
		}
	}
	return nil
}
