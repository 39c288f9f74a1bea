package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
	"github.com/united-workforce/uwf/gitcas/wire/internal/transport"
)

// remote is a git server reached by a transport.
type remote struct {
	t transport.Transport

	// What was learned about the server. Each only ever becomes true.
	v2Works  atomic.Bool // it answered in version 2
	noV2     atomic.Bool // it answered in version 0 after refusing 2
	noFilter atomic.Bool // it answered in version 2 after refusing a filter
	advert   atomic.Bool // it takes pushes only after its advertisement
	// canAtomic: whether there are atomic pushes; nil: not known.
	canAtomic atomic.Pointer[bool]
	// seen holds ids that the server is known to have had as values of refs: a step's claim,
	// which its last push deletes, needs no listing of its own.
	seenMu sync.Mutex
	seen   map[ID]bool
}

var _ Remote = (*remote)(nil)

// URL names the remote for messages.
func (r *remote) URL() string { return r.t.URL() }

// form is how something is asked of upload-pack.
type form struct{ v2, filter bool }

// askInForms asks in one form after the other, until the server doesn't refuse the form:
// in version 2 with the filter, if there is one, without it, and in version 0.
func (r *remote) askInForms(filter bool, ask func(form) error) error {
	var err error
	for _, f := range []form{{v2: true, filter: true}, {v2: true}, {}} {
		if f.filter && (!filter || r.noFilter.Load()) || f.v2 && r.noV2.Load() || !f.v2 && r.v2Works.Load() {
			continue
		}
		switch err = ask(f); {
		case err == nil && !f.v2:
			r.noV2.Store(true)
		case err == nil && filter && !f.filter:
			r.noFilter.Store(true)
			fallthrough
		case err == nil:
			r.v2Works.Store(true)
		}
		if !errors.Is(err, fault.ErrRefused) {
			return err
		}
	}
	return err
}

// List returns the refs below the prefixes.
func (r *remote) List(ctx context.Context, prefixes ...string) (Listing, error) {
	l, err := r.listRefs(ctx, prefixes)
	if err != nil {
		return Listing{}, r.newError(ctx, opList, err)
	}
	return l, nil
}

func (r *remote) listRefs(ctx context.Context, prefixes []string) (l Listing, err error) {
	if err := CheckPrefixes(prefixes); err != nil {
		return Listing{}, err
	}
	err = r.askInForms(false, func(f form) error {
		c := transport.Call{Service: transport.UploadPack, Advert: true}
		if f.v2 {
			c = transport.Call{Service: transport.UploadPack, V2: true, Body: lsRefsRequest(prefixes)}
		}
		a, err := r.t.Exchange(ctx, c)
		if err != nil {
			return err
		}
		if f.v2 {
			l, err = parseLsRefs(a, transport.MaxRefs, prefixes)
			err = treatSilenceAsRefusal(err)
		} else {
			var ad advertisement
			ad, err = parseAdvertisement(a, transport.MaxRefs, prefixes)
			l = ad.Listing
		}
		l.Time, l.TimeGuessed = a.At, a.Guessed
		return a.Finish(err)
	})
	if err == nil {
		r.noteListing(l)
	}
	return l, err
}

// maxSeen bounds how many ids are remembered; the rest is asked for again.
const maxSeen = 50_000

func (r *remote) noteListing(l Listing) {
	r.seenMu.Lock()
	defer r.seenMu.Unlock()
	if r.seen == nil {
		r.seen = make(map[ID]bool)
	}
	for _, id := range l.Refs {
		if len(r.seen) >= maxSeen {
			return
		}
		r.seen[id] = true
	}
}

// wasSeen reports whether the server is known to have had an object as the value of a ref.
func (r *remote) wasSeen(id ID) bool {
	r.seenMu.Lock()
	defer r.seenMu.Unlock()
	return r.seen[id]
}

// treatSilenceAsRefusal makes a refusal of silence, and of words that nobody knows: a server
// that doesn't understand the request says so, or ends without a word.
func treatSilenceAsRefusal(err error) error {
	var said *fault.ServerError
	if errors.Is(err, fault.ErrNothing) {
		// Silence may also be a server that died: unreachable, should nothing
		// else be left to try.
		return fmt.Errorf("%w: %w", fault.ErrNothing, fault.ErrRefused)
	}
	if errors.As(err, &said) {
		if known, _ := fault.Translate(said.Text); !known {
			return fmt.Errorf("%w: %s", fault.ErrRefused, said.Text)
		}
	}
	return err
}

// Fetch returns the wanted objects and what they need. It asks once more, alone, for wants
// that did not come: git applies the filter to a want that it also meets inside another
// want. The empty tree is known to git without being stored; it is never asked for.
func (r *remote) Fetch(ctx context.Context, req FetchRequest) (Objects, error) {
	if err := req.Check(); err != nil {
		return nil, r.newError(ctx, opFetch, err)
	}
	objs := make(Objects)
	if slices.Contains(req.Wants, EmptyTree) {
		objs.Add(NewObject(plumbing.TreeObject, nil))
	}
	missing := func(id ID) bool { _, came := objs[id]; return !came }
	for left := filterIDs(req.Wants, missing); len(left) > 0; {
		req.Wants = left
		got, err := r.fetchObjects(ctx, req)
		maps.Copy(objs, got)
		if left = filterIDs(left, missing); err == nil && len(req.Haves) == 0 && len(left) == len(req.Wants) {
			err = fmt.Errorf("%w: the server's answer lacks %s", ErrUnreadable, left[0])
		}
		if err != nil {
			return nil, r.newError(ctx, opFetch, err)
		}
		if len(req.Haves) > 0 {
			break // what they reach need not come
		}
	}
	return objs, nil
}

func filterIDs(ids []ID, keep func(ID) bool) []ID {
	return slices.DeleteFunc(slices.Clone(ids), func(id ID) bool { return !keep(id) })
}

func (r *remote) fetchObjects(ctx context.Context, req FetchRequest) (objs Objects, err error) {
	err = r.askInForms(req.Filter != "", func(f form) error {
		c := transport.Call{Service: transport.UploadPack, Body: fetchRequestV0(req)}
		if f.v2 {
			c = transport.Call{Service: transport.UploadPack, V2: true, Body: fetchRequest(req, f.filter)}
		}
		a, err := r.t.Exchange(ctx, c)
		if err != nil {
			return err
		}
		limits := fetchLimits
		if req.MaxBytes > 0 {
			limits.Total = min(limits.Total, req.MaxBytes)
		}
		if f.v2 {
			objs, err = parseFetch(a, limits)
			err = treatSilenceAsRefusal(err)
		} else {
			objs, err = parseFetchV0(a, limits, req.Depth > 0)
		}
		return a.Finish(err)
	})
	return objs, err
}

// Push updates refs with the objects they need.
func (r *remote) Push(ctx context.Context, req PushRequest) (time.Time, error) {
	at, err := r.pushRefs(ctx, req)
	if err == nil {
		return at, nil
	}
	var part *PartialError
	if errors.As(err, &part) {
		return at, part
	}
	return at, r.newError(ctx, opPush, err)
}

func (r *remote) pushRefs(ctx context.Context, req PushRequest) (time.Time, error) {
	if err := req.Check(); err != nil {
		return time.Time{}, err
	}
	if known := r.canAtomic.Load(); req.Atomic && known != nil && !*known {
		return time.Time{}, ErrNotAtomic
	}
	stale, err := r.staleDeletes(ctx, req)
	switch {
	case err != nil:
		return time.Time{}, err
	case len(stale) == 0:
		return r.sendPush(ctx, req)
	case req.Atomic || len(stale) == len(req.Updates):
		return time.Time{}, (&PartialError{URL: r.URL(), Refused: stale}).asError(req.Updates)
	}
	// The push may be taken apart: what is not stale is pushed.
	part := &PartialError{URL: r.URL(), Refused: stale}
	for _, u := range req.Updates {
		if stale[u.Name] == nil {
			part.Applied = append(part.Applied, u.Name)
		}
	}
	req.Updates = slices.DeleteFunc(slices.Clone(req.Updates), func(u RefUpdate) bool { return stale[u.Name] != nil })
	at, err := r.sendPush(ctx, req)
	if rest := (*PartialError)(nil); errors.As(err, &rest) {
		part.Applied = rest.Applied
		maps.Copy(part.Refused, rest.Refused)
	} else if err != nil {
		return at, err
	}
	return at, part
}

// staleDeletes makes a deletion's expected value count. A git server that does
// not have the object of that value deletes the ref whatever it holds ("allowing
// deletion of corrupt ref"). That happens when a push that made the ref got
// lost and another job's took its place. So a value that the server is not
// known to have had is compared here first.
func (r *remote) staleDeletes(ctx context.Context, req PushRequest) (map[string]*RemoteError, error) {
	var names []string
	for _, u := range req.Updates {
		if u.New.IsZero() && !r.wasSeen(u.Old) {
			names = append(names, u.Name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	l, err := r.listRefs(ctx, names)
	if err != nil {
		return nil, err
	}
	stale := make(map[string]*RemoteError)
	for _, u := range req.Updates {
		if is := l.Refs[u.Name]; slices.Contains(names, u.Name) && is != u.Old {
			stale[u.Name] = &RemoteError{Op: opPush, URL: r.URL(), Ref: u.Name, Kind: ErrLostRace, Detail: fmt.Sprintf("expected %s, is %s", idText(u.Old), idText(is))}
		}
	}
	return stale, nil
}

// sendPush carries a push to the server.
func (r *remote) sendPush(ctx context.Context, req PushRequest) (time.Time, error) {
	body, err := pushRequest(req)
	if err != nil {
		return time.Time{}, err
	}
	if !r.advert.Load() {
		at, err := r.exchangePush(ctx, body, req)
		if !errors.Is(err, fault.ErrRefused) {
			return at, err
		}
	}
	ok, err := r.canPushAtomically(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if req.Atomic && !ok {
		return time.Time{}, ErrNotAtomic
	}
	at, err := r.exchangePush(ctx, body, req)
	if err == nil {
		r.advert.Store(true)
	}
	return at, err
}

func (r *remote) exchangePush(ctx context.Context, body []byte, req PushRequest) (time.Time, error) {
	c := transport.Call{Service: transport.ReceivePack, Body: body}
	if req.Atomic {
		c.Needs = "atomic"
	}
	a, err := r.t.Exchange(ctx, c)
	if err != nil {
		return time.Time{}, err
	}
	res, err := parseReport(a, req, r.URL())
	if err = a.Finish(err); err != nil {
		if errors.Is(err, ErrUnreachable) && !errors.Is(err, errNoReport) {
			err = fmt.Errorf("%w; the push may have happened", err)
		}
		return a.At, err
	}
	err = res.asError(req.Updates)
	var part *PartialError
	if req.Atomic && errors.As(err, &part) {
		// It took the push apart although it was asked not to.
		r.canAtomic.Store(new(false))
	}
	return a.At, err
}

// Atomic reports whether the remote offers atomic pushes.
func (r *remote) Atomic(ctx context.Context) (bool, error) {
	ok, err := r.canPushAtomically(ctx)
	if err != nil {
		return false, r.newError(ctx, opList, err)
	}
	return ok, nil
}

func (r *remote) canPushAtomically(ctx context.Context) (bool, error) {
	if known := r.canAtomic.Load(); known != nil {
		return *known, nil
	}
	a, err := r.t.Exchange(ctx, transport.Call{Service: transport.ReceivePack, Advert: true})
	if err != nil {
		return false, err
	}
	ad, err := parseAdvertisement(a, transport.MaxRefs, nil)
	if err = a.Finish(err); err != nil {
		return false, err
	}
	ok := ad.caps["atomic"]
	r.canAtomic.CompareAndSwap(nil, &ok)
	return ok, nil
}

// newError makes the *RemoteError of an operation. When the caller's context ended, that
// is what happened, whatever the connection said of it.
func (r *remote) newError(ctx context.Context, op string, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", ErrUnreachable, cause)
	}
	return NewError(op, r.URL(), err)
}

func idText(id ID) string {
	if id.IsZero() {
		return "no such ref"
	}
	return id.String()
}
