package wire_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// requests counts what a server is asked.
type requests struct {
	mu  sync.Mutex
	log []string
}

func (r *requests) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.log = append(r.log, q.Method+" "+q.URL.Path[strings.Index(q.URL.Path[1:], "/")+1:])
		r.mu.Unlock()
		next.ServeHTTP(w, q)
	})
}

func (r *requests) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := strings.Join(r.log, ", ")
	r.log = nil
	return s
}

func without(header string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		q.Header.Del(header)
		next.ServeHTTP(w, q)
	})
}

// TestRoundTrips guards what makes a job cheap: one request an operation, and
// one for the server's version.
func TestRoundTrips(t *testing.T) {
	var rs requests
	b := httpBed(t, gitserver.Options{Middleware: rs.count}, wire.DialOptions{})
	cs, _, _ := history(t, b.remote, "refs/heads/main", 2)
	list(t, b.remote, "refs/heads/")
	fetch(t, b.remote, wire.FetchRequest{Wants: []wire.ID{cs[1].ID}, Depth: 1, Filter: "tree:2"})
	want := "GET /info/refs, POST /git-receive-pack, POST /git-upload-pack, POST /git-upload-pack"
	if got := rs.take(); got != want {
		t.Errorf("requests: %s\nwant:     %s", got, want)
	}
	for range 2 {
		if ok, err := b.remote.Atomic(t.Context()); err != nil || !ok {
			t.Errorf("atomic: %v, %v", ok, err)
		}
	}
	if got := rs.take(); got != "GET /info/refs" {
		t.Errorf("Atomic asked: %s", got)
	}
	claim, _, _ := history(t, b.remote, "refs/uwf/claim", 1)
	list(t, b.remote, "refs/uwf/")
	rs.take()
	if _, err := b.remote.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/uwf/claim", Old: claim[0].ID}}}); err != nil {
		t.Error(err)
	}
	if got := rs.take(); got != "POST /git-receive-pack" {
		t.Errorf("the deletion of a ref that was listed asked: %s", got)
	}
}

// TestOldServer: a server that only knows version 0 costs one refused request,
// then never again.
func TestOldServer(t *testing.T) {
	var rs requests
	b := httpBed(t, gitserver.Options{
		Middleware: func(h http.Handler) http.Handler { return rs.count(without("Git-Protocol", h)) },
	}, wire.DialOptions{})
	if l := list(t, b.remote, "refs/", "HEAD"); len(l.Refs) != 0 {
		t.Errorf("listed %v", l.Refs)
	}
	cs, roots, _ := history(t, b.remote, "refs/heads/main", 3)
	rs.take()
	l := list(t, b.remote, "refs/heads/", "HEAD")
	if l.Head != "refs/heads/main" || !maps.Equal(l.Refs, map[string]wire.ID{"refs/heads/main": cs[2].ID}) {
		t.Errorf("listed %v, HEAD %q", l.Refs, l.Head)
	}
	got := fetch(t, b.remote, wire.FetchRequest{Wants: []wire.ID{cs[2].ID}, Depth: 1, Filter: "tree:2"})
	if _, ok := got[roots[2].ID]; !ok || len(got) != 5 {
		t.Errorf("%d objects came, the root among them: %v", len(got), ok)
	}
	if log := rs.take(); log != "GET /info/refs, POST /git-upload-pack" {
		t.Errorf("requests: %s", log)
	}
	other := b.redial() // fetches first, without having listed
	fetch(t, other, wire.FetchRequest{Wants: []wire.ID{cs[2].ID}, Depth: 1, Filter: "tree:2"})
	rs.take()
	fetch(t, other, wire.FetchRequest{Wants: []wire.ID{cs[2].ID}, Haves: []wire.ID{cs[0].ID}})
	if log := rs.take(); log != "POST /git-upload-pack" {
		t.Errorf("requests: %s", log)
	}
	_, err := other.Fetch(t.Context(), wire.FetchRequest{Wants: []wire.ID{blob("none").ID}, Depth: 1})
	wantKind(t, err, wire.ErrNotFound, "missing want in version 0")
}

func TestFilterOff(t *testing.T) {
	for _, listFirst := range []bool{true, false} {
		var rs requests
		b := httpBed(t, gitserver.Options{
			Middleware: rs.count, Config: map[string]string{"uploadpack.allowFilter": "false"},
		}, wire.DialOptions{})
		cs, _, _ := history(t, b.redial(), "refs/heads/main", 2)
		if listFirst {
			list(t, b.remote, "refs/")
		}
		req := wire.FetchRequest{Wants: []wire.ID{cs[1].ID}, Depth: 1, Filter: "blob:none"}
		if got := fetch(t, b.remote, req); len(got) != 5 {
			t.Errorf("%d objects came", len(got))
		}
		rs.take()
		fetch(t, b.remote, req)
		if log := rs.take(); log != "POST /git-upload-pack" {
			t.Errorf("the second fetch asked: %s", log)
		}
	}
}

// TestNoAtomic: a server without atomic pushes is known by its advertisement,
// and by taking a push apart.
func TestNoAtomic(t *testing.T) {
	type remoteOf func(t *testing.T) (wire.Remote, wire.Remote)
	for name, mk := range map[string]remoteOf{
		"http": func(t *testing.T) (wire.Remote, wire.Remote) {
			b := httpBed(t, gitserver.Options{Config: map[string]string{"receive.advertiseAtomic": "false"}}, wire.DialOptions{})
			return b.remote, b.redial()
		},
		"memory": func(*testing.T) (wire.Remote, wire.Remote) {
			m := wiretest.NewMemory(wiretest.MemoryOptions{})
			return m, m
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, other := mk(t)
			if ok, err := r.Atomic(t.Context()); err != nil || ok {
				t.Fatalf("atomic: %v, %v", ok, err)
			}
			tr := tree()
			c := commit("c", tr)
			req := wire.PushRequest{
				Updates: []wire.RefUpdate{{Name: "refs/heads/a", New: c.ID}, {Name: "refs/heads/b", Old: c.ID, New: c.ID}},
				Objects: plain(tr, c),
			}
			req.Atomic = true
			_, err := r.Push(t.Context(), req)
			wantKind(t, err, wire.ErrNotAtomic, "atomic push")
			if l := list(t, r, "refs/"); len(l.Refs) != 0 {
				t.Fatalf("it left %v", l.Refs)
			}
			req.Atomic = name == "http" // one that doesn't know yet
			_, err = other.Push(t.Context(), req)
			var part *wire.PartialError
			if !errors.As(err, &part) || !errors.Is(err, wire.ErrLostRace) {
				t.Fatalf("the error is %v", err)
			}
			req.Atomic = true
			_, err = other.Push(t.Context(), req)
			wantKind(t, err, wire.ErrNotAtomic, "atomic push, once known")
		})
	}
}

// TestAdvertisementNeeded: where a direct push is refused, the advertisement is
// read, and then the push is taken.
func TestAdvertisementNeeded(t *testing.T) {
	var rs requests
	var mu sync.Mutex
	asked := false
	b := httpBed(t, gitserver.Options{Middleware: func(h http.Handler) http.Handler {
		return rs.count(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			mu.Lock()
			ok := asked || q.URL.Query().Get("service") == "git-receive-pack"
			asked = ok
			mu.Unlock()
			if !ok && q.Method == http.MethodPost {
				http.Error(w, "read the advertisement first", http.StatusBadRequest)
				return
			}
			h.ServeHTTP(w, q)
		}))
	}}, wire.DialOptions{})
	tr := tree()
	c := commit("c", tr)
	push(t, b.remote, []wire.RefUpdate{{Name: "refs/heads/a", New: c.ID}}, plain(tr, c)...)
	if log := rs.take(); log != "GET /info/refs, POST /git-receive-pack, GET /info/refs, POST /git-receive-pack" {
		t.Errorf("requests: %s", log)
	}
}

// TestServerRefusals pushes to servers whose hooks refuse.
func TestServerRefusals(t *testing.T) {
	tr := tree()
	c := commit("c", tr)
	for name, tc := range map[string]struct {
		hook, script string
		kind         error
		ref, detail  string
	}{
		"pre-receive": {"pre-receive", "echo 'no pushes on Fridays' >&2; exit 1", wire.ErrProtected, "refs/heads/a", "no pushes on Fridays"},
		"update":      {"update", "case $1 in */b) echo 'b is closed' >&2; exit 1;; esac", wire.ErrProtected, "refs/heads/b", "b is closed"},
		"secret": {
			"pre-receive",
			"printf 'error: GH013: Repository rule violations found for refs/heads/a.\\n\\n- GITHUB PUSH PROTECTION\\n  - Push cannot contain secrets\\n' >&2; exit 1",
			wire.ErrSecretRefused, "refs/heads/a", "Push cannot contain secrets",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := httpBed(t, gitserver.Options{Hooks: true}, wire.DialOptions{})
			hooks := filepath.Join(b.dir, "hooks")
			if err := os.MkdirAll(hooks, 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(hooks, tc.hook), "#!/bin/sh\n"+tc.script+"\n", 0o700)
			_, err := b.remote.Push(t.Context(), wire.PushRequest{
				Atomic:  true,
				Updates: []wire.RefUpdate{{Name: "refs/heads/a", New: c.ID}, {Name: "refs/heads/b", New: c.ID}},
				Objects: plain(tr, c),
			})
			wantKind(t, err, tc.kind, "push")
			var e *wire.RemoteError
			if errors.As(err, &e) && (e.Ref != tc.ref || !strings.Contains(e.Detail, tc.detail)) {
				t.Errorf("ref %q, detail %q", e.Ref, e.Detail)
			}
		})
	}
}

// TestBasicAuth: credentials are sent at once, asked for again after a refusal,
// and in no message.
func TestBasicAuth(t *testing.T) {
	secret := "tok" + "en-for-this-test"
	var asked int
	pass := "wrong-password"
	auth := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			user, pw, ok := q.BasicAuth()
			switch {
			case !ok:
				w.Header().Set("WWW-Authenticate", "Basic")
				w.WriteHeader(http.StatusUnauthorized)
			case user != "x-access-token" || pw != secret:
				http.Error(w, "bad password "+pw, http.StatusUnauthorized)
			case strings.Contains(q.URL.Path, "receive-pack"):
				http.Error(w, "your token "+pw+" may not write", http.StatusForbidden)
			default:
				h.ServeHTTP(w, q)
			}
		})
	}
	var rs requests
	b := httpBed(t, gitserver.Options{Middleware: func(h http.Handler) http.Handler { return rs.count(auth(h)) }}, wire.DialOptions{})
	url := b.remote.URL()
	_, err := b.remote.List(t.Context(), "refs/")
	wantKind(t, err, wire.ErrDenied, "no credentials")

	r := dialBed(t, url, "", wire.DialOptions{BasicAuth: func(context.Context) (string, string, error) {
		asked++
		return "x-access-token", pass, nil
	}}).remote
	check := func(what string, err error, kind error) {
		t.Helper()
		wantKind(t, err, kind, what)
		if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "wrong-password")) {
			t.Errorf("%s: the message holds the password: %v", what, err)
		}
	}
	_, err = r.List(t.Context(), "refs/")
	check("wrong password", err, wire.ErrDenied)
	pass = secret
	rs.take()
	for range 3 {
		list(t, r, "refs/")
	}
	if asked != 2 || strings.Count(rs.take(), "POST") != 3 {
		t.Errorf("credentials were asked for %d times", asked)
	}
	_, err = r.Push(t.Context(), creation())
	check("may not write", err, wire.ErrDenied)

	withUser := strings.Replace(url, "://", "://x-access-token:"+secret+"@", 1)
	r = dialBed(t, withUser, "", wire.DialOptions{}).remote
	list(t, r, "refs/")
	if r.URL() != url {
		t.Errorf("the remote is called %s", r.URL())
	}
	r = dialBed(t, url, "", wire.DialOptions{BasicAuth: func(context.Context) (string, string, error) {
		return "", "", errors.New("the helper failed")
	}}).remote
	_, err = r.List(t.Context(), "refs/")
	check("no credentials to be had", err, wire.ErrDenied)
}

func TestRedirects(t *testing.T) {
	b := httpBed(t, gitserver.Options{}, wire.DialOptions{})
	tr := tree()
	c := commit("c", tr)
	var other requests
	foreign := httptest.NewServer(other.count(http.NotFoundHandler()))
	defer foreign.Close()

	front := func(status int, to string) (wire.Remote, *requests) {
		var rs requests
		target := b.remote.URL()[:strings.LastIndex(b.remote.URL(), "/")]
		s := httptest.NewServer(rs.count(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if rest, ok := strings.CutPrefix(q.URL.Path, "/old/r.git"); ok {
				if q.URL.RawQuery != "" {
					rest += "?" + q.URL.RawQuery
				}
				http.Redirect(w, q, to+rest, status)
				return
			}
			q.URL.Path = strings.TrimPrefix(q.URL.Path, "/new")
			proxyTo(t, w, q, target)
		})))
		t.Cleanup(s.Close)
		return dialBed(t, s.URL+"/old/r.git", "", wire.DialOptions{}).remote, &rs
	}

	r, rs := front(http.StatusMovedPermanently, "/new/r.git")
	push(t, r, []wire.RefUpdate{{Name: "refs/heads/main", New: c.ID}}, plain(tr, c)...)
	rs.take()
	if l := list(t, r, "refs/"); l.Refs["refs/heads/main"] != c.ID {
		t.Errorf("listed %v", l.Refs)
	}
	if log := rs.take(); log != "POST /r.git/git-upload-pack, POST /r.git/git-upload-pack" {
		t.Errorf("where it was and where it is now, it was asked: %s", log)
	}
	r, _ = front(http.StatusTemporaryRedirect, "/new/r.git")
	list(t, r, "refs/")

	r, _ = front(http.StatusFound, foreign.URL+"/new/r.git")
	_, err := r.List(t.Context(), "refs/")
	wantKind(t, err, wire.ErrDenied, "redirected to another host")
	if log := other.take(); log != "" {
		t.Errorf("the other host was asked: %s", log)
	}
	r, _ = front(http.StatusFound, "/login?back=")
	_, err = r.List(t.Context(), "refs/")
	wantKind(t, err, wire.ErrUnreadable, "redirected to a sign-in page")
	r, _ = front(http.StatusFound, "/old/r.git")
	_, err = r.List(t.Context(), "refs/")
	wantKind(t, err, wire.ErrUnreadable, "redirected in circles")
}

// TestStatuses: what servers and the boxes before them answer instead of git.
func TestStatuses(t *testing.T) {
	html := func(w http.ResponseWriter, status int) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, "<html><body>Sign in</body></html>")
	}
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		read   error
		write  error
	}{
		"sign-in page":  {func(w http.ResponseWriter, _ *http.Request) { html(w, 200) }, wire.ErrUnreadable, wire.ErrUnreadable},
		"not found":     {func(w http.ResponseWriter, _ *http.Request) { html(w, 404) }, wire.ErrNotFound, wire.ErrNotFound},
		"gone":          {func(w http.ResponseWriter, _ *http.Request) { html(w, 410) }, wire.ErrNotFound, wire.ErrNotFound},
		"forbidden":     {func(w http.ResponseWriter, _ *http.Request) { html(w, 403) }, wire.ErrDenied, wire.ErrDenied},
		"too many":      {func(w http.ResponseWriter, _ *http.Request) { html(w, 429) }, wire.ErrUnreachable, wire.ErrUnreachable},
		"down":          {func(w http.ResponseWriter, _ *http.Request) { html(w, 502) }, wire.ErrUnreachable, wire.ErrUnreachable},
		"hook's no":     {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "pre-receive hook declined", 500) }, wire.ErrUnreachable, wire.ErrProtected},
		"too large":     {func(w http.ResponseWriter, _ *http.Request) { html(w, 413) }, wire.ErrProtected, wire.ErrProtected},
		"bad request":   {func(w http.ResponseWriter, _ *http.Request) { html(w, 400) }, wire.ErrUnreadable, wire.ErrUnreadable},
		"empty":         {gitAnswer(""), wire.ErrUnreachable, wire.ErrUnreachable},
		"garbage":       {gitAnswer("\x00\x01garbage"), wire.ErrUnreadable, wire.ErrUnreachable},
		"only a flush":  {gitAnswer("0000"), nil, wire.ErrUnreachable},
		"error packet":  {gitAnswer("0032ERR access denied or repository not exported: /"), wire.ErrDenied, wire.ErrDenied},
		"endless lines": {gitAnswer(strings.Repeat("0005x", 100)), wire.ErrUnreadable, wire.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(knownServer(http.HandlerFunc(tc.answer)))
			defer s.Close()
			r := dialBed(t, s.URL+"/r.git", "", wire.DialOptions{}).remote
			_, err := r.List(t.Context(), "refs/")
			if tc.read != nil || err != nil {
				wantKind(t, err, tc.read, "list")
			}
			_, err = r.Fetch(t.Context(), wire.FetchRequest{Wants: []wire.ID{blob("x").ID}, Depth: 1})
			if tc.read != nil {
				wantKind(t, err, tc.read, "fetch")
			} else if err == nil {
				t.Error("the fetch succeeded")
			}
			_, err = r.Push(t.Context(), creation())
			wantKind(t, err, tc.write, "push")
		})
	}
}

func gitAnswer(body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, q *http.Request) {
		kind := "application/x-" + filepath.Base(q.URL.Path) + "-result"
		if q.Method == http.MethodGet {
			kind = "application/x-" + q.URL.Query().Get("service") + "-advertisement"
		}
		w.Header().Set("Content-Type", kind)
		_, _ = fmt.Fprint(w, body)
	}
}

// knownServer says that a server speaks version 2, and leaves the rest to it.
func knownServer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.RawQuery == "service=git-upload-pack" {
			gitAnswer(version2)(w, q)
			return
		}
		next.ServeHTTP(w, q)
	})
}

// TestServerClock: the time comes from the server.
func TestServerClock(t *testing.T) {
	then := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
	b := httpBed(t, gitserver.Options{Middleware: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Date", then.Format(http.TimeFormat))
			h.ServeHTTP(w, q)
		})
	}}, wire.DialOptions{})
	tr := tree()
	c := commit("c", tr)
	at, err := b.remote.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/heads/a", New: c.ID}}, Objects: plain(tr, c)})
	if err != nil || !at.Equal(then) {
		t.Errorf("push: %v, %v", at, err)
	}
	if l := list(t, b.remote, "refs/"); !l.Time.Equal(then) {
		t.Errorf("list: %v", l.Time)
	}
}
