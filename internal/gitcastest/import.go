package gitcastest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// Import makes a repository of what Export wrote: the same commits, trees and
// blobs, by the same ids. Of the language of git fast-import it knows no more than
// that.
func Import(stream []byte, o wiretest.MemoryOptions) (*wiretest.Memory, error) {
	m := &importer{mem: wiretest.NewMemory(o), rest: stream, ids: map[string]wire.ID{}, files: map[wire.ID]map[string]file{}}
	for m.nextLine() {
		var err error
		word, arg, _ := strings.Cut(m.at, " ")
		switch word {
		case "":
		case "blob":
			err = m.readBlob()
		case "commit":
			err = m.readCommit()
		case "reset":
			err = m.readReset(arg)
		case "done":
			return m.mem, nil
		default:
			err = errors.New("unknown command")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", m.n, m.at, err)
		}
	}
	return nil, errors.New("the stream is cut off")
}

type importer struct {
	mem   *wiretest.Memory
	rest  []byte
	at    string // the line that was read last
	n     int
	back  bool // give that line once more
	ids   map[string]wire.ID
	files map[wire.ID]map[string]file // of the commits
}

// nextLine reads the next line; false at the end.
func (m *importer) nextLine() bool {
	if m.back {
		m.back = false
		return true
	}
	line, rest, ok := bytes.Cut(m.rest, []byte("\n"))
	m.at, m.rest, m.n = string(line), rest, m.n+1
	return ok
}

// readArg reads a line that must begin with a word.
func (m *importer) readArg(word string) (string, error) {
	if !m.nextLine() {
		return "", errors.New("the stream is cut off")
	}
	arg, ok := strings.CutPrefix(m.at, word+" ")
	if !ok {
		return "", fmt.Errorf("%q is expected", word)
	}
	return arg, nil
}

func (m *importer) readData() ([]byte, error) {
	arg, err := m.readArg("data")
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(arg)
	if err != nil || n < 0 || n+1 > len(m.rest) || m.rest[n] != '\n' {
		return nil, errors.New("not so many bytes are left")
	}
	data := m.rest[:n]
	m.n += bytes.Count(data, []byte("\n")) + 1
	m.rest = m.rest[n+1:]
	return bytes.Clone(data), nil
}

func (m *importer) putObject(mark string, typ plumbing.ObjectType, data []byte) wire.ID {
	o := wire.NewObject(typ, data)
	m.mem.AddObjects(o)
	if mark != "" {
		m.ids[mark] = o.ID
	}
	return o.ID
}

func (m *importer) readBlob() error {
	mark, err := m.readArg("mark")
	if err != nil {
		return err
	}
	data, err := m.readData()
	if err == nil {
		m.putObject(mark, plumbing.BlobObject, data)
	}
	return err
}

func (m *importer) readReset(ref string) error {
	if !m.nextLine() || !strings.HasPrefix(m.at, "from ") {
		m.back = true
		return nil // a root commit follows
	}
	id, ok := m.ids[strings.TrimPrefix(m.at, "from ")]
	if !ok {
		return errors.New("no such mark")
	}
	m.mem.SetRef(ref, id)
	return nil
}

func (m *importer) readCommit() error {
	mark, err := m.readArg("mark")
	if err != nil {
		return err
	}
	var c gitobj.Commit
	for _, s := range []struct {
		word string
		to   *gitobj.Signature
	}{{"author", &c.Author}, {"committer", &c.Committer}} {
		arg, err := m.readArg(s.word)
		if err != nil {
			return err
		}
		if *s.to, err = parseSignature(arg); err != nil {
			return err
		}
	}
	message, err := m.readData()
	if err != nil {
		return err
	}
	c.Message = string(message)
	files, err := m.readChanges(&c)
	if err != nil {
		return err
	}
	if c.Tree, err = m.writeTree(files); err != nil {
		return err
	}
	data, err := gitobj.EncodeCommit(c)
	if err != nil {
		return err
	}
	m.files[m.putObject(mark, plumbing.CommitObject, data)] = files
	return nil
}

// readChanges reads the parents and what the commit changes.
func (m *importer) readChanges(c *gitobj.Commit) (map[string]file, error) {
	files := map[string]file{}
	for m.nextLine() && m.at != "" {
		word, arg, _ := strings.Cut(m.at, " ")
		switch word {
		case "from", "merge":
			id, ok := m.ids[arg]
			if !ok || m.files[id] == nil {
				return nil, errors.New("no such commit")
			}
			if c.Parents = append(c.Parents, id); len(c.Parents) == 1 {
				files = maps.Clone(m.files[id])
			}
		case "D":
			delete(files, arg)
		case "M":
			mode, rest, _ := strings.Cut(arg, " ")
			mark, name, _ := strings.Cut(rest, " ")
			id, ok := m.ids[mark]
			if !ok || name == "" || name != path.Clean(name) {
				return nil, errors.New("no such file")
			}
			files[name] = file{mode, id}
		default:
			return nil, errors.New("unknown change")
		}
	}
	return files, nil
}

func parseSignature(s string) (gitobj.Signature, error) {
	c, err := gitobj.DecodeCommit([]byte("tree " + wire.EmptyTree.String() + "\nauthor " + s + "\ncommitter " + s + "\n\n"))
	if err == nil && c.Author.When.Equal(time.Time{}) {
		err = errors.New("no time")
	}
	return c.Author, err
}

// writeTree writes a folder and those below it.
func (m *importer) writeTree(files map[string]file) (wire.ID, error) {
	var entries []gitobj.Entry
	below := map[string]map[string]file{}
	for name, f := range files {
		if dir, rest, ok := strings.Cut(name, "/"); ok {
			if below[dir] == nil {
				below[dir] = map[string]file{}
			}
			below[dir][rest] = f
			continue
		}
		mode, err := filemode.New(f.mode)
		if err != nil {
			return wire.ZeroID, err
		}
		entries = append(entries, gitobj.Entry{Name: name, Mode: mode, ID: f.id})
	}
	for name, files := range below {
		id, err := m.writeTree(files)
		if err != nil {
			return wire.ZeroID, err
		}
		entries = append(entries, gitobj.Entry{Name: name, Mode: filemode.Dir, ID: id})
	}
	data, err := gitobj.EncodeTree(entries)
	return m.putObject("", plumbing.TreeObject, data), err
}
