package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/outage"
)

// old is a server that knows version 0 only and offers what dulwich 0.21 does. Like it, it answers
// with status 500 to everything else, and to a fetch without thin-pack.
type old struct {
	offers map[string]string // by service
	report func(body []byte) string
}

func newOld() *old {
	return &old{offers: map[string]string{
		"git-upload-pack":  "multi_ack_detailed multi_ack side-band-64k thin-pack ofs-delta no-progress include-tag shallow no-done",
		"git-receive-pack": "report-status delete-refs quiet ofs-delta side-band-64k no-done",
	}}
}

var capsLine = lazyregexp.New(`[0-9a-f]{4}([0-9a-f]{40} \S+)\x00[^\n]*\n`)

// namedIn returns the capabilities that the first line of a request names; nil if the request is not
// of version 0.
func namedIn(body []byte) []string {
	size, err := strconv.ParseUint(string(body[:4]), 16, 16)
	if err != nil {
		return nil
	}
	line := string(body[4:size])
	if _, after, isPush := strings.Cut(line, "\x00"); isPush {
		return strings.Fields(after)
	}
	if words := strings.Fields(line); words[0] == "want" {
		return words[2:]
	}
	return nil
}

func (o *old) serveBefore(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		q.Header.Del("Git-Protocol")
		if q.Method == http.MethodGet {
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, q)
			service := q.URL.Query().Get("service")
			w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
			_, _ = io.WriteString(w, capsLine.ReplaceAllStringFunc(rec.Body.String(), func(line string) string {
				before, _, _ := strings.Cut(line[4:], "\x00")
				return pkt(before + "\x00" + o.offers[service] + "\n")
			}))
			return
		}

		body, _ := io.ReadAll(q.Body)
		q.Body = io.NopCloser(bytes.NewReader(body))
		service := filepath.Base(q.URL.Path)

		offered, named := strings.Fields(o.offers[service]), namedIn(body)
		isOffered := func(name string) bool { return slices.Contains(offered, name) }
		if !slices.ContainsFunc(named, isOffered) || slices.ContainsFunc(named, func(name string) bool { return !isOffered(name) }) ||
			service == "git-upload-pack" && !slices.Contains(named, "thin-pack") {
			http.Error(w, "A server error occurred.  Please contact the administrator.", http.StatusInternalServerError)
			return
		}

		if o.report != nil {
			if said := o.report(body); said != "" && service == "git-receive-pack" {
				gitAnswer(pkt("\x01"+said)+"0000")(w, q)
				return
			}
		}
		next.ServeHTTP(w, q)
	})
}

// TestOnlyWhatIsOffered: a server that takes nothing else works, for one request more in all and a
// listing after each push.
func TestOnlyWhatIsOffered(t *testing.T) {
	var rs requests
	o := newOld()
	b := httpBed(t, gitserver.Options{Middleware: func(next http.Handler) http.Handler { return rs.count(o.serveBefore(next)) }}, wire.DialOptions{})

	list(t, b.remote, "refs/")
	const version, listing, advert = "GET /info/refs", "GET /info/refs", "GET /info/refs"
	if got, want := rs.take(), version+", "+listing; got != want {
		t.Errorf("a listing asked %s, want %s", got, want)
	}

	if ok, err := b.remote.Atomic(t.Context()); ok || err != nil {
		t.Errorf("atomic: %t, %v", ok, err)
	}
	rs.take()

	f := blob("content")
	tr := tree(file("f", f))
	c1 := commit("one", tr)
	c2 := commit("two", tr, c1)

	for i, u := range []wire.RefUpdate{{Name: "refs/heads/a", New: c1.ID}, {Name: "refs/heads/a", Old: c1.ID, New: c2.ID}} {
		if _, err := b.remote.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{u}, Objects: plain(f, tr, []wire.Object{c1, c2}[i])}); err != nil {
			t.Fatal(err)
		}
		if got, want := rs.take(), "POST /git-receive-pack, "+listing; got != want {
			t.Errorf("a push asked %s, want %s", got, want)
		}
	}

	for _, req := range []wire.FetchRequest{
		{Wants: []wire.ID{c2.ID}, Depth: 1, Filter: "blob:none"}, // a tip
		{Wants: []wire.ID{c2.ID}, Haves: []wire.ID{c1.ID}},
		{Wants: []wire.ID{f.ID}}, // no tip
	} {
		r := b.redial()
		list(t, r, "refs/")
		got := fetch(t, r, req)
		if _, has := got[req.Wants[0]]; !has {
			t.Errorf("%v is not among what came", req.Wants)
		}
	}

	other := b.redial()
	list(t, other, "refs/")
	rs.take()
	_, err := other.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/heads/b", New: c2.ID}}, Objects: plain(c2)})
	if got, want := rs.take(), advert+", POST /git-receive-pack, "+listing; got != want || err != nil {
		t.Errorf("the first push asked %s, want %s: %v", got, want, err)
	}
}

// TestForges: what github.com offers, and the forge whose job it is, is known and not asked.
func TestForges(t *testing.T) {
	const job = "GITHUB_SERVER_URL=https://git.example:3000/forge/"
	for url, asks := range map[string]bool{
		"https://github.com/o/r.git":             false,
		"https://github.com.example/o/r.git":     true,
		"https://git.example:3000/forge/o/r.git": false,
		"https://git.example/o/r.git":            true,
	} {
		var asked []string
		server := roundTrip(func(q *http.Request) (*http.Response, error) {
			asked = append(asked, q.Method)
			w := httptest.NewRecorder()
			gitAnswer(map[string]string{"GET": version2, "POST": "0000"}[q.Method])(w, q)
			return w.Result(), nil
		})

		o := wire.DialOptions{HTTPClient: &http.Client{Transport: server}, Env: []string{"GITHUB_SERVER_URL=", job}}
		list(t, dialBed(t, url, "", o).remote, "refs/")
		if slices.Contains(asked, "GET") != asks {
			t.Errorf("%s: asked %q", url, asked)
		}
	}
}

// TestUnconfirmed: a server without atomic pushes that says "ok" and changes nothing, as dulwich
// 0.21 does where a ref no longer has the old value, is not believed.
func TestUnconfirmed(t *testing.T) {
	o := newOld()
	b := httpBed(t, gitserver.Options{Middleware: o.serveBefore}, wire.DialOptions{})
	cs, _, _ := history(t, withoutAtomic{b.remote}, "refs/heads/a", 2)

	o.report = func([]byte) string { return pkt("unpack ok\n") + pkt("ok refs/heads/a\n") + "0000" }
	_, err := b.remote.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/heads/a", Old: cs[0].ID, New: commit("x", tree()).ID}}})
	if !errors.Is(err, wire.ErrUnconfirmed) || !errors.Is(err, wire.ErrLostRace) || !strings.Contains(err.Error(), "it is "+cs[1].ID.String()) {
		t.Errorf("the error is %v", err)
	}
}

// withoutAtomic pushes what a test wants to push at once, if that is one ref.
type withoutAtomic struct{ wire.Remote }

func (r withoutAtomic) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	req.Atomic = false
	return r.Remote.Push(ctx, req)
}

// TestNoThin: a server that can't read objects which build on its own gets whole ones, at once
// where it says no-thin, and else after its refusal, for which these words are go-git's
// (v6.0.0-beta.1).
func TestNoThin(t *testing.T) {
	const refusal = "unpack processing ref-delta at offset 12: apply delta patch: reference delta not found\n"
	base := blob(strings.Repeat("line of a text that is long enough\n", 100))
	next := blob(string(base.Data) + "and one more\n")

	for said, pushes := range map[string]int64{"": 2, " no-thin": 1} {
		var sent atomic.Int64
		o := newOld()
		o.offers["git-receive-pack"] += said
		o.report = func(body []byte) string {
			sent.Add(1)
			if at := bytes.Index(body, []byte("PACK")); at >= 0 && bytes.Contains(body[at:], base.ID[:]) {
				return pkt(refusal) + pkt("ng refs/uwf/x unpacker error\n") + "0000"
			}
			return ""
		}

		b := httpBed(t, gitserver.Options{Middleware: o.serveBefore}, wire.DialOptions{})
		list(t, b.remote, "refs/")
		push(t, withoutAtomic{b.remote}, []wire.RefUpdate{{Name: "refs/uwf/base", New: base.ID}}, plain(base)...)

		sent.Store(0)
		push(t, withoutAtomic{b.remote}, []wire.RefUpdate{{Name: "refs/uwf/x", New: next.ID}}, wire.PackObject{Object: next, Base: &base})
		if sent.Load() != pushes {
			t.Errorf("%q: %d pushes, want %d", said, sent.Load(), pushes)
		}
	}

	t.Run("no delta at all", func(t *testing.T) {
		o := newOld()
		o.report = func([]byte) string {
			return pkt("unpack object store is full\n") + pkt("ng refs/uwf/x unpacker error\n") + "0000"
		}

		b := httpBed(t, gitserver.Options{Middleware: o.serveBefore}, wire.DialOptions{})
		list(t, b.remote, "refs/")
		_, err := b.remote.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/uwf/x", New: base.ID}}, Objects: plain(base)})
		if !errors.Is(err, wire.ErrUnpack) || errors.Is(err, wire.ErrProtected) || !strings.Contains(err.Error(), "object store is full") {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestEmptyReports: git's server ends without a report where a reference-transaction hook says no.
// That is no outage.
func TestEmptyReports(t *testing.T) {
	b := httpBed(t, gitserver.Options{Hooks: true}, wire.DialOptions{})
	hooks := filepath.Join(b.dir, "hooks")
	if err := os.MkdirAll(hooks, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(hooks, "reference-transaction"), "#!/bin/sh\n! grep -q refs/uwf/\n", 0o700)

	o := blob("x")
	told := 0
	p := outage.Policy{Jitter: func() float64 { return 0 }, Tell: func(outage.Wait) { told++ }, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	_, err := wire.PushRefs(t.Context(), b.remote, p, wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/uwf/x", New: o.ID}}, Objects: plain(o)})
	if !errors.Is(err, wire.ErrProtected) || errors.Is(err, wire.ErrUnsure) || told != 2 || !strings.Contains(fmt.Sprint(err), "the server ends without a report") {
		t.Errorf("told %d times, %v", told, err)
	}
}

// TestEmptyReportOnce: one report that is empty, and then an outage, are no refusal.
func TestEmptyReportOnce(t *testing.T) {
	var pushes atomic.Int64
	b := httpBed(t, gitserver.Options{Middleware: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if filepath.Base(q.URL.Path) == "git-receive-pack" {
				switch pushes.Add(1) {
				case 1:
					gitAnswer("")(w, q)
					return
				case 2:
					http.Error(w, "later", http.StatusBadGateway)
					return
				}
			}
			next.ServeHTTP(w, q)
		})
	}}, wire.DialOptions{})

	o := blob("x")
	p := outage.Policy{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	_, err := wire.PushRefs(t.Context(), b.remote, p, wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/uwf/x", New: o.ID}}, Objects: plain(o)})
	if err != nil || pushes.Load() != 3 {
		t.Errorf("%d pushes, %v", pushes.Load(), err)
	}
}

// TestPast: over ssh in version 0 git gives only objects that a ref points to. The others come with
// the history of a ref, which is fetched once. An object that no ref leads to is ErrNotGiven.
func TestPast(t *testing.T) {
	d := bare(t)
	env := sshEnv(t, false)
	home := strings.TrimPrefix(env[1], "HOME=")
	b := dialBed(t, "git@example.org:"+filepath.ToSlash(d), d, wire.DialOptions{Env: env})

	cs, roots, subs := history(t, b.remote, "refs/heads/main", 3)
	history(t, b.remote, "refs/heads/other", 2)
	if l := list(t, b.remote, "refs/heads/main"); !l.WholeOnly {
		t.Error("nobody says that it gives no single objects")
	}

	lost := commit("lost", roots[0], cs[0])
	push(t, b.remote, []wire.RefUpdate{{Name: "refs/heads/lost", New: lost.ID}}, plain(lost)...)
	push(t, b.remote, []wire.RefUpdate{{Name: "refs/heads/lost", Old: lost.ID}})

	// Another job moves the branch when it was just listed.
	next := commit("next", roots[2], cs[2])
	push(t, b.redial(), []wire.RefUpdate{{Name: "refs/heads/next", New: next.ID}}, plain(next)...)
	writeFile(t, filepath.Join(home, "before"), "#!/bin/sh\necho >> $HOME/calls\n[ $(wc -l < $HOME/calls) = 2 ] && git -C "+d+" update-ref refs/heads/main "+next.ID.String()+"\ntrue\n", 0o700)

	for _, want := range []wire.ID{cs[0].ID, roots[1].ID, subs[0].ID} {
		if _, has := fetch(t, b.remote, wire.FetchRequest{Wants: []wire.ID{want}, Depth: 1, Filter: "blob:none"})[want]; !has {
			t.Errorf("%s did not come", want)
		}
	}

	_, err := b.remote.Fetch(t.Context(), wire.FetchRequest{Wants: []wire.ID{lost.ID}, Depth: 1})
	if !errors.Is(err, wire.ErrNotGiven) {
		t.Errorf("what no ref leads to: %v", err)
	}

	if err := os.RemoveAll(d); err != nil {
		t.Fatal(err)
	}
	fetch(t, b.remote, wire.FetchRequest{Wants: []wire.ID{roots[0].ID}}) // it is kept
}

// TestPastEnds: a server that lists a ref and then refuses it is not listed for ever, and an outage
// in the middle is told as one.
func TestPastEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		kind   error
	}{
		"refused": {gitAnswer(pkt("ERR upload-pack: not our ref 1111111")), wire.ErrNotGiven},
		"garbage": {gitAnswer(pkt("NAK\n") + pkt("\x01PUCK"+strings.Repeat("x", 40)) + "0000"), wire.ErrNotGiven},
		"away":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "later", http.StatusServiceUnavailable) }, wire.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			var rs requests
			o := newOld()

			b := httpBed(t, gitserver.Options{Middleware: func(next http.Handler) http.Handler {
				return rs.count(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
					if filepath.Base(q.URL.Path) == "git-upload-pack" {
						tc.answer(w, q)
						return
					}
					o.serveBefore(next).ServeHTTP(w, q)
				}))
			}}, wire.DialOptions{})

			history(t, withoutAtomic{b.remote}, "refs/heads/main", 2)

			rs.take()
			_, err := b.remote.Fetch(t.Context(), wire.FetchRequest{Wants: []wire.ID{blob("none").ID}})
			if !errors.Is(err, tc.kind) || name == "garbage" && !strings.Contains(err.Error(), "bad pack") || strings.Count(rs.take(), "POST") > 6 {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
