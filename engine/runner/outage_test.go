package runner

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/internal/forgetest"
	"github.com/united-workforce/uwf/internal/outage"
)

// awayForge is the way to a forge that is away for a while from the first request on whose
// path has an ending.
type awayForge struct {
	w      *world
	ending string
	fault  func(*http.Request) (*http.Response, error)
	from   time.Time
}

// RoundTrip makes one request, or doesn't.
func (a *awayForge) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.from.IsZero() && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, a.ending) {
		a.from = a.w.now()
	}
	if !a.from.IsZero() && a.w.now().Before(a.from.Add(5*time.Minute)) {
		return a.fault(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestForgeAway: a forge that is away for five minutes while a job writes its comment, or
// starts the next job, costs that time. The agent runs once, and there is one comment and
// one next job.
func TestForgeAway(t *testing.T) {
	refused := func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	reset := func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	}
	broken := func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusBadGateway, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	limited := func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"30"}}, Body: http.NoBody, Request: r}, nil
	}
	unread := func(r *http.Request) (*http.Response, error) {
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		return nil, errors.Join(syscall.ECONNRESET, res.Body.Close())
	}
	for name, fault := range map[string]func(*http.Request) (*http.Response, error){
		"refused": refused, "reset": reset, "502": broken, "429": limited, "done, not answered": unread,
	} {
		for _, ending := range []string{"/comments", "/dispatches"} {
			t.Run(name+ending, func(t *testing.T) {
				s := forgetest.Start(t, forgetest.Options{})
				s.MustCommit(t, "main", "Begin", map[string]string{".github/workflows/uwf.yml": awayFlow})
				s.SetPermission("owner", "write")
				n := s.OpenIssue("owner", "It breaks", "Please mend it.")
				w := newWorld(t)
				a := aJob{ev: labeled(n)}
				r := w.runner(&a)
				away := &awayForge{w: w, ending: ending, fault: fault}
				token := s.JobToken(forgetest.JobPermissions())
				var err error
				r.Forge, err = forge.New(forge.Options{
					APIURL: s.APIURL, Repository: s.Repository(), Token: func() string { return token }, HTTPClient: &http.Client{Transport: away},
					Outages: outage.Policy{Now: w.now, Sleep: w.sleep},
				})
				w.ok(err)
				_, err = r.Run(t.Context(), a.ev)
				w.ok(err)
				if away.from.IsZero() || fmt.Sprint(w.ran) != "[a]" {
					t.Errorf("away since %s; agents ran as %v", away.from, w.ran)
				}
				comments, err := r.Forge.ListComments(t.Context(), n)
				w.ok(err)
				if len(a.out.warnings) != 0 || len(comments) != 1 || !strings.Contains(comments[0].Body, "**a** | _working …_") {
					t.Errorf("the comments are %v, warned of %q", comments, a.out.warnings)
				}
				if _, e := w.only(); len(s.Dispatches()) == 0 || s.Dispatches()[0].Inputs["head"][:13] != string(e.Head)[:13] {
					t.Errorf("dispatched: %v, warned of %q", s.Dispatches(), a.out.warnings)
				}
			})
		}
	}
}

const awayFlow = `name: uwf
on:
  workflow_dispatch:
    inputs: {thread: {type: string}, head: {type: string}, store: {type: string}, comment: {type: string}, pull-request: {type: string}, rescued: {type: string}}
jobs: {step: {runs-on: ubuntu-latest, steps: [{run: "true"}]}}
`
