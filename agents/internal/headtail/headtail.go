// Package headtail keeps the beginning and the end of what a command prints, and stops one
// that prints without end. It never holds more than it keeps.
package headtail

import (
	"fmt"
	"strings"
)

// MaxPrinted is where a command is stopped that prints without end, in bytes.
const MaxPrinted = 64 << 20

// ErrTooMuch is the reason of a command that was stopped because of what it printed.
var ErrTooMuch = fmt.Errorf("it printed more than %d bytes", MaxPrinted)

// Buffer keeps the first and the last Half bytes of what is written to it. A write past
// MaxPrinted fails with ErrTooMuch.
type Buffer struct {
	Half int

	n    int64
	head []byte
	tail []byte
}

func (b *Buffer) Write(p []byte) (int, error) {
	n := len(p)
	if b.n += int64(n); b.n > MaxPrinted {
		return 0, ErrTooMuch
	}
	if room := b.Half - len(b.head); room > 0 {
		room = min(room, len(p))
		b.head = append(b.head, p[:room]...)
		p = p[room:]
	}
	b.tail = append(b.tail, p...)
	if over := len(b.tail) - b.Half; over > 0 {
		b.tail = append(b.tail[:0], b.tail[over:]...)
	}
	return n, nil
}

// String is valid UTF-8 that ends with a line break, or empty. A note stands where
// something was left out.
func (b *Buffer) String() string {
	text := string(b.head)
	if left := b.n - int64(len(b.head)) - int64(len(b.tail)); left > 0 {
		text += fmt.Sprintf("\n[… %d bytes left out …]\n", left)
	}
	text = strings.ToValidUTF8(text+string(b.tail), "\uFFFD")
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}
