package statefile

import (
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// nodeSuffix ends the names of nodes' files.
const nodeSuffix = ".json"

// NodeName is the hash that the name of a node's file stands for: <HASH>.json.
func NodeName(name string) (node.Hash, bool) {
	base, ok := strings.CutSuffix(name, nodeSuffix)
	h := node.Hash(base)
	return h, ok && h.Valid()
}

// OwnName are the hashes in the name of a file with what a record refers to, the record's
// and the node's: <OF>.<HASH>.json.
func OwnName(name string) (of, h node.Hash, ok bool) {
	record, file, ok := strings.Cut(name, ".")
	h, isNode := NodeName(file)
	of = node.Hash(record)
	return of, h, ok && isNode && of.Valid()
}

// NodeFile is the name of a node's file.
func NodeFile(h node.Hash) string { return string(h) + nodeSuffix }

// OwnFile is the name of a file with what the record of refers to.
func OwnFile(of, h node.Hash) string { return string(of) + "." + NodeFile(h) }

var pagePattern = lazyregexp.New(`^(?:index|[0-9]{2,6}-[0-9A-Za-z._-]{1,100})\.md$`)

// IsPage reports whether name is a file in a thread's folder of pages.
func IsPage(name string) bool { return pagePattern.MatchString(name) }
