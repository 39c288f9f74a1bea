package rewrite

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
)

// maxFound bounds the places that a plan lists.
const maxFound = 1000

// report gathers what a plan says.
type report struct {
	o      *Options
	plan   *Plan
	seen   map[string]bool // places that were reported, by path and part
	fixed  []Place
	dead   map[statefile.ThreadID]Thread
	quoted map[string][]string // texts of named nodes, by thread
	quotes map[string]Finder   // made of these
	hits   map[node.Hash]bool
	empty  map[node.Hash]bool // named ones without anything that could be taken out
}

func newReport(o *Options) *report {
	return &report{
		o: o, plan: &Plan{}, seen: map[string]bool{}, dead: map[statefile.ThreadID]Thread{},
		quoted: map[string][]string{}, quotes: map[string]Finder{}, hits: map[node.Hash]bool{}, empty: map[node.Hash]bool{},
	}
}

// cleanText takes what is looked for out of what is said about it.
func (r *report) cleanText(s string) string {
	if r.o.Find != nil {
		s, _ = r.o.Find.Replace(s, nil)
	}
	return strings.ReplaceAll(s, "\n", " ")
}

func (r *report) cleanPlace(p Place, at string) (Place, bool) {
	p.Path, p.At = r.cleanText(p.Path), r.cleanText(at)
	key := p.Path + "\x00" + p.At
	if r.seen[key] || len(r.seen) > 100*maxFound {
		return p, false
	}
	r.seen[key] = true
	return p, true
}

// noteFound notes a place where something was taken out.
func (r *report) noteFound(p Place, at string) {
	if p, first := r.cleanPlace(p, at); first && len(r.plan.Found) < maxFound {
		r.plan.Found = append(r.plan.Found, p)
	}
}

// noteName notes a name that holds what is looked for.
func (r *report) noteName(p Place, at string) {
	if p, first := r.cleanPlace(p, at); first && len(r.fixed) < maxFound {
		r.fixed = append(r.fixed, p)
	}
}

// noteNamed notes a named node with its texts: its thread's pages and messages quote
// them.
func (r *report) noteNamed(h node.Hash, thread string, texts []string) {
	if !r.hits[h] {
		r.hits[h] = true
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
		if r.empty[h] && !r.hits[h] {
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

// findQuotes finds the texts of named nodes in a thread's pages and messages.
func (r textRewriter) findQuotes(thread string) Finder {
	rep := r.report
	if f, made := rep.quotes[thread]; made || len(rep.quoted[thread]) == 0 {
		return f
	}
	texts := slices.Sorted(maps.Keys(setOf(rep.quoted[thread])))
	f := rep.o.Quotes(texts)
	rep.quotes[thread] = f
	return f
}

func setOf(list []string) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, s := range list {
		out[s] = true
	}
	return out
}
