// Package ignore decides which files .gitignore files leave out, and which attributes
// .gitattributes files give them, with the rules of git's dir.c and attr.c. It works on
// text and paths alone and never reads a file.
//
// The patterns may be an agent's, so what they cost is counted: plain names and paths are
// looked up, however many there are; the others are compared one by one, each in time that
// grows with its length times the path's; and where all of that together gets too much it
// is a [CostError], never a guess.
package ignore

import (
	"fmt"
	"strings"
)

const (
	// MaxFile is the size of the largest .gitignore or .gitattributes that a caller should
	// read, in bytes.
	MaxFile = 1 << 20
	// DefaultSteps is what one walk over a folder may cost: some seconds. Two
	// hundred thousand files against fifty patterns with several wildcards take a
	// third of it.
	DefaultSteps = 1_000_000_000
)

// Rules are the patterns that hold for one folder: those of its own .gitignore
// and those of the folders above it.
type Rules struct {
	source
	above *Rules

	// plain are the patterns without wildcards: a name at any depth, or a path with a slash
	// before it; with a slash behind it where it is for folders only.
	plain map[string]rank
	wild  []pattern // all others, in their order
}

// source is one file of patterns, and what comparing them has cost.
type source struct {
	work   *work
	prefix string // the folder's path with a slash behind it, empty at the top
	count  int    // patterns
	spent  int64  // steps
}

// work is what all sources of one walk share.
type work struct {
	left  int64
	worst *source // the one that took the most steps
}

// newSource returns the source for the folder at path (slashes, empty for the top).
func newSource(w *work, path string) source {
	if path != "" {
		path += "/"
	}
	return source{work: w, prefix: path}
}

// CostError: comparing the patterns takes too long.
type CostError struct {
	Folder   string // of the file that takes the most, empty for the top
	Patterns int    // that it has
}

func (e *CostError) Error() string {
	return fmt.Sprintf("comparing its %d patterns with so many files takes too long: take out what isn't needed, or write names and folders instead of wildcards", e.Patterns)
}

// rank orders the patterns of one file: the last one that matches decides. It is
// twice the position, from 1, and one more where the pattern is negated; 0 is none.
type rank int

func (r rank) isIgnoring() bool { return r > 0 && r&1 == 0 }

type pattern struct {
	head, rest, tail string // what is literal at its ends, and the rest with the tail
	rank             rank
	folder           bool // ends with a slash: matches folders only
	nested           bool // holds a slash: matched against the whole path below the folder
}

// New returns rules that ignore nothing. All that are made of them with Folder may
// take so many steps together: comparing or reading a byte, roughly.
func New(steps int64) *Rules { return &Rules{source: newSource(&work{left: steps}, "")} }

// Folder returns the rules for the folder at path (slashes, empty for the top),
// given the content of its .gitignore and the rules above it. An error is a
// *CostError.
func (r *Rules) Folder(path string, content []byte) (*Rules, error) {
	sub := &Rules{source: newSource(r.work, path), above: r, plain: map[string]rank{}}
	if err := sub.countSteps(int64(len(content))); err != nil {
		return nil, err
	}
	text := strings.TrimPrefix(string(content), "\ufeff")
	for line := range strings.SplitSeq(text, "\n") {
		line, _, _ = strings.Cut(line, "\x00")
		line = trimSpaces(strings.TrimSuffix(line, "\r"))
		if line == "" || line[0] == '#' {
			continue
		}
		sub.addLine(line)
	}
	if sub.count == 0 {
		return r, nil
	}
	return sub, nil
}

// countSteps counts steps.
func (s *source) countSteps(steps int64) error {
	s.spent += steps
	s.work.left -= steps
	if s.work.worst == nil || s.spent > s.work.worst.spent {
		s.work.worst = s
	}
	if s.work.left >= 0 {
		return nil
	}
	worst := s.work.worst
	return &CostError{Folder: strings.TrimSuffix(worst.prefix, "/"), Patterns: worst.count}
}

// trimSpaces takes off trailing spaces that no backslash protects.
func trimSpaces(s string) string {
	end := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			continue
		case '\\':
			if i++; i >= len(s) {
				return s
			}
		}
		end = i + 1
	}
	return s[:end]
}

const wildcards = `*?[\`

// addLine puts a pattern where it is found again with the least work.
func (r *Rules) addLine(line string) {
	var p pattern
	line, negated := strings.CutPrefix(line, "!")
	line, p.folder = strings.CutSuffix(line, "/")
	p.nested = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if name, ok := strings.CutPrefix(line, "**/"); ok && !strings.Contains(name, "/") {
		line, p.nested = name, false // in every folder, as a name without a slash is
	}
	if line == "" {
		return
	}
	r.count++
	if p.rank = rank(2 * r.count); negated {
		p.rank++
	}
	if literal := strings.IndexAny(line, wildcards); literal >= 0 {
		p.head, p.rest = line[:literal], line[literal:]
		p.tail = p.rest[strings.LastIndexAny(p.rest, wildcards+"]/")+1:]
		r.wild = append(r.wild, p)
		return
	}
	if p.nested {
		line = "/" + line
	}
	if p.folder {
		line += "/"
	}
	r.plain[line] = p.rank
}

// Ignored reports whether the last pattern that matches path (from the top, with
// slashes) ignores it. It looks at that path only: what lies in an ignored
// folder is ignored too, and the caller knows that already. An error is a
// *CostError.
func (r *Rules) Ignored(path string, isDir bool) (bool, error) {
	for ; r != nil; r = r.above {
		name, ok := strings.CutPrefix(path, r.prefix)
		if !ok || r.count == 0 {
			continue
		}
		found, err := r.matchRules(name, isDir)
		if err != nil || found > 0 {
			return found.isIgnoring(), err
		}
	}
	return false, nil
}

// matchRules is the rank of the last pattern of one .gitignore that matches a path below
// its folder.
func (r *Rules) matchRules(name string, isDir bool) (rank, error) {
	base := name[strings.LastIndexByte(name, '/')+1:]
	found := max(r.plain[base], r.plain["/"+name])
	if isDir {
		found = max(found, r.plain[base+"/"], r.plain["/"+name+"/"])
	}
	if err := r.countSteps(int64(len(name))); err != nil {
		return 0, err
	}
	for i := len(r.wild) - 1; i >= 0 && r.wild[i].rank > found; i-- {
		p := &r.wild[i]
		if p.folder && !isDir {
			continue
		}
		text := base
		if p.nested {
			text = name
		}
		ok, steps := p.matchText(text, r.work.left)
		if err := r.countSteps(steps); err != nil {
			return 0, err
		}
		if ok {
			return p.rank, nil
		}
	}
	return found, nil
}

// matchText compares the pattern with a path below its folder, or its last part. It
// takes at most one step more than there are left.
func (p *pattern) matchText(text string, left int64) (ok bool, steps int64) {
	// As git does, it compares what is literal before the first wildcard by itself.
	text, ok = strings.CutPrefix(text, p.head)
	if !ok || !strings.HasSuffix(text, p.tail) {
		return false, 1
	}
	return matchWild(p.rest, text, left)
}
