// Package node is the content-addressed record of uwf: its payload, canonical
// CBOR, hash, file form, schema check and references. It is pure: it never does
// I/O and never reads a clock.
//
// ParseJSON and DecodeJSON read JSON of other programs whose values count: nodes, events
// and artifacts. JSON that a person or a model writes is read by internal/strictyaml, which
// knows the place of each value; what goes to and from a model's provider is passed on
// field by field, as it was written, by agents/gateway/dialect.
//
// The package is public. Kept stable are the form of hashes, digests and files, and which
// payloads have which; functions and types may change until a first release.
package node

import (
	"errors"
	"fmt"
	"time"
)

// Hash is a node's content address: 13 characters of Crockford base32.
type Hash string

// Node is one immutable record. Timestamp (milliseconds since 1970) is not part
// of the hash.
type Node struct {
	Type      Hash
	Payload   any
	Timestamp int64
}

// Getter finds nodes by hash. A hash it doesn't hold is ErrNotFound.
type Getter interface {
	Get(h Hash) (Node, error)
}

// GetterFunc is a function as a Getter.
type GetterFunc func(Hash) (Node, error)

// Get implements Getter.
func (f GetterFunc) Get(h Hash) (Node, error) { return f(h) }

// ErrNotFound is wrapped by every "no such node" error.
var ErrNotFound = errors.New("node not found")

// MetaSchema is the type of every schema node, and the hash of the meta-schema.
const MetaSchema Hash = "CTS5P6RD8HMCS"

// String is the type of text nodes: the schema {"type":"string"}.
const String Hash = "7VQ43ZSJTEWA7"

// New makes a node of a payload and returns it with its hash. The payload is
// normalised (see Normalize), but not checked against its schema: that needs the
// schema's node, see Check.
func New(typ Hash, payload any, at time.Time) (Node, Hash, error) {
	p, err := Normalize(payload)
	if err != nil {
		return Node{}, "", fmt.Errorf("make a node of type %s: %w", typ, err)
	}
	n := Node{Type: typ, Payload: p, Timestamp: at.UnixMilli()}
	h, err := n.ComputeHash()
	if err != nil {
		return Node{}, "", fmt.Errorf("make a node of type %s: %w", typ, err)
	}
	return n, h, nil
}

// ComputeHash is the node's content address, see HashOf.
func (n Node) ComputeHash() (Hash, error) {
	h, _, err := n.Identify()
	return h, err
}

// Map is a set of nodes in memory.
type Map map[Hash]Node

// Get returns the node of that hash; ErrNotFound where there is none.
func (m Map) Get(h Hash) (Node, error) {
	n, ok := m[h]
	if !ok {
		return Node{}, fmt.Errorf("%w: %s", ErrNotFound, h)
	}
	return n, nil
}

// First finds a node in the first of several that has it.
type First []Getter

// Get returns the node of that hash; ErrNotFound where there is none.
func (f First) Get(h Hash) (Node, error) {
	for _, g := range f {
		if n, err := g.Get(h); !errors.Is(err, ErrNotFound) {
			return n, err
		}
	}
	return Node{}, fmt.Errorf("%w: %s", ErrNotFound, h)
}
