package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
	"github.com/united-workforce/uwf/gitcas/workspace/stamps"
)

const (
	gitDir    = ".git"
	gitignore = ".gitignore"
	clockFile = TempPrefix + "clock"
)

// reader reads folders, files and links. It ends with its context, and at so many things
// that were looked at, whatever becomes of them.
type reader struct {
	ctx      context.Context
	op       string
	maxFiles int // in a commit
	maxDepth int // levels of folders
	looked   int
	buf      bytes.Buffer
}

// place is a folder on the disk, and what it is compared with.
type place struct {
	r     *os.Root
	path  string
	depth int
	tree  *memtree.Dir // in the commit; nil: it has no such folder
	seen  *memtree.Dir // as it was when it was last looked at
	rules *ignore.Rules
	// attributes are nil if no file has any, and in a restore, which has the commit's.
	attributes *ignore.Attributes
	// ignored: what the tree doesn't have doesn't count.
	ignored bool
	stays   *bool // set when something is left that the commit doesn't have
}

// onDisk is one thing in a folder.
type onDisk struct {
	name string
	info fs.FileInfo
}

// visitFolder opens a folder of a place, which is compared with tree, for as long as do takes.
func (rd *reader) visitFolder(p place, x pair, tree *memtree.Dir, ignored bool, do func(in place) error) error {
	path := memtree.JoinPath(p.path, x.name)
	if p.depth >= rd.maxDepth {
		return rooted.NewError(ErrLimit, rd.op, path, "more than %d levels of folders: remove them", rd.maxDepth)
	}
	sub, err := rooted.OpenSubdir(p.r, rd.op, path, x.name, x.disk.info)
	if err != nil {
		return err
	}
	err = do(place{
		r: sub, path: path, depth: p.depth + 1, tree: tree, seen: p.seen.FindFolder(x.name),
		rules: p.rules, attributes: p.attributes, ignored: ignored, stays: new(bool),
	})
	return errors.Join(err, sub.Close())
}

// For each file that a commit may have, so many things may be in the whole folder, and in
// one folder, ignored files and empty folders among them.
const (
	thingsPerFile = 10
	thingsAtOnce  = 2
)

// listFolder returns what is in a folder, sorted by name. Too many things in it, or with it,
// are an error that names the folder.
func (rd *reader) listFolder(r *os.Root, path string) (found []onDisk, err error) {
	f, err := r.Open(".")
	if err != nil {
		return nil, rooted.IOError(rd.op, path, err)
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
				return nil, rooted.IOError(rd.op, memtree.JoinPath(path, d.Name()), err)
			}
			found = append(found, onDisk{name: d.Name(), info: info})
		}
		rd.looked += len(batch)
		if rd.looked > thingsPerFile*rd.maxFiles || len(found) > thingsAtOnce*rd.maxFiles {
			return nil, rooted.NewError(ErrLimit, rd.op, path, "too many things to look at: %d in this folder, %d together: remove them, or add whole folders of them to .gitignore", len(found), rd.looked)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, rooted.IOError(rd.op, path, err)
		}
	}
	slices.SortFunc(found, func(a, b onDisk) int { return strings.Compare(a.name, b.name) })
	return found, nil
}

// content is what was read of a file or a link.
type content struct {
	id    wire.ID
	data  []byte // valid until the next read; none of a file that is too large
	size  int64
	mode  filemode.FileMode // 0: neither a file nor a link
	stamp stamps.Stamp      // zero when the file changed while it was read
}

// sizes bound what is read of a file, in bytes.
type sizes struct {
	hash int64 // a larger file is not read at all, and has no id
	keep int64 // of a larger file the content is not kept
}

// unboundedSizes hash a file of any size.
func unboundedSizes(keep int64) sizes { return sizes{hash: math.MaxInt64, keep: keep} }

// readContent reads a file or a symlink's target. Of other things it says nothing.
func (rd *reader) readContent(r *os.Root, path, name string, info fs.FileInfo, most sizes) (content, error) {
	switch info.Mode().Type() {
	case 0:
		return rd.readFile(r, path, name, info, most)
	case fs.ModeSymlink:
		target, err := r.Readlink(name)
		if err != nil {
			return content{}, rooted.IOError(rd.op, path, err)
		}
		data := []byte(target)
		return content{id: memtree.BlobID(data), data: data, size: int64(len(data)), mode: filemode.Symlink}, nil
	}
	return content{}, nil
}

func (rd *reader) readFile(r *os.Root, path, name string, info fs.FileInfo, most sizes) (c content, err error) {
	f, info, err := rooted.OpenFile(r, rd.op, path, name, info)
	if err != nil {
		return content{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c = content{mode: modeOf(info), size: info.Size()}
	if c.size > most.hash {
		return c, nil
	}
	h := plumbing.NewHasher(plumbing.BlobObject, c.size)
	rd.buf.Reset()
	to := io.Writer(h)
	if c.size <= most.keep {
		to = io.MultiWriter(h, &rd.buf)
	}
	n, err := rd.copyBytes(to, f, c.size)
	if err != nil {
		return content{}, rooted.IOError(rd.op, path, err)
	}
	after, err := f.Stat()
	if err != nil {
		return content{}, rooted.IOError(rd.op, path, err)
	}
	if n < c.size {
		return content{}, rooted.UnstableError(rd.op, path)
	}
	if s := stamps.StatOf(after).Stamp; s == stamps.StatOf(info).Stamp {
		c.stamp = s
	}
	c.id, c.data = h.Sum(), rd.buf.Bytes()
	return c, nil
}

// readPath reads the file or link at a path, as readContent does.
func (rd *reader) readPath(cur *rooted.Cursor, path string, most sizes) (content, error) {
	folder, name := rooted.SplitPath(path)
	in, err := cur.OpenDir(folder, false)
	if err != nil {
		return content{}, err
	}
	info, err := in.Lstat(name)
	if err != nil {
		return content{}, rooted.IOError(rd.op, path, err)
	}
	return rd.readContent(in, path, name, info, most)
}

// copyBytes copies what a file has, as much as it is to have. That may be very much: a
// hole in it costs nothing to make.
func (rd *reader) copyBytes(to io.Writer, f io.Reader, size int64) (n int64, err error) {
	for n < size {
		if err := rd.ctx.Err(); err != nil {
			return n, err
		}
		more, err := io.CopyN(to, f, min(size-n, 1<<20))
		n += more
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
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
	return a == b || memtree.IsFile(a) && memtree.IsFile(b) && a != filemode.Executable && b != filemode.Executable
}

// readIgnore returns the rules of a folder's .gitignore, or those above if it has no such file.
func (rd *reader) readIgnore(p place, found []onDisk) (*ignore.Rules, error) {
	data, there, err := rd.readRules(p, found, gitignore)
	if err != nil || !there {
		return p.rules, err
	}
	rules, err := p.rules.Folder(p.path, data)
	return rules, rd.rulesError(gitignore, err)
}

// readAttributes returns the attributes of a folder's .gitattributes, or those above if it has no such file.
func (rd *reader) readAttributes(p place, found []onDisk, most limits) (*ignore.Attributes, error) {
	data, there, err := rd.readRules(p, found, gitattributes)
	if err != nil || !there {
		return p.attributes, err
	}
	above := p.attributes
	if above == nil {
		above = newAttributes(most)
	}
	own, err := above.Folder(p.path, data)
	return own, rd.rulesError(gitattributes, err)
}

// readRules reads a folder's file of that name, if it is a regular file: git follows no link
// there either. It refuses a file that is too large (ErrLimit) before it reads it.
func (rd *reader) readRules(p place, found []onDisk, file string) (data []byte, there bool, err error) {
	i, there := slices.BinarySearchFunc(found, file, func(d onDisk, name string) int { return strings.Compare(d.name, name) })
	if !there || !found[i].info.Mode().IsRegular() {
		return nil, false, nil
	}
	path := memtree.JoinPath(p.path, file)
	if found[i].info.Size() > ignore.MaxFile {
		return nil, false, largeRules(rd.op, path)
	}
	c, err := rd.readFile(p.r, path, file, found[i].info, sizes{hash: ignore.MaxFile, keep: ignore.MaxFile})
	if err == nil && c.size > ignore.MaxFile { // it grew
		err = largeRules(rd.op, path)
	}
	return c.data, err == nil, err
}

func largeRules(op, path string) error {
	return rooted.NewError(ErrLimit, op, path, "more than %d bytes: take out what isn't needed", ignore.MaxFile)
}

// rulesError names the file of rules that takes too long.
func (rd *reader) rulesError(file string, err error) error {
	var cost *ignore.CostError
	if !errors.As(err, &cost) {
		return err
	}
	return rooted.NewError(ErrLimit, rd.op, memtree.JoinPath(cost.Folder, file), "%w", err)
}

// isIgnored says whether a thing in a folder is ignored, by itself or with the folder.
func (rd *reader) isIgnored(p place, path string, isDir bool) (bool, error) {
	if p.ignored {
		return true, nil
	}
	ignored, err := p.rules.Ignored(path, isDir)
	return ignored, rd.rulesError(gitignore, err)
}

// pair is a name that is in a folder, in a tree or in both.
type pair struct {
	name string
	disk *onDisk
	tree *memtree.Entry
}

// pairUp merges two lists that are sorted by name.
func pairUp(found []onDisk, tree []memtree.Entry) []pair {
	out := make([]pair, 0, max(len(found), len(tree)))
	for len(found) > 0 || len(tree) > 0 {
		switch {
		case len(tree) == 0 || len(found) > 0 && found[0].name < tree[0].Name:
			out = append(out, pair{name: found[0].name, disk: &found[0]})
			found = found[1:]
		case len(found) == 0 || tree[0].Name < found[0].name:
			out = append(out, pair{name: tree[0].Name, tree: &tree[0]})
			tree = tree[1:]
		default:
			out = append(out, pair{name: tree[0].Name, disk: &found[0], tree: &tree[0]})
			found, tree = found[1:], tree[1:]
		}
	}
	return out
}
