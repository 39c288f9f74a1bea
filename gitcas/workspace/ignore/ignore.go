// Package ignore decides which files .gitignore files leave out, with the rules
// of git's dir.c. It works on text and paths alone and never reads a file.
package ignore

import "strings"

// MaxFile is the size of the largest .gitignore that a caller should read, in
// bytes.
const MaxFile = 1 << 20

// Rules are the patterns that hold for one folder: those of its own .gitignore
// and those of the folders above it. A nil *Rules ignores nothing.
type Rules struct {
	above    *Rules
	prefix   string // the folder's path with a slash behind it, empty at the top
	patterns []pattern
}

type pattern struct {
	text    string
	negated bool // begins with "!": what it matches is not ignored
	folder  bool // ends with a slash: matches folders only
	nested  bool // holds a slash: matched against the whole path below the folder
	literal int  // so many bytes at the beginning are no wildcards
	tail    bool // a star and then no wildcard: matched by its end
}

// Folder returns the rules for the folder at path (slashes, empty for the top),
// given the content of its .gitignore and the rules above it.
func (r *Rules) Folder(path string, content []byte) *Rules {
	sub := &Rules{above: r}
	if path != "" {
		sub.prefix = path + "/"
	}
	text := strings.TrimPrefix(string(content), "\ufeff")
	for line := range strings.SplitSeq(text, "\n") {
		line, _, _ = strings.Cut(line, "\x00")
		line = trimSpaces(strings.TrimSuffix(line, "\r"))
		if line == "" || line[0] == '#' {
			continue
		}
		if p := parse(line); p.text != "" {
			sub.patterns = append(sub.patterns, p)
		}
	}
	if len(sub.patterns) == 0 {
		return r
	}
	return sub
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

func parse(line string) pattern {
	var p pattern
	line, p.negated = strings.CutPrefix(line, "!")
	line, p.folder = strings.CutSuffix(line, "/")
	p.nested = strings.Contains(line, "/")
	p.tail = !p.nested && strings.HasPrefix(line, "*") && !strings.ContainsAny(line[1:], `*?[\`)
	line = strings.TrimPrefix(line, "/")
	if p.literal = strings.IndexAny(line, `*?[\`); p.literal < 0 {
		p.literal = len(line)
	}
	p.text = line
	return p
}

// Ignored reports whether the last pattern that matches path (from the top, with
// slashes) ignores it. It looks at that path only: what lies in an ignored
// folder is ignored too, and the caller knows that already.
func (r *Rules) Ignored(path string, isDir bool) bool {
	for ; r != nil; r = r.above {
		name, ok := strings.CutPrefix(path, r.prefix)
		if !ok {
			continue
		}
		base := name[strings.LastIndexByte(name, '/')+1:]
		for i := len(r.patterns) - 1; i >= 0; i-- {
			if p := &r.patterns[i]; (!p.folder || isDir) && p.match(name, base) {
				return !p.negated
			}
		}
	}
	return false
}

// match compares the pattern with a path below its folder and its last part.
func (p *pattern) match(name, base string) bool {
	switch {
	case !p.nested && p.literal == len(p.text):
		return base == p.text
	case p.tail:
		return strings.HasSuffix(base, p.text[1:])
	case !p.nested:
		return wildmatch(p.text, base)
	}
	rest, ok := strings.CutPrefix(name, p.text[:p.literal])
	if !ok {
		return false
	}
	if p.literal == len(p.text) {
		return rest == ""
	}
	return wildmatch(p.text[p.literal:], rest)
}
