// Package layout knows every name of a store: its refs, and the folders and files of the
// state branch. It makes names and takes them apart, those included that somebody else
// has pushed; what a file holds is for others, and so is every read and write.
package layout

import (
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// Names of files and folders of the state branch.
const (
	ReadmeName   = "README.md"
	VersionName  = "VERSION"
	ThreadsName  = "threads.yaml"
	RegistryName = "registry.yaml"

	HistoryDir = "history"
	CasDir     = "cas"
	ThreadsDir = "threads"
	FormerDir  = "former"
	DetailDir  = "detail"
	PagesDir   = "pages"
	OlderDir   = "older"
)

// Names in the tree of an attempt's commit.
const (
	AttemptThread   = "thread"       // what would go to the thread's folder, as that has it
	AttemptError    = "error.txt"    // why it failed
	AttemptUnlinked = "unlinked.txt" // the head from which it is still to be linked
	AttemptWork     = "work"         // the work tree
)

// Kind is what a file or folder is, by where it stands.
type Kind uint8

// The kinds. Those of files come first.
const (
	Foreign  Kind = iota // not uwf's
	TextFile             // README.md, error.txt, unlinked.txt
	VersionFile
	ThreadsFile
	RegistryFile
	NodeFile   // <HASH>.json
	OwnFile    // <HASH>.<HASH>.json: what the record of the first hash refers to
	PageFile   // index.md, NN-<role>.md
	DayFile    // the threads that ended on a day
	DayPage    // the same for readers
	FormerFile // the hashes that imported nodes had

	RootFolder
	CasFolder
	ThreadsFolder
	ThreadFolder
	DetailFolder // a folder for each record of a thread
	NodeFolder   // a record's details: node files alone
	PagesFolder
	OlderFolder // the older steps of a thread
	StepsFolder // some of these, as the thread's folder had them
	HistoryFolder
	YearFolder
	FormerFolder
	AttemptFolder // the root of an attempt's commit
	WorkFolder    // a work tree
)

// IsFolder reports whether it is a folder.
func (k Kind) IsFolder() bool { return k >= RootFolder }

// named are the entries of folders that have a name of their own.
var named = map[Kind]map[string]Kind{
	RootFolder: {
		ReadmeName: TextFile, VersionName: VersionFile, ThreadsName: ThreadsFile, RegistryName: RegistryFile,
		HistoryDir: HistoryFolder, CasDir: CasFolder, ThreadsDir: ThreadsFolder,
		FormerDir: FormerFolder,
	},
	ThreadFolder:  {DetailDir: DetailFolder, PagesDir: PagesFolder, OlderDir: OlderFolder},
	StepsFolder:   {DetailDir: DetailFolder, PagesDir: PagesFolder},
	AttemptFolder: {AttemptThread: ThreadFolder, CasDir: CasFolder, AttemptWork: WorkFolder, AttemptError: TextFile, AttemptUnlinked: TextFile},
}

// What names in pages/, in history/ and in a year's folder look like.
var (
	pagePattern  = lazyregexp.New(`^(?:index|[0-9]{2,6}-[0-9A-Za-z._-]{1,100})\.md$`)
	yearPattern  = lazyregexp.New(`^[0-9]{4}$`)
	olderPattern = lazyregexp.New(`^[0-9]{6}$`)
	dayPattern   = lazyregexp.New(`^(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])\.(jsonl|md)$`)
)

// ChildOf is what an entry of a folder has to be, by its name; Foreign where uwf has none of
// that name there.
func (k Kind) ChildOf(name string) Kind {
	if c, ok := named[k][name]; ok {
		return c
	}
	of, _, isNode := ParseNodeFile(name)
	switch {
	case k == ThreadsFolder && ThreadID(name).Valid():
		return ThreadFolder
	case (k == ThreadFolder || k == StepsFolder) && isNode && of != "":
		return OwnFile
	case (k == ThreadFolder || k == StepsFolder || k == CasFolder || k == NodeFolder) && isNode && of == "":
		return NodeFile
	case k == DetailFolder && node.Hash(name).Valid():
		return NodeFolder
	case k == OlderFolder && olderPattern.MatchString(name):
		return StepsFolder
	case k == PagesFolder && pagePattern.MatchString(name):
		return PageFile
	case k == HistoryFolder && yearPattern.MatchString(name):
		return YearFolder
	case k == YearFolder && dayPattern.MatchString(name):
		if strings.HasSuffix(name, pageSuffix) {
			return DayPage
		}
		return DayFile
	case k == FormerFolder && isFormerName(name):
		return FormerFile
	}
	return Foreign
}

// nodeSuffix ends the names of nodes' files, pageSuffix those of pages, linesSuffix those of
// a day's lines and of lists of former hashes.
const (
	nodeSuffix  = ".json"
	pageSuffix  = ".md"
	linesSuffix = ".jsonl"
)

// FormerName is the name, in former/, of the list of the hashes that a thread's nodes had
// before they were imported, or those of a registered workflow's, by its hash.
func FormerName[T ThreadID | node.Hash](of T) string { return string(of) + linesSuffix }

// ParseFormerName takes the name of such a list apart: one of the two is empty.
func ParseFormerName(name string) (id ThreadID, flow node.Hash) {
	stem, _ := strings.CutSuffix(name, linesSuffix)
	if ThreadID(stem).Valid() {
		return ThreadID(stem), ""
	}
	return "", node.Hash(stem)
}

func isFormerName(name string) bool {
	id, flow := ParseFormerName(name)
	return strings.HasSuffix(name, linesSuffix) && (id != "" || flow.Valid())
}

// FileOf is the name of a node's file.
func FileOf(h node.Hash) string { return string(h) + nodeSuffix }

// OwnFileOf is the name of a file with what the record of refers to.
func OwnFileOf(of, h node.Hash) string { return string(of) + "." + FileOf(h) }

// ParseNodeFile are the hashes in the name of a node's file: <HASH>.json, or, of what a
// record refers to, <OF>.<HASH>.json; of is empty for the former.
func ParseNodeFile(name string) (of, h node.Hash, ok bool) {
	stem, ok := strings.CutSuffix(name, nodeSuffix)
	if record, hash, own := strings.Cut(stem, "."); own {
		of, h = node.Hash(record), node.Hash(hash)
		return of, h, ok && of.Valid() && h.Valid()
	}
	return "", node.Hash(stem), ok && node.Hash(stem).Valid()
}

// KeptSteps is how many of a thread's newest steps its folder keeps at least. With twice as many
// in it, the older half goes to a folder of their own.
const KeptSteps = 8

// OlderSteps is the name, in a thread's folder, of the folder with older steps, by the number
// of the first one of them (from 1).
func OlderSteps(first int) string { return fmt.Sprintf("%s/%06d", OlderDir, first) }

// ThreadPath is a thread's folder.
func ThreadPath(id ThreadID) string { return ThreadsDir + "/" + string(id) }

// Place says where on the branch a node's file is. Within one place a hash names one
// node; elsewhere it may name another one.
type Place struct {
	Thread ThreadID // empty: cas/, shared
	// Of is the record (StartNode or StepNode) that refers to the node; empty: the node
	// is a record of the thread itself. What a person has said, and no step has taken
	// up yet, is there under its own hash.
	Of     node.Hash
	Detail bool // among the details of Of
}

// Folder is the folder of a place. All that a job reads of a thread lies in the thread's
// folder itself: the records, and what they refer to, under names that begin with the
// record's hash. Details and pages for people lie in folders below: a fetch that is
// bounded by depth brings the former, and of the latter only which there are.
func (p Place) Folder() string {
	switch {
	case p.Thread == "":
		return CasDir
	case p.Detail:
		return ThreadPath(p.Thread) + "/" + DetailDir + "/" + string(p.Of)
	}
	return ThreadPath(p.Thread)
}

// File is the name of a node's file in the folder of the place.
func (p Place) File(h node.Hash) string {
	if p.Of == "" || p.Detail {
		return FileOf(h)
	}
	return OwnFileOf(p.Of, h)
}

// String is the beginning of the paths of its files.
func (p Place) String() string { return strings.TrimSuffix(p.Path(""), nodeSuffix) }

// Path is the path of a node's file in a place.
func (p Place) Path(h node.Hash) string { return p.Folder() + "/" + p.File(h) }

// NodeAt is the place and the hash of a node, by the name of its file in the folder of p;
// where p is a thread's records also of what these refer to.
func (p Place) NodeAt(name string) (Place, node.Hash, bool) {
	of, h, ok := ParseNodeFile(name)
	if of != "" {
		ok = ok && p.Thread != "" && p.Of == ""
		p.Of = of
	}
	return p, h, ok
}

// Inside is the place of the nodes of a folder in that of p, which is of some kind; ok is false
// for an entry that is no folder with nodes.
func (p Place) Inside(kind Kind, name string) (in Place, below Kind, ok bool) {
	below = kind.ChildOf(name)
	switch below {
	case OlderFolder, StepsFolder:
		return p, below, true
	case NodeFolder:
		p.Of = node.Hash(name)
	}
	p.Detail = true
	return p, below, below == NodeFolder || below == DetailFolder
}

// HistoryFile is the file in history/<year>/ that a thread which ended at that time belongs
// to, by the UTC date.
func HistoryFile(completedAt time.Time) (year, name string) {
	at := completedAt.UTC()
	return at.Format("2006"), at.Format("01-02") + linesSuffix
}

// DayPageOf is the page for readers beside a history file.
func DayPageOf(file string) string { return strings.TrimSuffix(file, linesSuffix) + pageSuffix }

// DayFileOf is the history file of a page.
func DayFileOf(page string) string { return strings.TrimSuffix(page, pageSuffix) + linesSuffix }

// index is the name of the page about a whole thread.
const index = "index.md"

// IndexPath is where the page about a whole thread goes.
func IndexPath(id ThreadID) string { return pagesPath(id) + index }

// TaskPath is where the page with a thread's task goes: before those of the steps.
func TaskPath(id ThreadID) string { return PagePath(id, 0, "task") }

// PagePath is where the page for people of a thread's step n (from 1) goes.
// Characters of the role that a path should not hold become dashes.
func PagePath(id ThreadID, n int, role string) string {
	return pagesPath(id) + PageLink(n, 0, role)
}

// PageLink is the path, from a thread's other pages, of the page of its step n, once it has so many
// steps.
func PageLink(n, steps int, role string) string {
	name := fmt.Sprintf("%02d-%s%s", n, safeRole(role), pageSuffix)
	if n > steps-KeptSteps-steps%KeptSteps {
		return name
	}
	return "../" + OlderSteps(n-(n-1)%KeptSteps) + "/" + PagesDir + "/" + name
}

func pagesPath(id ThreadID) string { return ThreadPath(id) + "/" + PagesDir + "/" }

func safeRole(role string) string { return safeName(role, 60, "._-", "step") }

// ParsePage takes a page's path apart, with its name made safe.
func ParsePage(path string) (id ThreadID, name string, ok bool) {
	rest, ok := strings.CutPrefix(path, ThreadsDir+"/")
	thread, name, _ := strings.Cut(rest, "/"+PagesDir+"/")
	if name != index {
		number, role, numbered := strings.Cut(strings.TrimSuffix(name, pageSuffix), "-")
		ok = ok && numbered
		name = number + "-" + safeRole(role) + pageSuffix
	}
	id = ThreadID(thread)
	return id, name, ok && id.Valid() && pagePattern.MatchString(name)
}

// PageNumber is the step that a page is about; 0 for that of the task, and for the index.
func PageNumber(name string) int {
	number, _, _ := strings.Cut(name, "-")
	n, _ := parseNumber(number)
	return n
}
