package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/united-workforce/uwf/gitcas/wire/internal/transport"
)

// past is the history of refs, of a server that gives single objects only where a ref points to
// them: git over ssh in version 0, JGit and dulwich.
type past struct {
	mu   sync.Mutex
	tips []ID // whose history is in objs
	objs Objects
}

// Bounds of what is kept of the history of refs, in bytes, of how many refs are read singly, and
// of how often they are listed where they move meanwhile.
const (
	maxPast      = 256 << 20
	mostTips     = 64
	mostListings = 3
)

// findAll returns all kept objects if the wants are among them, else nil.
func (p *past) findAll(wants []ID) Objects {
	if slices.ContainsFunc(wants, func(id ID) bool { _, has := p.objs[id]; return !has }) {
		return nil
	}
	return maps.Clone(p.objs)
}

// givesSingle reports whether a server may give objects to which no ref points, in version 0: git
// does over HTTP without saying so (check_non_tip of its upload-pack). A server without a name is
// dulwich.
func (r *remote) givesSingle(offered transport.Caps) bool {
	return offered.Offers("allow-reachable-sha1-in-want") || r.isHTTP() && offered["agent"]
}

// fetchV0 fetches objects in version 0. Those that the server gives only with the history of a ref
// come from there.
func (r *remote) fetchV0(ctx context.Context, req FetchRequest) (Objects, error) {
	if r.givesSingle(noteOffers(&r.uploads, nil)) || !slices.ContainsFunc(req.Wants, func(id ID) bool { return !r.wasSeen(id) }) {
		objs, err := r.exchangeFetchV0(ctx, req)
		if !errors.Is(err, ErrNotFound) {
			return objs, err
		}
	}

	r.past.mu.Lock()
	defer r.past.mu.Unlock()
	if objs := r.past.findAll(req.Wants); objs != nil {
		return objs, nil
	}
	return r.fetchPast(ctx, req.Wants)
}

func (r *remote) exchangeFetchV0(ctx context.Context, req FetchRequest) (Objects, error) {
	a, err := r.t.Exchange(ctx, r.newRead(false, func(offered transport.Caps) []byte { return fetchRequestV0(req, offered) }))
	if err != nil {
		return nil, err
	}
	objs, err := parseFetchV0(a, limitsOf(req), req.Depth > 0 && noteOffers(&r.uploads, nil).Offers("shallow"))
	return objs, a.Finish(err)
}

// fetchPast fetches the history of each ref that was listed before, then that of all refs, until the
// wants have come.
func (r *remote) fetchPast(ctx context.Context, wants []ID) (Objects, error) {
	var unread error
	r.seenMu.Lock()
	known := maps.Clone(r.seen)
	r.seenMu.Unlock()

	for again, left := true, mostListings; again && left > 0; left-- {
		l, err := r.listRefs(ctx, []string{"refs/"})
		if err != nil {
			return nil, err
		}

		// What is looked for mostly lies behind a ref that was listed before.
		var groups [][]ID
		for _, name := range slices.Sorted(maps.Keys(l.Refs)) {
			if id := l.Refs[name]; known[id] && len(groups) < mostTips {
				groups = append(groups, []ID{id})
			}
		}

		again = false
		for _, tips := range append(groups, slices.Collect(maps.Values(l.Refs))) {
			err := r.addPast(ctx, tips)
			if objs := r.past.findAll(wants); objs != nil {
				return objs, nil
			}

			switch {
			case errors.Is(err, ErrNotFound): // it moved since it was listed
				again = true
			case errors.Is(err, ErrUnreadable): // as more than maxPast is: another ref may do
				unread = err
			case err != nil:
				return nil, err
			}
		}
	}
	return nil, errors.Join(fmt.Errorf("%w: %s", ErrNotGiven, wants[0]), unread)
}

// addPast fetches the history of tips.
func (r *remote) addPast(ctx context.Context, tips []ID) error {
	p := &r.past
	tips = filterIDs(tips, func(id ID) bool { _, has := p.objs[id]; return !has && !id.IsZero() })
	if len(tips) == 0 {
		return nil
	}
	objs, err := r.exchangeFetchV0(ctx, FetchRequest{Wants: tips, Haves: p.tips, MaxBytes: max(1, maxPast-p.objs.Size())})
	if err != nil {
		return err
	}

	if p.objs == nil {
		p.objs = make(Objects)
	}
	maps.Copy(p.objs, objs)
	p.tips = append(p.tips, tips...)
	return nil
}
