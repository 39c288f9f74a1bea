package command

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What others write stops nobody, nor what was there before; the run's own does, and so does
// a disk that is nearly full.
func TestCheckDisk(t *testing.T) {
	const size = 4 << 20
	write := func(dir, name string, bytes int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, bytes), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own, others := t.TempDir(), t.TempDir()
	write(own, "before", size)
	time.Sleep(20 * time.Millisecond) // a file's time is that of the clock's last tick
	began := time.Now()
	time.Sleep(20 * time.Millisecond) // and what is written now is later than that
	b := newDiskBound([]string{own, filepath.Join(own, "gone")}, size, began)
	write(others, "theirs", 2*size)
	check := func(what, want string) {
		t.Helper()
		b.floor[0] = math.MaxInt64 // whatever is free
		err := b.checkDisk(t.Context())
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrDisk) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	check("others'", "")
	if free := freeSpace(own); b.floor[0] > free {
		t.Errorf("it is measured again at once: below %d of %d", b.floor[0], free)
	}
	write(own, "some", size/2)
	check("a part", "")
	if err := os.Link(filepath.Join(own, "some"), filepath.Join(own, "another name")); err != nil {
		t.Fatal(err)
	}
	check("a second name", "")
	write(own, "more", size)
	check("its own", "it wrote 6 MiB, and may write 4 MiB")
	b.least[0] = math.MaxInt64
	check("a full disk", "less than a tenth is left")
	if b := newDiskBound([]string{own}, math.MaxInt64, began); b.limit > freeSpace(own)/5*4 {
		t.Errorf("it may fill the disk: %d bytes", b.limit)
	}
}
