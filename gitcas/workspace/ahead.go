package workspace

import (
	"runtime"
	"sync"
)

// mostInMemory is the largest file that is held in memory just to be hashed.
const mostInMemory = 4 << 20

// readings are files that were read before it was their turn, by what the commit has
// in their place.
type readings map[*entry]reading

type reading struct {
	content
	err error
}

// takeContent returns what was read of a file, once; nil: nothing was.
func (r readings) takeContent(e *entry) (*content, error) {
	got, ok := r[e]
	if !ok {
		return nil, nil
	}
	delete(r, e)
	return &got.content, got.err
}

// fewFiles are read one after the other: more readers would only cost time.
const fewFiles = 8

// readAhead reads the files of a folder that have to be compared, several at a time.
// In a checkout that somebody else made that is all of them, and most of what a
// restore does.
func (r *restorer) readAhead(s spot, todo []pair) readings {
	var files []pair
	for _, x := range todo {
		if x.disk == nil || x.tree == nil || !isFile(x.tree.mode) || !x.disk.info.Mode().IsRegular() || s.seen.findEntry(x.name).looksLike(statOf(x.disk.info)) {
			continue
		}
		files = append(files, x)
	}
	workers := min(runtime.GOMAXPROCS(0), len(files)/fewFiles)
	if workers < 2 {
		return nil
	}
	found := make([]reading, len(files))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rd := reader{ctx: r.rd.ctx, op: r.rd.op}
			for i := w; i < len(files) && r.rd.ctx.Err() == nil; i += workers {
				x := files[i]
				c, err := rd.readFile(s.r, joinPath(s.path, x.name), x.name, x.disk.info, mostInMemory)
				c.data = nil // the next file's
				found[i] = reading{content: c, err: err}
			}
		})
	}
	wg.Wait()
	if r.rd.ctx.Err() != nil {
		return nil // not all were read
	}
	out := make(readings, len(files))
	for i, x := range files {
		out[x.tree] = found[i]
	}
	return out
}
