package ocas

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"strings"
)

// AddBundle takes in a bundle of `ocas export`: a tar archive of cas/<HASH>.bin and
// vars.jsonl. Other files in it are skipped.
func (s *Source) AddBundle(r io.Reader) error {
	t := tar.NewReader(r)
	total := int64(0)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read the bundle: %w", err)
		}
		if total += max(h.Size, 0); total > maxTar {
			return fmt.Errorf("read the bundle: its files are larger than %d bytes together", maxTar)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := s.bundleFile(h.Name, t); err != nil {
			return fmt.Errorf("read the bundle: %s: %w", h.Name, err)
		}
	}
	if len(s.bundled) == 0 {
		return fmt.Errorf("%w: no cas/<HASH>.bin is in the archive", ErrNothing)
	}
	return nil
}

func (s *Source) bundleFile(name string, r io.Reader) error {
	if name == "vars.jsonl" {
		b, err := readAll(r, maxList)
		if err != nil {
			return err
		}
		return s.readVars(b)
	}
	file, ok := strings.CutPrefix(name, "cas/")
	h, isNode := hashOf(file)
	if !ok || !isNode {
		return nil
	}
	b, err := readAll(r, maxNode)
	s.bundled[h] = b
	return err
}
