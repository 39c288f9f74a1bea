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

// ErrNothing: neither nodes nor lists are in a folder.
var ErrNothing = errors.New("no store of the TypeScript uwf")

// ErrSQLite: the store keeps its nodes or lists in a database.
var ErrSQLite = errors.New("its lists are in an SQLite database, which uwf doesn't read; write a bundle with the tool that made it: ocas export @uwf/thread/ID … -o threads.tar")

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

// Source is everything that was found. It implements node.Getter.
type Source struct {
	files   []folder
	bundled map[node.Hash][]byte
	threads map[statefile.ThreadID]Thread
	flows   map[string]node.Hash
	builtin node.Map
	known   node.Map // nodes that were checked by hash
	schemas node.Schemas

	database bool
}

// folder has node files.
type folder struct {
	fsys fs.FS
	dir  string
}

// New returns a Source without anything. builtin are the nodes that every store has.
func New(builtin node.Map) *Source {
	return &Source{
		bundled: map[node.Hash][]byte{}, threads: map[statefile.ThreadID]Thread{}, flows: map[string]node.Hash{},
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

// Workflows are the registered names.
func (s *Source) Workflows() map[string]node.Hash { return maps.Clone(s.flows) }

// AddFolder takes in a folder: an ocas store, a storage root, or both in one.
func (s *Source) AddFolder(fsys fs.FS) error {
	found, database, err := s.addNodes(fsys)
	if err != nil {
		return err
	}
	for _, list := range []struct {
		name string
		read func([]byte) error
	}{
		{"_vars.jsonl", s.readVars}, {"vars/_vars.jsonl", s.readVars},
		{"history.jsonl", s.readHistory}, {"threads.yaml", s.readThreads}, {"workflows.yaml", s.readWorkflows}, {"registry.yaml", s.readWorkflows},
	} {
		if database && strings.HasSuffix(list.name, "_vars.jsonl") {
			continue // it was moved into the database, and is not kept up
		}
		b, err := readFile(fsys, list.name, maxList)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = list.read(b)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", list.name, err)
		}
		found = true
	}
	s.database = s.database || database
	switch {
	case !found && database:
		return ErrSQLite
	case !found:
		return fmt.Errorf("%w: neither <HASH>.bin nor threads.yaml, history.jsonl or workflows.yaml is there", ErrNothing)
	}
	return nil
}

// addNodes looks for node files, and for a database beside them.
func (s *Source) addNodes(fsys fs.FS) (found, database bool, err error) {
	for _, dir := range []string{".", "cas", "vars"} {
		entries, err := fs.ReadDir(fsys, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return found, database, err
		}
		has := false
		for _, e := range entries {
			_, isNode := hashOf(e.Name())
			has = has || isNode
			database = database || e.Name() == "_store.db"
		}
		if has {
			s.files, found = append(s.files, folder{fsys, dir}), true
		}
	}
	return found, database, nil
}

// Database reports whether a folder had its lists in a database, where they can't
// be read.
func (s *Source) Database() bool { return s.database }

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
	b, ok := s.bundled[h]
	for i := 0; !ok && i < len(s.files); i++ {
		var err error
		b, err = readFile(s.files[i].fsys, path.Join(s.files[i].dir, string(h)+".bin"), maxNode)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return node.Node{}, fmt.Errorf("read %s.bin: %w", h, err)
		}
		ok = true
	}
	if !ok {
		return node.Node{}, fmt.Errorf("%w: %s.bin is not there", node.ErrNotFound, h)
	}
	n, err := decodeFile(b)
	if err == nil {
		err = node.Verify(h, n)
	}
	if err != nil {
		return node.Node{}, fmt.Errorf("read %s.bin: %w", h, err)
	}
	s.known[h] = n
	return n, nil
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
