package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// proxyTo forwards a request to another server.
func proxyTo(t *testing.T, w http.ResponseWriter, q *http.Request, target string) {
	u := target + q.URL.Path
	if q.URL.RawQuery != "" {
		u += "?" + q.URL.RawQuery
	}
	out, err := http.NewRequestWithContext(q.Context(), q.Method, u, q.Body)
	if err != nil {
		t.Error(err)
		return
	}
	out.Header, out.ContentLength = q.Header, q.ContentLength
	resp, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

// spoiler records the answers of a server while spoil is nil; then it gives the
// last one again and again, each time spoiled.
type spoiler struct {
	mu    sync.Mutex
	last  *httptest.ResponseRecorder
	spoil func(body []byte) (out []byte, hangUp bool)
}

func (s *spoiler) set(f func([]byte) ([]byte, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spoil = f
}

func (s *spoiler) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.Body.Len()
}

func (s *spoiler) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.spoil == nil {
			s.last = httptest.NewRecorder()
			next.ServeHTTP(s.last, q)
		} else {
			_, _ = io.Copy(io.Discard, q.Body)
		}
		body, hangUp := bytes.Clone(s.last.Body.Bytes()), false
		if s.spoil != nil {
			body, hangUp = s.spoil(body)
		}
		maps.Copy(w.Header(), s.last.Header())
		w.WriteHeader(s.last.Code)
		_, _ = w.Write(body)
		if hangUp {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
}

// cuts gives the lengths to which an answer of n bytes is cut: all of them
// where there are few.
func cuts(n int) []int {
	var out []int
	for i := 0; i < n; i += 1 + i/40 {
		out = append(out, i)
	}
	return append(out, n-4, n-1)
}

// TestCutAnswers cuts answers short at many places, by hanging up and by ending
// them as if they were complete. None may pass for a whole one.
func TestCutAnswers(t *testing.T) {
	var sp spoiler
	b := httpBed(t, gitserver.Options{Middleware: sp.wrap}, wire.DialOptions{})
	cs, _, _ := history(t, b.remote, "refs/heads/main", 3)
	for name, op := range map[string]func() error{
		"list": func() error {
			_, err := b.remote.List(t.Context(), "refs/")
			return err
		},
		"fetch": func() error {
			_, err := b.remote.Fetch(t.Context(), wire.FetchRequest{Wants: []wire.ID{cs[2].ID}})
			return err
		},
	} {
		sp.set(nil)
		if err := op(); err != nil {
			t.Fatal(err)
		}
		for _, n := range cuts(sp.size()) {
			for _, hangUp := range []bool{false, true} {
				sp.set(func(body []byte) ([]byte, bool) { return body[:min(n, len(body)-1)], hangUp })
				wantKind(t, op(), wire.ErrUnreachable, fmt.Sprintf("%s, cut after %d bytes, hanging up: %v", name, n, hangUp))
			}
		}
	}
}

// TestCutReports: a push whose report doesn't arrive whole failed, as far as
// anyone can say.
func TestCutReports(t *testing.T) {
	var sp spoiler
	b := httpBed(t, gitserver.Options{Middleware: sp.wrap}, wire.DialOptions{})
	cs, _, _ := history(t, b.remote, "refs/heads/main", 1)
	req := wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/uwf/cut", New: cs[0].ID}}}
	push(t, b.remote, req.Updates)
	for i := range sp.size() - 4 { // without the outermost flush a report is still whole
		sp.set(func(body []byte) ([]byte, bool) { return body[:i], i%2 == 0 })
		_, err := b.remote.Push(t.Context(), req)
		wantKind(t, err, wire.ErrUnreachable, fmt.Sprintf("report cut after %d bytes", i))
		if err != nil && !strings.Contains(err.Error(), "may have happened") {
			t.Errorf("the message does not say that it may have happened: %v", err)
		}
	}
}

// TestFlippedBits changes bytes of answers: what comes is right, or an error.
func TestFlippedBits(t *testing.T) {
	var sp spoiler
	b := httpBed(t, gitserver.Options{Middleware: sp.wrap}, wire.DialOptions{})
	cs, _, _ := history(t, b.remote, "refs/heads/main", 3)
	req := wire.FetchRequest{Wants: []wire.ID{cs[2].ID}}
	whole := fetch(t, b.remote, req)
	sp.set(func(body []byte) ([]byte, bool) { return body, false })
	fetch(t, b.remote, req) // what is repeated is whole
	rnd := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range 400 {
		sp.set(func(body []byte) ([]byte, bool) {
			if len(body) > 0 {
				body[rnd.IntN(len(body))] ^= 1 << rnd.IntN(8)
			}
			return body, false
		})
		got, err := b.remote.Fetch(t.Context(), req)
		if err != nil {
			refused++
			continue
		}
		for id, o := range got {
			if plumbing.ComputeHash(o.Type, o.Data) != id || string(o.Data) != string(whole[id].Data) {
				t.Fatalf("a wrong object came as %s", id)
			}
		}
	}
	if refused < 300 {
		t.Errorf("only %d of 400 spoiled answers were refused", refused)
	}
}

// cutter is a TCP proxy that hangs up after so many bytes towards the server.
func cutter(t *testing.T, target string, after int64) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", u.Host)
			if err != nil {
				_ = in.Close()
				continue
			}
			wg.Go(func() { _, _ = io.Copy(in, out) })
			wg.Go(func() {
				_, _ = io.CopyN(out, in, after)
				_, _ = in.Close(), out.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return strings.Replace(target, u.Host, l.Addr().String(), 1)
}

// TestCutRequests breaks the connection while a push is being sent: the error
// says so, and the server has taken nothing.
func TestCutRequests(t *testing.T) {
	b := httpBed(t, gitserver.Options{}, wire.DialOptions{})
	noise := make([]byte, 1<<20)
	if _, err := rand.NewChaCha8([32]byte{2}).Read(noise); err != nil {
		t.Fatal(err)
	}
	f := blob(string(noise))
	tr := tree(file("f", f))
	c := commit("c", tr)
	for _, after := range []int64{0, 100, 400, 5_000, 500_000, 1_000_000} {
		r := dialBed(t, cutter(t, b.remote.URL(), after), "", wire.DialOptions{}).remote
		_, err := r.Push(t.Context(), wire.PushRequest{
			Updates: []wire.RefUpdate{{Name: "refs/heads/cut", New: c.ID}},
			Objects: plain(f, tr, c),
		})
		wantKind(t, err, wire.ErrUnreachable, fmt.Sprintf("cut after %d bytes", after))
	}
	if l := list(t, b.remote, "refs/"); len(l.Refs) != 0 {
		t.Errorf("the server took %v", l.Refs)
	}
}

// TestHangingServer: silence ends in ErrUnreachable by the remote's own
// patience, wherever it begins.
func TestHangingServer(t *testing.T) {
	const patience = 150 * time.Millisecond
	release := make(chan struct{})
	var once sync.Once
	for name, before := range map[string]string{"at once": "", "in the middle": "003f"} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				_, _ = io.Copy(io.Discard, q.Body)
				if before != "" {
					gitAnswer(before)(w, q)
					_ = http.NewResponseController(w).Flush()
				}
				<-release
			}))
			defer s.Close()
			defer once.Do(func() { close(release) })
			r := dialBed(t, s.URL+"/r.git", "", wire.DialOptions{Timeout: patience}).remote
			patient := dialBed(t, s.URL+"/r.git", "", wire.DialOptions{}).remote
			for op, f := range operations(r) {
				if before != "" && op == "push" {
					continue // "003f" is a packet only in a listing
				}
				err := f(t.Context())
				wantKind(t, err, wire.ErrUnreachable, op)
				if err != nil && !strings.Contains(err.Error(), "no sign of life for 150ms") {
					t.Errorf("%s: %v", op, err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				err = operations(patient)[op](ctx)
				cancel()
				if !errors.Is(err, wire.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s with a deadline: %v", op, err)
				}
			}
		})
		release = make(chan struct{})
		once = sync.Once{}
	}
}

// TestSlowServer: a server that is slow but alive is waited for, by a clock that only
// the server's slowness moves. What it sends prolongs its time, if that is enough.
func TestSlowServer(t *testing.T) {
	line := strings.Repeat("a", 40) + " refs/heads/" + strings.Repeat("b", 1000)
	line = fmt.Sprintf("%04x%s\n", len(line)+5, line)
	for name, tc := range map[string]struct {
		body  string
		step  int           // bytes at a time
		pause time.Duration // before each
		limit string        // that it runs into
	}{
		"silent for almost too long":        {body: strings.Repeat(line, 9), step: len(line), pause: 59 * time.Second},
		"for long, with much to send":       {body: strings.Repeat(line, 48_000), step: 32 << 10, pause: 450 * time.Millisecond},
		"for long, with hardly any to send": {body: strings.Repeat(line, 9000), step: 6 << 10, pause: time.Second, limit: "11m1s"},
		"alive, and no more":                {body: strings.Repeat(line, 9000), step: 1, pause: 59 * time.Second, limit: "10m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := answers(func(q *http.Request) *http.Response {
					h := http.Header{"Content-Type": {"application/x-git-upload-pack-result"}}
					return &http.Response{StatusCode: http.StatusOK, Header: h, Body: io.NopCloser(&dripping{q.Context(), tc.body + "0000", tc.step, tc.pause}), Request: q}
				})
				o := wire.DialOptions{HTTPClient: &http.Client{Transport: server}, Timeout: time.Minute, Total: 10 * time.Minute}
				r := dialBed(t, "http://example.org/r.git", "", o).remote
				_, err := r.List(t.Context(), "refs/")
				if tc.limit != "" {
					wantTooLong(t, err, tc.limit, "slow server")
				} else if err != nil {
					t.Errorf("list: %v", err)
				}
			})
		})
	}
}

// TestSlowPerson: whoever types a password is waited for longer than a silent server, and
// not for ever.
func TestSlowPerson(t *testing.T) {
	for name, tc := range map[string]struct {
		types time.Duration
		says  string // instead of an answer
	}{
		"a token made on a web page": {types: 9 * time.Minute},
		"gone home":                  {types: time.Hour, says: "nobody gave credentials within 10m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := answers(func(q *http.Request) *http.Response {
					if _, pass, _ := q.BasicAuth(); pass != "typed" {
						t.Errorf("the password is %q", pass)
					}
					h := http.Header{"Content-Type": {"application/x-git-upload-pack-result"}}
					return &http.Response{StatusCode: http.StatusOK, Header: h, Body: io.NopCloser(strings.NewReader("0000")), Request: q}
				})
				o := wire.DialOptions{HTTPClient: &http.Client{Transport: server}, Timeout: time.Minute, Total: 10 * time.Minute, BasicAuth: func(ctx context.Context) (string, string, error) {
					select {
					case <-ctx.Done():
						return "", "", context.Cause(ctx)
					case <-time.After(tc.types):
						return "alice", "typed", nil
					}
				}}
				_, err := dialBed(t, "http://example.org/r.git", "", o).remote.List(t.Context(), "refs/")
				switch {
				case tc.says == "" && err != nil:
					t.Errorf("list: %v", err)
				case tc.says != "":
					if wantKind(t, err, wire.ErrDenied, name); err == nil || !strings.Contains(err.Error(), tc.says) {
						t.Errorf("list: %v", err)
					}
				}
			})
		})
	}
}

// wantTooLong checks that an error says who took too long, and what to do.
func wantTooLong(t *testing.T, err error, limit, what string) {
	t.Helper()
	wantKind(t, err, wire.ErrUnreachable, what)
	if !errors.Is(err, wire.ErrTooLong) || errors.Is(err, context.Canceled) {
		t.Errorf("%s: %v is not ErrTooLong alone", what, err)
		return
	}
	for _, part := range []string{"still not done after " + limit, "run it again", "who runs"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %q is not in: %v", what, part, err)
		}
	}
}

// answers is a server of version 2, for its clients.
type answers func(*http.Request) *http.Response

func (a answers) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method != http.MethodGet {
		return a(q), nil
	}
	w := httptest.NewRecorder()
	gitAnswer(version2)(w, q)
	return w.Result(), nil
}

// version2 is what a server of version 2 says when it is asked for its version.
const version2 = "001e# service=git-upload-pack\n0000000eversion 2\n0000"

// dripping gives some bytes after each pause.
type dripping struct {
	ctx   context.Context
	left  string
	step  int
	pause time.Duration
}

func (d *dripping) Read(b []byte) (int, error) {
	if d.left == "" {
		return 0, io.EOF
	}
	select {
	case <-time.After(d.pause):
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
	n := copy(b, d.left[:min(d.step, len(d.left))])
	d.left = d.left[n:]
	return n, nil
}

// operations are all that can be asked of a remote.
func operations(r wire.Remote) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"list": func(ctx context.Context) error { _, err := r.List(ctx, "refs/"); return err },
		"fetch": func(ctx context.Context) error {
			_, err := r.Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{blob("x").ID}})
			return err
		},
		"push":   func(ctx context.Context) error { _, err := r.Push(ctx, creation()); return err },
		"atomic": func(ctx context.Context) error { _, err := r.Atomic(ctx); return err },
	}
}

// talk is how a server goes on for ever without coming to anything: the beginning of
// its answer, and what it repeats.
var talk = map[string][2]string{
	"list":   {"", pkt(strings.Repeat("a", 40) + " refs/heads/main\n")},
	"fetch":  {pkt("packfile\n"), pkt("\x02Counting objects: 99%\r")},
	"push":   {"", pkt("\x02Running hooks\r")},
	"atomic": {"", pkt(strings.Repeat("a", 40) + " refs/heads/main\n")},
}

func pkt(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }

// TestTalkingServer: a server that talks for ever is hung up on, whatever it is
// asked, and the error names it without credentials.
func TestTalkingServer(t *testing.T) {
	const limit = 100 * time.Millisecond
	for op, words := range talk {
		t.Run(op, func(t *testing.T) {
			hungUp := make(chan struct{})
			s := httptest.NewServer(knownServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				defer close(hungUp)
				_, _ = io.Copy(io.Discard, q.Body)
				gitAnswer(words[0])(w, q)
				flush := http.NewResponseController(w).Flush
				for flush() == nil { // until nobody listens any more
					if _, err := io.WriteString(w, words[1]); err != nil {
						return
					}
					time.Sleep(5 * time.Millisecond) // so that it is time that ends it, not the amount
				}
			})))
			defer s.Close()
			secret := "s3c" + "ret"
			r := dialBed(t, strings.Replace(s.URL, "://", "://user:"+secret+"@", 1)+"/r.git", "", wire.DialOptions{Total: limit}).remote
			err := operations(r)[op](t.Context())
			wantTooLong(t, err, "100ms", op)
			if text := fmt.Sprint(err); strings.Contains(text, secret) || !strings.Contains(text, s.URL+"/r.git") {
				t.Errorf("the message is %s", text)
			}
			if op == "push" && !strings.Contains(fmt.Sprint(err), "may have happened") {
				t.Errorf("it doesn't say that the push may have happened: %v", err)
			}
			<-hungUp
		})
	}
}

// TestDeadlineBeforeTotal: a deadline of the caller's ends a request before its time.
func TestDeadlineBeforeTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := answers(func(q *http.Request) *http.Response {
			h := http.Header{"Content-Type": {"application/x-git-upload-pack-result"}}
			return &http.Response{StatusCode: http.StatusOK, Header: h, Body: io.NopCloser(&dripping{q.Context(), pkt(strings.Repeat("x", 1<<10)), 1, time.Second}), Request: q}
		})
		r := dialBed(t, "http://example.org/r.git", "", wire.DialOptions{HTTPClient: &http.Client{Transport: server}}).remote
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := r.List(ctx, "refs/")
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, wire.ErrTooLong) || time.Since(began) > time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// TestUnreachable: nobody is there.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := dialBed(t, "http://"+addr+"/r.git", "", wire.DialOptions{}).remote
	_, err = r.List(t.Context(), "refs/")
	wantKind(t, err, wire.ErrUnreachable, "closed port")
}
