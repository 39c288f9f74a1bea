package wire

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// Check refuses what no server would take, or would take in another sense than was
// meant, before anything is sent.
func (req PushRequest) Check() error {
	if len(req.Updates) == 0 {
		return fmt.Errorf("%w: a push without updates", ErrInvalid)
	}
	seen := make(map[string]bool, len(req.Updates))
	for _, u := range req.Updates {
		if !validRefName(u.Name) {
			return fmt.Errorf("%w: %q is no ref name that git allows", ErrInvalid, u.Name)
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

// The rules of git-check-ref-format(1): what a full name is made of, and what it must not
// have in it besides.
var (
	refName     = lazyregexp.New(`^refs(/[^\x00-\x20\x7f~^:?*\[\\/]+)+$`)
	refMistakes = lazyregexp.New(`\.\.|@\{|/\.|\.$|\.lock(/|$)`)
)

func validRefName(name string) bool {
	return len(name) <= 1024 && refName.MatchString(name) && !refMistakes.MatchString(name)
}

// parseID reads an object id in its only valid form: 40 lower-case hex digits.
func parseID(s string) (ID, bool) {
	id := plumbing.NewHash(s)
	return id, id.String() == s
}

// sha256ID is an object's id in a repository that names its objects by SHA-256.
var sha256ID = lazyregexp.New(`^[0-9a-f]{64}$`)

// CheckPrefixes refuses prefixes that would break the request's lines.
func CheckPrefixes(prefixes []string) error {
	for _, p := range prefixes {
		if strings.ContainsFunc(p, func(c rune) bool { return c <= ' ' || c == 0x7f }) || p != "HEAD" && !strings.HasPrefix(p, "refs/") {
			return fmt.Errorf("%w: %q is no prefix of a ref name: it begins with neither refs/ nor HEAD, or holds a space or a control character", ErrInvalid, p)
		}
	}
	return nil
}

// filters are those that this package promises. Others are refused, so that every kind of
// Remote does the same.
var filters = lazyregexp.New(`^(blob:none|tree:[0-9]{1,4})?$`)

// Check refuses what no server could answer.
func (req FetchRequest) Check() error {
	switch {
	case len(req.Wants) == 0:
		return fmt.Errorf("%w: a fetch without wanted objects", ErrInvalid)
	case slices.Contains(req.Wants, ZeroID):
		return fmt.Errorf("%w: the zero id is wanted", ErrInvalid)
	case req.Depth < 0:
		return fmt.Errorf("%w: depth %d", ErrInvalid, req.Depth)
	case !filters.MatchString(req.Filter):
		return fmt.Errorf("%w: unknown object filter %q", ErrInvalid, req.Filter)
	}
	return nil
}

// hasPrefix reports whether a ref is among those that the prefixes ask for.
func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
