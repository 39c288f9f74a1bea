package stamps

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fxamacker/cbor/v2"

	"github.com/united-workforce/uwf/internal/regular"
	"github.com/united-workforce/uwf/internal/wholefile"
)

// Folder is a folder with files.
type Folder struct {
	Path  string // slashes, relative to the folder that the stamps are of
	Files []File
}

// File is one file of a folder: the content that it has as long as it has that stamp.
type File struct {
	Name  string
	Git   uint32   // git's mode
	ID    [20]byte // of the content as git stores it
	Stamp Stamp
}

// packed is a Folder as it is kept: in few pieces, since there are many files. Names need not be
// UTF-8.
type packed struct {
	_     struct{} `cbor:",toarray"`
	Path  []byte
	Names []byte // with a slash between two
	Rest  []byte // a row of each name
}

// rowSize is what a File without its name takes, in bytes.
const rowSize = 4 + 20 + 3*8 + 8 + 4

func packFolder(f Folder) packed {
	names := make([]string, 0, len(f.Files))
	rest := make([]byte, 0, rowSize*len(f.Files))
	for i := range f.Files {
		x := &f.Files[i]
		names = append(names, x.Name)
		rest = binary.BigEndian.AppendUint32(rest, x.Git)
		rest = append(rest, x.ID[:]...)
		for _, n := range []int64{x.Stamp.Size, x.Stamp.MTime, x.Stamp.CTime} {
			rest = binary.BigEndian.AppendUint64(rest, uint64(n)) //nolint:gosec // the same bits
		}
		rest = binary.BigEndian.AppendUint64(rest, x.Stamp.Inode)
		rest = binary.BigEndian.AppendUint32(rest, x.Stamp.Mode)
	}
	return packed{Path: []byte(f.Path), Names: []byte(strings.Join(names, "/")), Rest: rest}
}

func unpackFolder(p packed) (Folder, error) {
	f := Folder{Path: string(p.Path)}
	names := strings.Split(string(p.Names), "/")
	if len(p.Rest) != rowSize*len(names) {
		return f, ErrForeign
	}

	f.Files = make([]File, len(names))
	for i, name := range names {
		x, row := &f.Files[i], p.Rest[rowSize*i:]
		number := func(at int) uint64 { return binary.BigEndian.Uint64(row[at:]) }
		signed := func(at int) int64 { return int64(number(at)) } //nolint:gosec // the same bits
		x.Name, x.Git = name, binary.BigEndian.Uint32(row)
		copy(x.ID[:], row[4:])
		x.Stamp = Stamp{Size: signed(24), MTime: signed(32), CTime: signed(40), Inode: number(48), Mode: binary.BigEndian.Uint32(row[56:])}
	}
	return f, nil
}

// kept is what a file of stamps holds.
type kept struct {
	_       struct{} `cbor:",toarray"`
	Format  int
	Folder  string // its path
	Device  uint64
	Inode   uint64
	Folders []packed
}

const (
	format = 2
	// maxKept is how large a file of stamps may be, in bytes: that of 200,000 files with
	// long paths has less.
	maxKept  = 128 << 20
	maxFiles = 1 << 20
)

// ErrForeign: a file of stamps is about another folder, of another format, or such that
// others can write it.
var ErrForeign = errors.New("stamps of another folder, or of another user")

// identifyFolder returns stamps without folders for a folder.
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
func Keep(file, dir string, folders []Folder) error {
	k, err := identifyFolder(dir)
	if err != nil {
		return fmt.Errorf("keep stamps: %w", err)
	}
	for _, f := range folders {
		k.Folders = append(k.Folders, packFolder(f))
	}
	data, err := cbor.Marshal(k)
	if err != nil {
		return fmt.Errorf("keep stamps: %w", err)
	}
	return wholefile.Write(file, bytes.NewReader(data), 0o600)
}

// Read reads what Keep wrote for the folder at dir. It believes only a file that nobody but
// this user can write.
func Read(file, dir string) ([]Folder, error) {
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
	folders := make([]Folder, len(k.Folders))
	for i, p := range k.Folders {
		if folders[i], err = unpackFolder(p); err != nil {
			return nil, err
		}
	}
	return folders, nil
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
