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
	// the same for a beginning that Flush let out.
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
	mu    sync.Mutex
	r     *Redactor
	to    io.Writer
	buf   []byte // the context, then what is held
	out   int    // length of the context
	seen  int    // length of buf when it was last searched
	count int
	err   error
}

// ErrClosed is returned by writes to a closed Writer.
var ErrClosed = errors.New("redacting writer is closed")

// Writer is a redacting writer in front of w. Close it to get the last bytes.
func (r *Redactor) Writer(w io.Writer) *Writer { return &Writer{r: r, to: w} }

// Write takes all of p, or fails with the error of the writer behind; after an
// error nothing more is written.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	for rest := p; len(rest) > 0; {
		n := min(len(rest), maxHeld)
		w.buf = append(w.buf, rest[:n]...)
		rest = rest[n:]
		if held := len(w.buf) - w.out; held > lazy && len(w.buf)-w.seen < held/8 {
			continue // searching a long beginning again for each few bytes is quadratic
		}
		if err := w.drain(false); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Flush writes what is held back although a secret may have begun in it: for a
// stream that has gone quiet. What follows is still recognised as its rest.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	return w.drain(true)
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
	err := w.drain(true)
	w.err, w.buf = ErrClosed, nil
	return err
}

// Count is the number of secrets replaced so far.
func (w *Writer) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// drain writes all that can't be part of a secret that goes on; all: everything.
func (w *Writer) drain(all bool) error {
	begun := len(w.buf) // where the first secret that may go on begins
	spans := w.r.raw(w.buf, func(at int) { begun = min(begun, at) })
	hold := begun
	if len(w.r.patterns) > 0 {
		line := bytes.LastIndexByte(w.buf, '\n') + 1
		hold = min(hold, max(line, len(w.buf)-maxLine))
	}
	cut := uncut(spans, max(hold, w.out))
	switch {
	case all:
		cut = len(w.buf)
	case len(w.buf)-max(cut, w.out) > maxHeld:
		// Too much for one secret: what may be the beginning of another goes with it.
		if begun = max(begun, w.out); begun < len(w.buf) {
			spans = merge(append(spans, span{from: begun, to: len(w.buf), name: unfinished}))
		}
		cut = len(w.buf)
	}
	w.seen = len(w.buf)
	if cut <= w.out {
		return nil
	}
	if err := w.emit(spans, cut); err != nil {
		return err
	}
	keep := max(0, min(cut-context, begun), cut-maxContext)
	w.buf = append(w.buf[:0], w.buf[keep:]...)
	w.out, w.seen = cut-keep, len(w.buf)
	return nil
}

// uncut moves a cut to before the secret that it would divide.
func uncut(spans []span, cut int) int {
	for i := len(spans) - 1; i >= 0; i-- {
		if spans[i].from < cut && cut < spans[i].to {
			cut = spans[i].from
		}
	}
	return cut
}

func (w *Writer) emit(spans []span, cut int) error {
	var mine []span
	for _, s := range spans {
		s.from = max(s.from, w.out)
		if s.to > s.from && s.to <= cut {
			mine = append(mine, span{from: s.from - w.out, to: s.to - w.out, name: s.name, known: s.known})
		}
	}
	w.count += len(mine)
	_, err := w.to.Write(replace(w.buf[w.out:cut], mine))
	if err != nil {
		w.err = fmt.Errorf("write redacted output: %w", err)
	}
	return w.err
}
