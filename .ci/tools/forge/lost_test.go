package forge

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// envIssues is how many issues get their label at once.
const envIssues = "UWF_GITEA_ISSUES"

// rescue: a job ends before uwf runs in it. The rescue of its run starts the thread, and if
// that ends no better, the issue says what to do.
func (s *site) rescue() {
	s.Helper()
	r := s.addDemo("rescue", []string{"--allow", "alice"}, playedFiles(0))
	defer r.tellOnFailure()
	written := r.git("show", "main:"+workflowFile) + "\n"
	first := func(command string) string {
		return strings.Replace(written, "\n    steps:\n", "\n    steps:\n      - run: "+command+"\n", 1)
	}

	marker := filepath.Join(r.dir, "it-failed-once")
	r.commit("octo", "main", "Fail once", map[string]string{workflowFile: first("test -e " + marker + " || { touch " + marker + "; exit 1; }")})
	once := r.openIssue("alice")
	r.after(func() { r.putLabel("alice", once, "uwf") })
	r.expectEach(r.settle(), "step failure", "rescue success", "step success", "step success", "step success")
	r.checkSolved(3, once)

	r.commit("octo", "main", "Fail each time", map[string]string{workflowFile: first("exit 1")})
	always := r.openIssue("alice")
	r.after(func() { r.putLabel("alice", always, "uwf") })

	r.expectEach(r.settle(), "step failure", "rescue success", "step failure", "rescue success", "step failure", "rescue success")
	said := r.sticky(always)
	if !strings.Contains(said, "3 jobs in a row died") || !strings.Contains(said, "/uwf retry") || !slices.Contains(r.labels(always), "uwf-failed") {
		r.Errorf("nobody is told what to do: labels %v, %s", r.labels(always), said)
	}

	r.commit("octo", "main", "Do not fail", map[string]string{workflowFile: written})
	r.after(func() { r.comment("alice", always, "/uwf retry") })
	r.settle()
	r.checkSolved(3, once, always)
}

// burst: many issues get their label at once, and a runner takes as many jobs as come. No
// issue is forgotten, and none is worked on twice.
func (s *site) burst() {
	s.Helper()
	count := 6
	if text := os.Getenv(envIssues); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		mustDo(s, err)
	}
	r := s.addDemo("burst", []string{"--allow", "alice"}, playedFiles(0))
	defer r.tellOnFailure()
	r.slots = 28

	var issues []int
	for range count {
		issues = append(issues, r.openIssue("alice"))
	}

	began := time.Now()
	for _, n := range issues {
		r.putLabel("alice", n, "uwf")
	}
	r.waitUntil("each label starts a run", func() bool { return len(r.runs()) >= count })
	labelled := time.Since(began)
	jobs := r.settle()

	failed := len(slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.result != "failure" }))
	r.Logf("%d issues, labelled within %s: %d jobs, of which %d failed, in %s", count, labelled, len(jobs), failed, time.Since(began))
	r.checkSolved(3, issues...)
	for _, n := range issues {
		if got := r.comments(n); len(got) != 1 {
			r.Errorf("#%d has %d comments, want one: %q", n, len(got), got)
		}
	}
}

// outage: nothing of the repository answers for a while, from the moment on at which the pull
// request is made: once before the forge made it, and once after. The job waits, and finds or
// makes one.
func (s *site) outage() {
	s.Helper()
	r := s.addDemo("outage", []string{"--allow", "alice"}, playedFiles(0))
	defer r.tellOnFailure()
	var issues []int
	for _, made := range []bool{false, true} {
		down := &outage{path: r.name, lasts: 20 * time.Second, made: made}
		r.forge = down.serveThrough(s)

		issues = append(issues, r.openIssue("alice"))
		r.after(func() { r.putLabel("alice", issues[len(issues)-1], "uwf") })
		r.expectEach(r.settle(), "step success", "step success", "step success")

		if down.met < 2 {
			r.Errorf("%d requests met the outage", down.met)
		}
		r.Logf("%d requests met the outage; the pull request was made before: %v", down.met, made)
		r.checkSolved(3, issues...)
	}
}

// expectEach checks which jobs ran, one after the other, and how they ended.
func (r *runner) expectEach(jobs []*job, want ...string) {
	r.Helper()
	var got []string
	for _, j := range jobs {
		got = append(got, j.id+" "+j.result)
	}
	if !slices.Equal(got, want) {
		r.Errorf("these jobs ran: %q, want %q", got, want)
	}
}

// outage is a time in which a proxy answers 503 to all that is asked of a repository. It
// begins with the first request that makes a pull request.
type outage struct {
	path  string // in the address of what it hits
	lasts time.Duration
	made  bool // the forge made the pull request, and only its answer is lost

	mu  sync.Mutex
	end time.Time
	met int // requests
}

// serveThrough serves the site through the outage, and returns the address.
func (o *outage) serveThrough(s *site) string {
	s.Helper()
	target, err := url.Parse(s.URL)
	mustDo(s, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(q *httputil.ProxyRequest) { q.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		down, carriedOut := o.takesRequest(q)
		if carriedOut {
			proxy.ServeHTTP(httptest.NewRecorder(), q)
		}
		if down {
			http.Error(w, "no server is available", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, q)
	}))
	s.Cleanup(server.Close)
	return server.URL
}

// takesRequest reports whether a request gets no answer, and whether the forge carries it out all
// the same.
func (o *outage) takesRequest(q *http.Request) (down, carriedOut bool) {
	if !strings.Contains(q.URL.Path, "/"+o.path) {
		return false, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	begins := o.end.IsZero() && q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/pulls")
	if begins {
		o.end = time.Now().Add(o.lasts)
	}
	if !time.Now().Before(o.end) {
		return false, false
	}
	o.met++
	return true, begins && o.made
}
