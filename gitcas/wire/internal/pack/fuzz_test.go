package pack

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
)

// FuzzPack tries packs whose checksum is made right, so that what is inside
// them is reached.
func FuzzPack(f *testing.F) {
	base := strings.Repeat("base ", 40)
	f.Add(makePack(2, blobEntry(base), refDelta(base, base+"more")))
	f.Add(makePack(2, refDelta(base, base+"more"), blobEntry(base)))
	f.Add(makePack(1, packEntry{typ: plumbing.OFSDeltaObject, size: -1, base: []byte{0x81, 0}, data: []byte{1, 1, 1, 'x'}}))
	f.Add(makePack(1, packEntry{typ: plumbing.TreeObject, size: -1, data: []byte("100644 a\x00aaaaaaaaaaaaaaaaaaaa")}))
	lim := Limits{Object: 1 << 20, Total: 4 << 20, Count: 1000}
	f.Fuzz(func(t *testing.T, b []byte) {
		objs, err := ReadObjects(bytes.NewReader(b), lim)
		if err != nil && !errors.Is(err, fault.ErrUnreadable) && !errors.Is(err, fault.ErrUnreachable) {
			t.Errorf("an error without kind: %v", err)
		}
		for id, o := range objs {
			if plumbing.ComputeHash(o.Type, o.Data) != id || o.ID != id {
				t.Errorf("object %s is another", id)
			}
		}
	})
}
