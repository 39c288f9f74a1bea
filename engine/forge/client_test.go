package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/internal/outage"
)

const testToken = "ghs_notARealToken0123456789abcdefghijkl"

// clock is a time that passes by sleeping only.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
	calls int // requests that were made in that time
}

// counted makes the requests of a client, and counts them.
func (c *clock) counted(client *http.Client) *http.Client {
	below := http.DefaultTransport
	if client != nil {
		below = client.Transport
	}
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		c.mu.Lock()
		c.calls++
		c.mu.Unlock()
		return below.RoundTrip(r)
	})}
}

type roundTrip func(r *http.Request) (*http.Response, error)

func (rt roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return rt(r) }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept = append(c.slept, d)
	c.now = c.now.Add(d)
	return ctx.Err()
}

// pass lets time pass in which nobody sleeps.
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func serve(t *testing.T, o Options, h http.HandlerFunc) (Forge, *clock) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c := &clock{now: time.Unix(1_800_000_000, 0)}
	o.Repository = "octo/demo"
	if o.APIURL == "" {
		o.APIURL = s.URL + "/api/v3"
	} else {
		o.APIURL = s.URL + o.APIURL
	}
	o.Token = func() string { return testToken }
	o.Outages.Now, o.Outages.Sleep, o.Outages.Jitter = c.Now, c.Sleep, func() float64 { return 0 }
	o.HTTPClient = c.counted(o.HTTPClient)
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f, c
}

func reply(w http.ResponseWriter, status int, body string, header ...string) {
	for i := 0; i+1 < len(header); i += 2 {
		w.Header().Set(header[i], header[i+1])
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func TestNew(t *testing.T) {
	for _, o := range []Options{
		{}, {Repository: "demo"}, {Repository: "octo/"}, {Repository: "octo/.."}, {Repository: "octo/a/b"}, {Repository: "octo/a?b"},
		{Repository: "octo/demo", APIURL: "ftp://x"}, {Repository: "octo/demo", APIURL: "https://u:secret@x"}, {Repository: "octo/demo", APIURL: "::"},
	} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%+v: %v", o.Repository+o.APIURL, err)
		}
	}
	for url, want := range map[string]Flavour{
		"": GitHub, "https://api.github.com": GitHub, "https://ghes.example.com/api/v3": GitHub,
		"https://gitea.example.com/api/v1": Gitea, "https://example.com/git/api/v1/": Gitea,
	} {
		f, err := New(Options{APIURL: url, Repository: "octo/demo"})
		if err != nil || f.ForgeFlavour() != want {
			t.Errorf("%q: %v %v", url, f, err)
		}
	}
	if Detect("https://example.com/api", "true") != Gitea {
		t.Error("GITEA_ACTIONS=true is Gitea")
	}
}

// TestLimits: answers as GitHub's documentation and users quote them, and how long
// they make the client wait.
func TestLimits(t *testing.T) {
	const secondary = `{"documentation_url":"https://docs.github.com/en/free-pro-team@latest/rest/overview/resources-in-the-rest-api#secondary-rate-limits","message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`
	const abuse = `{"message":"You have triggered an abuse detection mechanism. Please wait a few minutes before you try again.","documentation_url":"https://developer.github.com/v3/#abuse-rate-limits"}`
	const primary = `{"message":"API rate limit exceeded for installation ID 12345.","documentation_url":"https://docs.github.com/rest/overview/resources-in-the-rest-api#rate-limiting"}`
	for name, tt := range map[string]struct {
		status int
		body   string
		header []string
		want   []time.Duration // waits; nil: it gives up at once
		retry  time.Duration
	}{
		"429 with seconds":       {429, `{"message":"slow down"}`, []string{"Retry-After", "7"}, []time.Duration{7 * time.Second}, 0},
		"429 with a date":        {429, ``, []string{"Retry-After", time.Unix(1_800_000_009, 0).UTC().Format(http.TimeFormat)}, []time.Duration{9 * time.Second}, 0},
		"429 with nonsense":      {429, ``, []string{"Retry-After", "soon"}, []time.Duration{time.Minute}, 0},
		"secondary with seconds": {403, secondary, []string{"Retry-After", "30"}, []time.Duration{30 * time.Second}, 0},
		"secondary without":      {403, secondary, nil, []time.Duration{time.Minute}, 0},
		"the older words":        {403, abuse, nil, []time.Duration{time.Minute}, 0},
		"primary, soon over":     {403, primary, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1800000020"}, []time.Duration{21 * time.Second}, 0},
		"primary, long":          {403, primary, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1800003000"}, nil, 3001 * time.Second},
		"too long":               {429, ``, []string{"Retry-After", "3600"}, nil, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			f, c := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				if n++; n == 1 {
					reply(w, tt.status, tt.body, tt.header...)
					return
				}
				reply(w, 201, `{"id":1}`)
			})
			_, err := f.CreateComment(t.Context(), 1, "hello")
			if fmt.Sprint(c.slept) != fmt.Sprint(tt.want) {
				t.Errorf("waited %v, want %v", c.slept, tt.want)
			}
			if len(tt.want) > 0 {
				if err != nil || n != 2 {
					t.Errorf("%d requests: %v", n, err)
				}
				return
			}
			var e *CallError
			if !errors.Is(err, ErrLimited) || !errors.As(err, &e) || e.Retry != tt.retry || e.Unsure {
				t.Errorf("%v, to be tried again in %v", err, e.Retry)
			}
		})
	}
}

// TestWaitIsBounded: a forge that never lets anybody in does not hold a job for ever.
func TestWaitIsBounded(t *testing.T) {
	until := time.Unix(1_800_000_010, 0)
	f, c := serve(t, Options{Outages: outage.Policy{Until: until}}, func(w http.ResponseWriter, r *http.Request) {
		reply(w, 429, ``, "Retry-After", "3")
	})
	_, err := f.ReadIssue(t.Context(), 1)
	if !errors.Is(err, ErrLimited) || fmt.Sprint(c.slept) != "[3s 4s]" {
		t.Errorf("%v after %v", err, c.slept)
	}
	f, c = serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) { reply(w, 503, `<html>`) })
	if _, err = f.ReadIssue(t.Context(), 1); !errors.Is(err, ErrUnreachable) || c.calls != len(c.slept)+1 {
		t.Errorf("%v after %v", err, c.slept)
	}
	if sum := c.now.Sub(time.Unix(1_800_000_000, 0)); sum > outage.Patience || sum < outage.Patience/2 {
		t.Errorf("%s were waited in all", sum)
	}
}

// transport answers as it likes; nil: as the server does.
type transport func() error

func (tr transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := tr(); err != nil {
		return nil, err
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestOutages: whatever keeps a forge from answering is waited for, up to minutes, and
// told; what may have been done is done again if that does no harm, or if it was looked for.
func TestOutages(t *testing.T) {
	status := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { reply(w, code, `<html>`, header...) }
	}
	for name, away := range map[string]struct {
		answer http.HandlerFunc
		none   func(c *clock) error // there is no answer at all
		first  time.Duration        // the first wait
		unsure bool                 // it may have been done
	}{
		"408":     {answer: status(408), first: outage.FirstWait, unsure: true},
		"429":     {answer: status(429, "Retry-After", "30"), first: 30 * time.Second},
		"500":     {answer: status(500), first: outage.FirstWait, unsure: true},
		"502":     {answer: status(502), first: outage.FirstWait, unsure: true},
		"503":     {answer: status(503, "Retry-After", "45"), first: 45 * time.Second, unsure: true},
		"reset":   {answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, first: outage.FirstWait, unsure: true},
		"refused": {none: func(*clock) error { return &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED} }, first: outage.FirstWait},
		"hang": {none: func(c *clock) error {
			c.pass(tryTime)
			return context.DeadlineExceeded
		}, first: outage.FirstWait, unsure: true},
		"half a reply": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			reply(w, 200, `{"numb`)
		}, first: outage.FirstWait, unsure: true},
	} {
		for _, lasts := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 5 * time.Minute} {
			for what, do := range map[string]func(Forge) error{
				"read":    func(f Forge) error { _, err := f.ReadIssue(t.Context(), 1); return err },
				"comment": func(f Forge) error { _, err := f.CreateComment(t.Context(), 1, "hello"); return err },
				"pull": func(f Forge) error {
					_, err := f.CreatePull(t.Context(), NewPull{Title: "t", Head: "h", Base: "b"})
					return err
				},
				"update":     func(f Forge) error { return f.UpdateComment(t.Context(), 1, "hello") },
				"dispatch":   func(f Forge) error { return f.DispatchWorkflow(t.Context(), "uwf.yml", "main", nil) },
				"repository": func(f Forge) error { return f.DispatchRepository(t.Context(), "uwf", nil) },
			} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, lasts, what), func(t *testing.T) {
					var told []outage.Wait
					var c *clock
					isAway := func() bool { return c.Now().Before(time.Unix(1_800_000_000, 0).Add(lasts)) }
					o := Options{Outages: outage.Policy{Tell: func(w outage.Wait) { told = append(told, w) }}}
					if away.none != nil {
						o.HTTPClient = &http.Client{Transport: transport(func() error {
							if !isAway() {
								return nil
							}
							return away.none(c)
						})}
					}
					done, looked := 0, 0
					var f Forge
					f, c = serve(t, o, func(w http.ResponseWriter, r *http.Request) {
						if isAway() {
							away.answer(w, r)
							return
						}
						if r.Method == http.MethodGet && (strings.HasSuffix(r.URL.Path, "/comments") || strings.HasSuffix(r.URL.Path, "/pulls")) {
							looked++
							reply(w, 200, `[]`)
							return
						}
						done++
						reply(w, 200, `{"id":1}`)
					})
					err := do(f)
					if (looked > 0) != (away.unsure && (what == "comment" || what == "pull")) {
						t.Errorf("it was looked for %d times", looked)
					}
					if err != nil || done != 1 || c.calls != len(c.slept)+1+looked {
						t.Errorf("done %d times with %d calls: %v", done, c.calls, err)
					}
					if len(told) != len(c.slept) || len(told) == 0 || !strings.Contains(told[0].String(), "trying again in") || c.slept[0] != away.first {
						t.Errorf("told %v of %v", told, c.slept)
					}
				})
			}
		}
	}
}

// TestErrors: kinds, words and needs by what the forges really answer.
func TestErrors(t *testing.T) {
	issue := func(f Forge) error { _, err := f.ReadIssue(context.Background(), 1); return err }
	pull := func(f Forge) error {
		_, err := f.CreatePull(context.Background(), NewPull{Title: "t", Head: "h", Base: "b"})
		return err
	}
	for name, tt := range map[string]struct {
		do     func(Forge) error
		status int
		body   string
		header []string
		kind   error
		words  string
	}{
		"bad token":          {issue, 401, `{"message":"Bad credentials","documentation_url":"https://docs.github.com/rest"}`, nil, ErrAuth, "Bad credentials"},
		"no right":           {issue, 403, `{"message":"Resource not accessible by integration","documentation_url":"https://docs.github.com/rest/issues/issues#get-an-issue"}`, []string{"X-Accepted-GitHub-Permissions", "issues=read; pull_requests=read", "X-RateLimit-Remaining", "4999"}, ErrForbidden, "the token needs issues=read"},
		"gone":               {issue, 410, `{"message":"This issue was deleted"}`, nil, ErrNotFound, "deleted"},
		"not there":          {issue, 404, `{"message":"Not Found"}`, nil, ErrNotFound, "Not Found"},
		"empty":              {issue, 404, ``, nil, ErrNotFound, "404"},
		"no JSON":            {issue, 200, `<html>log in</html>`, nil, ErrUnreadable, "not what was asked for"},
		"another type":       {issue, 200, `{"number":"one"}`, nil, ErrUnreadable, "not what was asked for"},
		"duplicate":          {pull, 422, `{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"A pull request already exists for octo:h."}]}`, nil, ErrExists, "already exists for octo:h"},
		"Gitea duplicate":    {pull, 409, `{"message":"pull request already exists for these targets [id: 1, issue_id: 2, head_repo_id: 1, base_repo_id: 1, head_branch: h, base_branch: b]","url":"https://x/api/swagger"}`, nil, ErrExists, "already exists"},
		"no commits":         {pull, 422, `{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"No commits between b and h"}]}`, nil, ErrNoChanges, "No commits"},
		"Gitea same":         {pull, 422, `{"message":"Invalid PullRequest: There are no changes between the head and the base"}`, nil, ErrNoChanges, "no changes"},
		"no such branch":     {pull, 422, `{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":"head","code":"invalid"}]}`, nil, ErrInvalid, "PullRequest head (invalid)"},
		"may not":            {pull, 403, `{"message":"GitHub Actions is not permitted to create or approve pull requests.","documentation_url":"https://docs.github.com/rest/pulls/pulls#create-a-pull-request"}`, nil, ErrForbidden, "not permitted to create"},
		"texts for errors":   {pull, 422, `{"message":"Validation Failed","errors":["one","two"]}`, nil, ErrInvalid, "one: two"},
		"it says the token":  {issue, 400, `{"message":"header Bearer ` + testToken + ` is wrong"}`, nil, ErrInvalid, "Bearer *** is wrong"},
		"control characters": {issue, 400, `{"message":"a\u001b[31m\nb \u009b31m \u202ec"}`, nil, ErrInvalid, "a\uFFFD[31m b \uFFFD31m \uFFFDc"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Authorization"); got != "Bearer "+testToken {
					t.Errorf("Authorization: %q", got)
				}
				reply(w, tt.status, tt.body, tt.header...)
			})
			err := tt.do(f)
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.words) || strings.Contains(err.Error(), testToken) {
				t.Errorf("%v\nwant %v with %q", err, tt.kind, tt.words)
			}
		})
	}
}

// TestRedirects: a renamed repository is read under its new name, with the token on
// the same server only; what changes something is not carried on.
func TestRedirects(t *testing.T) {
	var elsewhere int
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { elsewhere++; reply(w, 200, `{}`) }))
	defer other.Close()
	target, posts := "", 0
	f, made := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			posts++
			reply(w, 307, ``, "Location", target)
		case strings.HasPrefix(r.URL.Path, "/api/v3/repositories/7"):
			if r.Header.Get("Authorization") == "" {
				t.Error("the token was left behind on its own server")
			}
			reply(w, 200, `{"number":1,"title":"found"}`)
		default:
			reply(w, 301, `{"message":"Moved Permanently"}`, "Location", target)
		}
	})
	c, ok := f.(*client)
	if !ok {
		t.Fatal("no client")
	}
	target = c.gh.BaseURL.String() + "repositories/7/issues/1?token=x"
	if is, err := f.ReadIssue(t.Context(), 1); err != nil || is.Title != "found" || made.calls != 2 {
		t.Errorf("%+v %v, %d calls", is, err, made.calls)
	}
	_, err := f.CreateComment(t.Context(), 1, "hello")
	if !errors.Is(err, ErrNotFound) || posts != 1 || !strings.Contains(err.Error(), "renamed") || strings.Contains(err.Error(), "token=x") {
		t.Errorf("%v after %d POSTs", err, posts)
	}
	target = other.URL + "/api/v3/repositories/7"
	if _, err := f.ReadIssue(t.Context(), 1); !errors.Is(err, ErrNotFound) || elsewhere != 0 {
		t.Errorf("%v, and another server was asked %d times", err, elsewhere)
	}
}

// TestMovedIssue: an issue that is in another repository by now is told from one of a
// repository that has another name.
func TestMovedIssue(t *testing.T) {
	for _, c := range []struct{ now, moved string }{
		{"acme/tool", "https://forge.example/acme/other/issues/1"},
		{"acme/other", ""},
	} {
		f, _ := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/repositories/7/issues/1"):
				reply(w, 200, `{"number":1,"state":"closed","closed_at":"2026-01-02T03:04:05Z","closed_by":{"login":"alice"},"html_url":"https://forge.example/acme/other/issues/1"}`)
			case strings.HasSuffix(r.URL.Path, "/issues/1"):
				reply(w, 301, `{"message":"Moved Permanently"}`, "Location", "/api/v3/repositories/7/issues/1")
			default:
				reply(w, 200, `{"full_name":"`+c.now+`","default_branch":"main"}`)
			}
		})
		is, err := f.ReadIssue(t.Context(), 1)
		if err != nil || is.Moved != c.moved || is.ClosedBy != "alice" || is.ClosedAt.Unix() != 1767323045 {
			t.Errorf("%s: %+v, %v", c.now, is, err)
		}
	}
}

// TestCancelled: a job that is stopped stops waiting, and says what is not known.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, c := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		// Only then the server notices that the client goes away.
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	})
	_, err := f.CreateComment(ctx, 1, "hello")
	var e *CallError
	if !errors.As(err, &e) || !errors.Is(err, context.Canceled) || !e.Unsure || c.calls != 1 {
		t.Errorf("%v, %d calls", err, c.calls)
	}
	if _, err := f.ReadIssue(ctx, 1); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnreachable) {
		t.Error(err)
	}
}

// TestNeverSent: a POST that did not leave this machine is sent again.
func TestNeverSent(t *testing.T) {
	c := &clock{}
	f, err := New(Options{APIURL: "http://127.0.0.1:1/api/v3", Repository: "octo/demo", HTTPClient: c.counted(nil), Outages: outage.Policy{Now: c.Now, Sleep: c.Sleep}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.CreateComment(t.Context(), 1, "hello")
	var e *CallError
	if !errors.As(err, &e) || e.Unsure || !errors.Is(err, ErrUnreachable) || c.calls != len(c.slept)+1 || c.calls < 5 {
		t.Errorf("%v, %d calls", err, c.calls)
	}
}

// TestPages: lists have an end, even where the forge says otherwise.
func TestPages(t *testing.T) {
	f, c := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		reply(w, 200, `[{"id":`+r.URL.Query().Get("page")+`7}]`, "Link", `<https://elsewhere.example/x?page=2>; rel="next"`)
	})
	if _, err := f.ListComments(t.Context(), 1); !errors.Is(err, ErrInvalid) || c.calls != maxPages {
		t.Errorf("%v after %d calls", err, c.calls)
	}
	if _, found, err := f.FindPull(t.Context(), "b"); found || err != nil || c.calls != maxPages+maxPullPages {
		t.Errorf("%v %v after %d calls", found, err, c.calls)
	}
}

// TestForksBranch: a fork's branch of the same name is not ours.
func TestForksBranch(t *testing.T) {
	f, _ := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if head := r.URL.Query().Get("head"); head != "octo:uwf/1" {
			t.Errorf("head %q", head)
		}
		reply(w, 200, `[{"number":9,"state":"open","head":{"ref":"uwf/1","repo":{"full_name":"octo/fork"}}},
			{"number":8,"state":"open","head":{"ref":"uwf/1","repo":null}},
			{"number":2,"state":"closed","merged_at":"2026-01-02T03:04:05Z","head":{"ref":"uwf/1","repo":{"full_name":"Octo/Demo"}}},
			{"number":3,"state":"closed","merged_at":null,"head":{"ref":"uwf/1","repo":{"full_name":"octo/demo"}}}]`)
	})
	p, ok, err := f.FindPull(t.Context(), "uwf/1")
	if err != nil || !ok || p.Number != 3 || p.Merged {
		t.Errorf("%+v %v %v", p, ok, err)
	}
}

// TestManyWorkflows: of a long list every page counts.
func TestManyWorkflows(t *testing.T) {
	f, _ := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("page") == "" {
			reply(w, 200, `{"workflows":[{"path":"a.yml","state":"active"}]}`, "Link", `<https://x/?page=2>; rel="next", <https://x/?page=2>; rel="last"`)
			return
		}
		reply(w, 200, `{"workflows":[{"path":"b.yml","state":"disabled_manually"}]}`)
	})
	if list, err := f.ListWorkflows(t.Context()); err != nil || fmt.Sprint(list) != "[{a.yml true} {b.yml false}]" {
		t.Errorf("%v %v", list, err)
	}
}

// TestDraftsThatAreNot: who asks for a draft hears that there are none to be had.
func TestDraftsThatAreNot(t *testing.T) {
	f, _ := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		reply(w, 422, `{"message":"Draft pull requests are not supported in this repository.","documentation_url":"https://docs.github.com/rest/pulls/pulls#create-a-pull-request"}`)
	})
	if _, err := f.CreatePull(t.Context(), NewPull{Title: "t", Head: "h", Base: "b", Draft: true}); !errors.Is(err, ErrInvalid) {
		t.Errorf("%v", err)
	}
}

func TestSecrets(t *testing.T) {
	for name, tt := range map[string]struct {
		own, org int
		known    bool
		want     string
	}{
		"both":      {200, 200, true, "[A B]"},
		"a person":  {200, 404, true, "[A]"},
		"not told":  {403, 403, false, "[]"},
		"only some": {200, 403, false, "[A]"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/organization-secrets") {
					reply(w, tt.org, `{"total_count":1,"secrets":[{"name":"B"}]}`)
					return
				}
				reply(w, tt.own, `[{"name":"A"}]`) // as Gitea writes it
			})
			s, ok := f.(SecretLister)
			if !ok {
				t.Fatal("no Secrets")
			}
			names, known, err := s.ListSecretNames(t.Context())
			if err != nil || known != tt.known || fmt.Sprint(names) != tt.want {
				t.Errorf("%v %v %v", names, known, err)
			}
		})
	}
}

// TestOwner: whose a repository is, and where a token may not see it.
func TestOwner(t *testing.T) {
	for name, tt := range map[string]struct {
		org, user int
		is, known bool
		err       error
	}{
		"an organisation":        {org: 200, is: true, known: true},
		"a person":               {org: 404, user: 200, known: true},
		"hidden":                 {org: 404, user: 404},
		"not told":               {org: 403, user: 200}, // a user stands for every account
		"not told of people":     {org: 404, user: 403},
		"the token has ended":    {org: 401, err: ErrAuth},
		"the token ends between": {org: 404, user: 401, err: ErrAuth},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := serve(t, Options{APIURL: "/api/v1"}, func(w http.ResponseWriter, r *http.Request) {
				status := tt.user
				if r.URL.Path == "/api/v1/orgs/octo" {
					status = tt.org
				} else if r.URL.Path != "/api/v1/users/octo" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				reply(w, status, `{"id":7,"name":"octo"}`)
			})
			o, ok := f.(Owners)
			if !ok {
				t.Fatal("no Owners")
			}
			is, known, err := o.IsOwnedByOrganisation(t.Context())
			if is != tt.is || known != tt.known || !errors.Is(err, tt.err) {
				t.Errorf("%v %v %v", is, known, err)
			}
		})
	}
}

// TestAccounts: what forges say of users, in shapes that the fake has not.
func TestAccounts(t *testing.T) {
	for name, tt := range map[string]struct {
		api, answer string
		want        User
		err         error
	}{
		"a person":          {"/api/v3", `{"login":"ann","id":7,"type":"User"}`, User{Login: "ann", ID: 7}, nil},
		"an app":            {"/api/v3", `{"login":"uwf[bot]","id":8,"type":"Bot"}`, User{Login: "uwf[bot]", ID: 8, Bot: true}, nil},
		"a person, gitea":   {"/git/api/v1", `{"login":"ann","id":7}`, User{Login: "ann", ID: 7}, nil},
		"built in":          {"/api/v1", `{"login":"forgejo-actions","id":-2}`, User{Login: "forgejo-actions", Bot: true}, nil},
		"an id not told":    {"/api/v1", `{"login":"ann"}`, User{Login: "ann"}, nil},
		"nobody":            {"/api/v3", `{}`, User{}, ErrUnreadable},
		"an id that is not": {"/api/v3", `{"login":"ann","id":"7"}`, User{}, ErrUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := serve(t, Options{APIURL: tt.api}, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case tt.api + "/user":
					reply(w, 200, tt.answer)
				case tt.api + "/repos/octo/demo/issues/comments/5":
					reply(w, 200, `{"id":5,"body":"hello","user":`+tt.answer+`}`)
				default:
					t.Errorf("path %s", r.URL.Path)
				}
			})
			if u, err := f.ReadTokenOwner(t.Context()); u != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%+v %v", u, err)
			}
			if tt.err != nil {
				return
			}
			if c, err := f.ReadComment(t.Context(), 5); err != nil || c.Author != tt.want.Login || c.AuthorID != tt.want.ID {
				t.Errorf("%+v %v", c, err)
			}
		})
	}
}

// TestProtectedBranch: the older kind of rule shows at the branch.
func TestProtectedBranch(t *testing.T) {
	for name, tt := range map[string]struct {
		api, branch string
		status      int
		want        string
		known       bool
	}{
		"github":              {"/api/v3", `{"protected":true}`, 200, "[protected branch]", true},
		"gitea, may push":     {"/api/v1", `{"protected":true,"user_can_push":true}`, 200, "[]", true},
		"gitea, may not push": {"/api/v1", `{"protected":true,"user_can_push":false}`, 200, "[protected branch]", true},
		"not there":           {"/api/v3", `{"message":"Branch not found"}`, 404, "[]", false},
		"not told":            {"/api/v3", `{"message":"Resource not accessible by integration"}`, 403, "[]", false},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := serve(t, Options{APIURL: tt.api}, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/graphql" {
					reply(w, 403, `{"message":"Resource not accessible by integration"}`)
					return
				}
				if strings.Contains(r.URL.Path, "/rules/") {
					reply(w, 200, `[]`)
					return
				}
				if !strings.HasSuffix(r.URL.Path, "/branches/uwf/a%2Fb") && !strings.HasSuffix(r.URL.EscapedPath(), "/branches/uwf/a%20b") {
					t.Errorf("path %q", r.URL.EscapedPath())
				}
				reply(w, tt.status, tt.branch)
			})
			rules, known, err := f.ListBranchRules(t.Context(), "uwf/a b")
			if err != nil || fmt.Sprint(rules) != tt.want || known != tt.known {
				t.Errorf("%v %v %v", rules, known, err)
			}
		})
	}
}
