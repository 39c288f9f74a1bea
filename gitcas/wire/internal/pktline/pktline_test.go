package pktline

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
)

func TestReader(t *testing.T) {
	p := NewReader(strings.NewReader("0006a\n00010004000200000005b"), 100)
	for i, want := range []struct {
		kind Kind
		line string
	}{{Data, "a"}, {Delim, ""}, {Data, ""}, {End, ""}, {Flush, ""}, {Data, "b"}} {
		kind, line, err := p.Line()
		if err != nil || kind != want.kind || line != want.line {
			t.Errorf("packet %d: kind %d, %q, %v", i, kind, line, err)
		}
	}
	if _, _, err := p.Line(); !errors.Is(err, fault.ErrEarly) || errors.Is(err, fault.ErrNothing) {
		t.Errorf("after the last packet: %v", err)
	}
}

func TestReaderRefuses(t *testing.T) {
	for in, kind := range map[string]error{
		"": fault.ErrNothing, "0": fault.ErrEarly, "0006a": fault.ErrEarly, "0003": fault.ErrUnreadable, "fff1": fault.ErrUnreadable,
		"-001": fault.ErrUnreadable, "00 6": fault.ErrUnreadable, "HTTP": fault.ErrUnreadable, "0068" + strings.Repeat("x", 100): fault.ErrUnreadable,
	} {
		if _, _, err := NewReader(strings.NewReader(in), 100).Next(); !errors.Is(err, kind) {
			t.Errorf("%q: %v, want %v", in, err, kind)
		}
	}
	_, _, err := NewReader(strings.NewReader("0019ERR access denied\x1b[2J"), 100).Next()
	var said *fault.ServerError
	if !errors.As(err, &said) || !errors.Is(err, fault.ErrDenied) || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("an ERR packet: %v", err)
	}
}

func TestBands(t *testing.T) {
	in := Append(nil, "\x02working\n")
	in = Append(in, "\x01one ")
	in = Append(in, "\x02done\n")
	in = append(Append(in, "\x01two"), "0000more"...)
	b := NewBands(NewReader(bytes.NewReader(in), 1000))
	data, err := io.ReadAll(b)
	if err != nil || string(data) != "one two" || b.Text() != "working\ndone\n" {
		t.Errorf("%q, %q, %v", data, b.Text(), err)
	}
	for s, kind := range map[string]error{
		"\x03fatal: not a git repository": fault.ErrNotFound, "\x04x": fault.ErrUnreadable, "": fault.ErrUnreadable, "ERR access denied": fault.ErrDenied,
	} {
		if _, err := io.ReadAll(NewBands(NewReader(bytes.NewReader(Append(nil, s)), 1000))); !errors.Is(err, kind) {
			t.Errorf("%q: %v, want %v", s, err, kind)
		}
	}
}

// TestWhyItAborted: git names the reason beside the answer, and then that it aborts.
func TestWhyItAborted(t *testing.T) {
	in := Append(Append(nil, "\x02fatal: could not fetch d14c06f8 from promisor remote\n"), "\x03aborting due to possible repository corruption on the remote side.\x00")
	_, err := io.ReadAll(NewBands(NewReader(bytes.NewReader(in), 1000)))
	const want = "fatal: could not fetch d14c06f8 from promisor remote aborting due to possible repository corruption on the remote side."
	if !errors.Is(err, fault.ErrPromised) || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// TestTail: what is kept of a server's text is its end, and not more.
func TestTail(t *testing.T) {
	var b []byte
	for range 5000 {
		b = AppendTail(b, []byte("0123456789"))
		if len(b) > 2*maxText {
			t.Fatalf("%d bytes are kept", len(b))
		}
	}
	if len(b) < maxText || !bytes.HasSuffix(b, []byte("0123456789")) {
		t.Errorf("%d bytes are kept", len(b))
	}
}

func FuzzPktLines(f *testing.F) {
	f.Add([]byte("0006a\n0000"))
	f.Add([]byte("0001000200030004fff0ffff"))
	f.Add(Append(nil, "ERR no\x1b[2J"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := NewReader(bytes.NewReader(b), 1<<20)
		for {
			kind, pkt, err := p.Next()
			if err != nil {
				if kind := fault.KindOf(err); !errors.Is(err, kind) {
					t.Errorf("%v is no %v", err, kind)
				}
				return
			}
			if kind != Data && len(pkt) > 0 {
				t.Fatalf("a separator with %d bytes", len(pkt))
			}
		}
	})
}
