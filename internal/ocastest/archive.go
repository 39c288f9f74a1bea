package ocastest

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// Unpack writes the files of an archive (.tgz) of a store below dir. It takes files
// and folders alone: a link could lead out of dir.
func Unpack(archive, dir string) (err error) {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", archive, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = unpackMember(root, h, t)
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", archive, err)
		}
	}
}

func unpackMember(root *os.Root, h *tar.Header, r io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(path.Clean(h.Name), 0o700)
	case tar.TypeReg:
		b, err := io.ReadAll(r)
		return errors.Join(err, root.MkdirAll(path.Dir(h.Name), 0o700), root.WriteFile(h.Name, b, 0o600))
	}
	return fmt.Errorf("%s is neither a file nor a folder", h.Name)
}
