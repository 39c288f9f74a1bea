package jobcache

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// limits bound what an archive may hold: bytes of all files together, and entries.
type limits struct{ bytes, entries int64 }

// packFolder writes what is in a folder as a tar that gzip has made smaller, in whose header the
// folder's name is. Folders come before what is in them.
func packFolder(to io.Writer, from string) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	z, _ := gzip.NewWriterLevel(to, gzip.BestSpeed) // it has this level
	z.Name = filepath.Base(from)
	w := tar.NewWriter(z)
	return errors.Join(w.AddFS(root.FS()), w.Close(), z.Close(), root.Close())
}

// unpackFolder puts what is in an archive into an empty folder that nobody else writes to, and returns the name in the
// archive's header. Each entry must lie in a folder that the archive has made, and have a new name: so
// nothing is written through a link, or outside.
func unpackFolder(from io.Reader, into string, parts []string, most limits) (name string, err error) {
	z, err := gzip.NewReader(from)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(z.Name, ".") || path.Base("/"+z.Name) != z.Name {
		return "", fmt.Errorf("%.100q is no name of a folder", z.Name)
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	// Headers count as well, so that they do not go on without end.
	r, made, sum := tar.NewReader(io.LimitReader(z, 2*most.bytes)), map[string]bool{".": true}, limits{}
	h, err := r.Next()
	for ; err == nil; h, err = r.Next() {
		at := strings.TrimSuffix(h.Name, "/")
		if !fs.ValidPath(at) || !made[path.Dir(at)] {
			return "", fmt.Errorf("%.100q lies in no folder of the archive", h.Name)
		}
		sum.bytes, sum.entries = sum.bytes+min(h.Size, most.bytes+1), sum.entries+1
		if sum.bytes > most.bytes || sum.entries > most.entries {
			return "", fmt.Errorf("there are more than %d files or %d bytes", most.entries, most.bytes)
		}
		if err := unpackEntry(root, at, h, r); err != nil {
			return "", fmt.Errorf("%.100q: %w", h.Name, err)
		}
		made[at] = h.Typeflag == tar.TypeDir
	}
	if !errors.Is(err, io.EOF) {
		return "", err
	}
	for _, part := range parts {
		if !made[part] {
			return "", fmt.Errorf("the archive has no folder %s", part)
		}
	}
	_, err = io.Copy(io.Discard, io.LimitReader(z, most.bytes)) // the sum of it all is at its end
	return z.Name, err
}

// unpackEntry makes a file, folder or link under a new name.
func unpackEntry(root *os.Root, name string, h *tar.Header, content io.Reader) error {
	mode := fs.FileMode(h.Mode & 0o777)
	switch h.Typeflag {
	case tar.TypeDir:
		return errors.Join(root.Mkdir(name, mode|0o700), root.Chmod(name, mode|0o700))
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, content)
		return errors.Join(err, out.Chmod(mode), out.Close(), root.Chtimes(name, h.ModTime, h.ModTime))
	}
	return errors.New("it is neither a file nor a folder nor a symbolic link")
}
