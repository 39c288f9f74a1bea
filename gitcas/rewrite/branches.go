package rewrite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Hit is a commit of people's branch that holds what is looked for.
type Hit struct {
	Branch string
	Commit wire.ID
	Path   string // of the file, empty where it is the commit's message
}

// Search looks through the commits of branches that none of the known commits
// reaches. It changes nothing: these are people's. Each file is named once, with
// the newest commit that has it.
func Search(ctx context.Context, remote wire.Remote, branches map[string]wire.ID, known []wire.ID, find Finder) ([]Hit, error) {
	var out []Hit
	same := map[wire.ID][]Hit{} // what branches at the same commit have
	for _, name := range slices.Sorted(maps.Keys(branches)) {
		tip := branches[name]
		if hits, done := same[tip]; done || slices.Contains(known, tip) {
			for _, h := range hits {
				h.Branch = name
				out = append(out, h)
			}
			continue
		}
		objs, err := remote.Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{tip}, Haves: known})
		if errors.Is(err, wire.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("search branch %s: %w", name, err)
		}
		s := &search{objs: objs, find: find, bad: map[wire.ID]bool{}, walked: map[wire.ID]bool{}, done: map[string]bool{}, branch: name}
		s.searchCommits(tip)
		same[tip] = s.hits
		out = append(out, s.hits...)
	}
	return out, nil
}

// SearchTip looks through the files of one commit, and through its message. It says
// nothing of the commits before it.
func SearchTip(ctx context.Context, remote wire.Remote, name string, tip wire.ID, find Finder) ([]Hit, error) {
	objs, err := remote.Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{tip}, Depth: 1})
	if err != nil {
		return nil, fmt.Errorf("search branch %s: %w", name, err)
	}
	s := &search{objs: objs, find: find, bad: map[wire.ID]bool{}, walked: map[wire.ID]bool{}, done: map[string]bool{}, branch: name}
	s.searchCommits(tip)
	return s.hits, nil
}

// search is that of one branch, among the objects that it alone has.
type search struct {
	objs   wire.Objects
	find   Finder
	bad    map[wire.ID]bool // blobs that were looked at
	walked map[wire.ID]bool // trees that were
	done   map[string]bool  // paths that are listed
	branch string
	hits   []Hit
}

// maxHits bounds what is listed of one branch.
const maxHits = 1000

func (s *search) searchCommits(tip wire.ID) {
	seen := map[wire.ID]bool{tip: true}
	for todo := []wire.ID{tip}; len(todo) > 0 && len(s.hits) < maxHits; {
		id := todo[0]
		todo = todo[1:]
		o, ok := s.objs[id]
		if !ok || o.Type != plumbing.CommitObject {
			continue
		}
		c, err := gitobj.DecodeCommit(o.Data)
		if err != nil {
			continue
		}
		if s.textHolds(c.Message) {
			s.addFound(id, "")
		}
		s.searchTree(id, c.Tree, "", 0)
		for _, p := range c.Parents {
			if !seen[p] {
				seen[p] = true
				todo = append(todo, p)
			}
		}
	}
	slices.SortStableFunc(s.hits, func(a, b Hit) int { return cmp.Compare(a.Path, b.Path) })
}

func (s *search) addFound(commit wire.ID, path string) {
	path, _ = s.find.Replace(path, nil)
	if key := path; path == "" || !s.done[key] {
		s.done[key] = true
		s.hits = append(s.hits, Hit{Branch: s.branch, Commit: commit, Path: path})
	}
}

func (s *search) searchTree(commit, id wire.ID, path string, depth int) {
	o, ok := s.objs[id]
	if !ok || s.walked[id] || depth > maxTreeDepth {
		return
	}
	s.walked[id] = true
	entries, err := gitobj.DecodeTree(o.Data)
	if err != nil {
		return
	}
	for _, e := range entries {
		at := e.Name
		if path != "" {
			at = path + "/" + e.Name
		}
		switch {
		case e.IsDir():
			s.searchTree(commit, e.ID, at, depth+1)
		case s.searchBlob(e.ID) || s.textHolds(e.Name):
			s.addFound(commit, at)
		}
	}
}

func (s *search) searchBlob(id wire.ID) bool {
	if bad, done := s.bad[id]; done {
		return bad
	}
	o, ok := s.objs[id]
	bad := ok && o.Type == plumbing.BlobObject && s.textHolds(string(o.Data))
	s.bad[id] = bad
	return bad
}

func (s *search) textHolds(text string) bool {
	_, n := s.find.Replace(text, nil)
	return n > 0
}
