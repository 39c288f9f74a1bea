package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/engine/step/seal"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/text"
)

// BadError is an artifact that no uwf of this version has written.
type BadError struct {
	Dir  string
	What string // artifact.json, nodes.jsonl:3, files/7 …
	Why  string
}

func (e *BadError) Error() string {
	return fmt.Sprintf("read the artifact %s: %s: %s; nothing was done with it: run the first job again", e.Dir, e.What, e.Why)
}

// Read reads a folder that anyone may have written. A folder that is not there or
// empty is ErrNone; one that is no artifact as Write makes them is a *BadError.
func Read(dir string) (Artifact, error) {
	if info, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return Artifact{}, ErrNone
	} else if err != nil {
		return Artifact{}, fmt.Errorf("read the artifact: %w", err)
	} else if !info.IsDir() {
		return Artifact{}, &BadError{Dir: dir, What: filepath.Base(dir), Why: "it is no folder"}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Artifact{}, fmt.Errorf("read the artifact: %w", err)
	}
	r := reader{dir: dir, root: root}
	a, err := r.readArtifact()
	return a, errors.Join(err, root.Close())
}

type reader struct {
	dir   string
	root  *os.Root
	total int64 // bytes of files so far
}

func (r *reader) badError(what, format string, args ...any) error {
	return &BadError{Dir: r.dir, What: what, Why: fmt.Sprintf(format, args...)}
}

func (r *reader) readArtifact() (Artifact, error) {
	names, err := r.listFolder(".", 2*len(ours))
	if err != nil {
		return Artifact{}, err
	}
	delete(names, ignoreName)
	if len(names) == 0 {
		return Artifact{}, ErrNone
	}
	for name := range names {
		if !slices.Contains(ours, name) {
			return Artifact{}, r.badError(clipText(name), "it is no part of an artifact")
		}
	}
	m, err := r.readManifest()
	if err != nil {
		return Artifact{}, err
	}
	a, err := r.checkManifest(m)
	if err != nil {
		return a, err
	}
	if a.Draft.Nodes, err = r.readNodes(); err != nil {
		return a, err
	}
	if _, ok := a.Draft.Nodes[a.Draft.Handle]; a.Failure == nil && !ok {
		return a, r.badError(manifestName, "handle: %q is not among the %d nodes", clipText(string(a.Draft.Handle)), len(a.Draft.Nodes))
	}
	folder, present := names[filesName]
	if present && !folder {
		return a, r.badError(filesName, "it is no folder")
	}
	a.Files, err = r.readFiles(m.Files, folder)
	return a, err
}

// listFolder returns the names in a folder of the artifact, and which of them are folders.
// More than most are refused.
func (r *reader) listFolder(path string, most int) (map[string]bool, error) {
	var entries []fs.DirEntry
	f, err := r.root.Open(path)
	if err == nil {
		if entries, err = f.ReadDir(most + 1); errors.Is(err, io.EOF) {
			err = nil
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return nil, r.badError(path, "%v", err)
	}
	if len(entries) > most {
		return nil, r.badError(path, "there is more in the folder than belongs there")
	}
	out := map[string]bool{}
	for _, e := range entries {
		out[e.Name()] = e.IsDir()
	}
	return out, nil
}

// readContent reads a regular file of at most limit bytes.
func (r *reader) readContent(name string, limit int64) ([]byte, error) {
	info, err := r.root.Lstat(name)
	switch {
	case err != nil:
		return nil, r.badError(name, "it is missing: %v", err)
	case !info.Mode().IsRegular():
		return nil, r.badError(name, "it is no regular file")
	case info.Size() > limit:
		return nil, r.badError(name, "it has %d bytes; at most %d are taken", info.Size(), limit)
	}
	var data []byte
	f, err := r.root.Open(name)
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(f, info.Size())) // it may grow meanwhile
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return nil, r.badError(name, "%v", err)
	}
	return data, nil
}

func (r *reader) readManifest() (manifest, error) {
	var m manifest
	raw, err := r.readContent(manifestName, maxManifest)
	if err != nil {
		return m, err
	}
	// First strictly: encoding/json takes the last of two equal keys.
	if _, err := node.ParseJSON(raw); err != nil {
		return m, r.badError(manifestName, "%v", err)
	}
	var version struct{ Format int }
	if err := json.Unmarshal(raw, &version); err != nil {
		return m, r.badError(manifestName, "%v", err)
	}
	if version.Format != Format {
		return m, r.badError(manifestName, "it has format %d, and this uwf knows %d: use the same version in both jobs", version.Format, Format)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, r.badError(manifestName, "%v", err)
	}
	return m, nil
}

// checkManifest checks everything of the manifest but the files.
func (r *reader) checkManifest(m manifest) (Artifact, error) {
	a := Artifact{
		Thread: gitcas.ThreadID(m.Thread), Head: node.Hash(m.Head), Step: m.Step, Role: m.Role, Agent: m.Agent, Answer: node.Hash(m.Answer),
		Draft: task.Draft{Handle: node.Hash(m.Handle), Usage: m.Usage, Stderr: m.Stderr, Took: time.Duration(m.Usage.DurationMs) * time.Millisecond},
	}
	base, baseOK := parseID(m.Base)
	a.Base = base
	for _, c := range []struct {
		ok   bool
		what string
		got  string
	}{
		{a.Thread.Valid(), "thread: no thread id", m.Thread},
		{a.Head.Valid(), "head: no hash", m.Head},
		{m.Step >= 1 && m.Step <= maxStep, "step: not the number of a step", strconv.Itoa(m.Step)},
		{goodName(m.Role), "role: no name of a role", m.Role},
		{goodName(m.Agent), "agent: no name of an agent", m.Agent},
		{m.Answer == "" || a.Answer.Valid(), "answer: no hash", m.Answer},
		{baseOK, "base: no commit", m.Base},
		{a.Draft.Handle.Valid() || m.Failure != nil && m.Handle == "", "handle: no hash", m.Handle},
		{len(m.Stderr) <= maxText, "stderr: too long", ""},
		{goodUsage(m.Usage), "usage: numbers that can't be", fmt.Sprintf("%+v", m.Usage)},
	} {
		if !c.ok {
			return a, r.badError(manifestName, "%s: %q", c.what, clipText(c.got))
		}
	}
	if m.Failure != nil {
		a.Failure = &Failure{Reason: m.Failure.Reason, Detail: m.Failure.Detail}
		if a.Failure.Reason == "" || len(a.Failure.Reason)+len(a.Failure.Detail) > maxText {
			return a, r.badError(manifestName, "failure: it says nothing, or more than %d bytes", maxText)
		}
	}
	return a, nil
}

func parseID(s string) (wire.ID, bool) {
	if s == "" {
		return wire.ZeroID, true
	}
	id := plumbing.NewHash(s)
	return id, plumbing.IsHash(s) && !id.IsZero() && id.String() == s
}

func goodName(s string) bool {
	return s != "" && len(s) <= maxName && text.IsLine(s) && !strings.ContainsRune(s, utf8.RuneError)
}

func goodUsage(u record.Usage) bool {
	return u.Turns >= 0 && u.Turns <= maxStep && u.InputTokens >= 0 && u.InputTokens <= maxTokens && u.OutputTokens >= 0 && u.OutputTokens <= maxTokens &&
		u.DurationMs >= 0 && u.DurationMs <= maxTookMs && u.CostUSD >= 0 && u.CostUSD <= maxCostUSD
}

// readNodes reads the drafts: each is what its hash says, and there once.
func (r *reader) readNodes() (map[node.Hash]node.Node, error) {
	raw, err := r.readContent(nodesName, 2*seal.MaxStep)
	if err != nil {
		return nil, err
	}
	if bytes.Count(raw, []byte{'\n'}) > 2*seal.MaxDrafts {
		return nil, r.badError(nodesName, "there are more nodes than an agent may stage")
	}
	out := map[node.Hash]node.Node{}
	n := 0
	for line := range bytes.Lines(raw) {
		n++
		at := fmt.Sprintf("%s:%d", nodesName, n)
		h, _, x, err := node.DecodeLine(bytes.TrimSuffix(line, []byte{'\n'}))
		if err != nil {
			return nil, r.badError(at, "%v", err)
		}
		if err := node.Verify(h, x); err != nil {
			return nil, r.badError(at, "%v", err)
		}
		if _, twice := out[h]; twice {
			return nil, r.badError(at, "node %s is there twice", h)
		}
		out[h] = x
	}
	return out, nil
}

// readFiles reads the changed files. What is not named in the manifest is refused too.
func (r *reader) readFiles(list []manifestFile, folder bool) ([]workspace.Edit, error) {
	if len(list) > maxFiles {
		return nil, r.badError(manifestName, "files: there are %d; at most %d are taken", len(list), maxFiles)
	}
	present := map[string]bool{}
	if folder {
		var err error
		if present, err = r.listFolder(filesName, len(list)); err != nil {
			return nil, err
		}
	}
	var out []workspace.Edit
	for i, f := range list {
		e, err := r.readFile(i+1, f)
		if err != nil {
			return nil, err
		}
		if e.Mode != 0 {
			delete(present, strconv.Itoa(i+1))
		}
		out = append(out, e)
	}
	for name := range present {
		return nil, r.badError(filesName+"/"+clipText(name), "it belongs to no file of the manifest")
	}
	return out, r.checkPaths(out)
}

func (r *reader) readFile(n int, f manifestFile) (workspace.Edit, error) {
	at := fmt.Sprintf("%s: files[%d]", manifestName, n-1)
	mode, known := modes[f.Mode]
	old, oldOK := parseID(f.Old)
	e := workspace.Edit{Path: f.Path, Mode: mode, Old: old}
	switch {
	case !known:
		return e, r.badError(at, "mode %q is none of 100644, 100755, 120000 and deleted", clipText(f.Mode))
	case !oldOK:
		return e, r.badError(at, "old: %q is no object id", clipText(f.Old))
	}
	if err := workspace.CheckPath(f.Path, mode); err != nil {
		return e, r.badError(at, "%v", err)
	}
	if mode == 0 {
		return e, nil
	}
	var err error
	if e.Data, err = r.readContent(filesName+"/"+strconv.Itoa(n), workspace.DefaultMaxFile); err != nil {
		return e, err
	}
	if r.total += int64(len(e.Data)); r.total > workspace.DefaultMaxTotal {
		return e, r.badError(at, "with it there are more than %d bytes of files", int64(workspace.DefaultMaxTotal))
	}
	if mode == filemode.Symlink {
		if err := workspace.CheckLink(e.Path, string(e.Data)); err != nil {
			return e, r.badError(at, "%v", err)
		}
	}
	return e, nil
}

// checkPaths refuses paths that are there twice, and files that lie in other files.
func (r *reader) checkPaths(edits []workspace.Edit) error {
	made := map[string]bool{}
	seen := map[string]bool{}
	for _, e := range edits {
		if seen[e.Path] {
			return r.badError(manifestName, "files: %q is there twice", clipText(e.Path))
		}
		seen[e.Path] = true
		if e.Mode != 0 {
			made[e.Path] = true
		}
	}
	for path := range made {
		for i := range len(path) {
			if path[i] == '/' && made[path[:i]] {
				return r.badError(manifestName, "files: %q lies in %q, which is a file", clipText(path), clipText(path[:i]))
			}
		}
	}
	return nil
}

// clipText shortens what stands in a message.
func clipText(s string) string { return text.Cut(strings.ToValidUTF8(s, ""), 123) }
