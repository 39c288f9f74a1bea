package gitobj

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// MaxParents is the most parents that a commit may have to be read.
const MaxParents = 1024

// Signature is who made a commit and when. When has the resolution of a second.
type Signature struct {
	Name  string
	Email string
	When  time.Time
}

// Author is who signs commits.
type Author struct{ Name, Email string }

// Sign is the author's signature at a time.
func (a Author) Sign(at time.Time) Signature {
	return Signature{Name: a.Name, Email: a.Email, When: at.UTC()}
}

// Commit is what a commit says. Headers that are not here (signatures, encoding)
// are skipped when one is read.
type Commit struct {
	Tree      wire.ID
	Parents   []wire.ID
	Author    Signature
	Committer Signature
	Message   string
}

// DecodeCommit reads the content of a commit. Tree and parents are read strictly;
// people's commits come from many programs, so what can't be read of an author
// line is left empty. The error matches [ErrMalformed].
func DecodeCommit(data []byte) (Commit, error) {
	var c Commit
	head, message, _ := bytes.Cut(data, []byte("\n\n"))
	c.Message = string(message)
	lines := strings.Split(strings.TrimSuffix(string(head), "\n"), "\n")
	tree, ok := headerID(lines[0], "tree ")
	if !ok {
		return Commit{}, fmt.Errorf("%w: commit: does not begin with its tree", ErrMalformed)
	}
	c.Tree = tree
	lines = lines[1:]
	for len(lines) > 0 && strings.HasPrefix(lines[0], "parent ") {
		p, ok := headerID(lines[0], "parent ")
		if !ok {
			return Commit{}, fmt.Errorf("%w: commit: bad parent", ErrMalformed)
		}
		if len(c.Parents) == MaxParents {
			return Commit{}, fmt.Errorf("%w: commit: more than %d parents", ErrMalformed, MaxParents)
		}
		c.Parents = append(c.Parents, p)
		lines = lines[1:]
	}
	if len(lines) < 2 || !strings.HasPrefix(lines[0], "author ") || !strings.HasPrefix(lines[1], "committer ") {
		return Commit{}, fmt.Errorf("%w: commit: no author and committer after the parents", ErrMalformed)
	}
	c.Author = parseSignature(lines[0][len("author "):])
	c.Committer = parseSignature(lines[1][len("committer "):])
	return c, nil
}

func headerID(line, key string) (wire.ID, bool) {
	hex, ok := strings.CutPrefix(line, key)
	if !ok || !plumbing.IsHash(hex) || len(hex) != 2*idSize {
		return wire.ID{}, false
	}
	id := plumbing.NewHash(hex)
	return id, !id.IsZero()
}

// parseSignature reads "Name <mail> seconds zone".
func parseSignature(s string) Signature {
	open, end := strings.IndexByte(s, '<'), strings.LastIndexByte(s, '>')
	if open < 0 || end < open {
		return Signature{Name: strings.TrimSpace(s)}
	}
	sig := Signature{Name: strings.TrimSpace(s[:open]), Email: s[open+1 : end]}
	fields := strings.Fields(s[end+1:])
	if len(fields) == 0 {
		return sig
	}
	sec, err := strconv.ParseInt(fields[0], 10, 64)
	// Beyond this range (year 9999) time.Time can't be written as text.
	if err != nil || sec < 0 || sec > 253402300799 {
		return sig
	}
	sig.When = time.Unix(sec, 0).UTC()
	if len(fields) > 1 {
		if zone, ok := parseZone(fields[1]); ok {
			sig.When = sig.When.In(zone)
		}
	}
	return sig
}

// parseZone reads "+hhmm" or "-hhmm".
func parseZone(s string) (*time.Location, bool) {
	at, err := time.ParseInLocation("-0700", s, time.UTC)
	if err != nil {
		return nil, false
	}
	if _, offset := at.Zone(); offset != 0 {
		return time.FixedZone("", offset), true
	}
	return time.UTC, true
}

// EncodeCommit writes a commit. It refuses a zero tree or parent, names and
// addresses that hold <, >, a line break or a NUL, times before 1970, and
// messages with a NUL: git would read something else than what was written.
func EncodeCommit(c Commit) ([]byte, error) {
	if c.Tree.IsZero() {
		return nil, fmt.Errorf("%w: commit: no tree", ErrMalformed)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, p := range c.Parents {
		if p.IsZero() {
			return nil, fmt.Errorf("%w: commit: zero parent", ErrMalformed)
		}
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	for _, s := range []struct {
		key string
		Signature
	}{{"author", c.Author}, {"committer", c.Committer}} {
		if strings.ContainsAny(s.Name+s.Email, "<>\n\r\x00") {
			return nil, fmt.Errorf("%w: commit: %s %q <%q> holds <, >, a line break or a NUL", ErrMalformed, s.key, s.Name, s.Email)
		}
		if s.When.Unix() < 0 {
			return nil, fmt.Errorf("%w: commit: %s has no time after 1970", ErrMalformed, s.key)
		}
		fmt.Fprintf(&b, "%s %s <%s> %d %s\n", s.key, strings.TrimSpace(s.Name), strings.TrimSpace(s.Email), s.When.Unix(), s.When.Format("-0700"))
	}
	if strings.IndexByte(c.Message, 0) >= 0 {
		return nil, fmt.Errorf("%w: commit: the message holds a NUL", ErrMalformed)
	}
	b.WriteByte('\n')
	b.WriteString(c.Message)
	return b.Bytes(), nil
}
