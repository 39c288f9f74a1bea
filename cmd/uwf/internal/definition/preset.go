package definition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/examples"
	"github.com/united-workforce/uwf/gitcas"
)

// UsualWorkflow is what runs where nobody says which, and there is not just one.
const UsualWorkflow = "solve-issue"

// FromUWF is where the workflows come from that uwf has with it.
const FromUWF = "uwf itself"

// PresetText is the text of a workflow that uwf has with it; false: it has none of that name.
func PresetText(name string) ([]byte, bool) {
	if !slices.Contains(examples.Workflows(), name) {
		return nil, false
	}
	data, err := examples.Files.ReadFile(name + ".yaml")
	return data, err == nil
}

// Preset compiles a workflow that uwf has with it.
func (r *Resolver) Preset(ctx context.Context, name string) (*Resolved, error) {
	text, ok := PresetText(name)
	if !ok {
		return nil, fmt.Errorf("uwf has no workflow %q with it", name)
	}
	res, err := r.Compile(ctx, name+".yaml", text)
	if err != nil {
		return nil, fmt.Errorf("the workflow %s that uwf has with it: %w", name, err)
	}
	res.From = FromUWF
	return res, nil
}

// Usual is the name of the workflow that is meant where none is named: the only one of this
// repository and its registry, else UsualWorkflow. others are those that there are besides.
func (r *Resolver) Usual(ctx context.Context) (name string, others []string, err error) {
	files, err := r.Files()
	if err != nil {
		return "", nil, err
	}
	names := slices.Collect(maps.Keys(files))
	v, err := r.View(ctx)
	switch {
	case err == nil:
		names = slices.AppendSeq(names, maps.Keys(v.Registry()))
	case !errors.Is(err, gitcas.ErrNoStore):
		return "", nil, err
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 1 {
		return names[0], nil, nil
	}
	return UsualWorkflow, slices.DeleteFunc(names, func(n string) bool { return n == UsualWorkflow }), nil
}
