package node

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
)

// ErrNotSchema is wrapped where a node is used as a type that is no schema.
var ErrNotSchema = errors.New("not a schema")

// maxCached bounds the compiled schemas that a cache keeps.
const maxCached = 256

// Schemas keeps compiled schemas, so that a run which checks many nodes compiles each
// schema once. They are kept by what they are, not by their hashes alone: two places
// may hold different schemas of one hash. The zero value is ready; it is safe for
// concurrent use.
type Schemas struct {
	mu sync.Mutex
	m  map[Hash][]compiled
	n  int
}

// compiled is a schema and what it was made of.
type compiled struct {
	payload any
	schema  *Schema
}

// findSchema is the compiled schema of a payload; nil where there is none. A payload that
// is the very same value is found without looking into it.
func (c *Schemas) findSchema(typ Hash, payload any) *Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.m[typ] {
		if reflect.DeepEqual(k.payload, payload) {
			return k.schema
		}
	}
	return nil
}

// LoadSchema is the compiled schema of that hash, as g has it. The node is checked against
// the hash. It must be a schema other than the meta-schema, which is not compiled ever.
func (c *Schemas) LoadSchema(g Getter, typ Hash) (*Schema, error) {
	n, err := getNode(g, typ)
	if err != nil {
		return nil, fmt.Errorf("fetch the schema %s: %w", typ, err)
	}
	if n.Type != MetaSchema {
		return nil, fmt.Errorf("%w: node %s is used as a type, but its own type is %s", ErrNotSchema, typ, n.Type)
	}
	if s := c.findSchema(typ, n.Payload); s != nil {
		return s, nil
	}
	if err := Verify(typ, n); err != nil {
		return nil, fmt.Errorf("fetch the schema %s: %w", typ, err)
	}
	s, err := Compile(n.Payload)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", typ, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || c.n >= maxCached {
		c.m, c.n = make(map[Hash][]compiled), 0 // rarely full; starting over is simpler than ageing
	}
	c.m[typ] = append(c.m[typ], compiled{n.Payload, s})
	c.n++
	return s, nil
}

// CheckNode checks a node by its type: a schema by CheckSchema, any other node
// against its schema.
func (c *Schemas) CheckNode(g Getter, n Node) error {
	if n.Type == MetaSchema {
		return CheckSchema(n.Payload)
	}
	s, err := c.LoadSchema(g, n.Type)
	if err != nil {
		return err
	}
	if err := s.Validate(n.Payload); err != nil {
		return fmt.Errorf("node of type %s: %w", n.Type, err)
	}
	return nil
}

// Refs lists the references in a node's payload, without its type.
func (c *Schemas) Refs(g Getter, n Node) ([]Hash, error) {
	if n.Type == MetaSchema {
		return nil, nil // a schema refers to nothing
	}
	s, err := c.LoadSchema(g, n.Type)
	if err != nil {
		return nil, err
	}
	return s.Refs(n.Payload), nil
}

// ErrSkip, returned by a visit, keeps Walk from following that node's references.
var ErrSkip = errors.New("skip this node's references")

// WalkNodes visits the node root and all that it reaches, by references and types,
// each once, parents before children. A node that is missing ends the walk with
// an error that names who refers to it; so does an error of visit, but for
// ErrSkip. The built-in schemas need not be in g.
func (c *Schemas) WalkNodes(g Getter, root Hash, visit func(Hash, Node) error) error {
	type item struct{ hash, from Hash }
	stack := []item{{hash: root}}
	seen := map[Hash]struct{}{}
	for len(stack) > 0 {
		it := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if _, ok := seen[it.hash]; ok {
			continue
		}
		seen[it.hash] = struct{}{}
		n, err := getNode(g, it.hash)
		if err != nil {
			if it.from != "" {
				err = fmt.Errorf("referred to by %s: %w", it.from, err)
			}
			return fmt.Errorf("walk from %s: %w", root, err)
		}
		err = visit(it.hash, n)
		if errors.Is(err, ErrSkip) {
			continue
		}
		if err != nil {
			return err
		}
		refs, err := c.Refs(g, n)
		if err != nil {
			return fmt.Errorf("walk from %s: node %s: %w", root, it.hash, err)
		}
		for i := len(refs) - 1; i >= 0; i-- {
			stack = append(stack, item{refs[i], it.hash})
		}
		stack = append(stack, item{n.Type, it.hash})
	}
	return nil
}

// Check checks one node, see Schemas.Check. Who checks several keeps a Schemas.
func Check(g Getter, n Node) error {
	var c Schemas
	return c.CheckNode(g, n)
}

// Walk walks the graph below one node, see Schemas.Walk.
func Walk(g Getter, root Hash, visit func(Hash, Node) error) error {
	var c Schemas
	return c.WalkNodes(g, root, visit)
}

// ErrWrongHash is wrapped where a node's content is not what its hash says.
var ErrWrongHash = errors.New("content and hash differ")

// Verify compares a node's content with the hash it was found under.
func Verify(h Hash, n Node) error {
	got, err := n.ComputeHash()
	if err != nil {
		return err
	}
	if got != h {
		return fmt.Errorf("%w: it is stored as %s, and hashes to %s", ErrWrongHash, h, got)
	}
	return nil
}

// getNode asks g for what is not built in: nothing that g holds takes the place of the
// meta-schema and the schemas of JSON's types.
func getNode(g Getter, h Hash) (Node, error) {
	if n, ok := builtin()[h]; ok {
		return n, nil
	}
	return g.Get(h)
}
