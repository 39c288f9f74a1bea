package initialize

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/utils/diff"
	"github.com/sergi/go-diff/diffmatchpatch"

	"github.com/united-workforce/uwf/cmd/internal/app"
)

// maxFile is the largest file that is compared, in bytes.
const maxFile = 1 << 20

// What becomes of a file.
const (
	written     = "written"
	unchanged   = "unchanged"   // it says that already
	overwritten = "overwritten" // it was there, and different
	kept        = "kept"        // it was there, and stays as it is
	differs     = "differs"     // not decided yet
)

// file is one file of the repository that init writes.
type file struct {
	Path  string `json:"path"` // from the repository's top folder, with slashes
	What  string `json:"what"` // what it is for
	State string `json:"state"`

	old, text []byte
}

// readExisting finds out what stands at the file's place. Symbolic links are followed only
// inside of the repository: a checkout may come from anybody, and must not choose
// what is overwritten.
func readExisting(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explainRefused(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, app.Usagef("%s is no regular file (%s): move it away, then run uwf init again", name, kindOf(info.Mode()))
	}
	if info.Size() > maxFile {
		return nil, app.Usagef("%s is larger than %d bytes: is it the right file? Move it away, then run uwf init again", name, maxFile)
	}
	data, err := root.ReadFile(name)
	if err != nil {
		return nil, explainRefused(name, err)
	}
	return data, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m.IsDir():
		return "a folder"
	}
	return "something special"
}

// explainRefused says why a file of the repository can't be reached.
func explainRefused(name string, err error) error {
	var p *fs.PathError
	switch {
	case errors.Is(err, fs.ErrPermission):
		return app.Usagef("%s can't be written: permission denied; let yourself write into the repository's folder, then run uwf init again", name)
	case errors.Is(err, syscall.ENOTDIR):
		return app.Usagef("%s can't be written: a folder on the way to it is a file; move that file away, then run uwf init again", name)
	case errors.As(err, &p) && strings.Contains(p.Err.Error(), "escapes"):
		return app.Usagef("%s leads out of the repository through a symbolic link: replace the link by a folder, then run uwf init again", name)
	}
	return fmt.Errorf("write %s: %w", name, err)
}

// compareFile decides what is to become of a file. Line ends don't count: git may have
// changed them at checkout.
func (f *file) compareFile() {
	switch {
	case f.old == nil:
		f.State = written
	case bytes.Equal(unixLines(f.old), unixLines(f.text)):
		f.State = unchanged
	default:
		f.State = differs
	}
}

func unixLines(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) }

// writeFile puts a file in its place, whole or not at all.
func (f *file) writeFile(root *os.Root) error {
	text := f.text
	if bytes.Contains(f.old, []byte("\r\n")) {
		text = bytes.ReplaceAll(unixLines(text), []byte("\n"), []byte("\r\n"))
	}
	if err := root.MkdirAll(path.Dir(f.Path), 0o755); err != nil {
		return explainRefused(path.Dir(f.Path), err)
	}
	tmp := path.Join(path.Dir(f.Path), ".uwf-init-"+path.Base(f.Path)+".tmp")
	err := root.WriteFile(tmp, text, 0o644)
	if err == nil {
		err = root.Rename(tmp, f.Path)
	}
	if err != nil {
		_ = root.Remove(tmp) // it may not even be there
		return explainRefused(f.Path, err)
	}
	return nil
}

// changedLines shows what an overwritten file loses and gains, up to a limit of lines.
func (f *file) changedLines(limit int) []string {
	marks := map[diffmatchpatch.Operation]string{diffmatchpatch.DiffDelete: "- ", diffmatchpatch.DiffInsert: "+ "}
	var out []string
	for _, d := range diff.Do(string(unixLines(f.old)), string(unixLines(f.text))) {
		if mark, changed := marks[d.Type]; changed {
			for line := range strings.Lines(d.Text) {
				out = append(out, mark+strings.TrimSuffix(line, "\n"))
			}
		}
	}
	if len(out) > limit {
		out = append(out[:limit], fmt.Sprintf("… and %d more lines", len(out)-limit))
	}
	return out
}
