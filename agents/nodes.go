package agents

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// nodesFile holds the nodes that an agent may read, one a line, as
// node.EncodeLine writes them: shared ones and records first, then what each record
// refers to. One file, because a thread of 1,000 steps has
// 3,000 nodes, and making as many files costs seconds.
const nodesFile = "nodes.jsonl"

// linePrefix is what a line of it begins with, before the hash.
const linePrefix = `{"hash":"`

// writeNodes writes the nodes in the order of their records and hashes.
func writeNodes(root *os.Root, name string, nodes gitcas.Nodes) (err error) {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 64<<10)
	places := slices.SortedFunc(maps.Keys(nodes), func(a, b gitcas.Place) int { return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.Thread, b.Thread)) })
	for _, p := range places {
		for _, h := range slices.Sorted(maps.Keys(nodes[p])) {
			line, err := node.EncodeLine(h, p.Of, nodes[p][h])
			if err != nil {
				return fmt.Errorf("writing node %s for the agent: %w", h, err)
			}
			_, _ = w.Write(line) // Flush tells what kept it from being written
		}
	}
	return w.Flush()
}

// nodeLines finds nodes in such a file. It keeps where they are, not the nodes.
type nodeLines struct {
	f     *os.File
	index func() (map[node.Hash][]span, error) // made when it is first needed
}

// span is where a line is in its file, and the record that refers to its node.
type span struct {
	at, size int64
	of       node.Hash
}

func openNodes(root *os.Root) (*nodeLines, error) {
	f, err := root.OpenFile(nodesFile, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &nodeLines{f: f, index: sync.OnceValues(func() (map[node.Hash][]span, error) {
		return indexNodes(io.NewSectionReader(f, 0, info.Size()))
	})}, nil
}

// indexNodes finds out where each node's line is.
func indexNodes(r io.Reader) (map[node.Hash][]span, error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	index := map[node.Hash][]span{}
	n := 0
	for at := int64(0); ; n++ {
		head, err := lines.ReadSlice('\n')
		h, of, ok := lineHash(head)
		size := int64(len(head))
		for errors.Is(err, bufio.ErrBufferFull) {
			var more []byte
			more, err = lines.ReadSlice('\n')
			size += int64(len(more))
		}
		switch {
		case size == 0 && errors.Is(err, io.EOF):
			return index, nil
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case !ok || size > maxContextFile:
			return nil, fmt.Errorf("line %d of %s is no node", n+1, nodesFile)
		}
		index[h] = append(index[h], span{at, size, of})
		at += size
	}
}

// ofPrefix is what follows the hash where a record refers to the node.
const ofPrefix = `","of":"`

// lineHash is the hash of a line's node, and the record that refers to it.
func lineHash(line []byte) (h, of node.Hash, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(linePrefix))
	if !ok || len(rest) <= node.HashLen || rest[node.HashLen] != '"' {
		return "", "", false
	}
	h, rest = node.Hash(rest[:node.HashLen]), rest[node.HashLen:]
	if rest, ok := bytes.CutPrefix(rest, []byte(ofPrefix)); ok {
		if len(rest) <= node.HashLen || rest[node.HashLen] != '"' {
			return "", "", false
		}
		of = node.Hash(rest[:node.HashLen])
	}
	return h, of, h.Valid() && (of == "" || of.Valid())
}

// readNode reads one node: a shared one or a record, else what the record of refers to; with
// no such record, what any one does, if that is one node. One that is not there is
// node.ErrNotFound.
func (l *nodeLines) readNode(of, h node.Hash) (node.Node, error) {
	index, err := l.index()
	if err != nil {
		return node.Node{}, err
	}
	spans := index[h]
	if i := slices.IndexFunc(spans, func(s span) bool { return s.of == "" }); i >= 0 {
		return l.readLine(spans[i])
	}
	if of != "" {
		if i := slices.IndexFunc(spans, func(s span) bool { return s.of == of }); i >= 0 {
			return l.readLine(spans[i])
		}
		return node.Node{}, node.ErrNotFound
	}
	return l.readOnly(h, spans)
}

// readOnly reads a node that several records may refer to.
func (l *nodeLines) readOnly(h node.Hash, spans []span) (node.Node, error) {
	var first node.Node
	var sum node.Digest
	for _, s := range spans {
		n, err := l.readLine(s)
		if err != nil {
			return n, err
		}
		d, err := n.Sum()
		switch {
		case err != nil:
			return n, err
		case sum == "":
			first, sum = n, d
		case d != sum:
			return node.Node{}, fmt.Errorf("%w: %s", ErrSeveral, h)
		}
	}
	if sum == "" {
		return first, node.ErrNotFound
	}
	return first, nil
}

// ErrSeveral: steps of the thread refer to different nodes by one hash.
var ErrSeveral = errors.New("this hash names several nodes of the thread: name the step that refers to the one that is meant (--of STEP)")

// readLine reads one line.
func (l *nodeLines) readLine(s span) (node.Node, error) {
	line := make([]byte, s.size)
	if _, err := l.f.ReadAt(line, s.at); err != nil {
		return node.Node{}, err
	}
	_, _, n, err := node.DecodeLine(line)
	return n, err
}

func (l *nodeLines) closeFile() error { return l.f.Close() }
