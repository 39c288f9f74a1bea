package rewrite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// rewriteAttempts rewrites what the refs of attempts hold: nodes like those of the state
// branch, why it failed, and the folder as the agent left it, whose files are
// text here. The commits that the work was based on are people's: they stay.
func (r *run) rewriteAttempts(refs map[string]wire.ID) ([]Attempt, error) {
	var out []Attempt
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		id := refs[ref]
		r.report.commit, r.prefix = wire.ZeroID, ref+": "
		to, err := r.rewriteAttempt(id, r.threadOfRef(ref), 0)
		r.prefix = ""
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ref, err)
		}
		if to != id {
			out = append(out, Attempt{Ref: ref, Old: id, New: to})
		}
	}
	return out, nil
}

func (r *run) threadOfRef(ref string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(ref, r.o.Attempts), "/")
	return id
}

// maxAttempts bounds how many attempts of one name follow each other.
const maxAttempts = 100

func (r *run) rewriteAttempt(id wire.ID, thread string, depth int) (wire.ID, error) {
	if to, done := r.tries[id]; done {
		return to, nil
	}
	c, o, err := r.readCommit(id)
	if err != nil {
		return wire.ZeroID, err
	}
	parents := slices.Clone(c.Parents)
	var people []wire.ID
	for i, p := range parents {
		if to, moved := r.commits[p]; moved {
			parents[i] = to // a state commit
			people = append(people, p)
			continue
		}
		own, err := r.isAttempt(p, thread)
		switch {
		case err != nil:
			return wire.ZeroID, err
		case !own || depth >= maxAttempts:
			people = append(people, p)
		default:
			if parents[i], err = r.rewriteAttempt(p, thread, depth+1); err != nil {
				return wire.ZeroID, err
			}
		}
	}
	// Of the folder comes only what the agent changed.
	objs, err := r.remote.Fetch(r.ctx, wire.FetchRequest{Wants: []wire.ID{id}, Haves: people, Depth: depthOf(people)})
	if err != nil {
		return wire.ZeroID, err
	}
	r.objs, r.partial = objs, true
	r.objs[id] = o
	tree, err := r.rewriteRoot(treeItem{kind: layout.AttemptFolder, id: c.Tree, in: r.nodes.scopes.ofThread(thread)})
	r.partial = false
	if err != nil {
		return wire.ZeroID, err
	}
	to := r.commitTo(o, c, tree, parents, "its message")
	r.tries[id] = to
	return to, nil
}

// depthOf: without commits of people, nothing but the commit itself is meant.
func depthOf(people []wire.ID) int {
	if len(people) == 0 {
		return 1
	}
	return 0
}

// isAttempt reports whether a parent of an attempt's commit is one itself: what the
// ref held before. Its message tells it from people's commits.
func (r *run) isAttempt(p wire.ID, thread string) (bool, error) {
	if _, done := r.tries[p]; done {
		return true, nil
	}
	c, _, err := r.readCommit(p)
	return strings.HasPrefix(c.Message, "attempt ") && strings.Contains(c.Message, "\nUwf-Thread: "+thread+"\n"), err
}
