package agents

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/regular"
)

// nodesFile holds the nodes that an agent may read, one a line, as
// node.EncodeLine writes them: shared ones and records first, then what each record
// refers to. One file, because a workflow with conditions gets all steps: 1,000 have 3,000 nodes,
// and making as many files costs seconds.
const nodesFile = "nodes.jsonl"

// linePrefix is what a line of it begins with, before the hash.
const linePrefix = `{"hash":"`

// writeNodes writes the nodes in the order of their records and hashes.
func writeNodes(root *os.Root, nodes gitcas.Nodes) (err error) {
	f, err := root.OpenFile(nodesFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
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

// maxNodes bounds that file, in bytes.
const maxNodes = 1 << 30

// nodeLines are the lines of such a file by their nodes' hashes. Few are ever decoded.
type nodeLines map[node.Hash][]nodeLine

// nodeLine is one line, and the record that refers to its node.
type nodeLine struct {
	of   node.Hash
	text []byte
}

// readNodes reads the file.
func readNodes(root *os.Root) (nodeLines, error) {
	file, err := regular.Read(root, nodesFile, maxNodes)
	if err != nil {
		return nil, err
	}
	return indexNodes(file)
}

// indexNodes finds out which node each line is.
func indexNodes(file []byte) (nodeLines, error) {
	index := nodeLines{}
	n := 0
	for line := range bytes.Lines(file) {
		n++
		h, of, ok := lineHash(line)
		if !ok || len(line) > maxContextFile {
			return nil, fmt.Errorf("line %d of %s is no node", n, nodesFile)
		}
		index[h] = append(index[h], nodeLine{of, line})
	}
	return index, nil
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
func (l nodeLines) readNode(of, h node.Hash) (node.Node, error) {
	lines := l[h]
	for _, by := range []node.Hash{"", of} {
		if i := slices.IndexFunc(lines, func(line nodeLine) bool { return line.of == by }); i >= 0 {
			return lines[i].decodeLine()
		}
	}
	if of != "" {
		return node.Node{}, node.ErrNotFound
	}
	return readOnly(h, lines)
}

// readOnly reads a node that several records may refer to.
func readOnly(h node.Hash, lines []nodeLine) (node.Node, error) {
	var first node.Node
	var sum node.Digest
	for _, line := range lines {
		n, err := line.decodeLine()
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

func (l nodeLine) decodeLine() (node.Node, error) {
	_, _, n, err := node.DecodeLine(l.text)
	return n, err
}
