// Package edit changes single values of a YAML mapping and leaves the rest as people
// wrote it: comments, order, quotes, line ends. It knows nothing of what the values mean,
// and reads and writes no files.
//
// The text is read and written by the YAML library, which keeps comments, but no blank lines.
// What comes out is parsed again and must be exactly the old mapping with the change: the
// text may look different, but never mean something else.
package edit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

// Change is one value to set, or to remove.
type Change struct {
	Path  []string   // the keys that lead to it
	Value *yaml.Node // nil: remove the entry, and mappings that become empty by it
	Keep  bool       // a value that is there stays
}

// Errors of Apply.
var (
	// ErrNotYAML: the text is not one YAML document with a mapping in it.
	ErrNotYAML = errors.New("it is no YAML mapping")
	// ErrNoMapping: a value on the way is no mapping, so nothing can be below it.
	ErrNoMapping = errors.New("it holds a value, not a mapping")
	// ErrTwice: a key on the way stands twice.
	ErrTwice = errors.New("it stands twice")
	// ErrSpecial: an anchor, alias, tag or merge key is on the way.
	ErrSpecial = errors.New("anchors, aliases and tags can't be edited")
)

// maxText is the largest text, in bytes.
const maxText = 1 << 20

// Apply makes changes one after the other and returns the new text. A change that
// changes nothing leaves the text as it is.
func Apply(text []byte, changes ...Change) ([]byte, error) {
	out := string(text)
	bom := ""
	if rest, ok := strings.CutPrefix(out, "\ufeff"); ok {
		bom, out = "\ufeff", rest
	}
	for _, c := range changes {
		var err error
		if out, err = applyChange(out, c); err != nil {
			return nil, fmt.Errorf("change %s: %w", strings.Join(c.Path, "."), err)
		}
	}
	return []byte(bom + out), nil
}

func applyChange(text string, c Change) (string, error) {
	if len(c.Path) == 0 || len(text) > maxText {
		return "", ErrNotYAML
	}
	plain := strings.ReplaceAll(text, "\r\n", "\n")
	doc, err := strictyaml.ParseDocument(plain)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrNotYAML, err)
	case doc == nil && !utf8.ValidString(plain): // a file of comments in another encoding
		return "", fmt.Errorf("%w: its text is not UTF-8: save it as UTF-8", ErrNotYAML)
	case doc != nil && doc.Content[0].Kind != yaml.MappingNode && !isEmpty(doc.Content[0]):
		return "", ErrNotYAML
	}
	root := mappingOf(doc)
	want, err := changedCopy(root, c)
	if err != nil {
		return "", err
	}
	if root != nil && sameMeaning(root, want) || root == nil && c.Value == nil {
		return text, nil
	}
	out, err := rewriteDocument(doc, want)
	if comments := strings.TrimRight(plain, "\n"); doc == nil && comments != "" && err == nil {
		out = comments + "\n" + out // the library knows no document without a value
	}
	if plain != text {
		out = strings.ReplaceAll(out, "\n", "\r\n")
	}
	return out, err
}

// mappingOf is what a document holds; nil: nothing.
func mappingOf(doc *yaml.Node) *yaml.Node {
	if doc == nil || isEmpty(doc.Content[0]) {
		return nil
	}
	return doc.Content[0]
}

// isEmpty says whether a node is nothing, as after a key without a value.
func isEmpty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style == 0 && n.ShortTag() == "!!null"
}

// findKey is the index of a key in a mapping; -1 where it is not there.
func findKey(m *yaml.Node, key string) (int, error) {
	at := -1
	for i := 0; i+1 < len(m.Content); i += 2 {
		k := m.Content[i]
		if k.Kind != yaml.ScalarNode || k.Value == "<<" && k.Style == 0 {
			return 0, ErrSpecial
		}
		if k.Value != key {
			continue
		}
		if at >= 0 {
			return 0, ErrTwice
		}
		if at = i; isSpecial(k) || isSpecial(m.Content[i+1]) {
			return 0, ErrSpecial
		}
	}
	return at, nil
}

func isSpecial(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0
}

// changedCopy is a copy of the mapping with the change made.
func changedCopy(root *yaml.Node, c Change) (*yaml.Node, error) {
	out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if root != nil && len(root.Content) > 0 { // {} is no style
		out = cloneNode(root)
	}
	if c.Value == nil {
		_, err := removePath(out, c.Path)
		return out, err
	}
	return out, setPath(out, c.Path, cloneNode(c.Value), c.Keep)
}

func setPath(m *yaml.Node, path []string, v *yaml.Node, keep bool) error {
	i, err := findKey(m, path[0])
	if err != nil {
		return err
	}
	if i < 0 {
		m.Content = append(m.Content, newScalar(path[0]), &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"})
		i = len(m.Content) - 2
	}
	if len(path) == 1 {
		old := m.Content[i+1]
		if keep && !isEmpty(old) {
			return nil
		}
		v.LineComment = old.LineComment
		m.Content[i+1] = v
		return nil
	}
	if isEmpty(m.Content[i+1]) {
		m.Content[i+1] = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	if m.Content[i+1].Kind != yaml.MappingNode {
		return ErrNoMapping
	}
	return setPath(m.Content[i+1], path[1:], v, keep)
}

// removePath takes an entry out; it tells whether the mapping is empty now because of
// it, and goes then too.
func removePath(m *yaml.Node, path []string) (emptied bool, err error) {
	i, err := findKey(m, path[0])
	if err != nil || i < 0 {
		return false, err
	}
	if len(path) > 1 {
		if isEmpty(m.Content[i+1]) {
			return false, nil
		}
		if m.Content[i+1].Kind != yaml.MappingNode {
			return false, ErrNoMapping
		}
		if below, err := removePath(m.Content[i+1], path[1:]); !below {
			return false, err
		}
	}
	m.Content = slices.Delete(m.Content, i, i+2)
	return len(m.Content) == 0, nil
}

func newScalar(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

func cloneNode(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out.Content[i] = cloneNode(c)
	}
	return &out
}

// sameMeaning says whether two nodes mean the same, with their keys in the same order.
func sameMeaning(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return (a == nil || len(a.Content) == 0) && (b == nil || len(b.Content) == 0)
	}
	if a.Kind != b.Kind || a.ShortTag() != b.ShortTag() || a.Anchor != b.Anchor {
		return false
	}
	if a.Kind == yaml.ScalarNode && a.Value != b.Value && !(isEmpty(a) && isEmpty(b)) {
		return false
	}
	if a.Kind == yaml.AliasNode && a.Value != b.Value {
		return false
	}
	return slices.EqualFunc(a.Content, b.Content, sameMeaning)
}

// indentOf is by how many spaces a file indents its mappings; 2 where none of them is.
func indentOf(root *yaml.Node) int {
	for i := 1; i < len(root.Content); i += 2 {
		if v := root.Content[i]; v.Kind == yaml.MappingNode && v.Style == 0 && v.Line > root.Content[i-1].Line {
			return min(max(v.Column-root.Column, 2), 8)
		}
	}
	return 2
}

// rewriteDocument is a document with another mapping in it, as the library writes it.
func rewriteDocument(doc, want *yaml.Node) (string, error) {
	out := yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{want}}
	if doc != nil {
		out.HeadComment, out.LineComment, out.FootComment = doc.HeadComment, doc.LineComment, doc.FootComment
	}
	var b strings.Builder
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(indentOf(want))
	if err := errors.Join(enc.Encode(&out), enc.Close()); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotYAML, err)
	}
	if got, _ := strictyaml.ParseDocument(b.String()); !sameMeaning(mappingOf(got), want) {
		return "", fmt.Errorf("%w that can be written: edit the file by hand", ErrNotYAML)
	}
	return b.String(), nil
}
