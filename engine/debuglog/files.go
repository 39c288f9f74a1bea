package debuglog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// The bounds of a log folder.
const (
	MaxFile  = 16 << 20            // bytes after which a day goes on in another file
	MaxTotal = 128 << 20           // bytes of all files; the oldest go first
	MaxAge   = 30 * 24 * time.Hour // of a file
)

// Files is a folder of log files, one or more for each day (UTC):
// 2026-06-04.jsonl, 2026-06-04.2.jsonl, …. It is an io.Writer for whole lines, safe
// for concurrent use, also by many processes.
type Files struct {
	dir string
	now func() time.Time

	mu      sync.Mutex
	file    *os.File
	day     string
	waiting []byte // lines for which there is no place yet
	dead    bool   // it failed: nothing more is tried
}

// OpenFiles names a folder. It is made when the first line is written, but not what
// it lies in: while that is not there, lines wait for it, and are lost if it never
// comes. Who has nothing of uwf's on the machine is not left with a log.
func OpenFiles(dir string, now func() time.Time) *Files {
	return &Files{dir: dir, now: now}
}

// maxWaiting is how many bytes of lines wait.
const maxWaiting = 64 << 10

// Write appends a line. After an error nothing more is written.
func (f *Files) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return 0, fs.ErrClosed
	}
	if f.file == nil {
		if _, err := os.Stat(filepath.Dir(f.dir)); errors.Is(err, fs.ErrNotExist) {
			if len(f.waiting)+len(line) <= maxWaiting {
				f.waiting = append(f.waiting, line...)
			}
			return len(line), nil
		}
	}
	err := f.turnFile()
	if err == nil {
		// One write in append mode: lines of several processes don't mix.
		_, err = f.file.Write(append(f.waiting, line...))
		f.waiting = nil
	}
	if err != nil {
		f.dead = true
		return 0, errors.Join(err, f.closeFile())
	}
	return len(line), nil
}

// Close closes the file that is open.
func (f *Files) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead = true
	return f.closeFile()
}

func (f *Files) closeFile() error {
	if f.file == nil {
		return nil
	}
	file := f.file
	f.file = nil
	return file.Close()
}

// turnFile opens the file that the next line belongs into.
func (f *Files) turnFile() error {
	day := f.now().UTC().Format(time.DateOnly)
	if f.file != nil && f.day == day {
		info, err := f.file.Stat()
		if err != nil || info.Size() < MaxFile {
			return err
		}
	}
	if err := f.closeFile(); err != nil {
		return err
	}
	f.day = day
	return f.openFirst(day)
}

// openFirst opens the first file of a day that is not full. A link in its place is not
// followed, nor out of the folder: who made it would choose what is written to.
func (f *Files) openFirst(day string) error {
	if err := os.Mkdir(f.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for n := 1; ; n++ {
		name := fileName(day, n)
		switch info, err := root.Lstat(name); {
		case errors.Is(err, fs.ErrNotExist):
			f.pruneFiles()
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s in %s: not a regular file", name, f.dir)
		case info.Size() >= MaxFile:
			continue
		}
		f.file, err = root.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		return err
	}
}

func fileName(day string, n int) string {
	if n == 1 {
		return day + ".jsonl"
	}
	return fmt.Sprintf("%s.%d.jsonl", day, n)
}

var logName = lazyregexp.New(`^(\d{4}-\d{2}-\d{2})(\.(\d{1,6}))?\.jsonl$`)

// pruneFiles deletes files that are too old, and the oldest of too much.
func (f *Files) pruneFiles() {
	files, err := List(f.dir)
	if err != nil {
		return
	}
	oldest := f.now().Add(-MaxAge).UTC().Format(time.DateOnly)
	var total int64
	for _, x := range slices.Backward(files) {
		if total += x.Size; total > MaxTotal || x.Day < oldest {
			_ = os.Remove(filepath.Join(f.dir, x.Name))
		}
	}
}

// File is one log file.
type File struct {
	Name string // in its folder
	Day  string // 2026-06-04
	Size int64
	n    int
}

// List lists the log files of a folder, the oldest first. A folder that is not
// there has none.
func List(dir string) ([]File, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []File
	for _, e := range entries {
		m := logName.FindStringSubmatch(e.Name())
		if m == nil || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // deleted meanwhile
		}
		n, err := strconv.Atoi(cmp.Or(m[3], "1"))
		if err != nil {
			continue
		}
		out = append(out, File{Name: e.Name(), Day: m[1], Size: info.Size(), n: n})
	}
	slices.SortFunc(out, func(a, b File) int { return cmp.Or(strings.Compare(a.Day, b.Day), a.n-b.n) })
	return out, nil
}
