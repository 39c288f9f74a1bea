package command

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lookEvery is how often the free space is asked for.
const lookEvery = 200 * time.Millisecond

// diskBound bounds what a run writes. Asking a file system for its free space costs nothing,
// so that the run's folders are measured only where that has shrunk by as much as the run
// may write: it may also be others who wrote.
type diskBound struct {
	places []string
	limit  int64     // bytes
	began  time.Time // what changed since then counts
	floor  []int64   // of each place: free bytes below which the places are measured
	least  []int64   // of each place: free bytes below which the run ends, whoever wrote
}

// watchDisk ends the returned context with an ErrDisk when the bound is broken, until end is
// called.
func watchDisk(ctx context.Context, places []string, limit int64, began time.Time) (bounded context.Context, end func()) {
	ctx, stop := context.WithCancelCause(ctx)
	b := newDiskBound(places, limit, began)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := b.checkDisk(ctx); err != nil {
				stop(err)
				return
			}
		}
	}()
	return ctx, func() { stop(nil); <-done }
}

func newDiskBound(places []string, limit int64, began time.Time) *diskBound {
	b := &diskBound{places: places, limit: limit, began: began}
	free := make([]int64, len(places))
	for i, place := range places {
		free[i] = freeSpace(place)
		b.limit = min(b.limit, free[i]/4*3)
		b.least = append(b.least, free[i]/10)
	}
	for i := range places {
		b.floor = append(b.floor, free[i]-b.limit)
	}
	return b
}

// checkDisk says, as an ErrDisk, that the run has written more than it may, or that there is
// hardly any space left.
func (b *diskBound) checkDisk(ctx context.Context) error {
	for i, place := range b.places {
		free := freeSpace(place)
		if free < b.least[i] {
			return fmt.Errorf("%w: of what was free where %s lies, less than a tenth is left; make room there", ErrDisk, place)
		}
		if free >= b.floor[i] {
			continue
		}
		used := b.measureUsed(ctx)
		if used > b.limit {
			return fmt.Errorf("%w: it wrote %d MiB, and may write %d MiB; have it write less, or make room", ErrDisk, used>>20, b.limit>>20)
		}
		// It can't be too much before so much more is gone.
		b.floor[i] = free - max(b.limit-used, b.limit/16)
	}
	return nil
}

// measureUsed is what the files that changed since the beginning take, in bytes.
func (b *diskBound) measureUsed(ctx context.Context) (used int64) {
	type file struct {
		device any // of a type that each system has its own of
		number uint64
	}
	seen := map[file]bool{} // with several names
	for _, place := range b.places {
		// What can't be listed, or is gone by now, takes nothing that is known of.
		_ = filepath.WalkDir(place, func(path string, _ fs.DirEntry, err error) error {
			var st unix.Stat_t
			if err != nil || unix.Lstat(path, &st) != nil || !time.Unix(st.Ctim.Unix()).After(b.began) {
				return ctx.Err()
			}
			f := file{st.Dev, st.Ino}
			if !seen[f] {
				used += st.Blocks * 512
			}
			if st.Nlink > 1 {
				seen[f] = true
			}
			return ctx.Err()
		})
	}
	return used
}

// freeSpace is how many bytes are free where a place lies. A place that is gone bounds
// nothing.
func freeSpace(place string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(place, &st) != nil {
		return math.MaxInt64
	}
	return int64(min(st.Bavail*uint64(st.Bsize), math.MaxInt64))
}
