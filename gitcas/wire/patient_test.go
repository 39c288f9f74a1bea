package wire_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/outage"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestOutages: what passes by itself is told from what does not, with how long the server
// wants to be left alone.
func TestOutages(t *testing.T) {
	closed := func(w http.ResponseWriter) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.(*net.TCPConn).SetLinger(0) // reset
			_ = conn.Close()
		}
	}
	status := func(code int, after string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(code)
		}
	}
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter)
		outage bool
		after  time.Duration
	}{
		"408":                   {status(408, ""), true, 0},
		"429":                   {status(429, ""), true, 0},
		"429 for half a minute": {status(429, "30"), true, 30 * time.Second},
		"500":                   {status(500, ""), true, 0},
		"502":                   {status(502, ""), true, 0},
		"503 for a minute":      {status(503, "60"), true, time.Minute},
		"504":                   {status(504, ""), true, 0},
		"reset":                 {closed, true, 0},
		"half a reply": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			w.Header().Set("Content-Length", "4000")
			_, _ = w.Write([]byte("0032"))
		}, true, 0},
		"403 for a second": {status(403, "1"), true, time.Second},
		"401":              {status(401, ""), false, 0},
		"403":              {status(403, ""), false, 0},
		"404":              {status(404, ""), false, 0},
		"501":              {status(501, ""), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tc.answer(w) }))
			defer srv.Close()
			_, err := dialURL(t, srv.URL+"/r.git").List(t.Context(), "refs/")
			if after, ok := wire.IsOutage(err); ok != tc.outage || after != tc.after {
				t.Errorf("an outage: %t, for %s; want %t, %s: %v", ok, after, tc.outage, tc.after, err)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		srv := httptest.NewServer(http.NotFoundHandler())
		srv.Close()
		_, err := dialURL(t, srv.URL+"/r.git").List(t.Context(), "refs/")
		if _, ok := wire.IsOutage(err); !ok {
			t.Errorf("no outage: %v", err)
		}
	})
	t.Run("not the server that is meant", func(t *testing.T) {
		srv := httptest.NewTLSServer(http.NotFoundHandler())
		defer srv.Close()
		srv.Config.ErrorLog = nil
		_, err := dialURL(t, srv.URL+"/r.git").List(t.Context(), "refs/")
		if _, ok := wire.IsOutage(err); ok || !errors.Is(err, wire.ErrUnreachable) {
			t.Errorf("an outage: %v", err)
		}
	})
	t.Run("ended by the caller", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := dialURL(t, "http://127.0.0.1:1/r.git").List(ctx, "refs/")
		if _, ok := wire.IsOutage(err); ok {
			t.Errorf("an outage: %v", err)
		}
	})
}

func dialURL(t *testing.T, url string) wire.Remote {
	t.Helper()
	r, err := wire.Dial(url, wire.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestNoSuchHost: an address that leads nowhere is not waited for.
func TestNoSuchHost(t *testing.T) {
	client := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "nowhere.example", IsNotFound: true}}
	})}
	r, err := wire.Dial("https://nowhere.example/r.git", wire.DialOptions{HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.List(t.Context(), "refs/")
	if _, ok := wire.IsOutage(err); ok || !errors.Is(err, wire.ErrUnreachable) {
		t.Errorf("an outage: %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// absent is a remote whose first requests get no answer.
type absent struct {
	*wiretest.Memory
	left   int
	taken  bool // a push is taken all the same
	pushes int
}

func (a *absent) away() error {
	if a.left == 0 {
		return nil
	}
	a.left--
	return &wire.RemoteError{Op: "request", Kind: wire.ErrUnreachable, RetryAfter: 3 * time.Second}
}

func (a *absent) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	if err := a.away(); err != nil {
		return wire.Listing{}, err
	}
	return a.Memory.List(ctx, prefixes...)
}

func (a *absent) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	a.pushes++
	err := a.away()
	if err != nil && !a.taken {
		return time.Time{}, err
	}
	at, perr := a.Memory.Push(ctx, req)
	return at, errors.Join(err, perr)
}

// TestPatient: a read is made until it is answered, as often as the policy lets it.
func TestPatient(t *testing.T) {
	now := time.Unix(1000, 0)
	var told []string
	p := outage.Policy{
		Now: func() time.Time { return now }, Jitter: func() float64 { return 0 },
		Sleep: func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil },
		Tell:  func(w outage.Wait) { told = append(told, w.For.String()) },
	}
	mem := wiretest.NewMemory(wiretest.MemoryOptions{})
	if _, err := wire.Patient(&absent{Memory: mem, left: 3}, p).List(t.Context(), "refs/"); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(told); got != "[3s 4s 8s]" {
		t.Errorf("waits of %s were told", got)
	}
	if _, err := wire.Patient(&absent{Memory: mem, left: 1000}, p).List(t.Context(), "refs/"); !errors.Is(err, wire.ErrUnreachable) {
		t.Errorf("it is waited for ever: %v", err)
	}
}

// TestPushRefs: a push of refs that was not answered is made again only where it was not
// taken.
func TestPushRefs(t *testing.T) {
	p := outage.Policy{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	o := wire.NewObject(3, []byte("content"))
	req := wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/x/y", New: o.ID}}, Objects: []wire.PackObject{{Object: o}}}
	for name, tc := range map[string]struct {
		r      absent
		before wire.ID
		pushes int
		err    error
	}{
		"answered":  {absent{}, wire.ZeroID, 1, nil},
		"not taken": {absent{left: 1}, wire.ZeroID, 2, nil},
		"taken":     {absent{left: 1, taken: true}, wire.ZeroID, 1, nil},
		"moved":     {absent{left: 1}, wire.NewObject(3, []byte("other")).ID, 2, wire.ErrLostRace},
	} {
		t.Run(name, func(t *testing.T) {
			tc.r.Memory = wiretest.NewMemory(wiretest.MemoryOptions{})
			tc.r.SetRef("refs/x/y", tc.before)
			_, err := wire.PushRefs(t.Context(), &tc.r, p, req)
			if !errors.Is(err, tc.err) || tc.r.pushes != tc.pushes {
				t.Errorf("%d pushes, %v; want %d, %v", tc.r.pushes, err, tc.pushes, tc.err)
			}
		})
	}
	p.Until = time.Unix(1, 0)
	r := &absent{Memory: wiretest.NewMemory(wiretest.MemoryOptions{}), left: 10}
	if _, err := wire.PushRefs(t.Context(), r, p, req); !errors.Is(err, wire.ErrUnsure) {
		t.Errorf("given up with %v", err)
	}
}
