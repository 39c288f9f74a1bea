package liquid

import "time"

// MaxTime is the limit by the clock, which applies where those by turns and bytes do
// not.
const MaxTime = maxTime

// SetClock lets a test say what time it is.
func (t *Template) SetClock(now func() time.Time) { t.now = now }

// Unread is a template that Parse has not looked at.
func Unread(text string) *Template { return &Template{text: text, now: time.Now} }

// Compile asks the library alone.
func Compile(text string) error {
	_, err := compileTemplate(text, &budget{})
	return err
}
