package processes

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/internal/testmode"
)

// quiet is how long a silent remote is waited for in these tests.
const quiet = clitest.EnvQuiet + "=5s"

// hasty is for remotes that never come back.
const hasty = clitest.EnvHasty + "=1"

// answer is a remote that answers with nothing but this.
func answer(code int, contentType, body string) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // a client that sends gets to read the answer
			w.Header().Set("Content-Type", contentType)
			if code == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		})
	}
}

const page = "<!doctype html><title>Sign in</title><p>Welcome to the captive portal.\n"

// silent is a remote that takes a request and never answers.
func silent(http.Handler) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection goes unseen
		<-r.Context().Done()
	})
}

// cut is a remote that breaks off in the middle of what it is sent.
func cut(http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, 40)
		hangUp(w)
	})
}

// unanswering is a remote that does what it is asked and breaks off instead of
// saying so.
func unanswering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		hangUp(w)
	})
}

// babbling is a remote that does what it is asked and answers with a page.
func babbling(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		answer(http.StatusOK, "text/html", page)(nil).ServeHTTP(w, r)
	})
}

func hangUp(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = c.Close()
	}
}

// onPush applies a fault to the n-th push, counted from 1, and to so many after
// it.
func onPush(n, times int64, fault func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	var seen atomic.Int64
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isPush(r) {
				if i := seen.Add(1); i >= n && i < n+times {
					fault(next).ServeHTTP(w, r)
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// then applies a second fault where the first one lets a request pass.
func then(first, second func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler { return first(second(next)) }
}

const always = 1 << 40

// TestBadRemote: a remote that can't be worked with ends a step before any agent
// is run, with a message that says what to do, and nothing moves.
func TestBadRemote(t *testing.T) {
	t.Parallel()
	l, runs := newLoopLab(t, 3, nil)
	l.inside = true
	m := l.machine("a")
	id := m.startThread()
	head := m.head(id)
	type row struct {
		name  string
		fault func(http.Handler) http.Handler
		want  []string
	}
	for _, tt := range testmode.Some(4, []row{
		{"403", answer(403, "text/plain", "You may not.\n"), []string{"access denied", "check your credentials"}},
		{"401", answer(401, "text/plain", "Who are you?\n"), []string{"access denied", "check your credentials"}},
		{"404", answer(404, "text/plain", "Not here.\n"), []string{"not found", "state.remote"}},
		{"500", answer(500, "text/plain", "Oops.\n"), []string{"500", "run it again"}},
		{"a page", answer(200, "text/html", page), []string{"unreadable answer", "state.remote"}},
		{"silence", silent, []string{"unreachable", "check the network"}},
		{"a cut connection", cut, []string{"unreachable", "check the network"}},
		{"403 for pushes", onPush(1, always, answer(403, "text/plain", "Read only.\n")), []string{"access denied", "that they may push"}},
		{"401 for pushes", onPush(1, always, answer(401, "text/plain", "Read only.\n")), []string{"access denied", "that they may push"}},
		{"a page for pushes", onPush(1, always, answer(200, "text/html", page)), []string{"unreadable answer", "state.remote"}},
		{"silence, then a cut connection, for pushes", then(onPush(1, 1, silent), onPush(1, always, cut)), []string{"unreachable", "check the network"}},
		{"a cut connection for pushes", onPush(1, always, cut), []string{"unreachable", "check the network"}},
	}...) {
		t.Run(tt.name, func(t *testing.T) {
			m := m.on(t)
			before := m.bare("for-each-ref")
			l.wrap.Store(&tt.fault)
			j := m.step([]string{quiet, hasty}, id).ends(5)
			l.wrap.Store(nil)
			j.says(tt.want...)
			if strings.Contains(j.errs.String(), page[:9]) {
				t.Errorf("%s\nit repeats the page", j)
			}
			if after := m.bare("for-each-ref"); after != before || m.head(id) != head {
				t.Errorf("refs before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
	t.Run("gone", func(t *testing.T) {
		m := m.on(t)
		nobody, err := net.Listen("tcp", "127.0.0.1:0")
		m.check(err)
		m.check(nobody.Close())
		m.git(m.clone, "remote", "set-url", "origin", "http://"+nobody.Addr().String()+"/r.git")
		defer m.git(m.clone, "remote", "set-url", "origin", m.url)
		for _, args := range [][]string{{"thread", "step", id}, {"thread", "list"}, {"run", "flow", "-p", "x", "--agent", "uwf agent mock '" + m.script + "'"}} {
			m.start([]string{hasty}, args...).ends(5).says("unreachable", "connection refused", "check the network")
		}
	})
	if n := l.lines(runs); n != 0 {
		t.Errorf("%d agents were run", n)
	}
	m.step(nil, id).ends(0)
	m.sound()
}

// says checks what a job wrote on stderr.
func (j *job) says(want ...string) {
	j.m.Helper()
	for _, w := range want {
		if !strings.Contains(j.errs.String(), w) {
			j.m.Errorf("%s\nthe message does not say %q", j, w)
		}
	}
	if strings.Contains(j.errs.String(), "goroutine ") {
		j.m.Errorf("%s\nit panicked", j)
	}
}

// TestBrokenPush breaks one of the two pushes of a step, the claim or the commit,
// once: the step is done, and done once.
func TestBrokenPush(t *testing.T) {
	t.Parallel()
	l, runs := newLoopLab(t, 100, nil)
	l.inside = true
	m := l.machine("a")
	id := m.startThread()
	later := answer(503, "text/plain", "Later.\n")
	type row struct {
		name  string
		push  int64
		fault func(http.Handler) http.Handler
	}
	for _, tt := range testmode.Some(5, []row{
		{"claim cut", 1, cut}, {"claim unanswered", 1, unanswering}, {"claim silent", 1, silent}, {"claim out of service", 1, later},
		{"commit cut", 2, cut}, {"commit unanswered", 2, unanswering}, {"commit silent", 2, silent}, {"commit out of service", 2, later},
	}...) {
		t.Run(tt.name, func(t *testing.T) {
			m := m.on(t)
			before, ran := len(m.steps(id)), m.lines(runs)
			fault := onPush(tt.push, 1, tt.fault)
			l.wrap.Store(&fault)
			m.step([]string{quiet}, id).ends(0)
			l.wrap.Store(nil)
			if now := len(m.steps(id)); now != before+1 {
				t.Errorf("%d steps came of it", now-before)
			}
			if now := m.lines(runs); now != ran+1 {
				t.Errorf("%d agents were run", now-ran)
			}
		})
	}
	m.sound()
}

// TestRefusedCommit refuses the commit of a step for good. What the agent did is
// kept where the remote takes anything at all; where it does not, the message
// says where it is, and the next step brings it in.
func TestRefusedCommit(t *testing.T) {
	t.Parallel()
	l, runs := newLoopLab(t, 100, nil)
	l.inside = true
	m := l.machine("a")
	denied := answer(403, "text/plain", "You may not.\n")
	t.Run("once", func(t *testing.T) {
		f := m.on(t).failing()
		fault := onPush(2, 1, denied)
		l.wrap.Store(&fault)
		j := f.step([]string{quiet}, f.id)
		<-j.done
		l.wrap.Store(nil)
		f.fails(j, "access denied", "check your credentials")
		m.on(t).kept(f.id, "parts/1.txt", "part 1")
	})
	t.Run("a page once, after it was done", func(t *testing.T) {
		f := m.on(t).failing()
		fault := onPush(2, 1, babbling)
		l.wrap.Store(&fault)
		f.step([]string{quiet}, f.id).ends(0)
		l.wrap.Store(nil)
		if n := len(f.steps(f.id)); n != 1 {
			t.Errorf("%d steps came of it", n)
		}
	})
	t.Run("always", func(t *testing.T) {
		f := m.on(t).failing()
		fault := onPush(2, always, denied)
		l.wrap.Store(&fault)
		// A process of its own: that it is over is seen by its pid.
		j := f.step([]string{quiet, clitest.EnvKill + "=nowhere"}, f.id).ends(1)
		l.wrap.Store(nil)
		j.says("access denied", "could not be pushed; it is in "+m.home, "check your credentials", "thread step "+f.id)
		if f.lab.head(f.id) != f.head {
			t.Error("the head moved")
		}
		ran := m.lines(runs)
		f.step([]string{quiet}, f.id).ends(0)
		if n := len(f.steps(f.id)); n != 1 || m.lines(runs) != ran {
			t.Errorf("%d steps came of it, and %d more agents", n, m.lines(runs)-ran)
		}
	})
}
