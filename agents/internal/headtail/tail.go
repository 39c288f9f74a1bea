package headtail

import (
	"strings"

	"github.com/united-workforce/uwf/internal/text"
)

// Tail keeps the end of what is written.
type Tail struct {
	Keep int // bytes

	end []byte
}

// Write implements io.Writer. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	if t.end = append(t.end, p...); len(t.end) > 2*t.Keep {
		t.end = append(t.end[:0], t.end[len(t.end)-t.Keep:]...)
	}
	return len(p), nil
}

// String is the end as valid UTF-8, without what a terminal would obey and without blank lines
// around it.
func (t *Tail) String() string {
	return strings.TrimSpace(text.Lines(strings.ToValidUTF8(string(t.end[max(0, len(t.end)-t.Keep):]), "")))
}
