package node

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Digest is a SHA-256 as 64 small hexadecimal digits. A Hash is a name: whoever
// chooses a payload can choose it so that it hashes to any name within a second. A
// Digest is what holds.
type Digest string

// digestLen is the number of characters of a Digest.
const digestLen = 2 * sha256.Size

// Valid reports whether d has the form of a digest.
func (d Digest) Valid() bool {
	return len(d) == digestLen && strings.Trim(string(d), "0123456789abcdef") == ""
}

// Sum is the SHA-256 of one node's type and payload, of the same bytes as its Hash:
// ASCII(type) ++ CBOR(payload). What it refers to is not in it, see Closure.
func (n Node) Sum() (Digest, error) {
	_, d, err := n.Identify()
	return d, err
}

// Identify is Hash and Sum, of one encoding.
func (n Node) Identify() (Hash, Digest, error) {
	if !n.Type.Valid() {
		return "", "", fmt.Errorf("hash a payload: type: %w: %.40q", ErrInvalidHash, string(n.Type))
	}
	b, err := EncodeCBOR(n.Payload)
	if err != nil {
		return "", "", fmt.Errorf("hash a payload: %w", err)
	}
	sum := sha256.New()
	_, _ = sum.Write([]byte(n.Type)) // a digest takes everything
	_, _ = sum.Write(b)
	d := Digest(hex.EncodeToString(sum.Sum(nil)))
	if n.Type == MetaSchema {
		if self := encodeBase32(xxhash.Sum64(b)); self == MetaSchema {
			return self, d, nil
		}
	}
	x := xxhash.New()
	_, _ = x.WriteString(string(n.Type))
	_, _ = x.Write(b)
	return encodeBase32(x.Sum64()), d, nil
}

// ErrCircle is wrapped where nodes refer to one another in a circle.
var ErrCircle = errors.New("nodes refer to one another in a circle")

// maxDeep bounds how deep the references of a closure go.
const maxDeep = 10_000

// Closure is what some nodes reach, with their digests. Nodes are looked up by
// Getter, so one Closure is for one place: a name may stand for something else
// elsewhere.
//
// The digest of a node that refers to nothing but the schemas of JSON's seven types
// is its Sum. Of any other it is the SHA-256 of
//
//	Sum(node) ++ hash₁ ++ digest₁ ++ hash₂ ++ digest₂ …
//
// as text, where the hashes are the node's type, unless that is the meta-schema or
// one of the seven, and then its references, each once, sorted by bytes.
// A node for which Alone holds counts by its Sum, and is not followed: it carries the
// digests of what it refers to itself.
type Closure struct {
	Schemas *Schemas
	Getter  Getter
	Alone   func(typ Hash) bool // nil: none is
	// Trust leaves the check against schemas out: for who compares the digest with one
	// that was made of checked nodes.
	Trust bool
	// Nodes are those that were reached.
	Nodes Map

	digests map[Hash]Digest
	busy    map[Hash]bool
}

// ComputeDigest returns the digest of a node, and takes all that it reaches into Nodes. Each
// is checked: that it is what its hash says, and, without Trust, fits its schema.
func (c *Closure) ComputeDigest(h Hash) (Digest, error) {
	if d, ok := c.digests[h]; ok {
		return d, nil
	}
	if c.digests == nil {
		c.digests, c.busy = map[Hash]Digest{}, map[Hash]bool{}
	}
	if c.Nodes == nil {
		c.Nodes = Map{}
	}
	if c.busy[h] || len(c.busy) >= maxDeep {
		return "", fmt.Errorf("node %s: %w, or deeper than %d", h, ErrCircle, maxDeep)
	}
	c.busy[h] = true
	defer delete(c.busy, h)
	n, err := getNode(c.Getter, h)
	if err != nil {
		return "", err
	}
	got, d, err := n.Identify()
	if err == nil && got != h {
		err = fmt.Errorf("%w: it is stored as %s, and hashes to %s", ErrWrongHash, h, got)
	}
	if err == nil && !c.Trust {
		err = c.Schemas.CheckNode(c.Getter, n)
	}
	if err != nil {
		return "", fmt.Errorf("node %s: %w", h, err)
	}
	if c.Alone == nil || !c.Alone(n.Type) {
		if d, err = c.digestWith(n, d); err != nil {
			return "", referredBy(h, err)
		}
	}
	c.Nodes[h], c.digests[h] = n, d
	return d, nil
}

// referredError says who refers to a node that could not be read.
type referredError struct {
	from Hash
	err  error
}

func (e *referredError) Error() string { return fmt.Sprintf("referred to by %s: %v", e.from, e.err) }

// Unwrap gives the cause.
func (e *referredError) Unwrap() error { return e.err }

// referredBy names the nearest of those that lead to a node, and no more: there may be
// thousands.
func referredBy(h Hash, err error) error {
	if named := (*referredError)(nil); errors.As(err, &named) {
		return err
	}
	return &referredError{h, err}
}

// digestWith is the digest of a node together with what it refers to.
func (c *Closure) digestWith(n Node, own Digest) (Digest, error) {
	refs, err := c.Schemas.Refs(c.Getter, n)
	if err != nil {
		return "", err
	}
	return n.Closed(own, refs, c.ComputeDigest)
}

// Closed is the digest of a node together with what it refers to, see Closure, for who
// has worked out the rest: own is its Sum, refs are its references, and digest gives
// that of each of them and of its type.
func (n Node) Closed(own Digest, refs []Hash, digest func(Hash) (Digest, error)) (Digest, error) {
	text := []byte(own)
	for _, h := range append([]Hash{n.Type}, slices.Sorted(slices.Values(refs))...) {
		if _, ok := builtin()[h]; ok {
			continue
		}
		d, err := digest(h)
		if err != nil {
			return "", err
		}
		text = append(append(text, h...), d...)
	}
	if len(text) == digestLen {
		return own, nil
	}
	sum := sha256.Sum256(text)
	return Digest(hex.EncodeToString(sum[:])), nil
}
