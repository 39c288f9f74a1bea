package gitcas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Found is a node and where it was found.
type Found struct {
	Hash  node.Hash
	Node  node.Node
	Place Place
	Ended *Ended // set when the thread of Place has ended
}

// Find looks a bare hash up: in cas/, in the folders of live threads, then among
// the steps of ended threads. Details are found through their thread (Detail).
// One that is nowhere is node.ErrNotFound.
func (s *Store) Find(ctx context.Context, v *View, h node.Hash) (Found, error) {
	f := Found{Hash: h}
	if !h.Valid() {
		return f, fmt.Errorf("%w: %w: %.40q", ErrInvalid, node.ErrInvalidHash, h)
	}
	n, err := v.Get(ctx, h)
	if err == nil {
		f.Node, f.Place = n, v.placeOf(h)
		return f, nil
	}
	if !errors.Is(err, node.ErrNotFound) {
		return f, err
	}
	id, ok, err := v.findInThreads(ctx, h)
	if err != nil {
		return f, err
	}
	if ok {
		f.Place = Place{Thread: id}
		f.Node, err = s.Detail(ctx, v, id, h)
		return f, err
	}
	return s.findInEnded(ctx, v, h)
}

// placeOf says where v.Get found a node; the zero Place stands for cas/ and for
// what is built in.
func (v *View) placeOf(h node.Hash) Place {
	if _, ok := v.cas.get(nodeFile(h)); ok {
		return Place{}
	}
	for id, d := range v.folders {
		if _, ok := d.get(nodeFile(h)); ok {
			return Place{Thread: id}
		}
	}
	return Place{}
}

// foldersAtOnce is how many folders of threads are fetched in one request: it
// bounds the memory that a search takes.
const foldersAtOnce = 200

// findInThreads searches the listings of all live threads for a file of that
// name. They are not kept.
func (v *View) findInThreads(ctx context.Context, h node.Hash) (ThreadID, bool, error) {
	name := append([]byte(nodeFile(h)), 0)
	for entries := range slices.Chunk(v.threadDirs.list(), foldersAtOnce) {
		wants := make([]wire.ID, len(entries))
		for i, e := range entries {
			wants[i] = e.ID
		}
		objs, err := v.s.remote.Fetch(ctx, wire.FetchRequest{Wants: wants, Depth: 1, Filter: onlyWanted})
		if err != nil {
			return "", false, fmt.Errorf("read the folders of threads: %w", err)
		}
		for _, e := range entries {
			o, ok := objs[e.ID]
			if !ok {
				return "", false, content(threadPath(ThreadID(e.Name)), "the remote doesn't send its object "+e.ID.String())
			}
			if bytes.Contains(o.Data, name) {
				return ThreadID(e.Name), true, nil
			}
		}
	}
	return "", false, nil
}

func (s *Store) findInEnded(ctx context.Context, v *View, h node.Hash) (Found, error) {
	f := Found{Hash: h}
	var e Ended
	ok := false
	err := s.History(ctx, v, func(line Ended) error {
		if line.Head != h && !slices.Contains(line.Steps, h) {
			return nil
		}
		e, ok = line, true
		return ErrStop
	})
	if err != nil {
		return f, err
	}
	if !ok {
		return f, fmt.Errorf("%w: %s, neither in cas/, nor in a live thread, nor a step of an ended one", node.ErrNotFound, h)
	}
	past, err := s.LoadEnded(ctx, v, e)
	if err != nil {
		return f, err
	}
	f.Place, f.Ended = Place{Thread: e.Thread}, &e
	f.Node, err = past.Get(ctx, h)
	return f, err
}
