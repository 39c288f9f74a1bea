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
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
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

// manifest is artifact.json.
type manifest struct {
	Format  int            `json:"format"`
	Thread  string         `json:"thread"`
	Head    string         `json:"head"`
	Step    int            `json:"step"`
	Role    string         `json:"role"`
	Agent   string         `json:"agent"`
	Answer  string         `json:"answer,omitempty"`
	Base    string         `json:"base,omitempty"`
	Handle  string         `json:"handle,omitempty"`
	Usage   record.Usage   `json:"usage"`
	Stderr  string         `json:"stderr,omitempty"`
	Failure *failureJSON   `json:"failure,omitempty"`
	Files   []manifestFile `json:"files,omitempty"`
}

type failureJSON struct {
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

// manifestFile is a changed file. The content of the n-th one, counted from 1, is
// files/n; a deleted one has none.
type manifestFile struct {
	Path string `json:"path"`
	Mode string `json:"mode"` // 100644, 100755, 120000 or deleted
	Old  string `json:"old,omitempty"`
}

// Write makes the folder of an artifact, in the place of one that is there. A folder
// that holds anything else is left alone.
func Write(dir string, a Artifact) error {
	if err := clearFolder(dir); err != nil {
		return fmt.Errorf("write the artifact %s: %w", dir, err)
	}
	if err := writeArtifact(dir, a); err != nil {
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
	m, err := manifestOf(a)
	if err != nil {
		return err
	}
	for i, f := range a.Files {
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
	for _, h := range slices.Sorted(maps.Keys(a.Draft.Nodes)) {
		line, err := node.EncodeLine(h, "", a.Draft.Nodes[h])
		if err != nil {
			return fmt.Errorf("node %s: %w", h, err)
		}
		lines.Write(line)
	}
	if err := os.WriteFile(filepath.Join(dir, nodesName), lines.Bytes(), 0o644); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	// The last one: with it, the artifact is whole.
	return os.WriteFile(filepath.Join(dir, manifestName), append(raw, '\n'), 0o644)
}

func manifestOf(a Artifact) (manifest, error) {
	m := manifest{
		Format: Format, Thread: string(a.Thread), Head: string(a.Head), Step: a.Step, Role: a.Role, Agent: a.Agent, Answer: string(a.Answer),
		Base: idText(a.Base), Handle: string(a.Draft.Handle), Usage: a.Draft.Usage, Stderr: a.Draft.Stderr,
	}
	if a.Failure != nil {
		m.Failure = &failureJSON{Reason: a.Failure.Reason, Detail: a.Failure.Detail}
	}
	for _, f := range a.Files {
		mode, err := modeName(f.Mode)
		if err != nil {
			return m, fmt.Errorf("file %q: %w", f.Path, err)
		}
		m.Files = append(m.Files, manifestFile{Path: f.Path, Mode: mode, Old: idText(f.Old)})
	}
	return m, nil
}

func idText(id wire.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}
