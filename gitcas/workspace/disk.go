package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
)

const gitDir = ".git"

// readAgain is how often a file or folder that was exchanged between looking at
// it and opening it is tried.
const readAgain = 3

// joinPath puts a name behind a folder's path; the top folder's path is empty.
func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// onDisk is one thing in a folder.
type onDisk struct {
	name string
	info fs.FileInfo
}

// thingsPerFile: for each file that a commit may have, so many things may be in the
// folder, ignored files and empty folders among them.
const thingsPerFile = 10

// listFolder returns what is in a folder, sorted by name. Too many things in it, or with it,
// are an error that names the folder.
func (rd *reader) listFolder(r *os.Root, path string) (found []onDisk, err error) {
	op := rd.op
	f, err := r.Open(".")
	if err != nil {
		return nil, ioError(op, path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for {
		if err := rd.ctx.Err(); err != nil {
			return nil, err
		}
		batch, err := f.ReadDir(1024)
		for _, d := range batch {
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // gone meanwhile
			}
			if err != nil {
				return nil, ioError(op, joinPath(path, d.Name()), err)
			}
			found = append(found, onDisk{name: d.Name(), info: info})
		}
		rd.looked += len(batch)
		if most := 2 * rd.maxFiles; len(found) > most {
			return nil, &Error{Op: op, Path: path, Kind: ErrLimit, Detail: fmt.Sprintf("more than %d things in one folder: remove them, add them to .gitignore or raise the limit", most)}
		}
		if most := thingsPerFile * rd.maxFiles; rd.looked > most {
			return nil, &Error{Op: op, Path: path, Kind: ErrLimit, Detail: fmt.Sprintf("with those in this folder there are more than %d things to look at: remove them, or add whole folders of them to .gitignore", most)}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, ioError(op, path, err)
		}
	}
	slices.SortFunc(found, func(a, b onDisk) int { return strings.Compare(a.name, b.name) })
	return found, nil
}

// openDir opens the folder of that name in r and makes sure that it is the one
// that info describes: not a link, and not another folder put in its place.
func openDir(r *os.Root, op, path, name string, info fs.FileInfo) (*os.Root, error) {
	// The slash makes the system refuse everything but a folder, so that a
	// FIFO in its place is not waited for.
	sub, err := r.OpenRoot(name + "/")
	if err != nil {
		return nil, ioError(op, path, err)
	}
	got, err := sub.Stat(".")
	if err == nil && os.SameFile(got, info) {
		return sub, nil
	}
	if err == nil {
		return nil, errors.Join(&Error{Op: op, Path: path, Kind: ErrUnstable, Detail: "another folder was put in its place"}, sub.Close())
	}
	return nil, errors.Join(ioError(op, path, err), sub.Close())
}

// openFile opens the regular file of that name in r as info describes it. When
// it was exchanged meanwhile it is looked at again; the result says as what.
func openFile(r *os.Root, op, path, name string, info fs.FileInfo) (*os.File, fs.FileInfo, error) {
	for range readAgain {
		if !info.Mode().IsRegular() {
			break
		}
		f, err := r.OpenFile(name, os.O_RDONLY|openFlags, 0)
		if err != nil {
			return nil, nil, ioError(op, path, err)
		}
		got, err := f.Stat()
		if err == nil && got.Mode().IsRegular() && os.SameFile(got, info) {
			return f, got, nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, nil, ioError(op, path, err)
		}
		if info, err = r.Lstat(name); err != nil {
			return nil, nil, ioError(op, path, err)
		}
	}
	return nil, nil, &Error{Op: op, Path: path, Kind: ErrUnstable, Detail: "stop what writes to it and try again"}
}

// reader reads folders, and files into one buffer that it uses again and again. It
// ends with its context, and at so many things that were looked at, whatever becomes
// of them.
type reader struct {
	ctx      context.Context
	op       string
	maxFiles int // in a commit
	looked   int
	buf      []byte
}

// content is what was read of a file.
type content struct {
	id    wire.ID
	data  []byte // valid until the next read; nil when the file is over the limit
	size  int64
	mode  filemode.FileMode
	stamp stamp // zero when the file changed while it was read
}

// readFile hashes a file. Files up to limit bytes are also returned.
func (rd *reader) readFile(r *os.Root, path, name string, info fs.FileInfo, limit int64) (c content, err error) {
	f, info, err := openFile(r, rd.op, path, name, info)
	if err != nil {
		return content{}, err
	}
	defer func() {
		if cerr := f.Close(); cerr != nil && err == nil {
			err = ioError(rd.op, path, cerr)
		}
	}()
	c = content{mode: modeOf(info), size: info.Size()}
	if c.size > limit {
		c.id, err = rd.hashStream(f, c.size)
		if ended := rd.ctx.Err(); ended != nil {
			return content{}, ended
		}
		if err != nil {
			return content{}, ioError(rd.op, path, err)
		}
	} else {
		if c.data, err = rd.readContent(f, c.size, limit); err != nil {
			return content{}, ioError(rd.op, path, err)
		}
		if int64(len(c.data)) > limit {
			return content{}, &Error{Op: rd.op, Path: path, Kind: ErrUnstable, Detail: "it grows while it is read: stop what writes to it"}
		}
		c.size, c.id = int64(len(c.data)), blobID(c.data)
	}
	after, err := f.Stat()
	if err != nil {
		return content{}, ioError(rd.op, path, err)
	}
	if s := statOf(after).stamp; s == statOf(info).stamp && s.size == c.size {
		c.stamp = s
	}
	return c, nil
}

// readContent reads a file of about size bytes, at most limit+1.
func (rd *reader) readContent(f io.Reader, size, limit int64) ([]byte, error) {
	if int64(cap(rd.buf)) <= size {
		rd.buf = make([]byte, 0, max(64<<10, size+1))
	}
	b := rd.buf[:0]
	for int64(len(b)) <= limit {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	rd.buf = b
	return b, nil
}

// hashStream hashes a file too large to be held. It may have any size: a hole in it
// costs nothing to make.
func (rd *reader) hashStream(f io.Reader, size int64) (wire.ID, error) {
	const piece = 1 << 20
	h := plumbing.NewHasher(plumbing.BlobObject, size)
	for left := size; left > 0; {
		if err := rd.ctx.Err(); err != nil {
			return wire.ID{}, err
		}
		n, err := io.CopyN(h, f, min(left, piece))
		if errors.Is(err, io.EOF) {
			return wire.ID{}, fmt.Errorf("it was cut off while it was read: %w", io.ErrUnexpectedEOF)
		}
		if err != nil {
			return wire.ID{}, err
		}
		left -= n
	}
	return h.Sum(), nil
}

// modeOf is git's mode of a regular file: only the owner's x counts.
func modeOf(info fs.FileInfo) filemode.FileMode {
	if info.Mode()&0o100 != 0 {
		return filemode.Executable
	}
	return filemode.Regular
}

// sameMode compares modes as a working folder can show them.
func sameMode(a, b filemode.FileMode) bool {
	return a == b || isFile(a) && isFile(b) && a != filemode.Executable && b != filemode.Executable
}

// readRules adds the rules of a folder's .gitignore, if it is a regular file: git
// follows no link there either.
func (rd *reader) readRules(r *os.Root, path string, found []onDisk, above *ignore.Rules) (*ignore.Rules, error) {
	f := findOnDisk(found, gitignore)
	if f == nil || !f.info.Mode().IsRegular() {
		return above, nil
	}
	data, err := rd.readIgnore(r, joinPath(path, gitignore), f.info)
	if err != nil {
		return nil, err
	}
	rules, err := above.Folder(path, data)
	return rules, rulesError(rd.op, err)
}

// rulesError says of which .gitignore the patterns are that take too long.
func rulesError(op string, err error) error {
	var cost *ignore.CostError
	if !errors.As(err, &cost) {
		return err
	}
	return &Error{Op: op, Path: joinPath(cost.Folder, gitignore), Kind: ErrLimit, Err: err}
}

const gitignore = ".gitignore"

func (rd *reader) readIgnore(r *os.Root, path string, info fs.FileInfo) ([]byte, error) {
	c, err := rd.readFile(r, path, gitignore, info, ignore.MaxFile)
	if err != nil {
		return nil, err
	}
	if c.data == nil {
		return nil, &Error{Op: rd.op, Path: path, Kind: ErrLimit, Detail: fmt.Sprintf("a .gitignore of more than %d bytes: take out what isn't needed", ignore.MaxFile)}
	}
	return bytes.Clone(c.data), nil
}

func findOnDisk(found []onDisk, name string) *onDisk {
	i, ok := slices.BinarySearchFunc(found, name, func(d onDisk, n string) int { return strings.Compare(d.name, n) })
	if !ok {
		return nil
	}
	return &found[i]
}

// pair is a name that is in a folder, in a tree or in both.
type pair struct {
	name string
	disk *onDisk
	tree *entry
}

// pairUp merges two lists that are sorted by name.
func pairUp(found []onDisk, tree []entry) []pair {
	out := make([]pair, 0, max(len(found), len(tree)))
	for len(found) > 0 || len(tree) > 0 {
		switch {
		case len(tree) == 0 || len(found) > 0 && found[0].name < tree[0].name:
			out = append(out, pair{name: found[0].name, disk: &found[0]})
			found = found[1:]
		case len(found) == 0 || tree[0].name < found[0].name:
			out = append(out, pair{name: tree[0].name, tree: &tree[0]})
			tree = tree[1:]
		default:
			out = append(out, pair{name: tree[0].name, disk: &found[0], tree: &tree[0]})
			found, tree = found[1:], tree[1:]
		}
	}
	return out
}
