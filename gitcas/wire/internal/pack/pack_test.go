package pack

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
)

// wide are limits that no test here meets.
var wide = Limits{Object: 1 << 30, Total: 1 << 30, Count: 1 << 20}

// packEntry is one hand-made entry of a pack.
type packEntry struct {
	typ   plumbing.ObjectType
	size  int // what the head says; -1: the truth
	base  []byte
	data  []byte
	extra []byte // bytes in the zlib stream beyond data
}

func makePack(count int, es ...packEntry) []byte {
	out := []byte("PACK\x00\x00\x00\x02")
	out = binary.BigEndian.AppendUint32(out, uint32(count))
	for _, e := range es {
		n := e.size
		if n < 0 {
			n = len(e.data)
		}
		c := byte(e.typ)<<4 | byte(n&15)
		for n >>= 4; n > 0; n >>= 7 {
			out = append(out, c|0x80)
			c = byte(n & 0x7f)
		}
		out = append(append(out, c), e.base...)
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		_, _ = w.Write(append(bytes.Clone(e.data), e.extra...))
		_ = w.Close()
		out = append(out, z.Bytes()...)
	}
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

func blobEntry(s string) packEntry {
	return packEntry{typ: plumbing.BlobObject, size: -1, data: []byte(s)}
}

func refDelta(base, target string) packEntry {
	id := plumbing.ComputeHash(plumbing.BlobObject, []byte(base))
	return packEntry{typ: plumbing.REFDeltaObject, size: -1, base: id[:], data: packfile.DiffDelta([]byte(base), []byte(target))}
}

// TestRead reads packs that git would not write but may.
func TestRead(t *testing.T) {
	a, b, c := strings.Repeat("first ", 50), strings.Repeat("first ", 49)+"second", strings.Repeat("first ", 48)+"third second"
	for name, pack := range map[string][]byte{
		"deltas before their base": makePack(3, refDelta(b, c), refDelta(a, b), blobEntry(a)),
		"deltas after their base":  makePack(3, blobEntry(a), refDelta(a, b), refDelta(b, c)),
		"twice the same":           makePack(4, blobEntry(a), blobEntry(a), refDelta(a, b), refDelta(b, c)),
	} {
		for _, r := range []io.Reader{bytes.NewReader(pack), iotest.OneByteReader(bytes.NewReader(pack)), iotest.DataErrReader(bytes.NewReader(pack))} {
			objs, err := ReadObjects(r, wide)
			if err != nil || len(objs) != 3 {
				t.Errorf("%s: %d objects, %v", name, len(objs), err)
				continue
			}
			for _, s := range []string{a, b, c} {
				if o := objs[plumbing.ComputeHash(plumbing.BlobObject, []byte(s))]; string(o.Data) != s {
					t.Errorf("%s: a wrong object", name)
				}
			}
		}
	}
}

func TestReadRefuses(t *testing.T) {
	good := makePack(1, blobEntry("x"))
	bomb := func(size int64) []byte { // a few bytes that stand for many
		d := []byte{100} // the base's size
		for n := size; ; n >>= 7 {
			if n < 0x80 {
				d = append(d, byte(n))
				break
			}
			d = append(d, byte(n)|0x80)
		}
		for range 1000 {
			d = append(d, 0x80|0x10, 100) // copy 100 bytes from 0
		}
		return d
	}
	base := strings.Repeat("b", 100)
	baseID := plumbing.ComputeHash(plumbing.BlobObject, []byte(base))
	lim := Limits{Object: 64 << 10, Total: 256 << 10, Count: 100}
	for name, pack := range map[string][]byte{
		"no pack":             []byte("JUNK\x00\x00\x00\x02\x00\x00\x00\x00aaaaaaaaaaaaaaaaaaaa"),
		"version 3":           append([]byte("PACK\x00\x00\x00\x03"), good[8:]...),
		"bad checksum":        append(bytes.Clone(good[:len(good)-1]), good[len(good)-1]^1),
		"bytes after the end": append(bytes.Clone(good), 'x'),
		"too many":            makePack(101, blobEntry("x")),
		"type 0":              makePack(1, packEntry{typ: 0, size: -1, data: []byte("x")}),
		"type 5":              makePack(1, packEntry{typ: 5, size: -1, data: []byte("x")}),
		"says less":           makePack(1, packEntry{typ: plumbing.BlobObject, size: 1, data: []byte("xyz")}),
		"says much":           makePack(1, packEntry{typ: plumbing.BlobObject, size: 1 << 30, data: []byte("x")}),
		"large object":        makePack(1, blobEntry(strings.Repeat("x", 65<<10))),
		"large in total":      makePack(5, blobEntry(strings.Repeat("a", 60<<10)), blobEntry(strings.Repeat("b", 60<<10)), blobEntry(strings.Repeat("c", 60<<10)), blobEntry(strings.Repeat("d", 60<<10)), blobEntry(strings.Repeat("e", 60<<10))),
		"no base":             makePack(1, refDelta(base, base+"x")),
		"base of itself":      makePack(1, packEntry{typ: plumbing.OFSDeltaObject, size: -1, base: []byte{0}, data: []byte{1, 1, 1, 'x'}}),
		"base before start":   makePack(1, packEntry{typ: plumbing.OFSDeltaObject, size: -1, base: []byte{0x7f}, data: []byte{1, 1, 1, 'x'}}),
		"base between":        makePack(2, blobEntry(base), packEntry{typ: plumbing.OFSDeltaObject, size: -1, base: []byte{1}, data: []byte{1, 1, 1, 'x'}}),
		"endless offset":      makePack(1, packEntry{typ: plumbing.OFSDeltaObject, size: -1, base: bytes.Repeat([]byte{0xff}, 20), data: []byte{1, 1, 1, 'x'}}),
		"garbage delta":       makePack(2, blobEntry(base), packEntry{typ: plumbing.REFDeltaObject, size: -1, base: baseID[:], data: []byte{100, 3, 0xff}}),
		"empty delta":         makePack(2, blobEntry(base), packEntry{typ: plumbing.REFDeltaObject, size: -1, base: baseID[:]}),
		"delta of another":    makePack(2, blobEntry(base), packEntry{typ: plumbing.REFDeltaObject, size: -1, base: baseID[:], data: []byte{99, 1, 1, 'x'}}),
		"delta bomb":          makePack(2, blobEntry(base), packEntry{typ: plumbing.REFDeltaObject, size: -1, base: baseID[:], data: bomb(100_000)}),
		"huge delta bomb":     makePack(2, blobEntry(base), packEntry{typ: plumbing.REFDeltaObject, size: -1, base: baseID[:], data: bomb(1 << 50)}),
		"short delta":         makePack(2, blobEntry(base), packEntry{typ: plumbing.REFDeltaObject, size: -1, base: baseID[:], data: []byte{100, 9, 1, 'x'}}),
		"fewer than it says":  makePack(2, blobEntry("x")),
		"not zlib":            append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x31xxxxxxxxxxxxxxxx"), make([]byte, 20)...),
	} {
		objs, err := ReadObjects(bytes.NewReader(pack), lim)
		if objs != nil || err == nil {
			t.Errorf("%s: %d objects, %v", name, len(objs), err)
		} else if !errors.Is(err, fault.ErrUnreadable) && !errors.Is(err, fault.ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n := range good {
		if _, err := ReadObjects(bytes.NewReader(good[:n]), lim); !errors.Is(err, fault.ErrUnreachable) {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
	}
	broken := io.MultiReader(bytes.NewReader(good[:15]), iotest.ErrReader(errors.New("connection reset")))
	if _, err := ReadObjects(broken, lim); !errors.Is(err, fault.ErrUnreachable) || !strings.Contains(err.Error(), "connection reset") {
		t.Errorf("broken connection: %v", err)
	}
}

// TestRoundTrip: what is written is read back, and a small change of a
// large object takes little room.
func TestRoundTrip(t *testing.T) {
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text, "line %d: %x\n", i, i*i*7919)
	}
	base := NewObject(plumbing.BlobObject, []byte(text.String()))
	next := NewObject(plumbing.BlobObject, []byte(strings.Replace(text.String(), "line 1000:", "LINE 1000:", 1)))
	var full, thin bytes.Buffer
	if err := Append(&full, []Entry{{Object: next}, {Object: base}}); err != nil {
		t.Fatal(err)
	}
	if err := Append(&thin, []Entry{{Object: next, Base: &base}, {Object: base}, {Object: base, Base: &base}}); err != nil {
		t.Fatal(err)
	}
	if thin.Len() > full.Len()*6/10 {
		t.Errorf("the thin pack has %d bytes, the full one %d", thin.Len(), full.Len())
	}
	for _, p := range [][]byte{full.Bytes(), thin.Bytes()} {
		objs, err := ReadObjects(bytes.NewReader(p), wide)
		if err != nil || len(objs) != 2 || !bytes.Equal(objs[next.ID].Data, next.Data) {
			t.Errorf("%d objects, %v", len(objs), err)
		}
	}
	// A delta that doesn't pay is not used: the base need not be there then.
	other := NewObject(plumbing.BlobObject, []byte("nothing in common"))
	tr := NewObject(plumbing.TreeObject, nil)
	thin.Reset()
	if err := Append(&thin, []Entry{{Object: other, Base: &base}, {Object: next, Base: &tr}}); err != nil {
		t.Fatal(err)
	}
	if objs, err := ReadObjects(&thin, wide); err != nil || len(objs) != 2 {
		t.Errorf("%d objects, %v", len(objs), err)
	}
	if err := Append(&thin, []Entry{{Object: Object{Type: plumbing.OFSDeltaObject}}}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("packing a delta: %v", err)
	}
}
