package processes

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/united-workforce/uwf/internal/testmode"
)

// awayTime is how long a front is away, by the real clock.
const awayTime = 3 * time.Second

// front is what clients see of a lab's server: it is away for awayTime from a request on.
type front struct {
	next  http.Handler
	from  func(*http.Request) bool
	fault http.Handler // what it says meanwhile; nil: nobody listens
	addr  string

	mu     sync.Mutex
	began  time.Time // of the time in which it is away; zero: it has not come
	server *http.Server
	back   sync.WaitGroup
}

// newFront serves a lab's repository at an address of its own.
func newFront(l *lab, from func(*http.Request) bool, fault http.Handler) *front {
	l.Helper()
	target, err := url.Parse(l.url)
	l.check(err)
	f := &front{next: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host}), from: from, fault: fault}
	// Nobody else listens there meanwhile.
	at, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		l.Skip(err)
	}
	f.addr = at.Addr().String()
	f.listen(at)
	l.Cleanup(f.close)
	return f
}

func (f *front) listen(at net.Listener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.server = &http.Server{Handler: f, ReadHeaderTimeout: time.Minute}
	go func(s *http.Server) { _ = s.Serve(at) }(f.server) // ends by Close
}

// ServeHTTP passes a request on, or doesn't.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	if f.began.IsZero() && f.from(r) {
		f.began = time.Now()
		if f.fault == nil {
			f.back.Add(1)
			go f.leave(f.server)
		}
	}
	away := !f.began.IsZero() && time.Since(f.began) < awayTime
	f.mu.Unlock()
	switch {
	case !away:
		f.next.ServeHTTP(w, r)
	case f.fault == nil:
		hangUp(w)
	default:
		f.fault.ServeHTTP(w, r)
	}
}

// leave has nobody listen for a while.
func (f *front) leave(s *http.Server) {
	defer f.back.Done()
	_ = s.Close()
	time.Sleep(awayTime)
	for {
		at, err := net.Listen("tcp", f.addr)
		if err == nil {
			f.listen(at)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (f *front) close() {
	f.back.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.server.Close()
}

// wasAway reports whether the time has come in which it is away.
func (f *front) wasAway() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.began.IsZero()
}

// nthPush is the n-th push of the requests that it is asked about.
func nthPush(n int) func(*http.Request) bool {
	return func(r *http.Request) bool {
		if isPush(r) {
			n--
		}
		return isPush(r) && n == 0
	}
}

// TestAwayForSeconds has a remote be away for three seconds of the real clock, from each of
// the requests of a step on that matter: the step says what it waits for and is done, and its
// agent runs once.
func TestAwayForSeconds(t *testing.T) {
	t.Parallel()
	limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "1")
		answer(http.StatusTooManyRequests, "text/plain", "Slow down.\n")(nil).ServeHTTP(w, r)
	})
	later := answer(http.StatusServiceUnavailable, "text/plain", "Later.\n")(nil)
	first := func(*http.Request) bool { return true }
	claim, commit := 1, 2
	type row struct {
		name  string
		from  func(*http.Request) bool
		fault http.Handler
		says  string
	}
	for _, tt := range testmode.Some(4, []row{
		{"503 from the commit on", nthPush(commit), later, "503"},
		{"429 from the commit on", nthPush(commit), limited, "429"},
		{"refused from the commit on", nthPush(commit), nil, "unreachable"},
		{"503 from the first read on", first, later, "503"},
		{"refused from the first read on", first, nil, "unreachable"},
		{"429 from the first read on", first, limited, "429"},
		{"503 from the claim on", nthPush(claim), later, "503"},
		{"refused from the claim on", nthPush(claim), nil, "unreachable"},
		{"429 from the claim on", nthPush(claim), limited, "429"},
	}...) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, runs := newLoopLab(t, 3, nil)
			m := l.machine("a")
			id := m.startThread()
			f := newFront(l, tt.from, tt.fault)
			m.git(m.clone, "remote", "set-url", "origin", "http://"+f.addr+"/r.git")
			m.step(nil, id).ends(0).says("waiting: ", tt.says, "; trying again in ")
			if !f.wasAway() {
				t.Error("the remote was never away")
			}
			m.git(m.clone, "remote", "set-url", "origin", l.url)
			if steps, ran := len(m.steps(id)), m.lines(runs); steps != 1 || ran != 1 {
				t.Errorf("%d steps came of it, and %d agents were run", steps, ran)
			}
			m.sound()
		})
	}
}
