package action

import (
	"context"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/engine/runner"
)

// usualWorkflow is what runs where nobody says which, and there are several.
const usualWorkflow = "solve-issue"

// definitions are the workflows of the default branch, by name. A name in a comment
// or in an input must not lead to any other file, nor to the registry, which agents'
// jobs can write.
type definitions struct {
	r      *definition.Resolver
	branch string
}

func newDefinitions(f *app.Factory, branch string) definitions {
	r := definition.New(f)
	r.Invalid, r.Warn = nil, nil // the runner says what is wrong
	return definitions{r: r, branch: branch}
}

// Resolve implements runner.Definitions. Without a name it is the only workflow, or
// the usual one.
func (d definitions) Resolve(ctx context.Context, name string) (runner.Definition, error) {
	files, err := d.r.Files()
	if err != nil {
		return runner.Definition{}, err
	}
	names := slices.Sorted(maps.Keys(files))
	if name == "" {
		if name = usualWorkflow; len(names) == 1 {
			name = names[0]
		}
	}
	if _, ok := files[name]; !ok {
		return runner.Definition{}, &app.UnknownError{What: "workflow", ID: name, Near: app.Near(name, names),
			Hint: "workflows of jobs are files of .uwf/workflows on the default branch (" + d.branch + ")"}
	}
	res, err := d.r.File(ctx, name)
	if err != nil {
		return runner.Definition{}, err
	}
	return runner.Definition{Hash: res.Hash, Nodes: res.Nodes, Definition: res.Definition}, nil
}
