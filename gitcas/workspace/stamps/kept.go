package stamps

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fxamacker/cbor/v2"

	"github.com/united-workforce/uwf/internal/regular"
	"github.com/united-workforce/uwf/internal/wholefile"
)

// File is one file of a folder: the content that it has as long as it has that stamp.
type File struct {
	_     struct{} `cbor:",toarray"`
	Path  string   // slashes, relative to the folder
	Git   uint32   // git's mode
	ID    [20]byte // of the content as git stores it
	Stamp Stamp
}

// kept is what a file of stamps holds.
type kept struct {
	_      struct{} `cbor:",toarray"`
	Format int
	Folder string // its path
	Device uint64
	Inode  uint64
	Files  []File
}

const (
	format = 1
	// maxKept is how large a file of stamps may be, in bytes: that of 200,000 files with
	// long paths has less.
	maxKept  = 128 << 20
	maxFiles = 1 << 20
)

// ErrForeign: a file of stamps is about another folder, of another format, or such that
// others can write it.
var ErrForeign = errors.New("stamps of another folder, or of another user")

// identifyFolder returns stamps without files for a folder.
func identifyFolder(dir string) (kept, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return kept{}, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return kept{}, ErrForeign
	}
	return kept{Format: format, Folder: dir, Device: uint64(s.Dev), Inode: s.Ino}, nil //nolint:unconvert // 32 bits on macOS
}

// Keep writes the stamps of a folder's files to a file outside of the folder.
func Keep(file, dir string, files []File) error {
	k, err := identifyFolder(dir)
	if err != nil {
		return fmt.Errorf("keep stamps: %w", err)
	}
	k.Files = files
	data, err := cbor.Marshal(k)
	if err != nil {
		return fmt.Errorf("keep stamps: %w", err)
	}
	return wholefile.Write(file, bytes.NewReader(data), 0o600)
}

// Read reads what Keep wrote for the folder at dir. It believes only a file that nobody but
// this user can write.
func Read(file, dir string) ([]File, error) {
	want, err := identifyFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("read stamps: %w", err)
	}
	data, err := readOwn(file)
	if err != nil {
		return nil, fmt.Errorf("read stamps: %w", err)
	}
	mode, err := cbor.DecOptions{MaxArrayElements: maxFiles}.DecMode()
	if err != nil {
		return nil, err
	}
	var k kept
	if err := mode.Unmarshal(data, &k); err != nil {
		return nil, fmt.Errorf("read stamps: %w", err)
	}
	if k.Format != want.Format || k.Folder != want.Folder || k.Device != want.Device || k.Inode != want.Inode {
		return nil, ErrForeign
	}
	return k.Files, nil
}

func readOwn(file string) (data []byte, err error) {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	name := filepath.Base(file)
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if int(StatOf(info).Owner) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return nil, ErrForeign
	}
	return regular.Read(root, name, maxKept)
}
