package ocas

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
)

// Limits on what is read.
const (
	maxNode = 16 << 20  // bytes of one node file
	maxList = 32 << 20  // bytes of one list
	maxTar  = 512 << 20 // bytes of all files of a bundle
)

// The statuses of a Thread.
const (
	Active    = "active"
	Suspended = "suspended"
	Ended     = "ended"
	Cancelled = "cancelled"
	Untold    = "ended or cancelled" // by a list that doesn't say which
)

// Thread is a thread as a list names it.
type Thread struct {
	ID          statefile.ThreadID
	Head        node.Hash
	Status      string
	Role        string // that waits, of a suspended one
	Reason      string
	CompletedAt int64 // milliseconds, of one that has ended or was cancelled; 0: unknown
}

// Problem is something that can't be read. What depends on it is left out, and all else is
// imported.
type Problem struct {
	File string `json:"file"`           // the PATH, and what in it
	Line int    `json:"line,omitempty"` // from 1; 0: it has no lines, or none in particular
	Why  string `json:"why"`
}

// Source is everything that was found. It implements node.Getter.
type Source struct {
	files   []folder
	bundled map[node.Hash][]byte
	threads map[statefile.ThreadID]Thread
	ranks   map[statefile.ThreadID]rank // of the list that says what is in threads
	flows   map[string]workflow
	builtin node.Map
	known   node.Map // nodes that were checked by hash
	schemas node.Schemas

	problems []Problem
	places   []*place
}

// folder has node files.
type folder struct {
	fsys fs.FS
	dir  string
}

// New returns a Source without anything. builtin are the nodes that every store has.
func New(builtin node.Map) *Source {
	return &Source{
		bundled: map[node.Hash][]byte{}, threads: map[statefile.ThreadID]Thread{}, ranks: map[statefile.ThreadID]rank{}, flows: map[string]workflow{},
		builtin: builtin, known: maps.Clone(builtin),
	}
}

// Forget lets go of the nodes that were read: who is done with one thread will not
// ask for most of them again.
func (s *Source) Forget() { s.known = maps.Clone(s.builtin) }

// Threads are all threads that the lists name, in the order of their ids.
func (s *Source) Threads() []Thread {
	out := slices.Collect(maps.Values(s.threads))
	slices.SortFunc(out, func(a, b Thread) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return out
}

// Workflows are the registered names, each with its former versions, newest first.
func (s *Source) Workflows() map[string]statefile.RegistryEntry {
	out := map[string]statefile.RegistryEntry{}
	for name, f := range s.flows {
		out[name] = f.sortVersions()
	}
	return out
}

// Problems are what could not be read, in the order in which it was found.
func (s *Source) Problems() []Problem { return append([]Problem{}, s.problems...) }

// maxProblems bounds what is told: who has more has no use for a longer list.
const maxProblems = 1000

func (s *Source) addProblem(file string, line int, err error) {
	switch len(s.problems) {
	case maxProblems:
		s.problems = append(s.problems, Problem{File: file, Why: "from here on problems are not listed: there are too many"})
	case maxProblems + 1:
	default:
		s.problems = append(s.problems, Problem{file, line, err.Error()})
	}
}

// nodeFolders are where node files lie: in the folder itself until ocas 0.3, in nodes/ since,
// and in cas/ of a storage root of the json-cas era.
func nodeFolders() []string { return []string{".", "nodes", "cas"} }

// AddFolder takes in a folder: an ocas store, a storage root, or both in one. name is how
// people know it. The lists are read first: who goes on with a thread writes its nodes before
// its head.
func (s *Source) AddFolder(name string, fsys fs.FS) {
	at := s.addPlace(name)
	s.addLists(at, fsys)
	if entries, err := fs.ReadDir(fsys, "bundles"); err == nil && len(entries) > 0 {
		s.addProblem(path.Join(name, "bundles"), 0, errors.New("bundles of 2026-05 and their threads (logs), which uwf can't take over yet: see Bundles in docs/import.md"))
	}
	for _, dir := range nodeFolders() {
		entries, err := fs.ReadDir(fsys, dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.addProblem(path.Join(name, dir), 0, fmt.Errorf("list the folder: %w", err))
		}
		has := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { _, ok := hashOf(e.Name()); return ok })
		if at.noteFound(isNodes, path.Join(dir, "*.bin"), has); has {
			s.files = append(s.files, folder{fsys, dir})
		}
	}
}

// hashOf is the hash that a node file is named after.
func hashOf(name string) (node.Hash, bool) {
	stem, ok := strings.CutSuffix(name, ".bin")
	h := node.Hash(stem)
	return h, ok && h.Valid()
}

// readFile reads a regular file of at most limit bytes.
func readFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	info, err := fs.Stat(fsys, name) // before it is opened: a FIFO would wait for a writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readAll(f, limit)
}

func readAll(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("larger than %d bytes", limit)
	}
	return b, err
}

// Get returns a node whose content hashes to h; one that is nowhere is
// node.ErrNotFound.
func (s *Source) Get(h node.Hash) (node.Node, error) {
	if n, ok := s.known[h]; ok {
		return n, nil
	}
	if !h.Valid() {
		return node.Node{}, fmt.Errorf("%w: %.40q", node.ErrInvalidHash, h)
	}
	n, err := s.findGood(h)
	if err != nil {
		return node.Node{}, err
	}
	s.known[h] = n
	return n, nil
}

// findGood looks for a node in every place: where one copy is damaged, another does.
func (s *Source) findGood(h node.Hash) (node.Node, error) {
	missing := fmt.Errorf("%w: %s.bin is not there", node.ErrNotFound, h)
	if b, ok := s.bundled[h]; ok {
		n, err := decodeChecked(h, b)
		if err == nil {
			return n, nil
		}
		missing = err
	}
	for _, f := range s.files {
		b, err := readFile(f.fsys, path.Join(f.dir, string(h)+".bin"), maxNode)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var n node.Node
		if err == nil {
			n, err = decodeChecked(h, b)
		}
		if err == nil {
			return n, nil
		}
		missing = fmt.Errorf("read %s.bin: %w", h, err)
	}
	return node.Node{}, missing
}

// decodeChecked reads a node file whose content hashes to h.
func decodeChecked(h node.Hash, b []byte) (node.Node, error) {
	n, err := decodeFile(b)
	if err == nil {
		err = verifyNode(h, n)
	}
	return n, err
}

// verifyNode is node.Verify, also for a former meta-schema: a node that is its own type.
func verifyNode(h node.Hash, n node.Node) error {
	if n.Type != h {
		return node.Verify(h, n)
	}
	got, err := node.SelfHash(n.Payload)
	if err == nil && got != h {
		err = fmt.Errorf("%w: it is stored as %s, and hashes to %s", node.ErrWrongHash, h, got)
	}
	return err
}

// decodeFile reads a node file.
func decodeFile(b []byte) (node.Node, error) {
	v, err := node.DecodeCBOR(b)
	if err != nil {
		return node.Node{}, err
	}
	m, _ := v.(map[string]any)
	typ, _ := m["type"].(string)
	payload, has := m["payload"]
	if !node.Hash(typ).Valid() || !has {
		return node.Node{}, fmt.Errorf("%w: not a map of type, payload and timestamp", node.ErrPayload)
	}
	at, _ := m["timestamp"].(int64) // not part of the hash: what is odd about it does no harm
	return node.Node{Type: node.Hash(typ), Payload: payload, Timestamp: max(at, 0)}, nil
}
