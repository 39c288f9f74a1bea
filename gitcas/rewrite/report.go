package rewrite

import (
	"cmp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// maxFound bounds the places that a plan lists.
const maxFound = 1000

// report gathers what a plan says.
type report struct {
	o      *Options
	plan   *Plan
	commit wire.ID        // the present one; zero: there is none
	seen   map[Place]bool // places that were reported, without their commits
	fixed  []Place
	dead   map[statefile.ThreadID]Thread
	quoted map[string][]string // texts of named nodes, by thread
	quotes map[string]Finder   // made of these
	empty  map[node.Hash]bool  // named ones without anything that could be taken out
}

func newReport(o *Options) *report {
	return &report{
		o: o, plan: &Plan{}, seen: map[Place]bool{}, dead: map[statefile.ThreadID]Thread{},
		quoted: map[string][]string{}, quotes: map[string]Finder{}, empty: map[node.Hash]bool{},
	}
}

// cleanText takes what is looked for out of what is said about it.
func (r *report) cleanText(s string) string {
	s, _ = r.o.Find.Replace(s, nil)
	return strings.ReplaceAll(s, "\n", " ")
}

// addPlace adds a place to a list, once.
func (r *report) addPlace(list *[]Place, path, at string) {
	p := Place{Path: r.cleanText(path), At: r.cleanText(at)}
	if r.seen[p] || len(*list) >= maxFound {
		return
	}
	r.seen[p] = true
	if !r.commit.IsZero() {
		p.Commit = r.commit.String()
	}
	*list = append(*list, p)
}

// noteFound notes a place where something was taken out.
func (r *report) noteFound(path, at string) { r.addPlace(&r.plan.Found, path, at) }

// noteName notes a name that holds what is looked for.
func (r *report) noteName(path, at string) { r.addPlace(&r.fixed, path, at) }

// noteNamed notes a named node with its texts: its thread's pages and messages quote
// them.
func (r *report) noteNamed(h node.Hash, thread string, texts []string) {
	if !slices.Contains(r.plan.Nodes, h) {
		r.plan.Nodes = append(r.plan.Nodes, h)
	}
	if thread != "" && r.o.Quotes != nil {
		r.quoted[thread] = append(r.quoted[thread], texts...)
		delete(r.quotes, thread)
	}
}

// checkAllFound is an error where a named node holds nothing that could be taken out: in none
// of the places in which there is one of that hash.
func (r *report) checkAllFound() error {
	for _, h := range r.o.Nodes {
		if r.empty[h] && !slices.Contains(r.plan.Nodes, h) {
			return &NothingError{Node: h}
		}
	}
	return nil
}

func (r *report) noteEnded(t Thread) { r.dead[t.ID] = t }

// changedThreads lists those whose heads change.
func (r *report) changedThreads(alive []Thread) []Thread {
	out := slices.Clone(alive)
	for _, t := range r.dead {
		if !slices.ContainsFunc(alive, func(a Thread) bool { return a.ID == t.ID }) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b Thread) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// findQuotes finds the texts of named nodes in a thread's pages and messages; nil: there
// are none.
func (r *report) findQuotes(thread string) Finder {
	if f, made := r.quotes[thread]; made || len(r.quoted[thread]) == 0 {
		return f
	}
	f := r.o.Quotes(slices.Compact(slices.Sorted(slices.Values(r.quoted[thread]))))
	r.quotes[thread] = f
	return f
}
