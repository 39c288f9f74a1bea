package redact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	// context is how much of what was written is remembered, so that a secret whose
	// first characters are out is recognised and the rest kept back; maxContext is
	// the same for a beginning that had to be let out.
	context    = 64
	maxContext = 8 << 10
	// lazy is how much is held before every write is no longer searched at once.
	lazy = 4 << 10
	// maxHeld is the most that is kept back while a secret may still be going on;
	// after that it is replaced unseen.
	maxHeld = 256 << 10
	// maxLine is the longest line that patterns of the options see whole.
	maxLine = 64 << 10
	// unfinished stands for text that was held back for too long to be let through.
	unfinished = "unfinished"
)

// Writer redacts a stream on its way to another writer. A secret is caught
// wherever Write calls divide it: the end of what was written is kept back while
// it may be the beginning of one. It is safe for concurrent use.
type Writer struct {
	mu  sync.Mutex
	s   stream
	err error
}

// ErrClosed is returned by writes to a closed Writer.
var ErrClosed = errors.New("redacting writer is closed")

// NewWriter is a redacting writer in front of w. Close it to get the last bytes.
func (r *Redactor) NewWriter(w io.Writer) *Writer {
	return &Writer{s: stream{r: r, emit: func(text []byte, spans []span) error {
		if _, err := w.Write(replaceSpans(text, spans, span.placeholder)); err != nil {
			return fmt.Errorf("write redacted output: %w", err)
		}
		return nil
	}}}
}

// Write takes all of p, or fails with the error of the writer behind; after an
// error nothing more is written.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = w.s.writeChunk(p)
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// Close writes what is held back. It doesn't close the writer behind.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(w.err, ErrClosed) {
		return nil
	}
	if w.err != nil {
		return w.err
	}
	err := w.s.emitAll()
	w.err, w.s.buf = ErrClosed, nil
	return err
}

// stream searches a text that comes in pieces.
type stream struct {
	r    *Redactor
	sums bool // the spans need their sums
	// emit is given the text, each byte of it once, with what was found in it.
	emit func(text []byte, spans []span) error
	buf  []byte // the context, then what is held
	out  int    // length of the context
	seen int    // length of buf when it was last searched
}

func (s *stream) writeChunk(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), maxHeld)
		s.buf = append(s.buf, p[:n]...)
		p = p[n:]
		if held := len(s.buf) - s.out; held > lazy && len(s.buf)-s.seen < held/8 {
			continue // searching a long beginning again for each few bytes is quadratic
		}
		if err := s.emitSafe(); err != nil {
			return err
		}
	}
	return nil
}

// emitAll emits what is left. Nothing may be written after it.
func (s *stream) emitAll() error {
	if len(s.buf) == s.out {
		return nil
	}
	return s.emit(s.buf[s.out:], s.spansWithin(s.r.findRaw(s.buf, s.sums, nil), len(s.buf)))
}

// emitSafe emits all that can't be part of a secret that goes on.
func (s *stream) emitSafe() error {
	begun := len(s.buf) // where the first secret that may go on begins
	spans := s.r.findRaw(s.buf, s.sums, func(at int) { begun = min(begun, at) })
	hold := begun
	if len(s.r.patterns) > 0 {
		line := bytes.LastIndexByte(s.buf, '\n') + 1
		hold = min(hold, max(line, len(s.buf)-maxLine))
	}
	cut := moveCut(spans, max(hold, s.out))
	if len(s.buf)-max(cut, s.out) > maxHeld {
		// Too much for one secret: what may be the beginning of another goes with it.
		if begun = max(begun, s.out); begun < len(s.buf) {
			spans = mergeSpans(append(spans, span{from: begun, to: len(s.buf), name: unfinished}))
		}
		cut = len(s.buf)
	}
	s.seen = len(s.buf)
	if cut <= s.out {
		return nil
	}
	if err := s.emit(s.buf[s.out:cut], s.spansWithin(spans, cut)); err != nil {
		return err
	}
	keep := max(0, min(cut-context, begun), cut-maxContext)
	s.buf = append(s.buf[:0], s.buf[keep:]...)
	s.out, s.seen = cut-keep, len(s.buf)
	return nil
}

// spansWithin are those of the spans that stand in what is emitted up to cut, by their places
// in that.
func (s *stream) spansWithin(spans []span, cut int) []span {
	var mine []span
	for _, x := range spans {
		x.from = max(x.from, s.out)
		if x.to > x.from && x.to <= cut {
			x.from, x.to = x.from-s.out, x.to-s.out
			mine = append(mine, x)
		}
	}
	return mine
}

// moveCut moves a cut to before the secret that it would divide.
func moveCut(spans []span, cut int) int {
	for i := len(spans) - 1; i >= 0; i-- {
		if spans[i].from < cut && cut < spans[i].to {
			cut = spans[i].from
		}
	}
	return cut
}
