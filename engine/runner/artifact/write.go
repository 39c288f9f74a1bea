package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/united-workforce/uwf/gitcas/node"
)

// The names in an artifact's folder. No name comes from an agent: the contents of
// files are numbered.
const (
	manifestName = "artifact.json"
	nodesName    = "nodes.jsonl"
	filesName    = "files"
	// ignoreName makes the folder ignore itself: it may lie in the agent's folder,
	// and is no change there. It is never read.
	ignoreName = ".gitignore"
)

var ours = []string{ignoreName, manifestName, nodesName, filesName}

// Write makes the folder of an artifact, in the place of one that is there. A folder
// that holds anything else is left alone.
func Write(dir string, a Artifact) error {
	err := clearFolder(dir)
	if err == nil {
		err = writeArtifact(dir, a)
	}
	if err != nil {
		return fmt.Errorf("write the artifact %s: %w", dir, err)
	}
	return nil
}

// clearFolder makes room: the folder is there afterwards, with nothing but its .gitignore.
func clearFolder(dir string) error {
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
		return errors.New("it is no folder; name another one by the input artifact")
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(ours, e.Name()) {
			return fmt.Errorf("it holds %q, which is no part of an artifact; name an empty folder by the input artifact", e.Name())
		}
	}
	for _, name := range ours {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ignoreName), []byte("*\n"), 0o644)
}

func writeArtifact(dir string, a Artifact) error {
	a.Format, a.Listed = Format, nil
	for i, f := range a.Files {
		l := listedFile{Path: f.Path}
		for name, mode := range modes {
			if mode == f.Mode {
				l.Mode = name
			}
		}
		if !f.Old.IsZero() {
			l.Old = f.Old.String()
		}
		a.Listed = append(a.Listed, l)
		if f.Mode == 0 {
			continue
		}
		if err := os.MkdirAll(filepath.Join(dir, filesName), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filesName, strconv.Itoa(i+1)), f.Data, 0o644); err != nil {
			return err
		}
	}
	var lines bytes.Buffer
	for _, h := range slices.Sorted(maps.Keys(a.Nodes)) {
		line, err := node.EncodeLine(h, "", a.Nodes[h])
		if err != nil {
			return fmt.Errorf("node %s: %w", h, err)
		}
		lines.Write(line)
	}
	if err := os.WriteFile(filepath.Join(dir, nodesName), lines.Bytes(), 0o644); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	// The last one: with it, the artifact is whole.
	return os.WriteFile(filepath.Join(dir, manifestName), append(raw, '\n'), 0o644)
}
