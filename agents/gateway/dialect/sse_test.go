package dialect

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func readAll(t testing.TB, stream string, limit int) ([]Event, error) {
	t.Helper()
	r := NewEventReader(strings.NewReader(stream), limit)
	var out []Event
	for {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, ev)
	}
}

func TestEventReader(t *testing.T) {
	type want struct{ name, data string }
	for _, c := range []struct {
		name, stream string
		want         []want
	}{
		{"empty", "", nil},
		{"only empty lines", "\n\n\r\n", nil},
		{"one", "data: a\n\n", []want{{"", "a"}}},
		{"CRLF and a name", "event: x\r\ndata: a\r\n\r\n", []want{{"x", "a"}}},
		{"several data lines", "data: a\ndata:b\ndata:  c\n\n", []want{{"", "a\nb\n c"}}},
		{"comment as a keep-alive", ": OPENROUTER PROCESSING\n\ndata: a\n\n", []want{{"", ""}, {"", "a"}}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []want{{"", "a"}}},
		{"last empty line missing", "data: a\n\ndata: [DONE]", []want{{"", "a"}, {"", "[DONE]"}}},
		{"id and retry are passed over", "id: 1\nretry: 5\ndata: a\n\n", []want{{"", "a"}}},
		{"extra empty lines", "\n\ndata: a\n\n\n\ndata: b\n\n", []want{{"", "a"}, {"", "b"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := readAll(t, c.stream, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(c.want) {
				t.Fatalf("%d events instead of %d: %q", len(got), len(c.want), got)
			}
			for i, w := range c.want {
				if got[i].Name != w.name || string(got[i].Data) != w.data {
					t.Errorf("event %d is %q %q instead of %q", i, got[i].Name, got[i].Data, w)
				}
			}
		})
	}
}

func TestEventReaderRefusesHugeEvents(t *testing.T) {
	for _, stream := range []string{
		"data: " + strings.Repeat("x", 10_000),
		strings.Repeat("data: x\n", 2_000),
	} {
		if _, err := readAll(t, stream, 5000); !errors.Is(err, ErrEventTooLarge) {
			t.Errorf("error %v instead of ErrEventTooLarge", err)
		}
	}
}

func TestEventReaderPassesReadErrorsOn(t *testing.T) {
	broken := errors.New("connection reset")
	r := NewEventReader(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), failing{broken}), 1000)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); !errors.Is(err, broken) {
		t.Errorf("error %v instead of %v", err, broken)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// FuzzEvents: nothing that comes in is lost or changed on its way through, and
// no stream makes the reader or the collectors fail.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: x\r\ndata: {\"a\":1}\r\n\r\n: c\n\ndata: [DONE]\n\n"))
	f.Add([]byte(`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":7,"function":{"arguments":"{"}}]},"finish_reason":"stop"}]}` + "\n\n"))
	f.Add([]byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":-1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"x\"}}\n\n"))
	f.Add([]byte("\xef\xbb\xbfdata\n\n\n\n:"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewEventReader(bytes.NewReader(b), 1<<20)
		var passed []byte
		collectors := []*Collector{NewCollector(Chat), NewCollector(Messages), NewCollector(Responses)}
		for {
			ev, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(bytes.TrimSpace(ev.Raw)) == 0 {
				t.Fatal("an event of nothing")
			}
			passed = append(passed, ev.Raw...)
			for _, c := range collectors {
				c.Add(ev)
				c.AnswerSoFar()
			}
		}
		if !bytes.HasPrefix(b, passed) || len(bytes.TrimSpace(b[len(passed):])) > 0 {
			t.Fatalf("%q passed as %q", b, passed)
		}
	})
}
