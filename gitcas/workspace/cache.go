package workspace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// The cache file: the magic line, device and inode of the workspace's folder, the
// commit (zeros for none), its tree with the stamps of its files, and the xxHash
// of all that. It is private to this version: another magic is no cache.
const (
	cacheMagic   = "uwf workspace cache 1\n"
	maxCacheFile = 512 << 20
)

var errCache = errors.New("damaged cache")

// loadCache takes over what another process wrote down. Whatever is wrong with
// the file, it is as if there were none.
func (w *Workspace) loadCache() {
	if w.o.Cache == "" {
		return
	}
	info, err := os.Stat(w.o.Cache)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCacheFile {
		return
	}
	data, err := os.ReadFile(w.o.Cache)
	if err != nil {
		return
	}
	dev, ino, err := folderIdentity(w.path)
	if err != nil {
		return
	}
	commit, tree, err := decodeCache(data, dev, ino, w.o.MaxFiles)
	if err != nil {
		return
	}
	w.seen = tree
	w.rememberTree(commit, tree)
}

// saveCache writes down what is known now. Without it the next process reads all
// files again: no reason to fail.
func (w *Workspace) saveCache(commit wire.ID) {
	if w.o.Cache == "" || w.seen == nil {
		return
	}
	dev, ino, err := folderIdentity(w.path)
	if err != nil {
		return
	}
	_ = writeCache(w.o.Cache, encodeCache(commit, w.seen, dev, ino))
}

func writeCache(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// folderIdentity is what tells this folder from another that took its place.
func folderIdentity(path string) (dev, ino uint64, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	s := statOf(info)
	return s.dev, s.stamp.ino, nil
}

func encodeCache(commit wire.ID, tree *dir, dev, ino uint64) []byte {
	b := append([]byte(nil), cacheMagic...)
	b = binary.AppendUvarint(b, dev)
	b = binary.AppendUvarint(b, ino)
	b = append(b, commit[:]...)
	return sealCache(appendDir(b, tree))
}

func sealCache(b []byte) []byte { return binary.BigEndian.AppendUint64(b, xxhash.Sum64(b)) }

func appendDir(b []byte, d *dir) []byte {
	b = append(b, d.id[:]...)
	b = binary.AppendUvarint(b, uint64(len(d.entries)))
	for i := range d.entries {
		e := &d.entries[i]
		b = binary.AppendUvarint(b, uint64(len(e.name)))
		b = append(b, e.name...)
		b = binary.AppendUvarint(b, uint64(e.mode))
		if e.dir != nil {
			b = appendDir(b, e.dir)
			continue
		}
		b = append(b, e.id[:]...)
		b = binary.AppendVarint(b, e.stamp.size)
		b = binary.AppendVarint(b, e.stamp.mtime)
		b = binary.AppendVarint(b, e.stamp.ctime)
		b = binary.AppendUvarint(b, e.stamp.ino)
		b = binary.AppendUvarint(b, uint64(e.stamp.mode))
	}
	return b
}

func decodeCache(data []byte, dev, ino uint64, maxFiles int) (wire.ID, *dir, error) {
	var commit wire.ID
	n := len(data) - 8
	if n < 0 || !bytes.HasPrefix(data, []byte(cacheMagic)) || xxhash.Sum64(data[:n]) != binary.BigEndian.Uint64(data[n:]) {
		return commit, nil, errCache
	}
	c := cacheReader{r: bytes.NewReader(data[len(cacheMagic):n]), left: maxFiles}
	if c.readUint() != dev || c.readUint() != ino {
		return commit, nil, errCache
	}
	c.readID(&commit)
	d := c.readDir(0)
	if c.err == nil && c.r.Len() != 0 {
		c.err = errCache
	}
	return commit, d, c.err
}

// cacheReader reads until the first error, which it keeps.
type cacheReader struct {
	r    *bytes.Reader
	left int // files that may still come
	err  error
}

func (c *cacheReader) noteError(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *cacheReader) readUint() uint64 {
	v, err := binary.ReadUvarint(c.r)
	if err != nil {
		c.noteError(err)
	}
	return v
}

func (c *cacheReader) readInt() int64 {
	v, err := binary.ReadVarint(c.r)
	if err != nil {
		c.noteError(err)
	}
	return v
}

func (c *cacheReader) readID(to *wire.ID) {
	if _, err := io.ReadFull(c.r, to[:]); err != nil {
		c.noteError(err)
	}
}

func (c *cacheReader) readName() string {
	n := c.readUint()
	if n > gitobj.MaxName {
		c.noteError(errCache)
		return ""
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c.r, b); err != nil {
		c.noteError(err)
	}
	if gitobj.CheckName(string(b)) != nil {
		c.noteError(errCache)
	}
	return string(b)
}

func (c *cacheReader) readDir(depth int) *dir {
	d := &dir{}
	c.readID(&d.id)
	n := c.readUint()
	if depth > maxDepth || n > uint64(c.r.Len()) {
		c.noteError(errCache)
		return d
	}
	d.entries = make([]entry, 0, n)
	for range n {
		e := entry{name: c.readName(), mode: filemode.FileMode(c.readUint())} //nolint:gosec // checked by its use below
		if k := len(d.entries); k > 0 && d.entries[k-1].name >= e.name {
			c.noteError(errCache)
		}
		if c.err != nil {
			return d
		}
		c.readContent(&e, depth)
		d.entries = append(d.entries, e)
	}
	d.measureTree()
	return d
}

// readContent reads what comes after an entry's mode.
func (c *cacheReader) readContent(e *entry, depth int) {
	switch {
	case e.mode == filemode.Dir:
		e.dir = c.readDir(depth + 1)
		e.id = e.dir.id
		return
	case isFile(e.mode), e.mode == filemode.Symlink, e.mode == filemode.Submodule:
	default:
		c.noteError(errCache)
	}
	if c.left--; c.left < 0 {
		c.noteError(errCache)
	}
	c.readID(&e.id)
	e.stamp = stamp{size: c.readInt(), mtime: c.readInt(), ctime: c.readInt(), ino: c.readUint(), mode: uint32(c.readUint())} //nolint:gosec // compared only
}
