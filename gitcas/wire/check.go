package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// checkPush refuses what no server would take, or would take in another sense
// than was meant, before anything is sent.
func checkPush(req PushRequest) error {
	if len(req.Updates) == 0 {
		return fmt.Errorf("%w: a push without updates", ErrInvalid)
	}
	seen := make(map[string]bool, len(req.Updates))
	for _, u := range req.Updates {
		if err := checkRefName(u.Name); err != nil {
			return err
		}
		if seen[u.Name] {
			return fmt.Errorf("%w: two updates of %s in one push", ErrInvalid, u.Name)
		}
		seen[u.Name] = true
		if u.Old.IsZero() && u.New.IsZero() {
			return fmt.Errorf("%w: the update of %s has neither an old nor a new value", ErrInvalid, u.Name)
		}
	}
	return nil
}

// checkRefName applies the rules of git-check-ref-format(1).
func checkRefName(name string) error {
	if !validRefName(name) {
		return fmt.Errorf("%w: %q is no ref name that git allows", ErrInvalid, name)
	}
	return nil
}

func validRefName(name string) bool {
	if !strings.HasPrefix(name, "refs/") || len(name) > 1024 || strings.HasSuffix(name, ".") {
		return false
	}
	for _, bad := range []string{"..", "//", "@{", "/."} {
		if strings.Contains(name, bad) {
			return false
		}
	}
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c == 0x7f || strings.IndexByte("~^:?*[\\", c) >= 0 {
			return false
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// checkPrefixes refuses prefixes that would break the request's lines.
func checkPrefixes(prefixes []string) error {
	for _, p := range prefixes {
		for i := range len(p) {
			if c := p[i]; c <= ' ' || c == 0x7f {
				return fmt.Errorf("%w: %q is no prefix of a ref name", ErrInvalid, p)
			}
		}
		if p != "HEAD" && !strings.HasPrefix(p, "refs/") {
			return fmt.Errorf("%w: the prefix %q begins with neither refs/ nor HEAD", ErrInvalid, p)
		}
	}
	return nil
}

// filter is a parsed object filter.
type filter struct {
	noBlobs bool
	depth   int // tree:<depth>; negative: any
}

// parseFilter knows the filters that this package promises: blob:none and
// tree:<n>. Others are refused, so that every kind of Remote does the same.
func parseFilter(s string) (filter, error) {
	switch {
	case s == "":
		return filter{depth: -1}, nil
	case s == "blob:none":
		return filter{noBlobs: true, depth: -1}, nil
	case strings.HasPrefix(s, "tree:"):
		n, err := strconv.ParseUint(s[len("tree:"):], 10, 16)
		if err == nil {
			return filter{depth: int(n)}, nil
		}
	}
	return filter{}, fmt.Errorf("%w: unknown object filter %q", ErrInvalid, s)
}

// checkFetch refuses what no server could answer.
func checkFetch(req FetchRequest) (filter, error) {
	if len(req.Wants) == 0 {
		return filter{}, fmt.Errorf("%w: a fetch without wanted objects", ErrInvalid)
	}
	for _, w := range req.Wants {
		if w.IsZero() {
			return filter{}, fmt.Errorf("%w: the zero id is wanted", ErrInvalid)
		}
	}
	if req.Depth < 0 {
		return filter{}, fmt.Errorf("%w: depth %d", ErrInvalid, req.Depth)
	}
	return parseFilter(req.Filter)
}

// hasPrefix reports whether a ref is among those that the prefixes ask for.
func hasPrefix(name string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
