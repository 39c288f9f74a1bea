// Package wiretest has a git remote that lives in memory, for tests and for simulation: it
// obeys the rules of a git server, and the tests of package wire hold both to them. It
// touches no disk and no network.
package wiretest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// MemoryOptions configure a Memory.
type MemoryOptions struct {
	// Atomic: the remote offers atomic pushes.
	Atomic bool
	// NoFilter: the remote ignores object filters, as old servers do.
	NoFilter bool
	// Now is the remote's clock; nil means time.Now.
	Now func() time.Time
	// URL names the remote for messages; empty means "memory:".
	URL string
	// Refuse, when set, is asked about every update whose expected value
	// holds, as a server's branch rules are; an error refuses the update with
	// ErrProtected, or with the kind of the error when it is a *wire.RemoteError. It is
	// called with the remote locked: it must not call the remote.
	Refuse func(wire.RefUpdate) error
	// MostRefs is how many refs a push may update, as GitHub's push policy bounds them; 0:
	// any number.
	MostRefs int
}

// Names of the operations in errors.
const (
	opList  = "list refs"
	opFetch = "fetch"
	opPush  = "push"
)

// Memory is a remote that lives in memory and obeys the rules of a git server:
// expected old values, atomic or ref-by-ref updates, thin-pack bases that must
// be there, new values whose objects must all be there. The objects that it
// takes and gives share their bytes with the caller: nobody may change them.
type Memory struct {
	o MemoryOptions

	mu      sync.Mutex
	head    string
	refs    map[string]wire.ID
	objects wire.Objects
	links   map[wire.ID][]link
	whole   map[wire.ID]bool // objects whose closure is known to be complete
}

var _ wire.Remote = (*Memory)(nil)

// NewMemory returns an empty remote whose HEAD is refs/heads/main.
func NewMemory(o MemoryOptions) *Memory {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.URL == "" {
		o.URL = "memory:"
	}
	m := &Memory{
		o:       o,
		head:    "refs/heads/main",
		refs:    make(map[string]wire.ID),
		objects: make(wire.Objects),
		links:   make(map[wire.ID][]link),
		whole:   make(map[wire.ID]bool),
	}
	m.objects.Add(wire.NewObject(plumbing.TreeObject, nil)) // every git knows it
	return m
}

// URL names the remote for messages.
func (m *Memory) URL() string { return m.o.URL }

// Get returns an object by id, whether a ref reaches it or not.
func (m *Memory) Get(id wire.ID) (wire.Object, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[id]
	return o, ok
}

// Refs returns a copy of all refs.
func (m *Memory) Refs() map[string]wire.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.refs)
}

// SetRef sets a ref without any check; the zero id removes it.
func (m *Memory) SetRef(name string, id wire.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setRef(name, id)
}

// SetHead makes HEAD point to a branch, given by its full name.
func (m *Memory) SetHead(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.head = name
}

// AddObjects puts objects into the remote without any check.
func (m *Memory) AddObjects(objs ...wire.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects.Add(objs...)
}

func (m *Memory) setRef(name string, id wire.ID) {
	if id.IsZero() {
		delete(m.refs, name)
		return
	}
	m.refs[name] = id
}

func (m *Memory) newError(op, ref string, kind error, detail string) *wire.RemoteError {
	return &wire.RemoteError{Op: op, URL: m.URL(), Ref: ref, Kind: kind, Detail: detail}
}

// failWith makes a *wire.RemoteError of an error that wraps a kind.
func (m *Memory) failWith(op string, err error) *wire.RemoteError {
	return wire.NewError(op, m.URL(), err)
}

// List returns the refs whose full name begins with one of the prefixes.
func (m *Memory) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	if err := ctx.Err(); err != nil {
		return wire.Listing{}, m.failWith(opList, err)
	}
	if err := wire.CheckPrefixes(prefixes); err != nil {
		return wire.Listing{}, m.failWith(opList, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := wire.Listing{Refs: make(map[string]wire.ID), Time: m.o.Now()}
	for name, id := range m.refs {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			l.Refs[name] = id
		}
	}
	if _, born := m.refs[m.head]; born && slices.Contains(prefixes, "HEAD") {
		l.Head = m.head
	}
	return l, nil
}

// Atomic reports MemoryOptions.Atomic.
func (m *Memory) Atomic(ctx context.Context) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, m.failWith(opList, err)
	}
	return m.o.Atomic, nil
}

// Push checks and applies updates as git receive-pack does: the objects first,
// then what the new values reach, then each ref's expected value.
func (m *Memory) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, m.failWith(opPush, err)
	}
	if err := req.Check(); err != nil {
		return time.Time{}, m.failWith(opPush, err)
	}
	if req.Atomic && !m.o.Atomic {
		return time.Time{}, m.newError(opPush, "", wire.ErrNotAtomic, "")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.o.Now()
	added, err := m.storeObjects(req.Objects)
	if err != nil {
		return now, m.failWith(opPush, err)
	}
	applied, refused := m.applyUpdates(req)
	if len(applied) == 0 {
		// Like a server's quarantine: nothing of a refused push stays.
		for _, id := range added {
			delete(m.objects, id)
			delete(m.links, id)
			delete(m.whole, id)
		}
	}
	return now, m.resultError(req, applied, refused)
}

// storeObjects stores the objects of a push and returns the ids of the new ones. On
// error nothing is left behind.
func (m *Memory) storeObjects(objs []wire.PackObject) (added []wire.ID, err error) {
	defer func() {
		if err != nil {
			for _, id := range added {
				delete(m.objects, id)
			}
			added = nil
		}
	}()
	for _, o := range objs {
		if _, ok := m.objects[o.ID]; ok {
			continue
		}
		if id := plumbing.ComputeHash(o.Type, o.Data); id != o.ID {
			return added, fmt.Errorf("%w: object %s has the id %s", wire.ErrInvalid, o.ID, id)
		}
		m.objects[o.ID] = o.Object
		added = append(added, o.ID)
	}
	for _, o := range objs {
		if o.Base == nil {
			continue
		}
		if _, ok := m.objects[o.Base.ID]; !ok {
			return added, fmt.Errorf("%w: the base %s of %s", wire.ErrNotFound, o.Base.ID, o.ID)
		}
	}
	return added, nil
}

// applyUpdates applies a push's updates and says what became of each.
func (m *Memory) applyUpdates(req wire.PushRequest) (applied []string, refused map[string]*wire.RemoteError) {
	refused = make(map[string]*wire.RemoteError)
	tooMany := m.o.MostRefs > 0 && len(req.Updates) > m.o.MostRefs
	for _, u := range req.Updates {
		if tooMany {
			e := m.newError(opPush, u.Name, wire.ErrTooManyRefs, fmt.Sprintf("Pushes can not update more than %d branches or tags.", m.o.MostRefs))
			e.MostRefs = m.o.MostRefs
			refused[u.Name] = e
			continue
		}
		if err := m.judgeUpdate(u, req); err != nil {
			refused[u.Name] = err
		} else if !req.Atomic {
			m.setRef(u.Name, u.New)
			applied = append(applied, u.Name)
		}
	}
	if req.Atomic && len(refused) == 0 {
		for _, u := range req.Updates {
			m.setRef(u.Name, u.New)
			applied = append(applied, u.Name)
		}
	}
	return applied, refused
}

// resultError is the error of a push: of several refusals one that no other push helps
// with, if there is one.
func (m *Memory) resultError(req wire.PushRequest, applied []string, refused map[string]*wire.RemoteError) error {
	if len(applied) > 0 && len(refused) > 0 {
		return &wire.PartialError{URL: m.URL(), Applied: applied, Refused: refused}
	}
	var worst error
	for _, u := range req.Updates {
		if e := refused[u.Name]; e != nil && (worst == nil || errors.Is(worst, wire.ErrLostRace) && !errors.Is(e, wire.ErrLostRace)) {
			worst = e
		}
	}
	return worst
}

// judgeUpdate says why one update is refused, or nil.
func (m *Memory) judgeUpdate(u wire.RefUpdate, req wire.PushRequest) *wire.RemoteError {
	if !u.New.IsZero() {
		if err := m.checkConnected(u.New); err != nil {
			return m.newError(opPush, u.Name, wire.ErrNotFound, "missing necessary objects: "+err.Error())
		}
		if strings.HasPrefix(u.Name, "refs/heads/") && m.objects[u.New].Type != plumbing.CommitObject {
			return m.newError(opPush, u.Name, wire.ErrInvalid, "a branch can only point to a commit")
		}
	}
	if now := m.refs[u.Name]; now != u.Old {
		return m.newError(opPush, u.Name, wire.ErrLostRace, fmt.Sprintf("expected %s, is %s", idText(u.Old), idText(now)))
	}
	if u.New.IsZero() && u.Name == m.head {
		return m.newError(opPush, u.Name, wire.ErrProtected, "deletion of the current branch prohibited")
	}
	if u.Old.IsZero() {
		if other := m.nameConflict(u.Name, req.Updates); other != "" {
			e := m.newError(opPush, u.Name, wire.ErrInTheWay, fmt.Sprintf("'%s' exists; cannot create '%s'", other, u.Name))
			e.InTheWay = other
			return e
		}
	}
	if m.o.Refuse == nil {
		return nil
	}
	return m.refuseUpdate(u, m.o.Refuse(u))
}

func (m *Memory) refuseUpdate(u wire.RefUpdate, err error) *wire.RemoteError {
	if err == nil {
		return nil
	}
	var e *wire.RemoteError
	if errors.As(err, &e) {
		return m.newError(opPush, u.Name, e.Kind, e.Detail)
	}
	return m.newError(opPush, u.Name, wire.ErrProtected, err.Error())
}

// nameConflict finds a ref that is a folder of name or the other way round:
// git can't hold both.
func (m *Memory) nameConflict(name string, updates []wire.RefUpdate) string {
	clash := func(other string) bool {
		return strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/")
	}
	for other := range m.refs {
		if clash(other) {
			return other
		}
	}
	for _, u := range updates {
		if !u.New.IsZero() && clash(u.Name) {
			return u.Name
		}
	}
	return ""
}

// checkConnected checks that everything id reaches is there. What was found whole
// once stays so, because objects are never removed from a remote's history.
func (m *Memory) checkConnected(id wire.ID) error {
	seen := map[wire.ID]bool{}
	todo := []link{{id: id, typ: plumbing.AnyObject}}
	for len(todo) > 0 {
		l := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if m.whole[l.id] || seen[l.id] {
			continue
		}
		o, ok := m.objects[l.id]
		if !ok {
			return fmt.Errorf("%s is not there", l.id)
		}
		if l.typ != plumbing.AnyObject && o.Type != l.typ {
			return fmt.Errorf("%s is a %s, not a %s", l.id, o.Type, l.typ)
		}
		seen[l.id] = true
		next, err := m.knownLinksOf(o)
		if err != nil {
			return err
		}
		todo = append(todo, next...)
	}
	maps.Copy(m.whole, seen)
	return nil
}

func (m *Memory) knownLinksOf(o wire.Object) ([]link, error) {
	if o.Type == plumbing.BlobObject {
		return nil, nil
	}
	if l, ok := m.links[o.ID]; ok {
		return l, nil
	}
	l, err := linksOf(o)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", o.Type, o.ID, err)
	}
	m.links[o.ID] = l
	return l, nil
}

func idText(id wire.ID) string {
	if id.IsZero() {
		return "no such ref"
	}
	return id.String()
}
