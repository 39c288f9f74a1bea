package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Path is a file that a command was given, as an absolute path: relative ones are
// relative to the Factory's folder.
func (f *Factory) Path(name string) string { return resolvePath(f.Dir, name) }

// ReadInput reads a file, or stdin where name is "-" or empty, up to limit bytes.
// Anything but a regular file, a pipe or stdin is refused: a device never ends.
func (f *Factory) ReadInput(name string, limit int64) (b []byte, err error) {
	in, what := f.IO.In, "stdin"
	if name != "" && name != "-" {
		file, err := os.Open(f.Path(name))
		if err != nil {
			return nil, &UsageError{Err: err}
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		info, err := file.Stat()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if t := info.Mode().Type(); t != 0 && t != fs.ModeNamedPipe {
			return nil, Usagef("%s is no file", filepath.Clean(name))
		}
		in, what = file, name
	} else if f.IO.InTTY {
		f.Notes().Printf("reading from the terminal; end with ctrl-D\n")
	}
	b, err = io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if int64(len(b)) > limit {
		return nil, Usagef("%s is larger than %d bytes", what, limit)
	}
	return b, nil
}
