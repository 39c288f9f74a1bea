package dialect

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Event is one server-sent event.
type Event struct {
	Raw  []byte // as it came, with the empty line that ends it
	Name string // of its "event:" line; may be empty
	Data []byte // of its "data:" lines, joined by newlines; nil for a comment
}

// ErrEventTooLarge is returned for an event beyond the reader's limit.
var ErrEventTooLarge = errors.New("server-sent event is too large")

// EventReader splits a stream into events. Lines end with LF or CRLF (no model
// API uses the lone CR that the standard allows too).
type EventReader struct {
	br    *bufio.Reader
	max   int
	first bool
}

// NewEventReader reads events of at most limit bytes each from r.
func NewEventReader(r io.Reader, limit int) *EventReader {
	return &EventReader{br: bufio.NewReader(r), max: limit, first: true}
}

// Next returns the next event, comments among them, and io.EOF at the end. An
// event without its closing empty line at the end of the stream is still
// returned: some servers leave that line out after their last event.
func (r *EventReader) Next() (Event, error) {
	var ev Event
	hasData := false
	for {
		line, err := r.readLine(len(ev.Raw))
		if err != nil && !errors.Is(err, io.EOF) {
			return Event{}, err
		}
		ev.Raw = append(ev.Raw, line...)
		text := bytes.TrimRight(line, "\r\n")
		if r.first {
			text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
			r.first = false
		}
		switch name, value := splitField(text); name {
		case "event":
			ev.Name = string(value)
		case "data":
			if hasData {
				ev.Data = append(ev.Data, '\n')
			}
			ev.Data = append(ev.Data, value...)
			hasData = true
		}
		if err != nil {
			if len(bytes.TrimSpace(ev.Raw)) == 0 {
				return Event{}, io.EOF
			}
			return ev, nil
		}
		if len(text) == 0 && len(bytes.TrimSpace(ev.Raw)) > 0 {
			return ev, nil
		}
	}
}

// readLine reads one line with its end, or what is left of the stream and io.EOF.
func (r *EventReader) readLine(have int) ([]byte, error) {
	var out []byte
	for {
		part, err := r.br.ReadSlice('\n')
		out = append(out, part...)
		if have+len(out) > r.max {
			return nil, fmt.Errorf("%w (more than %d bytes)", ErrEventTooLarge, r.max)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return out, err
	}
}

// splitField splits "name: value"; one space after the colon belongs to the colon. A
// comment has the empty name.
func splitField(line []byte) (string, []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	return string(name), bytes.TrimPrefix(value, []byte(" "))
}

// writeEvent appends one event to buf; without a name the "event:" line is left out.
func writeEvent(buf *bytes.Buffer, name string, v any) {
	if name != "" {
		fmt.Fprintf(buf, "event: %s\n", name)
	}
	fmt.Fprintf(buf, "data: %s\n\n", writeJSON(v))
}
