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
	"github.com/united-workforce/uwf/gitcas/wire/internal/pack"
	"github.com/united-workforce/uwf/gitcas/wire/internal/transport"
	"github.com/united-workforce/uwf/internal/lists"
)

// remote is a git server reached by a transport.
type remote struct {
	t     transport.Transport
	forge bool // see isForge

	// What was learned about the server. Each only ever becomes true.
	v2Works atomic.Bool // it answered in version 2
	noV2    atomic.Bool // it answered in version 0 after refusing 2
	noThin  atomic.Bool // it can't read a push whose objects build on those that it has
	// What it offers to those who read and to those who push; nil: not known.
	uploads, receives offers
	past              past
	// seen holds ids that the server is known to have had as values of refs: a step's claim,
	// which its last push deletes, needs no listing of its own.
	seenMu sync.Mutex
	seen   map[ID]bool
}

var _ Remote = (*remote)(nil)

// URL names the remote for messages.
func (r *remote) URL() string { return r.t.URL() }

// askUploadPack asks in version 2, and in version 0 if the server refuses that.
func (r *remote) askUploadPack(ctx context.Context, ask func(v2 bool) error) error {
	if err := r.askVersion(ctx); err != nil {
		return err
	}
	if !r.noV2.Load() {
		err := ask(true)
		if err == nil {
			r.v2Works.Store(true)
		}
		if !errors.Is(err, fault.ErrRefused) || r.v2Works.Load() {
			return err
		}
	}
	err := ask(false)
	if err == nil {
		r.noV2.Store(true)
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
	err = r.askUploadPack(ctx, func(v2 bool) error {
		c := transport.Call{Service: transport.UploadPack, Advert: true}
		if v2 {
			c = r.newRead(true, func(transport.Caps) []byte { return lsRefsRequest(prefixes) })
		}
		a, err := r.t.Exchange(ctx, c)
		if err != nil {
			return err
		}
		if v2 {
			l, err = parseLsRefs(a, transport.MaxRefs, prefixes)
			err = treatSilenceAsRefusal(err)
		} else {
			var ad advertisement
			ad, err = parseAdvertisement(a, transport.MaxRefs, prefixes)
			l = ad.Listing
			l.WholeOnly = !r.givesSingle(r.uploads.storeCaps(ad.caps))
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
	err = r.askUploadPack(ctx, func(v2 bool) error {
		if !v2 {
			objs, err = r.fetchV0(ctx, req)
			return err
		}
		a, err := r.t.Exchange(ctx, r.newRead(true, func(offered transport.Caps) []byte { return fetchRequest(req, offered) }))
		if err != nil {
			return err
		}
		objs, err = parseFetch(a, limitsOf(req))
		return a.Finish(treatSilenceAsRefusal(err))
	})
	return objs, err
}

// limitsOf are the bounds of what a fetch may hold.
func limitsOf(req FetchRequest) pack.Limits {
	limits := fetchLimits
	if req.MaxBytes > 0 {
		limits.Total = min(limits.Total, req.MaxBytes)
	}
	return limits
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
	if req.Atomic && !r.receives.loadCaps().Offers("atomic") {
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

// sendPush carries a push to the server. One without atomic pushes has its refs listed then:
// dulwich 0.21 reports "ok" of an update whose expected value no longer held.
func (r *remote) sendPush(ctx context.Context, req PushRequest) (time.Time, error) {
	at, err := r.sendReadable(ctx, req)
	if err != nil || r.receives.loadCaps().Offers("atomic") {
		return at, err
	}
	l, err := r.listRefs(ctx, lists.Map(req.Updates, func(u RefUpdate) string { return u.Name }))
	if err != nil {
		return at, fmt.Errorf("%w: %w", errNoReport, err)
	}

	part := &PartialError{URL: r.URL(), Refused: map[string]*RemoteError{}}
	for _, u := range req.Updates {
		if l.Refs[u.Name] == u.New {
			part.Applied = append(part.Applied, u.Name)
			continue
		}
		part.Refused[u.Name] = &RemoteError{Op: opPush, URL: r.URL(), Ref: u.Name, Kind: ErrUnconfirmed, Detail: "it is " + idText(l.Refs[u.Name])}
	}
	return at, part.asError(req.Updates)
}

// sendReadable sends a push in a form that the server can read. It asks what the server offers
// only if the server speaks version 0, or refuses the form that git's servers read.
func (r *remote) sendReadable(ctx context.Context, req PushRequest) (time.Time, error) {
	if err := r.askVersion(ctx); err != nil {
		return time.Time{}, err
	}
	if r.noV2.Load() && r.isHTTP() && r.receives.loadCaps() == nil {
		if err := r.readReceiver(ctx); err != nil {
			return time.Time{}, err
		}
	}

	at, err := r.exchangePush(ctx, req)
	switch {
	case errors.Is(err, fault.ErrRefused) && r.receives.loadCaps() == nil:
		if err := r.readReceiver(ctx); err != nil {
			return time.Time{}, err
		}
	case errors.Is(err, ErrUnpack) && !r.noThin.Swap(true) && slices.ContainsFunc(req.Objects, func(o PackObject) bool { return o.Base != nil }):
		// The server took nothing. Every server can read whole objects.
	default:
		return at, err
	}
	return r.exchangePush(ctx, req)
}

func (r *remote) exchangePush(ctx context.Context, req PushRequest) (time.Time, error) {
	a, err := r.t.Exchange(ctx, transport.Call{Service: transport.ReceivePack, Body: func(said transport.Caps) ([]byte, error) {
		return pushRequest(req, r.receives.storeCaps(said), !r.noThin.Load())
	}})
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
		r.receives.storeCaps(transport.Caps{"report-status": true, "side-band-64k": true})
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
	if r.receives.loadCaps() == nil {
		if err := r.readReceiver(ctx); err != nil {
			return false, err
		}
	}
	return r.receives.loadCaps()["atomic"], nil
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
