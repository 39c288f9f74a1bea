package ocas

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"strings"
)

// AddBundle takes in a bundle of `ocas export`: a tar archive of cas/<HASH>.bin and
// vars.jsonl. Other files in it are skipped. Of an archive that is cut off, what comes before
// the cut counts. name is how people know it.
func (s *Source) AddBundle(name string, r io.Reader) {
	at := s.addPlace(name)
	nodes, lists := 0, 0
	defer func() {
		at.noteFound(isNodes, "cas/<HASH>.bin in the archive", nodes > 0)
		at.noteFound(isList, "vars.jsonl in the archive", lists > 0)
	}()
	t := tar.NewReader(r)
	lost := false
	for total := int64(0); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if errors.Is(err, tar.ErrHeader) { // the next file begins with the next block that is a header
			if !lost {
				s.addProblem(name, 0, fmt.Errorf("read the archive: %w; the file that follows is left out", err))
			}
			t, lost = tar.NewReader(r), true
			continue
		}
		if lost = false; err == nil {
			if total += max(h.Size, 0); total > maxTar {
				err = fmt.Errorf("its files are larger than %d bytes together", maxTar)
			}
		}
		if err != nil {
			s.addProblem(name, 0, fmt.Errorf("read the archive: %w; what comes before is taken", err))
			return
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		file, inCAS := strings.CutPrefix(h.Name, "cas/")
		hash, isNode := hashOf(file)
		switch {
		case h.Name == "vars.jsonl":
			lists++
			b, err := readAll(t, maxList)
			if err != nil {
				s.addProblem(name+"/"+h.Name, 0, err)
			}
			s.readVars(name+"/"+h.Name, b)
		case inCAS && isNode:
			nodes++
			b, err := readAll(t, maxNode)
			if err != nil {
				s.addProblem(name+"/"+h.Name, 0, err)
				continue
			}
			s.bundled[hash] = b
		}
	}
}
