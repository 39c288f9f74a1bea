package rewrite

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Hit is a commit of people's branch that holds what is looked for.
type Hit struct {
	Commit wire.ID
	Path   string // of the file, empty where it is the commit's message
}

// Search looks through the commits of a branch that a request brings: its own, which the
// commits that it names as Haves don't reach, or the tip alone, by a Depth of 1. It changes
// nothing: these are people's. Each file is named once, with the newest commit that has it.
func Search(ctx context.Context, remote wire.Remote, req wire.FetchRequest, find Finder) ([]Hit, error) {
	objs, err := remote.Fetch(ctx, req)
	if err != nil {
		return nil, err
	}
	s := &search{objs: objs, find: find, looked: map[wire.ID]bool{}, done: map[string]bool{}}
	s.searchCommits(req.Wants[0])
	return s.hits, nil
}

// search is that of one branch, among the objects that it alone has.
type search struct {
	objs   wire.Objects
	find   Finder
	looked map[wire.ID]bool // trees and blobs, and whether a blob holds it
	done   map[string]bool  // paths that are listed
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
	if path == "" || !s.done[path] {
		s.done[path] = true
		s.hits = append(s.hits, Hit{Commit: commit, Path: path})
	}
}

func (s *search) searchTree(commit, id wire.ID, path string, depth int) {
	o, ok := s.objs[id]
	if _, walked := s.looked[id]; !ok || walked || depth > maxTreeDepth {
		return
	}
	s.looked[id] = false
	entries, err := gitobj.DecodeTree(o.Data)
	if err != nil {
		return
	}
	for _, e := range entries {
		at := strings.TrimPrefix(path+"/"+e.Name, "/")
		switch {
		case e.IsDir():
			s.searchTree(commit, e.ID, at, depth+1)
		case s.searchBlob(e.ID) || s.textHolds(e.Name):
			s.addFound(commit, at)
		}
	}
}

func (s *search) searchBlob(id wire.ID) bool {
	bad, done := s.looked[id]
	if !done {
		o := s.objs[id]
		bad = o.Type == plumbing.BlobObject && s.textHolds(string(o.Data))
		s.looked[id] = bad
	}
	return bad
}

func (s *search) textHolds(text string) bool {
	_, n := s.find.Replace(text, nil)
	return n > 0
}
