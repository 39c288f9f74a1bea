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

const (
	// maxPast is how many bytes of history are kept.
	maxPast = 256 << 20
	// mostTips is how many refs have their history fetched one by one, before that of all refs is.
	mostTips = 64
	// mostListings is how often refs are listed if they move while their history is fetched.
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
	if r.givesSingle(r.uploads.loadCaps()) || !slices.ContainsFunc(req.Wants, func(id ID) bool { return !r.wasSeen(id) }) {
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
	objs, err := parseFetchV0(a, limitsOf(req), req.Depth > 0 && r.uploads.loadCaps().Offers("shallow"))
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

		again = false
		for _, tips := range groupTips(l, known) {
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

// groupTips returns the values of refs in groups whose history is fetched one after the other. Each
// value that was listed before is a group: the object that somebody asks for is mostly in its
// history. The last group has all values.
func groupTips(l Listing, known map[ID]bool) (groups [][]ID) {
	for _, name := range slices.Sorted(maps.Keys(l.Refs)) {
		if id := l.Refs[name]; known[id] && len(groups) < mostTips {
			groups = append(groups, []ID{id})
		}
	}
	return append(groups, slices.Collect(maps.Values(l.Refs)))
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
