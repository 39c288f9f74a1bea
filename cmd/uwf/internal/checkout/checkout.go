// Package checkout asks the person's own git what a checkout holds, as git would store it, and what
// git would write there. It works on a copy of the index and with an object folder that is removed
// afterwards: index, branch and objects of the checkout stay as they are, and no hook runs.
package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/gitenv"
)

// Entry is a file as git stores it. The zero Entry stands for no file.
type Entry struct {
	Mode filemode.FileMode
	ID   wire.ID
}

// IsPlain says whether it is a plain file, executable or not.
func (e Entry) IsPlain() bool { return e.Mode == filemode.Regular || e.Mode == filemode.Executable }

// Scratch is a copy of what git knows of a checkout.
type Scratch struct {
	f       *app.Factory
	top     string           // of the checkout
	dir     string           // temporary
	env     []string         // that points git at the copies
	noHooks []gitenv.Setting // that keep hooks from running which settings define
	drivers []string         // names of filters that run a program when a file is written
	index   map[string]Entry // what the copy of the index holds
	tags    map[string]byte  // of paths that git does not look at: see git ls-files -v

	Unmerged []string // files with a conflict that nobody has resolved
}

// Open copies the index of the checkout around the working directory. Outside of a repository the
// copy is that of an empty one. Close removes the copy.
func Open(ctx context.Context, f *app.Factory, top string) (*Scratch, error) {
	dir, err := os.MkdirTemp("", "uwf-checkout-*")
	if err != nil {
		return nil, err
	}
	s := &Scratch{f: f, top: top, dir: dir}
	if err := s.copyIndex(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("ask git about %s: %w", top, err), s.Close())
	}
	return s, nil
}

// Close removes the copies.
func (s *Scratch) Close() error { return os.RemoveAll(s.dir) }

// tempPath returns the path of a temporary file.
func (s *Scratch) tempPath(name string) string { return filepath.Join(s.dir, name) }

func (s *Scratch) copyIndex(ctx context.Context) error {
	if s.f.RepoRoot() == "" {
		if _, err := s.runGit(ctx, nil, "init", "--quiet", "--bare", "--template=", s.tempPath("git")); err != nil {
			return err
		}
		s.env = []string{"GIT_DIR=" + s.tempPath("git")}
	}
	out, err := s.runGit(ctx, nil, "rev-parse", "--path-format=absolute", "--show-object-format", "--git-dir", "--git-path", "objects", "--git-path", "index")
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != 4 {
		return fmt.Errorf("git rev-parse printed %q", out)
	}
	if lines[0] != "sha1" {
		return wire.ErrSHA256
	}

	s.env = []string{
		"GIT_DIR=" + lines[1],
		"GIT_WORK_TREE=" + s.top,
		"GIT_OBJECT_DIRECTORY=" + s.tempPath("objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(lines[2]) + `"`,
		"GIT_INDEX_FILE=" + s.tempPath("index"),
		"GIT_LITERAL_PATHSPECS=1",
		"GIT_NO_LAZY_FETCH=1",
	}
	if err := errors.Join(os.Mkdir(s.tempPath("objects"), 0o700), copyWithTime(lines[3], s.tempPath("index"))); err != nil {
		return err
	}
	if err := s.readPrograms(ctx); err != nil {
		return err
	}
	return s.readIndex(ctx)
}

// copyWithTime copies an index, if there is one. Git takes a file that is younger than its index
// for changed, so the copy has the time of the index.
func copyWithTime(from, to string) error {
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	info, statErr := os.Stat(from)
	if err := errors.Join(err, statErr, os.WriteFile(to, data, 0o600)); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// readPrograms finds which filters and hooks git's settings name.
func (s *Scratch) readPrograms(ctx context.Context) error {
	out, err := s.runGit(ctx, nil, "config", "--name-only", "-z", "--get-regexp", `^(filter\..*\.(smudge|process)|hook\..*\.command)$`)
	if failed := exitCode(err); failed != 0 && failed != 1 {
		return err
	}
	for _, key := range app.SplitNames(out) {
		kind, rest, _ := strings.Cut(key, ".")
		name := rest[:strings.LastIndexByte(rest, '.')]
		if kind == "hook" {
			s.noHooks = append(s.noHooks, gitenv.Setting{Key: "hook." + name + ".enabled", Value: "false"})
			continue
		}
		s.drivers = append(s.drivers, name)
	}
	return nil
}

// exitCode is how a git ended that ran: 0 without an error, -1 if it did not run.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}

// runGit runs git on the copies.
func (s *Scratch) runGit(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	return s.runGitWith(ctx, nil, stdin, args...)
}

func (s *Scratch) runGitWith(ctx context.Context, env []string, stdin []byte, args ...string) ([]byte, error) {
	settings := gitenv.Args(
		gitenv.Setting{Key: "submodule.recurse", Value: "false"},
		gitenv.Setting{Key: "core.safecrlf", Value: "false"},
		gitenv.Setting{Key: "index.sparse", Value: "false"},
	)
	env = slices.Concat(s.env, gitenv.Variables(s.noHooks), env)
	return app.GitIn(ctx, s.f, app.GitCall{Dir: s.top, Env: env, Stdin: stdin, Args: append(settings, args...)})
}

// pathsOf is a list of paths as git reads it by -z.
func pathsOf(paths []string) []byte {
	if len(paths) == 0 {
		return nil
	}
	return []byte(strings.Join(paths, "\x00") + "\x00")
}

// maxFile is the largest file of a checkout that is read, in bytes.
const maxFile = 64 << 20

// Stage puts files of the checkout into the copy of the index, as git add would, and returns how
// git stores each. It says of the others why git can't. Covered is asked about what stands at a
// path instead of a file, or of a folder on the way: if it says yes, there is no file.
func (s *Scratch) Stage(ctx context.Context, paths []string, covered func(path string, folder bool) bool) (map[string]Entry, map[string]string, error) {
	var here, gone, shown []string
	refused := map[string]string{}
	for _, path := range paths {
		there, why := s.inspectPath(path, covered)
		switch {
		case why != "":
			refused[path] = why
		case there:
			here = append(here, path)
			if s.tags[path] != 0 {
				shown = append(shown, path)
			}
		case !s.isHidden(path):
			gone = append(gone, path)
		}
	}

	for _, step := range []struct {
		paths []string
		args  []string
	}{
		{shown, []string{"--no-skip-worktree"}},
		{shown, []string{"--no-assume-unchanged"}},
		{gone, []string{"--force-remove"}},
		{here, []string{"--add", "--replace"}},
	} {
		if err := s.updateIndex(ctx, nil, step.paths, step.args...); err != nil {
			return nil, nil, err
		}
	}
	err := s.readIndex(ctx)
	staged := map[string]Entry{}
	for _, path := range paths {
		staged[path] = s.index[path]
	}
	return staged, refused, err
}

// updateIndex changes an index at paths.
func (s *Scratch) updateIndex(ctx context.Context, env, paths []string, args ...string) error {
	if len(paths) == 0 {
		return nil
	}
	args = slices.Concat([]string{"update-index", "-z"}, args, []string{"--stdin"})
	_, err := s.runGitWith(ctx, env, pathsOf(paths), args...)
	return err
}

// isHidden says whether the sparse checkout leaves a path out.
func (s *Scratch) isHidden(path string) bool { return s.tags[path]|0x20 == 's' }

// inspectPath reports whether a file or link is at a path. The error says why git can't store it.
func (s *Scratch) inspectPath(path string, covered func(string, bool) bool) (there bool, why string) {
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		info, err := os.Lstat(filepath.Join(s.top, filepath.FromSlash(path[:i])))
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && !info.IsDir() && covered(path[:i], false):
			return false, ""
		case err != nil || !info.IsDir():
			return false, "it can't be reached here"
		}
	}

	info, err := os.Lstat(filepath.Join(s.top, filepath.FromSlash(path)))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.IsDir() && covered(path, true):
		return false, ""
	case err != nil:
		return false, "it can't be reached here"
	case info.Mode().Type()&^fs.ModeSymlink != 0:
		return false, "it is no file here"
	case info.Size() > maxFile:
		return false, fmt.Sprintf("it is larger than %d MiB here", maxFile>>20)
	}
	return true, ""
}

// readIndex reads the copy of the index.
func (s *Scratch) readIndex(ctx context.Context) error {
	out, err := s.runGit(ctx, nil, "ls-files", "-v", "-s", "-z")
	s.index, s.tags, s.Unmerged = map[string]Entry{}, map[string]byte{}, nil
	for _, line := range app.SplitNames(out) {
		head, path, _ := strings.Cut(line, "\t")
		fields := strings.Fields(head) // tag, mode, id, stage
		mode, err := filemode.New(fields[1])
		if err != nil {
			return err
		}
		if fields[3] != "0" && !slices.Contains(s.Unmerged, path) {
			s.Unmerged = append(s.Unmerged, path)
		}
		if fields[0] != "H" {
			s.tags[path] = fields[0][0]
		}
		s.index[path] = Entry{Mode: mode, ID: plumbing.NewHash(fields[2])}
	}
	return err
}

// ReadBlob reads a content.
func (s *Scratch) ReadBlob(ctx context.Context, id wire.ID) ([]byte, error) {
	return s.runGit(ctx, nil, "cat-file", "blob", id.String())
}

// writeFiles writes temporary files, and returns their paths.
func (s *Scratch) writeFiles(contents [][]byte) (names []string, err error) {
	for i, data := range contents {
		name := s.tempPath("file" + strconv.Itoa(i))
		names = append(names, name)
		err = errors.Join(err, os.WriteFile(name, data, 0o600))
	}
	return names, err
}

// Merge merges the lines of two contents that have one before them; clean is false if both have
// changed the same.
func (s *Scratch) Merge(ctx context.Context, ours, base, theirs []byte) (merged []byte, clean bool, err error) {
	names, err := s.writeFiles([][]byte{ours, base, theirs})
	if err != nil {
		return nil, false, err
	}
	merged, err = s.f.Git(ctx, app.GitCall{Args: append([]string{"merge-file", "-p", "-q"}, names...)})
	if conflicts := exitCode(err); conflicts > 0 && conflicts < 128 {
		return nil, false, nil
	}
	return merged, err == nil, err
}

// AddBlobs puts contents into the object folder of the scratch, and returns their ids.
func (s *Scratch) AddBlobs(ctx context.Context, contents ...[]byte) ([]wire.ID, error) {
	names, err := s.writeFiles(contents)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	out, err := s.runGit(ctx, []byte(strings.Join(names, "\n")+"\n"), "hash-object", "-w", "--no-filters", "--stdin-paths")
	var ids []wire.ID
	for line := range strings.Lines(string(out)) {
		ids = append(ids, plumbing.NewHash(strings.TrimSpace(line)))
	}
	return ids, err
}

// WriteTree stores the copy of the index as a tree, or with next the index that EditTree made.
func (s *Scratch) WriteTree(ctx context.Context, env ...string) (wire.ID, error) {
	out, err := s.runGitWith(ctx, env, nil, "write-tree", "--missing-ok")
	return plumbing.NewHash(strings.TrimSpace(string(out))), err
}

// nextIndex points git at the index that EditTree makes.
func (s *Scratch) nextIndex() []string { return []string{"GIT_INDEX_FILE=" + s.tempPath("next")} }

// EditTree makes a tree of another one, with files that are new, different or gone.
func (s *Scratch) EditTree(ctx context.Context, from string, files map[string]Entry) (wire.ID, error) {
	var gone, put bytes.Buffer
	for path, e := range files {
		if e == (Entry{}) {
			fmt.Fprintf(&gone, "0 %s\t%s\x00", wire.ZeroID, path)
			continue
		}
		fmt.Fprintf(&put, "%o %s\t%s\x00", uint32(e.Mode), e.ID, path)
	}
	if _, err := s.runGitWith(ctx, s.nextIndex(), nil, "read-tree", from); err != nil {
		return wire.ZeroID, err
	}
	// What goes makes place for what comes: a folder for a file, a file for a folder.
	if _, err := s.runGitWith(ctx, s.nextIndex(), append(gone.Bytes(), put.Bytes()...), "update-index", "-z", "--index-info"); err != nil {
		return wire.ZeroID, err
	}
	return s.WriteTree(ctx, s.nextIndex()...)
}

// Filters says through which filter git stores each of some files of the tree that EditTree made.
// Attributes that are in no commit count as well, as long as git would read them.
func (s *Scratch) Filters(ctx context.Context, paths []string) (map[string]string, error) {
	if err := s.updateIndex(ctx, s.nextIndex(), s.looseAttributes(paths), "--add"); err != nil {
		return nil, err
	}
	out, err := s.runGitWith(ctx, s.nextIndex(), pathsOf(paths), "check-attr", "--cached", "-z", "--stdin", "filter")
	filters := map[string]string{}
	for found := range slices.Chunk(strings.Split(string(out), "\x00"), 3) {
		if len(found) == 3 && found[2] != "unspecified" && found[2] != "unset" {
			filters[found[0]] = found[2]
		}
	}
	return filters, err
}

// HasDriver says whether git would run a program of that filter to write a file.
func (s *Scratch) HasDriver(filter string) bool { return slices.Contains(s.drivers, filter) }

// looseAttributes lists the .gitattributes files above some paths that are in no index.
func (s *Scratch) looseAttributes(paths []string) (names []string) {
	for _, path := range paths {
		for dir := path; dir != "."; {
			dir = filepath.Dir(dir)
			name := filepath.Join(dir, ".gitattributes")
			_, tracked := s.index[filepath.ToSlash(name)]
			if info, err := os.Lstat(filepath.Join(s.top, name)); err == nil && info.Mode().IsRegular() && !tracked {
				names = append(names, filepath.ToSlash(name))
			}
		}
	}
	return names
}

// Try has git try to turn one tree, which is what the copy of the index holds, into another, and
// writes nothing: git refuses what it would overwrite, and what has changed since Stage.
func (s *Scratch) Try(ctx context.Context, from, to wire.ID, paths []string) error {
	hidden := slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !s.isHidden(path) })
	if err := s.updateIndex(ctx, nil, hidden, "--no-skip-worktree"); err != nil {
		return err
	}
	_, err := s.runGit(ctx, nil, "update-index", "-q", "--refresh", "--ignore-submodules")
	if failed := exitCode(err); failed != 0 && failed != 1 { // 1: files of other paths are changed
		return err
	}
	_, err = s.runGit(ctx, nil, "-c", "core.sparseCheckout=false", "read-tree", "-n", "-m", "-u", from.String(), to.String())
	return err
}

// Render has git write files of the tree that EditTree made, with the line ends, the encoding and
// the kind of links that this checkout has, into a folder of the scratch. Smudge filters run only
// if runFilters says so: they would run on what agents wrote.
func (s *Scratch) Render(ctx context.Context, paths []string, runFilters bool) ([]workspace.Edit, error) {
	off := slices.Clone(s.noHooks)
	for _, name := range s.drivers {
		if key := "filter." + name + "."; !runFilters {
			off = append(off, gitenv.Setting{Key: key + "smudge"}, gitenv.Setting{Key: key + "process"}, gitenv.Setting{Key: key + "required", Value: "false"})
		}
	}
	tree := s.tempPath("tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		return nil, err
	}
	env := slices.Concat(s.nextIndex(), []string{"GIT_WORK_TREE=" + tree}, gitenv.Variables(off))
	if _, err := s.runGitWith(ctx, env, pathsOf(paths), "-c", "core.sparseCheckout=false", "checkout-index", "-z", "--stdin"); err != nil {
		return nil, err
	}

	edits := make([]workspace.Edit, len(paths))
	for i, path := range paths {
		name := filepath.Join(tree, filepath.FromSlash(path))
		info, err := os.Lstat(name)
		if err != nil {
			return nil, err
		}
		e := workspace.Edit{Path: path, Mode: filemode.Regular, Tracked: true}
		if info.Mode().Type() == fs.ModeSymlink {
			var target string
			target, err = os.Readlink(name)
			e.Mode, e.Data = filemode.Symlink, []byte(target)
		} else {
			e.Data, err = os.ReadFile(name)
		}
		if err != nil {
			return nil, err
		}
		if info.Mode()&0o100 != 0 && e.Mode == filemode.Regular {
			e.Mode = filemode.Executable
		}
		edits[i] = e
	}
	return edits, nil
}

// ReadNew reads the trees and files that a tree has and another one has not.
func (s *Scratch) ReadNew(ctx context.Context, from string, tree wire.ID) (wire.Objects, error) {
	ids, err := s.runGit(ctx, nil, "rev-list", "--objects", "--no-object-names", "--missing=allow-any", tree.String(), "^"+from)
	if err != nil {
		return nil, err
	}
	out, err := s.runGit(ctx, ids, "cat-file", "--batch")
	objects := wire.Objects{}
	for err == nil && len(out) > 0 {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		var id, kind string
		var size int
		if _, err := fmt.Sscan(string(head), &id, &kind, &size); err != nil || len(rest) <= size {
			return nil, fmt.Errorf("git cat-file printed %q", head)
		}
		t, err := plumbing.ParseObjectType(kind)
		if err != nil {
			return nil, err
		}
		objects.Add(wire.NewObject(t, bytes.Clone(rest[:size])))
		out = rest[size+1:]
	}
	return objects, err
}
