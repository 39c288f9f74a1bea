package rewrite_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/rewrite"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// spoilt is a remote of which one answer is not as it should be.
type spoilt struct {
	wire.Remote
	n, at int
	spoil func(objs wire.Objects) // nil: the answer is an error
	then  bool                    // those after it are errors
}

var errDown = &wire.RemoteError{Op: "fetch", Kind: wire.ErrUnreachable, Detail: "the line is down"}

func (f *spoilt) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	if f.n++; f.n == f.at && f.spoil == nil {
		return wire.Listing{}, errDown
	}
	return f.Remote.List(ctx, prefixes...)
}

func (f *spoilt) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	if f.n++; f.n == f.at && f.spoil == nil || f.then && f.n > f.at {
		return nil, errDown
	}
	objs, err := f.Remote.Fetch(ctx, req)
	if err == nil && f.n == f.at {
		f.spoil(objs)
	}
	return objs, err
}

// reading is all that reads a store with attempts, and people's branches.
func reading(t *testing.T) (wire.Remote, map[string]func(wire.Remote) error) {
	f := memory(t)
	f.start(id(1), "p "+secret)
	f.step(id(1), note("n "+secret), "b", "d")
	f.start(id(2), "q")
	f.end(id(2), "cancelled", "note "+secret)
	base := f.files("refs/heads/main", "people's", map[string]string{"a.txt": "a", "secret.txt": secret})
	f.attempt(id(1), "r1", secret, base)
	f.attempt(id(1), "r1", "a second time", base)
	f.attempt(id(1), "r2", secret, f.load().Tip())
	f.files("refs/heads/main", "more of people's", map[string]string{"a.txt": secret}, base)
	o := f.options(finder(t, secret))
	f.files(o.Branch, "somebody's", map[string]string{"threads.yaml": "{}\n", "src/main.go": secret}, f.load().Tip())
	l, err := f.remote.List(t.Context(), "refs/heads/")
	f.ok(err)
	tip := l.Refs["refs/heads/main"]
	return f.remote, map[string]func(wire.Remote) error{
		"plan": func(r wire.Remote) error { _, err := rewrite.New(r, o).MakePlan(t.Context()); return err },
		"search": func(r wire.Remote) error {
			_, err := rewrite.Search(t.Context(), r, wire.FetchRequest{Wants: []wire.ID{tip}, Haves: []wire.ID{base}}, o.Find)
			return err
		},
		"search the tip": func(r wire.Remote) error {
			_, err := rewrite.Search(t.Context(), r, wire.FetchRequest{Wants: []wire.ID{tip}, Depth: 1}, o.Find)
			return err
		},
	}
}

// TestEveryAnswerFails: no answer of the remote is read over that is an error.
func TestEveryAnswerFails(t *testing.T) {
	remote, operations := reading(t)
	for name, do := range operations {
		count := &spoilt{Remote: remote}
		if err := do(count); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for n := 1; n <= count.n; n++ {
			if err := do(&spoilt{Remote: remote, at: n}); !errors.Is(err, wire.ErrUnreachable) {
				t.Errorf("%s: answer %d of %d is an error, and it says %v", name, n, count.n, err)
			}
		}
	}
}

// TestEveryObjectSpoilt: a commit or folder that the remote does not send, or that is
// none, ends a plan: what could not be read may hold what is looked for.
func TestEveryObjectSpoilt(t *testing.T) {
	remote, operations := reading(t)
	plan := operations["plan"]
	attempts, err := remote.List(t.Context(), layout.Attempts)
	if err != nil {
		t.Fatal(err)
	}
	var tries []wire.ID
	needed := map[wire.ID]bool{} // what an attempt that a ref holds can't be rewritten without
	for _, id := range attempts.Refs {
		tries = append(tries, id)
		objs, err := remote.Fetch(t.Context(), wire.FetchRequest{Wants: []wire.ID{id}, Depth: 1, Filter: "tree:0"})
		if err != nil {
			t.Fatal(err)
		}
		c, err := gitobj.DecodeCommit(objs[id].Data)
		if err != nil {
			t.Fatal(err)
		}
		needed[c.Tree] = true
	}
	others := map[plumbing.ObjectType]plumbing.ObjectType{plumbing.BlobObject: plumbing.TreeObject, plumbing.TreeObject: plumbing.BlobObject, plumbing.CommitObject: plumbing.TagObject}
	for kind, spoil := range map[string]func(objs wire.Objects, id wire.ID){
		"withheld": func(objs wire.Objects, id wire.ID) { delete(objs, id) },
		"another kind": func(objs wire.Objects, id wire.ID) {
			o := objs[id]
			o.Type = others[o.Type]
			objs[id] = o
		},
		"garbage": func(objs wire.Objects, id wire.ID) {
			o := objs[id]
			o.Data = []byte("garbage")
			objs[id] = o
		},
	} {
		people := false // attempts stand on people's commits, and on commits that were read before
		for n, more := 1, true; more; n++ {
			types := map[wire.ID]plumbing.ObjectType{}
			look := &spoilt{Remote: remote, at: n, spoil: func(objs wire.Objects) {
				for id, o := range objs {
					types[id] = o.Type
				}
			}}
			if err := plan(look); err != nil {
				t.Fatal(err)
			}
			more = n < look.n
			for id := range types {
				people = people || slices.Contains(tries, id)
			}
			for id, typ := range types {
				err := plan(&spoilt{Remote: remote, at: n, spoil: func(objs wire.Objects) { spoil(objs, id) }})
				switch {
				case err == nil && kind != "withheld" && (needed[id] || len(types) == 1 && slices.Contains(tries, id)):
					t.Errorf("%s %s of answer %d of %d is %s, and nobody sees it", typ, id, n, look.n, kind)
				case err == nil && (people || kind == "withheld" || typ == plumbing.BlobObject && kind == "garbage"): // it is asked for again, or it is text
					continue
				case !errors.Is(err, rewrite.ErrUnreadable):
					t.Errorf("%s %s of answer %d of %d is %s: %v", typ, id, n, look.n, kind, err)
				}
			}
		}
	}
}

// TestNotSent: what a remote does not send is asked for again, and an error then is one.
func TestNotSent(t *testing.T) {
	remote, operations := reading(t)
	for kind, tc := range map[string]struct {
		left plumbing.ObjectType // all others are not sent
		want error
	}{
		"tip":     {plumbing.BlobObject, rewrite.ErrUnreadable},
		"content": {plumbing.CommitObject, wire.ErrUnreachable},
	} {
		asked := 0
		err := operations["plan"](&spoilt{Remote: remote, at: map[string]int{"tip": 2, "content": 3}[kind], spoil: func(objs wire.Objects) {
			asked++
			for id, o := range objs {
				if o.Type != tc.left {
					delete(objs, id)
				}
			}
		}, then: kind == "content"})
		if !errors.Is(err, tc.want) || asked != 1 {
			t.Errorf("%s: %v, asked %d times", kind, err, asked)
		}
	}
}

// TestExecuteFails: where the store can't be read a second time, nothing is pushed.
func TestExecuteFails(t *testing.T) {
	for n := 1; ; n++ {
		f := memory(t)
		f.start(id(1), "p "+secret)
		f.step(id(1), note("n"), "b", "d")
		f.attempt(id(1), "r1", secret, f.load().Tip())
		remote := &spoilt{Remote: f.remote}
		r := rewrite.New(remote, f.options(finder(t, secret)))
		_, err := r.MakePlan(t.Context())
		f.ok(err)
		before := f.refs()
		remote.n, remote.at = 0, n
		_, err = r.Execute(t.Context())
		if err == nil && remote.n < n {
			return
		}
		if !errors.Is(err, wire.ErrUnreachable) || !maps.Equal(before, f.refs()) {
			t.Errorf("answer %d: %v, refs %v, were %v", n, err, f.refs(), before)
		}
	}
}

// changes is a Finder that finds one text and puts another in its place.
type changes struct{ from, to string }

func (c changes) Replace(s string, _ func(string) string) (string, int) {
	return strings.ReplaceAll(s, c.from, c.to), strings.Count(s, c.from)
}

// TestPlanRefused: histories and wishes that nothing can be made of.
func TestPlanRefused(t *testing.T) {
	deep := strings.Repeat("d/", 201) + "f.txt"
	var nothing *rewrite.NothingError
	for name, tc := range map[string]struct {
		files  map[string]string
		change func(f *fixture, o *rewrite.Options, tip wire.ID) []wire.ID // and the parents of the commit with these files
		want   func(error) bool
	}{
		"merge": {nil, func(f *fixture, _ *rewrite.Options, tip wire.ID) []wire.ID {
			return []wire.ID{tip, f.files("refs/heads/other", "m", nil)}
		}, func(err error) bool {
			return errors.Is(err, rewrite.ErrUnreadable) && strings.Contains(err.Error(), "is a merge")
		}},
		"deep folders": {map[string]string{deep: secret}, nil, func(err error) bool {
			return errors.Is(err, rewrite.ErrUnreadable) && strings.Contains(err.Error(), "nested deeper than 200")
		}},
		"name with a slash": {map[string]string{"src/" + "hunter": "x"}, func(_ *fixture, o *rewrite.Options, tip wire.ID) []wire.ID {
			o.Find = changes{"hunter", "a/b"}
			return []wire.ID{tip}
		}, func(err error) bool {
			return errors.Is(err, rewrite.ErrUnreadable) && strings.Contains(err.Error(), "tree ")
		}},
		"key that is not known": {map[string]string{"threads.yaml": string(id(1)) + ": {head: 0000000000000, hunter: 1}\n"}, func(_ *fixture, o *rewrite.Options, tip wire.ID) []wire.ID {
			o.Find = changes{"hunter", rewrite.Purged}
			return []wire.ID{tip}
		}, func(err error) bool {
			return errors.Is(err, statefile.ErrUnstorable) && strings.Contains(err.Error(), "threads.yaml: ")
		}},
		"node without texts": {nil, func(f *fixture, o *rewrite.Options, tip wire.ID) []wire.ID {
			f.start(id(1), "p")
			f.step(id(1), map[string]any{"$status": "finished"}, "b", "d")
			c, err := f.load(id(1)).ReadChain(f.Context(), id(1))
			f.ok(err)
			o.Find, o.Nodes = nil, []node.Hash{c.Steps[0].Output}
			return []wire.ID{f.load().Tip()}
		}, func(err error) bool { return errors.As(err, &nothing) }},
		"node that no longer works": {nil, func(f *fixture, o *rewrite.Options, _ wire.ID) []wire.ID {
			f.start(id(1), "p "+secret)
			o.Verify = func(node.Getter, node.Hash, node.Node) error { return errors.New("no") }
			return []wire.ID{f.load().Tip()}
		}, func(err error) bool { return strings.Contains(err.Error(), "it would no longer work") }},
	} {
		t.Run(name, func(t *testing.T) {
			f := memory(t)
			o := f.options(finder(t, secret))
			parents := []wire.ID{f.load().Tip()}
			if tc.change != nil {
				parents = tc.change(f, &o, parents[0])
			}
			if tc.files == nil {
				tc.files = map[string]string{"a.txt": "a"}
			}
			f.files(o.Branch, "m", tc.files, parents...)
			if _, err := rewrite.New(f.remote, o).MakePlan(t.Context()); err == nil || !tc.want(err) {
				t.Errorf("%v", err)
			}
		})
	}
}
