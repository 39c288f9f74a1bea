package pack

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" // the pack's own checksum; object ids use go-git's, which detects collisions
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
)

// Limits bound what is read: the largest object, all objects and deltas
// together (bytes), and how many there are.
type Limits struct {
	Object, Total int64
	Count         int
}

// ReadObjects reads a whole pack (gitformat-pack(5), version 2). Deltas are
// resolved against objects of the same pack only. Ids are computed, never
// taken on trust, so what is returned under an id is that object.
func ReadObjects(r io.Reader, lim Limits) (map[plumbing.Hash]Object, error) {
	p := &packParser{src: newPackSource(r), lim: lim, left: lim.Total}
	err := p.parsePack()
	if err == nil {
		return p.out, nil
	}
	ended := errors.Is(p.src.err, io.EOF)
	if p.src.err != nil && !ended {
		return nil, fault.Reading(p.src.err)
	}
	if ended && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return nil, fault.ErrEarly
	}
	if errors.Is(err, fault.ErrUnreadable) {
		return nil, err
	}
	return nil, fmt.Errorf("%w: bad pack: %w", fault.ErrUnreadable, err)
}

// packParser holds the state of one read.
type packParser struct {
	src  *packSource
	lim  Limits
	left int64 // bytes that may still be held
	z    inflater
	out  map[plumbing.Hash]Object

	// at finds the object whose entry begins at an offset.
	at map[int64]plumbing.Hash
	// Deltas whose base is not known yet wait under its offset, an int64, or its id.
	waiting map[any][]waiting
	pending int
}

// inflater is what package zlib's readers are: one serves all objects.
type inflater interface {
	io.ReadCloser
	zlib.Resetter
}

// waiting is a delta without its base.
type waiting struct {
	offset int64
	delta  []byte
}

var errPack = fmt.Errorf("%w: bad pack", fault.ErrUnreadable)

func (p *packParser) parsePack() error {
	var head [12]byte
	if _, err := io.ReadFull(p.src, head[:]); err != nil {
		return err
	}
	if string(head[:4]) != "PACK" || binary.BigEndian.Uint32(head[4:]) != 2 {
		return fmt.Errorf("%w: no pack of version 2", errPack)
	}
	count := binary.BigEndian.Uint32(head[8:])
	if int64(count) > int64(p.lim.Count) {
		return fmt.Errorf("%w: %d objects, more than %d", errPack, count, p.lim.Count)
	}
	p.out = make(map[plumbing.Hash]Object, min(count, 1<<12))
	p.at = make(map[int64]plumbing.Hash, min(count, 1<<12))
	p.waiting = make(map[any][]waiting)
	for range count {
		if err := p.readEntry(); err != nil {
			return err
		}
	}
	if p.pending > 0 {
		return fmt.Errorf("%w: %d deltas without their base", errPack, p.pending)
	}
	return p.src.checkTrailer()
}

// readEntry reads one object or delta.
func (p *packParser) readEntry() error {
	offset := p.src.currentOffset()
	typ, size, err := p.src.typeAndSize()
	if err != nil {
		return err
	}
	if size > p.lim.Object {
		return fmt.Errorf("%w: an object of %d bytes, more than %d", errPack, size, p.lim.Object)
	}
	switch typ {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		data, err := p.inflateStream(size)
		if err != nil {
			return err
		}
		return p.storeObject(offset, typ, data)
	case plumbing.OFSDeltaObject:
		back, err := p.src.backOffset()
		if err != nil {
			return err
		}
		if back <= 0 || back > offset {
			return fmt.Errorf("%w: a delta against nothing", errPack)
		}
		return p.readDelta(offset, size, offset-back, p.at[offset-back])
	case plumbing.REFDeltaObject:
		var base plumbing.Hash
		if _, err := io.ReadFull(p.src, base[:]); err != nil {
			return err
		}
		return p.readDelta(offset, size, base, base)
	}
	return fmt.Errorf("%w: object type %d", errPack, typ)
}

// readDelta reads a delta against the object of an id, which may come later and then be found
// by key.
func (p *packParser) readDelta(offset, size int64, key any, base plumbing.Hash) error {
	delta, err := p.inflateStream(size)
	if err != nil {
		return err
	}
	o, ok := p.out[base]
	if !ok {
		p.waiting[key] = append(p.waiting[key], waiting{offset, delta})
		p.pending++
		return nil
	}
	data, err := p.patchBase(o.Data, delta)
	if err != nil {
		return err
	}
	return p.storeObject(offset, o.Type, data)
}

// spendBytes counts bytes that will be held.
func (p *packParser) spendBytes(n int64) error {
	if p.left -= n; p.left < 0 {
		return fmt.Errorf("%w: more than %d bytes of objects", errPack, p.lim.Total)
	}
	return nil
}

// storeObject keeps an object, and then those that waited for it as their base.
func (p *packParser) storeObject(offset int64, typ plumbing.ObjectType, data []byte) error {
	type resolved struct {
		offset int64
		typ    plumbing.ObjectType
		data   []byte
	}
	todo := []resolved{{offset, typ, data}}
	for len(todo) > 0 {
		r := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		o := NewObject(r.typ, r.data)
		p.out[o.ID] = o
		p.at[r.offset] = o.ID
		if p.pending == 0 {
			continue
		}
		ready := slices.Concat(p.waiting[r.offset], p.waiting[o.ID])
		delete(p.waiting, r.offset)
		delete(p.waiting, o.ID)
		p.pending -= len(ready)
		for _, w := range ready {
			data, err := p.patchBase(o.Data, w.delta)
			if err != nil {
				return err
			}
			todo = append(todo, resolved{w.offset, o.Type, data})
		}
	}
	return nil
}

// patchBase applies a delta after its header was found to fit base and the limits:
// the result's size is known before anything is allocated for it.
func (p *packParser) patchBase(base, delta []byte) ([]byte, error) {
	// A delta begins with the sizes of its base and of the result.
	from, n := binary.Uvarint(delta)
	size, m := binary.Uvarint(delta[max(n, 0):])
	to := int64(min(size, math.MaxInt64))
	if n <= 0 || m <= 0 || from != uint64(len(base)) {
		return nil, fmt.Errorf("%w: a delta that does not fit its base", errPack)
	}
	if to > p.lim.Object {
		return nil, fmt.Errorf("%w: an object of %d bytes, more than %d", errPack, to, p.lim.Object)
	}
	if err := p.spendBytes(to); err != nil {
		return nil, err
	}
	if len(base) == 0 {
		return nil, fmt.Errorf("%w: a delta against an empty object", errPack)
	}
	out, err := packfile.PatchDelta(base, delta)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPack, err)
	}
	if int64(len(out)) != to {
		return nil, fmt.Errorf("%w: a delta that makes %d bytes instead of %d", errPack, len(out), to)
	}
	return out, nil
}

// inflateStream reads one zlib stream that must hold exactly size bytes.
func (p *packParser) inflateStream(size int64) ([]byte, error) {
	if err := p.spendBytes(size); err != nil {
		return nil, err
	}
	if p.z == nil {
		z, err := zlib.NewReader(p.src)
		if err != nil {
			return nil, err
		}
		var ok bool
		if p.z, ok = z.(inflater); !ok {
			return nil, fmt.Errorf("%w: this zlib can't be used again", errPack)
		}
	} else if err := p.z.Reset(p.src, nil); err != nil {
		return nil, err
	}
	data, err := readExactly(p.z, size)
	if err != nil {
		return nil, err
	}
	// The stream's end holds its checksum: it is read with the next byte, which
	// must not exist.
	var one [1]byte
	if n, err := io.ReadFull(p.z, one[:]); n != 0 || err != io.EOF {
		if n == 0 && err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: an object larger than it says", errPack)
	}
	return data, nil
}

// readExactly reads size bytes. A large size is not believed before the bytes
// come: the buffer grows with them.
func readExactly(r io.Reader, size int64) ([]byte, error) {
	const trusted = 1 << 20
	if size <= trusted {
		b := make([]byte, size)
		_, err := io.ReadFull(r, b)
		return b, err
	}
	var b bytes.Buffer
	b.Grow(trusted)
	n, err := io.CopyN(&b, r, size)
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	return b.Bytes(), err
}

// packSource is the stream of a pack: buffered, counted and hashed, and read
// byte by byte by the inflater so that it never takes more than its stream.
type packSource struct {
	r        io.Reader
	buf      []byte
	pos, end int
	base     int64 // offset of buf[0] in the pack
	hashed   int   // buf[:hashed] is in sum
	sum      hash.Hash
	err      error // what ended the stream
}

func newPackSource(r io.Reader) *packSource {
	return &packSource{r: r, buf: make([]byte, 32<<10), sum: sha1.New()}
}

func (s *packSource) currentOffset() int64 { return s.base + int64(s.pos) }

func (s *packSource) fillBuffer() error {
	if s.err != nil {
		return s.err
	}
	s.sum.Write(s.buf[s.hashed:s.pos])
	s.base += int64(s.pos)
	s.pos, s.end, s.hashed = 0, 0, 0
	for s.end == 0 && s.err == nil {
		s.end, s.err = s.r.Read(s.buf)
	}
	if s.end > 0 {
		return nil
	}
	return s.err
}

// ReadByte makes the inflater read no further than its own stream.
func (s *packSource) ReadByte() (byte, error) {
	if s.pos == s.end {
		if err := s.fillBuffer(); err != nil {
			return 0, err
		}
	}
	c := s.buf[s.pos]
	s.pos++
	return c, nil
}

func (s *packSource) Read(b []byte) (int, error) {
	if s.pos == s.end {
		if err := s.fillBuffer(); err != nil {
			return 0, err
		}
	}
	n := copy(b, s.buf[s.pos:s.end])
	s.pos += n
	return n, nil
}

// typeAndSize reads the head of an entry.
func (s *packSource) typeAndSize() (plumbing.ObjectType, int64, error) {
	c, err := s.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	typ, size := plumbing.ObjectType(c>>4&7), uint64(0)
	if c&0x80 != 0 {
		if size, err = binary.ReadUvarint(s); err != nil {
			return 0, 0, err
		}
	}
	if size > 1<<56 {
		return 0, 0, fmt.Errorf("%w: endless size", errPack)
	}
	return typ, int64(size<<4) | int64(c&15), nil
}

// backOffset reads how far before a delta its base begins.
func (s *packSource) backOffset() (int64, error) {
	c, err := s.ReadByte()
	if err != nil {
		return 0, err
	}
	n := int64(c & 0x7f)
	for c&0x80 != 0 {
		if n > 1<<54 {
			return 0, fmt.Errorf("%w: endless offset", errPack)
		}
		if c, err = s.ReadByte(); err != nil {
			return 0, err
		}
		n = (n+1)<<7 | int64(c&0x7f)
	}
	return n, nil
}

// checkTrailer checks the pack's checksum and that nothing follows it.
func (s *packSource) checkTrailer() error {
	s.sum.Write(s.buf[s.hashed:s.pos])
	s.hashed = s.pos
	want := s.sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(s, got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%w: wrong checksum", errPack)
	}
	_, err := s.ReadByte()
	switch {
	case err == nil:
		return fmt.Errorf("%w: bytes after its end", errPack)
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}
