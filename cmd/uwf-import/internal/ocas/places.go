package ocas

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNothing: what was named is not enough to import anything.
var ErrNothing = errors.New("nothing can be imported from there")

// kind is what something that is looked for is good for.
type kind int

const (
	isNodes kind = iota
	isList
	kinds
)

// place is a PATH: what was looked for in it, and what of that is there.
type place struct {
	name          string
	found, absent []string
	has           [kinds]bool
}

func (s *Source) addPlace(name string) *place {
	at := &place{name: name}
	s.places = append(s.places, at)
	return at
}

// noteFound notes whether something is there.
func (p *place) noteFound(k kind, what string, there bool) {
	p.has[k] = p.has[k] || there
	if there {
		p.found = append(p.found, what)
	} else {
		p.absent = append(p.absent, what)
	}
}

// CheckEnough says what is missing: without lists nobody knows which threads there are, and
// without nodes nothing is in them. The error names what was looked for where.
func (s *Source) CheckEnough() error {
	var has [kinds]bool
	for _, p := range s.places {
		for k := range kinds {
			has[k] = has[k] || p.has[k]
		}
	}
	const roots = "~/.uwf, before that ~/.uncaged/workflow"
	const stores = "~/.ocas, before that ~/.uncaged/json-cas or the folder cas of the storage root"
	var wrong string
	switch {
	case !has[isNodes] && !has[isList]:
		wrong = "neither nodes nor lists of the TypeScript uwf are there; give its store (" + stores + ") and its storage root (" + roots + "), or a bundle of ocas export"
	case !has[isNodes]:
		wrong = "there are lists but no nodes; give the store that has them as well: " + stores
	case !has[isList]:
		wrong = "there are nodes, but no list says which of them are threads; give the storage root as well: " + roots + "; or, of a bundle, one of ocas export @uwf/thread/ID"
	case len(s.threads)+len(s.flows)+len(s.problems) == 0:
		wrong = "no thread and no workflow is named there"
	default:
		return nil
	}
	var b strings.Builder
	for _, p := range s.places {
		fmt.Fprintf(&b, "\n  %s: found %s; not there: %s", p.name, nameAll(p.found), nameAll(p.absent))
	}
	for _, p := range s.problems {
		fmt.Fprintf(&b, "\n  %s", p)
	}
	return fmt.Errorf("%w: %s%s", ErrNothing, wrong, b.String())
}

func nameAll(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// String is the problem on one line.
func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s: line %d: %s", p.File, p.Line, p.Why)
	}
	return p.File + ": " + p.Why
}
