// Package pktline reads and writes git's packet lines (gitprotocol-common(5)) and
// the side bands in them.
package pktline

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
)

// The pkt-line format is written and read here and not with go-git's package,
// which knows no delimiter packets and so no protocol version 2.

const (
	pktHeader = 4
	pktMax    = 65520 // the longest packet, header included
)

// Kind tells data from the packets that only separate.
type Kind int

// The kinds of packets: data, and the separators 0000, 0001 and 0002.
const (
	Data Kind = iota
	Flush
	Delim
	End
)

// Append appends one data packet.
func Append(b []byte, parts ...string) []byte {
	n := pktHeader
	for _, p := range parts {
		n += len(p)
	}
	b = fmt.Appendf(b, "%04x", n)
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// Reader reads packets. A payload is valid until the next call.
type Reader struct {
	r     *bufio.Reader
	left  int64 // bytes that may still be read
	begun bool
	buf   []byte
}

// NewReader reads packets from r, of limit bytes in all. An r that is a
// *bufio.Reader is used itself, so that others can read on from it.
func NewReader(r io.Reader, limit int64) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 32<<10), left: limit}
}

// Next reads one packet. A packet that begins with "ERR " is a *fault.ServerError.
func (p *Reader) Next() (Kind, []byte, error) {
	var head [pktHeader]byte
	if _, err := io.ReadFull(p.r, head[:]); err != nil {
		if errors.Is(err, io.EOF) && !p.begun {
			return 0, nil, fault.ErrNothing
		}
		return 0, nil, fault.Reading(err)
	}
	p.begun = true
	size, err := strconv.ParseUint(string(head[:]), 16, 16)
	if err != nil || size == 3 || size > pktMax {
		return 0, nil, fmt.Errorf("%w: %q is no packet length", fault.ErrUnreadable, head[:])
	}
	n := int(size)
	if p.left -= int64(max(n, pktHeader)); p.left < 0 {
		return 0, nil, fmt.Errorf("%w: the answer is too large", fault.ErrUnreadable)
	}
	switch n {
	case 0:
		return Flush, nil, nil
	case 1:
		return Delim, nil, nil
	case 2:
		return End, nil, nil
	}
	if n -= pktHeader; cap(p.buf) < n {
		p.buf = make([]byte, max(n, 1024))
	}
	b := p.buf[:n]
	if _, err := io.ReadFull(p.r, b); err != nil {
		return 0, nil, fault.Reading(err)
	}
	if text, isError := bytes.CutPrefix(b, []byte("ERR ")); isError {
		return Data, nil, &fault.ServerError{Text: fault.OneLine(string(text))}
	}
	return Data, b, nil
}

// Line reads a data packet without its line feed, or the kind of another one.
func (p *Reader) Line() (Kind, string, error) {
	kind, b, err := p.Next()
	if err != nil {
		return kind, "", err
	}
	return kind, strings.TrimSuffix(string(b), "\n"), nil
}

// SkipToFlush reads over packets up to and with the next flush.
func (p *Reader) SkipToFlush() error {
	for {
		kind, _, err := p.Next()
		if err != nil {
			return err
		}
		if kind == Flush {
			return nil
		}
	}
}

// Bands reads the data of a multiplexed answer (side-band-64k) as one stream
// that ends at the flush packet, and keeps the end of what the server says to
// people beside it.
type Bands struct {
	p    *Reader
	rest []byte
	text []byte
	talk int // bytes of packets without data
	done bool
}

// NewBands reads from where p stands.
func NewBands(p *Reader) *Bands { return &Bands{p: p} }

// MaxTalk bounds the bytes of packets without data, in one answer.
const MaxTalk = 16 << 20

// maxText bounds how much of the server's text is kept: its end.
const maxText = 16 << 10

func (b *Bands) Read(out []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.done {
			return 0, io.EOF
		}
		if err := b.fillBuffer(); err != nil {
			return 0, err
		}
	}
	n := copy(out, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *Bands) fillBuffer() error {
	kind, pkt, err := b.p.Next()
	switch {
	case err != nil:
		return err
	case kind == Flush:
		b.done = true
		return nil
	case kind != Data:
		return fmt.Errorf("%w: a separator among the bands", fault.ErrUnreadable)
	case len(pkt) == 0:
		return fmt.Errorf("%w: a packet without band", fault.ErrUnreadable)
	}
	if pkt[0] == 2 || len(pkt) == 1 {
		if b.talk += pktHeader + len(pkt); b.talk > MaxTalk {
			return fmt.Errorf("%w: the server says more than %d bytes beside its answer", fault.ErrUnreadable, MaxTalk)
		}
	}
	switch pkt[0] {
	case 1:
		b.rest = pkt[1:]
		return nil
	case 2:
		b.text = AppendTail(b.text, pkt[1:])
		return nil
	case 3: // why, git may have said beside the answer
		end := strings.TrimRight(string(pkt[1:]), "\x00\n")
		return &fault.ServerError{Text: fault.OneLine(strings.TrimSpace(fault.TellingLine("", b.Text()) + " " + end))}
	}
	return fmt.Errorf("%w: unknown band %d", fault.ErrUnreadable, pkt[0])
}

// Text is the end of what the server said to people so far.
func (b *Bands) Text() string { return string(b.text) }

// AppendTail appends and keeps at least the last maxText bytes. It moves
// bytes only once in a while, so that many small pieces cost no more than one.
func AppendTail(b, s []byte) []byte {
	b = append(b, s...)
	if len(b) > 2*maxText {
		b = append(b[:0], b[len(b)-maxText:]...)
	}
	return b
}
