// Package workspace moves an agent's working folder to and from commits of a git
// remote: Restore makes the folder equal to a commit, Snapshot makes a commit of
// the folder, Merge joins two lines of edits where no file overlaps. All of it is
// plumbing over a [wire.Remote]: the package never runs git, never opens .git,
// and never runs or reads the hooks, filters or config of the workspace.
//
// Of .gitattributes files it obeys what runs no program: text, eol, crlf and
// working-tree-encoding, by git's rules for core.autocrlf=false (package convert).
// LFS and other filters, ident and export-subst are not applied. A file whose bytes
// are those of the commit is never a change, and CRLF stays where the commit has it.
//
// The folder is treated as hostile: every access goes through an os.Root of the
// folder that the file lies in, links are never followed, special files are
// never opened.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
	"github.com/united-workforce/uwf/gitcas/workspace/stamps"
)

const (
	// DefaultMaxFile is the size of the largest new or changed file that a snapshot
	// takes, in bytes. It is below the 100 MB from which GitHub refuses a file.
	DefaultMaxFile = 50 << 20
	// DefaultMaxTotal is how many bytes of new content a snapshot takes: they are all
	// held in memory until they are pushed.
	DefaultMaxTotal = 256 << 20
	// DefaultMaxFiles is the largest number of files in a commit that is restored or
	// made.
	DefaultMaxFiles = 200_000

	// maxTarget is the length of the longest symlink target, in bytes.
	maxTarget = 4096
)

// TempPrefix begins the names of files that a restore has not finished writing, and of
// whatever else in the folder is not in its place yet. Left-overs of a killed one are
// removed by the next, and never snapshotted.
const TempPrefix = rooted.TempPrefix

// limits are what a workspace holds to.
type limits struct {
	file, total int64 // bytes, as DefaultMaxFile and DefaultMaxTotal say
	files       int   // as DefaultMaxFiles says
	ignoreSteps int64 // what comparing .gitignore files may cost
}

// Workspace is one folder. Its methods may be called from several goroutines but
// run one after the other.
type Workspace struct {
	path   string
	remote wire.Remote
	most   limits

	mu sync.Mutex
	// seen is the folder as the last Restore or Snapshot left it, with file
	// stamps; nil when nothing is known. If it is recalled it has stamps of an earlier
	// process: they say what files hold, not which ones a commit has.
	seen     *memtree.Dir
	recalled bool
	// trees are the last trees restored or made, newest first, by commit.
	trees []knownTree
	// fetched are the objects of a small commit that the last Restore fetched whole.
	fetched wire.Objects
	// leftOut is what the last Restore left out, and inside what it found in submodules' folders.
	leftOut []LeftOut
	// filled and unfilled are what NoteFilled was told.
	filled   []string
	unfilled []LeftOut
	inside   map[string]map[string]stamps.Stamp
	// own is a user whose files are the folder's own, as those of its owner are; negative: nobody.
	own int
	// expected comes along with the next commit that is fetched; zero: nothing does.
	expected wire.ID

	// step, replaced by tests, is called before each change of a file; an error
	// stops the operation there, like a kill would.
	step func(op, path string) error
}

type knownTree struct {
	commit wire.ID
	tree   *memtree.Dir
	// targets and out are as linksOf returns them; nil: not known.
	targets map[wire.ID]string
	out     map[string]string
}

// maxKnownTrees is how many trees a workspace remembers: a parent, the new
// commit, an expected one and one more.
const maxKnownTrees = 4

// Open prepares the folder at path (which must exist) for commits of the remote.
// It does no network I/O. The remote may be nil for a workspace that is only
// snapshotted into root commits.
func Open(path string, remote wire.Remote) (*Workspace, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open workspace: %q is not a folder", path)
	}
	return &Workspace{
		path: path, remote: remote, own: -1, step: func(string, string) error { return nil },
		most: limits{file: DefaultMaxFile, total: DefaultMaxTotal, files: DefaultMaxFiles, ignoreSteps: ignore.DefaultSteps},
	}, nil
}

// AddOwner has files of that user be the folder's own, also if the folder itself belongs to another
// one. A negative uid is nobody.
func (w *Workspace) AddOwner(uid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.own = uid
}

// OpenRemote is a workspace without a folder: only files of commits can be read from it.
func OpenRemote(remote wire.Remote) *Workspace {
	return &Workspace{remote: remote, most: limits{files: DefaultMaxFiles}}
}

// rememberTree keeps the tree of a commit.
func (w *Workspace) rememberTree(known knownTree) {
	others := slices.DeleteFunc(w.trees, func(k knownTree) bool { return k.commit == known.commit })
	w.trees = slices.Insert(others, 0, known)
	w.trees = w.trees[:min(len(w.trees), maxKnownTrees)]
}

// Expect has a commit's trees come along with the next commit that Restore fetches, where they
// are not known: that is one request less.
func (w *Workspace) Expect(commit wire.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.findKnownTree(commit) == nil {
		w.expected = commit
	}
}

// fetchTree is the loader's, and remembers the tree of the commit that is expected. Where that
// one is not to be had, it is no matter here: who asks for it is told.
func (w *Workspace) fetchTree(ctx context.Context, l *loader, commit wire.ID, filter string) (*memtree.Dir, error) {
	also := w.expected
	w.expected = wire.ZeroID
	if !also.IsZero() && also != commit {
		err := l.fetchObjects(ctx, 1, filter, commit, also)
		if l.maxBytes > 0 && errors.Is(err, wire.ErrUnreadable) {
			return nil, err
		}
		if tree, err := l.readCommit(ctx, also); err == nil {
			w.rememberTree(knownTree{commit: also, tree: tree})
		}
		if tree, err := l.readCommit(ctx, commit); err == nil {
			return tree, nil
		}
	}
	return l.fetchTree(ctx, commit, filter)
}

// findKnownTree is the tree of a commit, if it is remembered.
func (w *Workspace) findKnownTree(commit wire.ID) *memtree.Dir {
	for _, k := range w.trees {
		if k.commit == commit {
			return k.tree
		}
	}
	return nil
}

func (w *Workspace) openLoader() *loader { return newLoader(w.remote, wire.Objects{}, w.most.files) }

// linksOf returns the targets of a commit's links, by blob, and those that lead out, as linksOut
// has them: from memory, or from the remote.
func (w *Workspace) linksOf(ctx context.Context, op string, commit wire.ID, tree *memtree.Dir) (targets map[wire.ID]string, out map[string]string, err error) {
	for _, k := range w.trees {
		if k.tree == tree && k.targets != nil {
			return k.targets, k.out, nil
		}
	}
	ids := map[wire.ID]bool{}
	for _, e := range tree.FilesThat((*memtree.Entry).IsLink) {
		ids[e.ID] = true
	}
	blobs, err := w.openLoader().fetchBlobs(ctx, op, commit, ids)
	if err != nil {
		return nil, nil, err
	}
	targets = map[wire.ID]string{}
	for id, o := range blobs {
		targets[id] = string(o.Data)
	}
	out, err = linksOut(ctx, tree, targets)
	return targets, out, err
}

// treeOf returns the tree of a commit, from memory or from the remote.
func (w *Workspace) treeOf(ctx context.Context, commit wire.ID) (*memtree.Dir, error) {
	if t := w.findKnownTree(commit); t != nil {
		return t, nil
	}
	t, err := w.openLoader().fetchTree(ctx, commit, blobNone)
	if err == nil {
		w.rememberTree(knownTree{commit: commit, tree: t})
	}
	return t, err
}
