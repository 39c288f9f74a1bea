package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
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
	var b strings.Builder
	b.WriteString(`\A`)
	depth := 0
	for i := 0; i < len(p); {
		n, err := globToken(&b, p[i:], &depth)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		i += n
	}
	if depth > 0 {
		return nil, fmt.Errorf("pattern %q: { without }", pattern)
	}
	b.WriteString(`\z`)
	re, err := regexp.Compile("(?s)" + b.String())
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return re, nil
}

// globToken translates the first token of p and returns its length.
func globToken(b *strings.Builder, p string, depth *int) (int, error) {
	switch c := p[0]; {
	case strings.HasPrefix(p, "**/"):
		b.WriteString(`(?:.*/)?`)
		return 3, nil
	case strings.HasPrefix(p, "**"):
		b.WriteString(`.*`)
		return 2, nil
	case c == '*':
		b.WriteString(`[^/]*`)
	case c == '?':
		b.WriteString(`[^/]`)
	case c == '{':
		*depth++
		b.WriteString(`(?:`)
	case c == '}' && *depth > 0:
		*depth--
		b.WriteString(`)`)
	case c == ',' && *depth > 0:
		b.WriteString(`|`)
	case c == '[':
		return globClass(b, p)
	case c == '\\' && len(p) > 1:
		n := runeLen(p[1:])
		b.WriteString(regexp.QuoteMeta(p[1 : 1+n]))
		return 1 + n, nil
	default:
		n := runeLen(p)
		b.WriteString(regexp.QuoteMeta(p[:n]))
		return n, nil
	}
	return 1, nil
}

func runeLen(p string) int {
	for i := range p {
		if i > 0 {
			return i
		}
	}
	return len(p)
}

// globClass translates [a-z], [!a-z] and [^a-z].
func globClass(b *strings.Builder, p string) (int, error) {
	end := strings.IndexByte(p[1:], ']')
	if end < 1 {
		return 0, errors.New("[ without ]")
	}
	inner := p[1 : 1+end]
	b.WriteByte('[')
	if inner[0] == '!' || inner[0] == '^' {
		b.WriteString(`^/`)
		inner = inner[1:]
	}
	if inner == "" {
		return 0, errors.New("[] is empty")
	}
	for _, r := range inner {
		if r == '-' {
			b.WriteByte('-')
			continue
		}
		if strings.ContainsRune(`\[]^&~`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	b.WriteByte(']')
	return end + 2, nil
}
