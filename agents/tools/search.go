package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// skippedDir holds other people's code by the hundred thousand files.
const skippedDir = "node_modules"

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// walkFiles visits the regular files below a folder in order of their names, without
// `.git` and without going through symlinks. It reports whether it gave up.
func (s *Set) walkFiles(ctx context.Context, dir string, skip bool, visit func(file string) error) (bool, error) {
	seen := 0
	var down func(dir string) error
	down = func(dir string) error {
		entries, more, err := s.listFolder(dir, maxEntries)
		if err != nil {
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
				return nil // not readable, or gone meanwhile
			}
			return err
		}
		for _, e := range entries {
			if seen++; seen > maxEntries {
				return errEnough
			}
			if seen%256 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			p := path.Join(dir, e.Name())
			switch {
			case e.IsDir():
				if skip && e.Name() == skippedDir {
					continue
				}
				err = down(p)
			case e.Type().IsRegular():
				err = visit(p)
			}
			if err != nil {
				return err
			}
		}
		if more {
			return errEnough
		}
		return nil
	}
	err := down(dir)
	if errors.Is(err, errEnough) {
		return true, nil
	}
	return false, err
}

type globIn struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func (s *Set) globFiles(ctx context.Context, in globIn) (string, error) {
	if in.Path == "" {
		in.Path = "."
	}
	re, err := compileGlob(in.Pattern)
	if err != nil {
		return "", err
	}
	dir, err := s.resolvePath(in.Path)
	if err != nil {
		return "", err
	}
	var out []string
	skip := !strings.Contains(in.Pattern+"/"+in.Path, skippedDir)
	cut, err := s.walkFiles(ctx, dir, skip, func(file string) error {
		if !re.MatchString(pathBelow(dir, file)) {
			return nil
		}
		if len(out) == maxListed {
			return errEnough
		}
		out = append(out, file)
		return nil
	})
	if err != nil {
		return "", err
	}
	return joinResults(out, cut, "file"), nil
}

// joinResults joins lines of a search, and says so when there may be more.
func joinResults(lines []string, cut bool, what string) string {
	text := strings.Join(lines, "\n")
	switch {
	case len(lines) == 0 && cut:
		return fmt.Sprintf("[no %s found among the first %d files and folders; narrow it down with path]", what, maxEntries)
	case len(lines) == 0:
		return fmt.Sprintf("[no %s found]", what)
	case cut:
		return text + "\n[there may be more; narrow the search]"
	}
	return text
}

// pathBelow is file as seen from dir.
func pathBelow(dir, file string) string {
	if dir == "." {
		return file
	}
	return strings.TrimPrefix(file, dir+"/")
}

type grepIn struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	IgnoreCase bool   `json:"ignore_case"`
}

func (s *Set) grepFiles(ctx context.Context, in grepIn) (string, error) {
	if in.Path == "" {
		in.Path = "."
	}
	re, only, err := grepPatterns(in)
	if err != nil {
		return "", err
	}
	start, err := s.resolvePath(in.Path)
	if err != nil {
		return "", err
	}
	var out []string
	visit := func(file string) error {
		if only != nil && !only.MatchString(pathBelow(start, file)) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// What is too large, gone or not text is not searched.
		if b, err := s.readRegular(file, maxGrepFile); err == nil && !isBinary(b) {
			out = grepText(out, re, file, string(b))
		}
		if len(out) > maxMatches {
			return errEnough
		}
		return nil
	}
	info, err := s.root.Lstat(start)
	if err != nil {
		return "", plainError(start, err)
	}
	var cut bool
	if info.Mode().IsRegular() {
		only = nil
		err = visit(start)
	} else {
		cut, err = s.walkFiles(ctx, start, !strings.Contains(in.Glob+"/"+in.Path, skippedDir), visit)
	}
	if err != nil && !errors.Is(err, errEnough) {
		return "", err
	}
	if len(out) > maxMatches {
		out, cut = out[:maxMatches], true
	}
	return joinResults(out, cut, "line"), nil
}

func grepPatterns(in grepIn) (re, only *regexp.Regexp, err error) {
	if in.Pattern == "" {
		return nil, nil, errors.New("the pattern is empty")
	}
	flags := ""
	if in.IgnoreCase {
		flags = "(?i)"
	}
	if re, err = regexp.Compile(flags + in.Pattern); err != nil {
		return nil, nil, fmt.Errorf("the pattern is not RE2 (no look-around, no back-references): %w", err)
	}
	if in.Glob != "" {
		only, err = compileGlob(in.Glob)
	}
	return re, only, err
}

// grepText appends file:line: text for each matching line, up to one more than
// can be shown.
func grepText(out []string, re *regexp.Regexp, file, text string) []string {
	for n := 1; text != ""; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		line = strings.TrimSuffix(line, "\r")
		if !re.MatchString(line) {
			continue
		}
		if len(line) > maxLine {
			line = strings.ToValidUTF8(line[:maxLine], "") + "…"
		}
		out = append(out, fmt.Sprintf("%s:%d: %s", file, n, line))
		if len(out) > maxMatches {
			return out
		}
	}
	return out
}

// maxPattern bounds a glob pattern, in bytes.
const maxPattern = 1000

// globToken is what stands first in a pattern.
var globToken = lazyregexp.New(`(?s)\*\*/|\*\*|\[[!^]?[^\]]+\]|\\.|.`)

// compileGlob turns a pattern into an anchored regular expression. A pattern
// without a slash matches names in every folder, as in .gitignore.
func compileGlob(pattern string) (*regexp.Regexp, error) {
	p := strings.TrimPrefix(pattern, "./")
	if p == "" || len(p) > maxPattern {
		return nil, fmt.Errorf("%q is no pattern", pattern)
	}
	if !strings.Contains(p, "/") {
		p = "**/" + p
	}
	depth := 0
	expr := globToken.ReplaceAllStringFunc(p, func(token string) string {
		switch {
		case token == "**/":
			return `(?:.*/)?`
		case token == "**":
			return `.*`
		case token == "*":
			return `[^/]*`
		case token == "?":
			return `[^/]`
		case token == "{":
			depth++
			return `(?:`
		case token == "}" && depth > 0:
			depth--
			return `)`
		case token == "," && depth > 0:
			return `|`
		case token == "[", token == "[!]", token == "[^]":
			return `[` // it has no end, which is told below
		case token[0] == '[':
			inner := token[1 : len(token)-1]
			if inner[0] == '!' || inner[0] == '^' {
				return `[^/` + regexp.QuoteMeta(inner[1:]) + `]`
			}
			return `[` + regexp.QuoteMeta(inner) + `]`
		case token[0] == '\\' && len(token) > 1:
			token = token[1:]
		}
		return regexp.QuoteMeta(token)
	})
	re, err := regexp.Compile(`(?s)\A` + expr + `\z`)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return re, nil
}
