package workflow

import (
	"path/filepath"

	"github.com/united-workforce/uwf/engine/workflow/source"
	"github.com/united-workforce/uwf/gitcas/node"
)

// Options are what a definition may need beside its own text.
type Options struct {
	// Include returns the content of a file for !include. Name is
	// slash-separated, relative to the definition's folder, and lexically inside
	// it; the function itself must refuse symbolic links that lead out (os.Root
	// does). Nil: the definition can't include anything.
	Include func(name string) ([]byte, error)
	// Nodes finds the schemas of roles that name one by its hash. Nil: every role
	// must have its schema in the definition.
	Nodes node.Getter
	// Warn is told what a definition that can be used says to no effect; nil: nobody.
	Warn func(Problem)
}

// Parse compiles a definition. Name is its file, for messages; data is its
// YAML. Everything that is wrong with it is in the error, an *InvalidError.
func Parse(name string, data []byte, opts Options) (*Definition, error) {
	name = filepath.ToSlash(name)
	ps := &source.Problems{}
	root := source.Read(ps, name, data, opts.Include)
	c := &compiler{problems: ps, warnings: &source.Problems{}, opts: opts, root: root}
	d := c.compileAll()
	if !ps.Empty() {
		return nil, &InvalidError{Name: name, Problems: ps.List(name)}
	}
	if opts.Warn != nil {
		for _, w := range c.warnings.List(name) {
			opts.Warn(w)
		}
	}
	return d, nil
}
