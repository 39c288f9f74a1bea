// Package workspace moves an agent's working folder to and from commits of a git
// remote: Restore makes the folder equal to a commit, Snapshot makes a commit of
// the folder, Merge joins two lines of edits where no file overlaps. All of it is
// plumbing over a [wire.Remote]: the package never runs git, never opens .git,
// and never runs or reads the hooks, filters, attributes or config of the
// workspace. So line endings, LFS and other filters are not applied: files are
// stored byte for byte.
//
// The folder is treated as hostile: every access goes through an os.Root of the
// folder that the file lies in, links are never followed, special files are
// never opened.
package workspace

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
)

// Defaults of [Options], and bounds that are not adjustable.
const (
	// DefaultMaxFile is below the 100 MB from which GitHub refuses a file.
	DefaultMaxFile  = 50 << 20
	DefaultMaxTotal = 256 << 20
	DefaultMaxFiles = 200_000

	// maxDepth is how deep folders may lie in one another.
	maxDepth = 256
	// maxPath is the length of the longest path, in bytes (PATH_MAX of Linux).
	maxPath = 4096
	// maxTarget is the length of the longest symlink target, in bytes.
	maxTarget = 4096
)

// TempPrefix begins the names of files that a restore has not finished writing, and of
// whatever else in the folder is not in its place yet. Left-overs of a killed one are
// removed by the next, and never snapshotted.
const TempPrefix = ".uwf-tmp-"

// Options of a workspace. The zero value is ready to use.
type Options struct {
	// MaxFile is the size of the largest new or changed file that a snapshot
	// takes, in bytes; 0 means DefaultMaxFile.
	MaxFile int64
	// MaxTotal is how many bytes of new content a snapshot takes: they are all
	// held in memory until they are pushed. 0 means DefaultMaxTotal.
	MaxTotal int64
	// MaxFiles is the largest number of files in a commit that is restored or
	// made; 0 means DefaultMaxFiles.
	MaxFiles int
	// Cache is a file, outside of the workspace, that keeps what was found out
	// about the workspace's files, so that another process need not read
	// unchanged files again. Empty: only this process remembers. A missing or
	// damaged cache file costs time and nothing else; but who can write it can
	// hide changes, so keep it where agents can't.
	Cache string
	// Now is the clock for commits without a time; nil means time.Now. File
	// times are never compared with it.
	Now func() time.Time

	// ignoreSteps is what comparing .gitignore files may cost; tests lower it.
	ignoreSteps int64
}

// Workspace is one folder. Its methods may be called from several goroutines but
// run one after the other.
type Workspace struct {
	path   string
	remote wire.Remote
	o      Options

	mu sync.Mutex
	// seen is the folder as the last Restore or Snapshot left it, with file
	// stamps; nil when nothing is known.
	seen *dir
	// trees are the last trees restored or made, newest first, by commit.
	trees []knownTree
	// kept are some small blobs that a restore wrote: bases for deltas.
	kept     wire.Objects
	keptSize int

	// step, set by tests, is called before each change of a file; an error
	// stops the operation there, like a kill would.
	step func(op, path string) error
}

type knownTree struct {
	commit wire.ID
	tree   *dir
}

// maxKnownTrees is how many trees a workspace remembers: a parent, the new
// commit and one more.
const maxKnownTrees = 3

// Open prepares the folder at path (which must exist) for commits of the remote.
// It does no network I/O. The remote may be nil for a workspace that is only
// snapshotted into root commits.
func Open(path string, remote wire.Remote, o Options) (*Workspace, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open workspace: %q is not a folder", path)
	}
	if o.MaxFile <= 0 {
		o.MaxFile = DefaultMaxFile
	}
	if o.MaxTotal <= 0 {
		o.MaxTotal = DefaultMaxTotal
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = DefaultMaxFiles
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ignoreSteps <= 0 {
		o.ignoreSteps = ignore.DefaultSteps
	}
	w := &Workspace{path: path, remote: remote, o: o, kept: make(wire.Objects)}
	w.loadCache()
	return w, nil
}

// rememberTree keeps the tree of a commit.
func (w *Workspace) rememberTree(commit wire.ID, tree *dir) {
	if commit.IsZero() {
		return
	}
	kept := []knownTree{{commit, tree}}
	for _, k := range w.trees {
		if k.commit != commit && len(kept) < maxKnownTrees {
			kept = append(kept, k)
		}
	}
	w.trees = kept
}

func (w *Workspace) knownTree(commit wire.ID) *dir {
	for _, k := range w.trees {
		if k.commit == commit {
			return k.tree
		}
	}
	return nil
}

// callHook reports to the test hook.
func (w *Workspace) callHook(op, path string) error {
	if w.step == nil {
		return nil
	}
	return w.step(op, path)
}

// treeOf returns the tree of a commit, from memory or from the remote.
func (w *Workspace) treeOf(ctx context.Context, commit wire.ID) (*dir, error) {
	if t := w.knownTree(commit); t != nil {
		return t, nil
	}
	t, err := w.newLoader().commitTree(ctx, commit, blobNone, w.knownCommits())
	if err != nil {
		return nil, err
	}
	w.rememberTree(commit, t)
	return t, nil
}

// knownCommits are commits that the remote need not send trees of again. Their history
// is not here, so what a server leaves out because of it is asked for by id.
func (w *Workspace) knownCommits() []wire.ID {
	var ids []wire.ID
	for _, k := range w.trees {
		ids = append(ids, k.commit)
	}
	return ids
}

func (w *Workspace) newLoader() *loader {
	l := newLoader(w.remote, nil, w.o.MaxFiles)
	for _, k := range w.trees {
		l.addKnown(k.tree)
	}
	return l
}

// keepBlob holds on to a small blob as a base for deltas.
func (w *Workspace) keepBlob(o wire.Object) {
	const maxBlob, maxAll = 256 << 10, 8 << 20
	if len(o.Data) > maxBlob || w.keptSize+len(o.Data) > maxAll {
		return
	}
	if _, ok := w.kept[o.ID]; !ok {
		w.kept.Add(o)
		w.keptSize += len(o.Data)
	}
}

func isFile(m filemode.FileMode) bool {
	return m == filemode.Regular || m == filemode.Executable || m == filemode.Deprecated
}

func blobID(data []byte) wire.ID { return plumbing.ComputeHash(plumbing.BlobObject, data) }
