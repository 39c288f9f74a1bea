// Package screen looks through what an agent changed, before any of it leaves the
// machine: for secrets that uwf knows, for added lines with the shape of a token, and for
// binary files that are too large to be looked through. It changes nothing, and reads
// nothing by itself.
package screen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// MaxBinary is the size in bytes of the largest binary file that is looked through.
const MaxBinary = 10 << 20

// maxOld is how many files are read as they were, where a token may have come from one
// of them.
const maxOld = 2_000

// Redactor finds secrets. What can't be searched is an error.
type Redactor interface {
	// Find lists the secrets in b.
	Find(b []byte) ([]redact.Finding, error)
	// AllowsFile says whether a file may hold tokens, and be too large.
	AllowsFile(path string) bool
}

// Read gives blobs that the first parent of a snapshot has.
type Read func(ctx context.Context, ids []wire.ID) (map[wire.ID][]byte, error)

// Search looks through the changes of a snapshot. What stops them is a *FoundError, beside
// other errors where not all could be read: then it may hold tokens that were there before.
//
// A known secret stops a file wherever it stands in it or in its name. The shape of a
// token does so in a text file where the token was in none of the changed files before:
// a line that was moved, indented or joined with others is no added one. What the first
// parent holds already under another name is not looked at.
func Search(ctx context.Context, snap workspace.Snapshot, red Redactor, read Read) error {
	s := &search{red: red, changes: snap.Changes, blobs: make(map[wire.ID][]byte, len(snap.Objects))}
	for _, o := range snap.Objects {
		s.blobs[o.ID] = o.Data
	}
	for _, c := range snap.Changes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.Kind == workspace.Deleted {
			continue
		}
		if err := s.searchFile(c); err != nil {
			return fmt.Errorf("check %s for secrets: %w", c.Path, err)
		}
	}
	err := s.dropOld(ctx, read)
	if len(s.found) > 0 {
		return errors.Join(&FoundError{Findings: s.found}, err)
	}
	return err
}

// search is one search. tokens is how many of the findings are shapes of tokens.
type search struct {
	red     Redactor
	changes []workspace.Change
	blobs   map[wire.ID][]byte
	found   []Finding
	tokens  int
}

// searchFile looks at the name and the content of one file.
func (s *search) searchFile(c workspace.Change) error {
	allowed := s.red.AllowsFile(c.Path)
	where := Finding{Path: c.Path}
	where.Part = Name
	// The name of a file that was there before is nothing new.
	if err := s.searchText([]byte(c.Path), where, !allowed && c.Kind == workspace.Added); err != nil {
		return err
	}
	data, isNew := s.blobs[c.Blob]
	if !isNew {
		return nil
	}
	if where.Part = Content; c.Mode == filemode.Symlink {
		where.Part = Target
	}
	binary := isBinary(data)
	if size := int64(len(data)); binary && size > MaxBinary && !allowed {
		s.found = append(s.found, Finding{Path: c.Path, Part: Whole, Size: size})
	}
	return s.searchText(data, where, !allowed && !binary)
}

// searchText adds what is found in a text; the shapes of tokens only where that is asked for.
func (s *search) searchText(b []byte, where Finding, tokens bool) error {
	found, err := s.red.Find(b)
	if err != nil {
		return err
	}
	for _, f := range found {
		if !f.Known && !(f.Token && tokens) {
			continue
		}
		where.Secret, where.Known, where.Sum, where.Pattern = f.Name, f.Known, f.Sum, f.Pattern
		if where.Part == Content {
			where.Line = f.Line
		}
		if !f.Known {
			s.tokens++
		}
		if n := len(s.found); n == 0 || s.found[n-1] != where { // not twice in a line
			s.found = append(s.found, where)
		}
	}
	return nil
}

// dropOld takes out the tokens that were in one of the changed files before. Each file is
// read as it was only where a token is left that it may explain: its own first.
func (s *search) dropOld(ctx context.Context, read Read) error {
	if s.tokens == 0 {
		return nil
	}
	has := map[string]bool{}
	for _, f := range s.found {
		has[f.Path] = has[f.Path] || f.isToken()
	}
	var own, others []wire.ID
	for _, c := range s.changes {
		switch {
		case c.Old.IsZero() || c.OldMode == filemode.Submodule:
		case has[c.Path]:
			own = append(own, c.Old)
		default:
			others = append(others, c.Old)
		}
	}
	for _, ids := range [][]wire.ID{own, others} {
		if !slices.ContainsFunc(s.found, Finding.isToken) {
			return nil
		}
		old, err := s.oldTokens(ctx, ids[:min(len(ids), maxOld)], read)
		if err != nil {
			return err
		}
		s.found = slices.DeleteFunc(s.found, func(f Finding) bool { return f.isToken() && old[f.Sum] })
	}
	return nil
}

// oldTokens are the sums of what looks like a token in files as they were.
func (s *search) oldTokens(ctx context.Context, ids []wire.ID, read Read) (map[string]bool, error) {
	out := map[string]bool{}
	if len(ids) == 0 {
		return out, nil
	}
	data, err := read(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("tell the lines that the agent added from those that were there: %w", err)
	}
	for _, id := range ids {
		found, err := s.red.Find(data[id])
		if errors.Is(err, redact.ErrTooLarge) {
			continue // it explains nothing
		}
		if err != nil {
			return nil, fmt.Errorf("check a file as it was for secrets: %w", err)
		}
		for _, f := range found {
			out[f.Sum] = true
		}
	}
	return out, nil
}

// isBinary: a zero byte, but for text in UTF-16 that says so.
func isBinary(data []byte) bool {
	return bytes.IndexByte(data, 0) >= 0 && !bytes.HasPrefix(data, []byte("\xff\xfe")) && !bytes.HasPrefix(data, []byte("\xfe\xff"))
}
