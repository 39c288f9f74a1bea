package pack

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" // the pack format's checksum
	"encoding/binary"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
)

// packWriter appends a thin pack to a buffer. One zlib writer serves all
// objects: a new one for each costs twenty times the work.
type packWriter struct {
	out *bytes.Buffer
	z   *zlib.Writer
	alt bytes.Buffer
}

// Append writes the objects as one pack. An object with a Base becomes a
// delta against it when that is smaller; the pack is then thin: the receiver
// has to hold the base.
func Append(out *bytes.Buffer, objs []Entry) error {
	start := out.Len()
	w := &packWriter{out: out, z: zlib.NewWriter(nil)}
	seen := make(map[plumbing.Hash]bool, len(objs))
	out.WriteString("PACK\x00\x00\x00\x02")
	countAt := out.Len()
	out.Write([]byte{0, 0, 0, 0})
	for _, o := range objs {
		if seen[o.ID] {
			continue
		}
		seen[o.ID] = true
		if err := w.writeObject(o); err != nil {
			return fmt.Errorf("packing %s %s: %w", o.Type, o.ID, err)
		}
	}
	binary.BigEndian.PutUint32(out.Bytes()[countAt:], uint32(len(seen)))
	sum := sha1.Sum(out.Bytes()[start:])
	out.Write(sum[:])
	return nil
}

func (w *packWriter) writeObject(o Entry) error {
	switch o.Type {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	default:
		return fmt.Errorf("%w: object type %s", fault.ErrInvalid, o.Type)
	}
	if o.Base == nil || o.Base.Type != o.Type || o.Base.ID == o.ID || len(o.Base.Data) == 0 {
		return w.writeEntry(w.out, o.Type, nil, o.Data)
	}
	delta := packfile.DiffDelta(o.Base.Data, o.Data)
	if len(delta) < len(o.Data)/8 {
		return w.writeEntry(w.out, plumbing.REFDeltaObject, o.Base.ID[:], delta)
	}
	// Text compresses well and a delta hardly: only trying both tells.
	w.alt.Reset()
	if err := w.writeEntry(&w.alt, plumbing.REFDeltaObject, o.Base.ID[:], delta); err != nil {
		return err
	}
	start := w.out.Len()
	if err := w.writeEntry(w.out, o.Type, nil, o.Data); err != nil {
		return err
	}
	if w.alt.Len() < w.out.Len()-start {
		w.out.Truncate(start)
		w.out.Write(w.alt.Bytes())
	}
	return nil
}

// writeEntry writes the head of an entry, the base's id of a delta, and the content.
func (w *packWriter) writeEntry(out *bytes.Buffer, typ plumbing.ObjectType, base, data []byte) error {
	n := len(data)
	c := byte(typ)<<4 | byte(n&15)
	for n >>= 4; n > 0; n >>= 7 {
		out.WriteByte(c | 0x80)
		c = byte(n & 0x7f)
	}
	out.WriteByte(c)
	out.Write(base)
	w.z.Reset(out)
	if _, err := w.z.Write(data); err != nil {
		return err
	}
	return w.z.Close()
}
