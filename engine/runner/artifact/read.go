package artifact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/engine/step/seal"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
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
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Artifact{}, ErrNone
	case err == nil && !info.IsDir():
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
	a, err := r.readManifest()
	if err == nil {
		err = r.checkManifest(a)
	}
	if err != nil {
		return a, err
	}
	if a.Nodes, err = r.readNodes(); err != nil {
		return a, err
	}
	if _, ok := a.Nodes[a.Handle]; a.Failure == nil && !ok {
		return a, r.badError(manifestName, "handle: %q is not among the %d nodes", clipText(string(a.Handle)), len(a.Nodes))
	}
	folder, present := names[filesName]
	if present && !folder {
		return a, r.badError(filesName, "it is no folder")
	}
	a.Files, err = r.readFiles(a.Listed, folder)
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

func (r *reader) readManifest() (a Artifact, err error) {
	raw, err := r.readContent(manifestName, maxManifest)
	if err != nil {
		return a, err
	}
	switch err := node.DecodeJSON(raw, &a); {
	case err != nil:
		return a, r.badError(manifestName, "%v", err)
	case a.Format != Format:
		return a, r.badError(manifestName, "it has format %d, and this uwf knows %d: use the same version in both jobs", a.Format, Format)
	}
	return a, nil
}

// checkManifest checks everything of the manifest but the files.
func (r *reader) checkManifest(a Artifact) error {
	for _, c := range []struct {
		ok   bool
		what string
		got  any
	}{
		{a.Thread.Valid(), "thread: no thread id", a.Thread},
		{a.Head.Valid(), "head: no hash", a.Head},
		{a.Step >= 1 && a.Step <= maxStep, "step: not the number of a step", a.Step},
		{goodName(a.Role), "role: no name of a role", a.Role},
		{goodName(a.Agent), "agent: no name of an agent", a.Agent},
		{a.Answer == "" || a.Answer.Valid(), "answer: no hash", a.Answer},
		{a.Handle.Valid() || a.Failure != nil && a.Handle == "", "handle: no hash", a.Handle},
		{len(a.Stderr) <= maxText, "stderr: too long", ""},
		{goodUsage(a.Usage), "usage: numbers that can't be", a.Usage},
		{a.Failure == nil || a.Failure.Reason != "", "failure: it says nothing", ""},
		{a.Failure == nil || len(a.Failure.Reason)+len(a.Failure.Detail) <= maxText, "failure: too long", ""},
	} {
		if !c.ok {
			return r.badError(manifestName, "%s: %q", c.what, clipText(fmt.Sprint(c.got)))
		}
	}
	return nil
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
func (r *reader) readFiles(list []listedFile, folder bool) ([]workspace.Edit, error) {
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
	return out, nil
}

func (r *reader) readFile(n int, f listedFile) (workspace.Edit, error) {
	at := fmt.Sprintf("%s: files[%d]", manifestName, n-1)
	mode, known := modes[f.Mode]
	e := workspace.Edit{Path: f.Path, Mode: mode, Old: plumbing.NewHash(f.Old)}
	switch {
	case !known:
		return e, r.badError(at, "mode %q is none of 100644, 100755, 120000 and deleted", clipText(f.Mode))
	case f.Old != "" && (!plumbing.IsHash(f.Old) || e.Old.IsZero()):
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

// clipText shortens what stands in a message.
func clipText(s string) string { return text.Cut(strings.ToValidUTF8(s, ""), 123) }
