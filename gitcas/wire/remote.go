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

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
	"github.com/united-workforce/uwf/gitcas/wire/internal/transport"
)

// remote is a git server reached by a transport.
type remote struct {
	t transport.Transport
	o DialOptions

	// What was learned about the server. Each only ever becomes true.
	v2Works  atomic.Bool // it answered in version 2
	noV2     atomic.Bool // it answered in version 0 after refusing 2
	noFilter atomic.Bool // it answered in version 2 after refusing a filter
	advert   atomic.Bool // it takes pushes only after its advertisement
	// seen holds ids that the server is known to have had as values of refs.
	seenMu sync.Mutex
	seen   map[ID]bool
	// atomicity is 0 when unknown, 1 when there are atomic pushes, 2 when not.
	atomicity atomic.Int32
}

var _ Remote = (*remote)(nil)

// URL names the remote for messages.
func (r *remote) URL() string { return r.t.URL() }

// Close frees idle connections.
func (r *remote) Close() error { return r.t.Close() }

// List returns the refs below the prefixes.
func (r *remote) List(ctx context.Context, prefixes ...string) (Listing, error) {
	l, err := r.listRefs(ctx, prefixes)
	if err != nil {
		return Listing{}, r.newError(ctx, opList, err)
	}
	r.noteListing(l)
	return l, nil
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

// staleDeletes makes a deletion's expected value count. A git server that does
// not have the object of that value deletes the ref whatever it holds ("allowing
// deletion of corrupt ref"). That happens when a push that made the ref got
// lost and another job's took its place. So a value that the server is not
// known to have had is compared here first.
func (r *remote) staleDeletes(ctx context.Context, req PushRequest) (map[string]*Error, error) {
	var ask []string
	r.seenMu.Lock()
	for _, u := range req.Updates {
		if u.New.IsZero() && !r.seen[u.Old] {
			ask = append(ask, u.Name)
		}
	}
	r.seenMu.Unlock()
	if len(ask) == 0 {
		return nil, nil
	}
	l, err := r.listRefs(ctx, ask)
	if err != nil {
		return nil, err
	}
	r.noteListing(l)
	stale := make(map[string]*Error)
	for _, u := range req.Updates {
		if u.New.IsZero() && slices.Contains(ask, u.Name) && l.Refs[u.Name] != u.Old {
			stale[u.Name] = &Error{
				Op: opPush, URL: r.URL(), Ref: u.Name, Kind: ErrLostRace,
				Detail: fmt.Sprintf("expected %s, is %s", idText(u.Old), idText(l.Refs[u.Name])),
			}
		}
	}
	return stale, nil
}

func (r *remote) listRefs(ctx context.Context, prefixes []string) (Listing, error) {
	if err := CheckPrefixes(prefixes); err != nil {
		return Listing{}, err
	}
	if !r.noV2.Load() {
		l, err := r.exchangeList(ctx, transport.Call{Service: transport.UploadPack, V2: true, Body: lsRefsRequest(prefixes)}, prefixes)
		if err == nil {
			r.v2Works.Store(true)
		}
		if !errors.Is(err, fault.ErrRefused) || r.v2Works.Load() {
			return l, err
		}
	}
	l, err := r.exchangeList(ctx, transport.Call{Service: transport.UploadPack, Advert: true}, prefixes)
	if err == nil {
		r.noV2.Store(true)
	}
	return l, err
}

func (r *remote) exchangeList(ctx context.Context, c transport.Call, prefixes []string) (l Listing, err error) {
	a, err := r.t.Call(ctx, c)
	if err != nil {
		return Listing{}, err
	}
	if c.V2 {
		l, err = parseLsRefs(a, r.o.Limits.Refs, prefixes)
		err = refusedIfSilent(err)
	} else {
		var ad advertisement
		ad, err = parseAdvertisement(a, r.o.Limits.Refs, prefixes)
		l = ad.Listing
	}
	l.Time, l.TimeGuessed = a.At, a.Guessed
	return l, a.Finish(err)
}

// refusedIfSilent: a server that doesn't understand the request says so, or
// ends without a word.
func refusedIfSilent(err error) error {
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

// Fetch returns the wanted objects and what they need.
func (r *remote) Fetch(ctx context.Context, req FetchRequest) (Objects, error) {
	if err := req.Check(); err != nil {
		return nil, r.newError(ctx, opFetch, err)
	}
	objs, err := fetchAll(req, func(req FetchRequest) (Objects, error) { return r.fetchObjects(ctx, req) })
	if err != nil {
		return nil, r.newError(ctx, opFetch, err)
	}
	return objs, nil
}

func (r *remote) fetchObjects(ctx context.Context, req FetchRequest) (Objects, error) {
	if !r.noV2.Load() {
		filter := req.Filter != "" && !r.noFilter.Load()
		objs, err := r.exchangeFetch(ctx, transport.Call{Service: transport.UploadPack, V2: true, Body: fetchRequest(req, filter)}, req)
		if err == nil {
			r.v2Works.Store(true)
		}
		if !errors.Is(err, fault.ErrRefused) {
			return objs, err
		}
		if r.v2Works.Load() {
			if !filter {
				return nil, err
			}
			objs, err := r.exchangeFetch(ctx, transport.Call{Service: transport.UploadPack, V2: true, Body: fetchRequest(req, false)}, req)
			if err == nil {
				r.noFilter.Store(true)
			}
			return objs, err
		}
	}
	objs, err := r.exchangeFetch(ctx, transport.Call{Service: transport.UploadPack, Body: fetchRequestV0(req)}, req)
	if err == nil {
		r.noV2.Store(true)
	}
	return objs, err
}

func (r *remote) exchangeFetch(ctx context.Context, c transport.Call, req FetchRequest) (Objects, error) {
	a, err := r.t.Call(ctx, c)
	if err != nil {
		return nil, err
	}
	var objs Objects
	if c.V2 {
		objs, err = parseFetch(a, r.o.Limits.packLimits())
		err = refusedIfSilent(err)
	} else {
		objs, err = parseFetchV0(a, r.o.Limits.packLimits(), req.Depth > 0)
	}
	if err = a.Finish(err); err != nil {
		return nil, err
	}
	return objs, nil
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
	if req.Atomic && r.atomicity.Load() == atomicNo {
		return time.Time{}, ErrNotAtomic
	}
	stale, err := r.staleDeletes(ctx, req)
	if err != nil {
		return time.Time{}, err
	}
	if len(stale) > 0 {
		return r.pushWithout(ctx, req, stale)
	}
	return r.sendPush(ctx, req)
}

// pushWithout pushes what is not stale, if the push may be taken apart.
func (r *remote) pushWithout(ctx context.Context, req PushRequest, stale map[string]*Error) (time.Time, error) {
	res := newPushResult(req)
	res.refused = stale
	rest := req
	rest.Updates = slices.DeleteFunc(slices.Clone(req.Updates), func(u RefUpdate) bool { return stale[u.Name] != nil })
	if req.Atomic || len(rest.Updates) == 0 {
		return time.Time{}, res.asError(r.URL())
	}
	at, err := r.sendPush(ctx, rest)
	var part *PartialError
	switch {
	case err == nil:
		for _, u := range rest.Updates {
			res.noteApplied(u.Name)
		}
	case errors.As(err, &part):
		res.applied = part.Applied
		maps.Copy(res.refused, part.Refused)
	default:
		return at, err
	}
	return at, res.asError(r.URL())
}

// sendPush carries a push to the server.
func (r *remote) sendPush(ctx context.Context, req PushRequest) (time.Time, error) {
	body, err := pushRequest(req)
	if err != nil {
		return time.Time{}, err
	}
	if !r.advert.Load() {
		at, err := r.exchangePush(ctx, body, req)
		if !errors.Is(err, fault.ErrRefused) || r.t.Direct() {
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
	a, err := r.t.Call(ctx, c)
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
	r.noteTaken(res, req)
	err = res.asError(r.URL())
	var part *PartialError
	if req.Atomic && errors.As(err, &part) {
		// It took the push apart although it was asked not to.
		r.atomicity.Store(atomicNo)
	}
	return a.At, err
}

// noteTaken remembers the values that the server has taken.
func (r *remote) noteTaken(res *pushResult, req PushRequest) {
	l := Listing{Refs: make(map[string]ID)}
	for _, u := range req.Updates {
		if !u.New.IsZero() && slices.Contains(res.applied, u.Name) {
			l.Refs[u.Name] = u.New
		}
	}
	r.noteListing(l)
}

// What is known of a remote's atomicity.
const (
	atomicYes = 1
	atomicNo  = 2
)

// Atomic reports whether the remote offers atomic pushes.
func (r *remote) Atomic(ctx context.Context) (bool, error) {
	ok, err := r.canPushAtomically(ctx)
	if err != nil {
		return false, r.newError(ctx, opList, err)
	}
	return ok, nil
}

func (r *remote) canPushAtomically(ctx context.Context) (bool, error) {
	if known := r.atomicity.Load(); known != 0 {
		return known == atomicYes, nil
	}
	a, err := r.t.Call(ctx, transport.Call{Service: transport.ReceivePack, Advert: true})
	if err != nil {
		return false, err
	}
	ad, err := parseAdvertisement(a, r.o.Limits.Refs, nil)
	if err = a.Finish(err); err != nil {
		return false, err
	}
	if ad.caps["atomic"] {
		r.atomicity.CompareAndSwap(0, atomicYes)
	} else {
		r.atomicity.Store(atomicNo)
	}
	return ad.caps["atomic"], nil
}

// newError makes the *Error of an operation. When the caller's context ended, that
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
