package agents

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/gitcas/node"
)

// nodesFile holds the nodes that an agent may read, one a line, as
// node.EncodeLine writes them. One file, because a thread of 1,000 steps has
// 3,000 nodes, and making as many files costs seconds.
const nodesFile = "nodes.jsonl"

// linePrefix is what a line of it begins with, before the hash.
const linePrefix = `{"hash":"`

// writeNodes writes the nodes in the order of their hashes.
func writeNodes(root *os.Root, name string, nodes map[node.Hash]node.Node) (err error) {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 64<<10)
	for _, h := range slices.Sorted(maps.Keys(nodes)) {
		line, err := node.EncodeLine(h, nodes[h])
		if err != nil {
			return fmt.Errorf("writing node %s for the agent: %w", h, err)
		}
		_, _ = w.Write(line) // Flush tells what kept it from being written
	}
	return w.Flush()
}

// nodeLines finds nodes in such a file. It keeps where they are, not the nodes.
type nodeLines struct {
	f     *os.File
	index func() (map[node.Hash]span, error) // made when it is first needed
}

// span is where a line is in its file.
type span struct{ at, size int64 }

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
	return &nodeLines{f: f, index: sync.OnceValues(func() (map[node.Hash]span, error) {
		return indexNodes(io.NewSectionReader(f, 0, info.Size()))
	})}, nil
}

// indexNodes finds out where each node's line is.
func indexNodes(r io.Reader) (map[node.Hash]span, error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	index := map[node.Hash]span{}
	for at := int64(0); ; {
		head, err := lines.ReadSlice('\n')
		h, ok := lineHash(head)
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
			return nil, fmt.Errorf("line %d of %s is no node", len(index)+1, nodesFile)
		}
		index[h] = span{at, size}
		at += size
	}
}

func lineHash(line []byte) (node.Hash, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(linePrefix))
	h, _, closed := bytes.Cut(rest, []byte(`"`))
	return node.Hash(h), ok && closed && node.Hash(h).Valid()
}

// get reads one node; one that is not there is node.ErrNotFound.
func (l *nodeLines) get(h node.Hash) (node.Node, error) {
	index, err := l.index()
	if err != nil {
		return node.Node{}, err
	}
	s, ok := index[h]
	if !ok {
		return node.Node{}, node.ErrNotFound
	}
	line := make([]byte, s.size)
	if _, err := l.f.ReadAt(line, s.at); err != nil {
		return node.Node{}, err
	}
	_, n, err := node.DecodeLine(line)
	return n, err
}

func (l *nodeLines) close() error { return l.f.Close() }
