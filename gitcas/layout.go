package gitcas

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
)

// Names on the state branch (DESIGN, "The state branch").
const (
	readmeName   = "README.md"
	versionName  = "VERSION"
	threadsName  = "threads.yaml"
	registryName = "registry.yaml"
	historyDir   = "history"
	casDir       = "cas"
	threadsDir   = "threads"
	detailDir    = "detail"
	pagesDir     = "pages"
)

// MaxNodeFile is the largest node file that is read or written, in bytes.
const MaxNodeFile = 16 << 20

// maxReadable is the largest page for people, in bytes.
const maxReadable = 1 << 20

var errForeign = errors.New("a foreign file: only uwf writes to this branch; take it off with a commit of your own")

func threadPath(id ThreadID) string { return threadsDir + "/" + string(id) }

// folderPath is the folder of a place. All that a job reads of a thread lies in the thread's
// folder itself: the records, and what they refer to, under names that begin with the
// record's hash. Details and pages for people lie in folders below: a fetch that is
// bounded by depth brings the former, and of the latter only which there are.
func (p Place) folderPath() string {
	switch {
	case p.Thread == "":
		return casDir
	case p.Detail:
		return threadPath(p.Thread) + "/" + detailDir + "/" + string(p.Of)
	}
	return threadPath(p.Thread)
}

// fileName is the name of a node's file in the folder of the place.
func (p Place) fileName(h node.Hash) string {
	if p.Of == "" || p.Detail {
		return nodeFile(h)
	}
	return statefile.OwnFile(p.Of, h)
}

// String is the beginning of the paths of its files.
func (p Place) String() string { return strings.TrimSuffix(p.Path(""), nodeFile("")) }

// Path is the path of a node's file in a place.
func (p Place) Path(h node.Hash) string { return p.folderPath() + "/" + p.fileName(h) }

// nodeAt is the place and the hash of a node, by the name of its file in the folder of p;
// where p is a thread's records also of what these refer to.
func (p Place) nodeAt(name string) (Place, node.Hash, bool) {
	if of, h, ok := statefile.OwnName(name); ok && p.Thread != "" && p.Of == "" {
		p.Of = of
		return p, h, true
	}
	h, ok := nodeOf(name)
	return p, h, ok
}

func nodeFile(h node.Hash) string { return statefile.NodeFile(h) }

// nodeOf is the hash that a node file's name stands for.
func nodeOf(name string) (node.Hash, bool) { return statefile.NodeName(name) }

// checkRegular refuses everything but plain files: symlinks, executables, submodules.
func checkRegular(e gitobj.Entry) error {
	if e.Mode != filemode.Regular {
		return fmt.Errorf("it has the mode %s, not that of a plain file", e.Mode)
	}
	return nil
}

func folderEntry(e gitobj.Entry) error {
	if !e.IsDir() {
		return fmt.Errorf("it has the mode %s, not that of a folder", e.Mode)
	}
	return nil
}

func checkRoot(e gitobj.Entry) error {
	switch e.Name {
	case readmeName, versionName, threadsName, registryName:
		return checkRegular(e)
	case historyDir, casDir, threadsDir:
		return folderEntry(e)
	}
	return errForeign
}

func checkCas(e gitobj.Entry) error {
	if _, ok := nodeOf(e.Name); !ok {
		return errForeign
	}
	return checkRegular(e)
}

func checkThreads(e gitobj.Entry) error {
	if !ThreadID(e.Name).Valid() {
		return errForeign
	}
	return folderEntry(e)
}

func checkThread(e gitobj.Entry) error {
	if e.Name == detailDir || e.Name == pagesDir {
		return folderEntry(e)
	}
	if _, _, ok := (Place{Thread: anyThread}).nodeAt(e.Name); !ok {
		return errForeign
	}
	return checkRegular(e)
}

// anyThread stands for whichever thread a name is looked at in.
const anyThread ThreadID = "00000000000000000000000000"

// checkDetails: a folder for each record, named by the record's hash.
func checkDetails(e gitobj.Entry) error {
	if !node.Hash(e.Name).Valid() {
		return errForeign
	}
	return folderEntry(e)
}

func checkPages(e gitobj.Entry) error {
	if !statefile.IsPage(e.Name) {
		return errForeign
	}
	return checkRegular(e)
}

func checkHistory(e gitobj.Entry) error {
	if !statefile.IsYear(e.Name) {
		return errForeign
	}
	return folderEntry(e)
}

func checkYear(e gitobj.Entry) error {
	if !statefile.IsDay(e.Name) && !statefile.IsDayPage(e.Name) {
		return errForeign
	}
	return checkRegular(e)
}

// indexName is the page about a whole thread.
const indexName = "index.md"

// IndexPath is where the page about a whole thread goes.
func IndexPath(id ThreadID) string { return pagesPath(id) + "/" + indexName }

func pagesPath(id ThreadID) string { return threadPath(id) + "/" + pagesDir }

// TaskPath is where the page with a thread's task goes: before those of the steps.
func TaskPath(id ThreadID) string { return ReadablePath(id, 0, "task") }

// ReadablePath is where the page for people of a thread's step n (from 1) goes.
// Characters of the role that a path should not hold become dashes.
func ReadablePath(id ThreadID, n int, role string) string {
	return fmt.Sprintf("%s/%02d-%s.md", pagesPath(id), n, pathSafe(role))
}

func pathSafe(role string) string { return safeName(role, 60, "._-", "step") }

// splitReadable takes a page's path apart, with its name made safe.
func splitReadable(path string) (ThreadID, string, error) {
	rest, ok := strings.CutPrefix(path, threadsDir+"/")
	id, name, _ := strings.Cut(rest, "/"+pagesDir+"/")
	if name != indexName {
		number, role, numbered := strings.Cut(strings.TrimSuffix(name, ".md"), "-")
		name, ok = number+"-"+pathSafe(role)+".md", ok && numbered
	}
	if !ok || !ThreadID(id).Valid() || !statefile.IsPage(name) {
		return "", "", fmt.Errorf("%w: %q is no path of a page: threads/<id>/pages/NN-<role>.md or index.md", ErrInvalid, path)
	}
	return ThreadID(id), name, nil
}

// readmeText is the README.md of the branch: a constant, so that it costs nothing
// to anybody and says nothing that could become wrong.
const readmeText = `# uwf state

This branch is written by uwf, a workflow engine for teams of AI agents whose
database is git. It has no common history with the code, and nothing here is
meant to be merged or edited by hand.

- ` + "`threads.yaml`" + `: the threads that are alive, and where each one stands
- ` + "`threads/<id>/pages/index.md`" + `: a thread in a page; beside it ` + "`00-task.md`" + `, its task, and ` + "`NN-<role>.md`" + `, its steps
- ` + "`threads/<id>/<HASH>.json`" + `: the same as immutable records
- ` + "`threads/<id>/<HASH>.<HASH>.json`" + `: what the record of the first hash refers to; ` + "`detail/<HASH>/`" + ` has what its agent did
- ` + "`cas/`" + `: workflows and schemas that threads share; ` + "`registry.yaml`" + `: their names
- ` + "`history/YYYY/MM-DD.md`" + `: the threads that ended on a day; ` + "`.jsonl`" + ` the same, one a line

Every step is one commit: ` + "`git log <this branch> -- threads/<id>`" + ` is the thread.
What has ended is taken off the tip, but stays in the history: the page of the day
has the command that shows it.
`
