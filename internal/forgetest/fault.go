package forgetest

import (
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// Fault is something that goes wrong with matching requests.
type Fault struct {
	// Git: requests of git instead of the API's.
	Git bool
	// Method of the request; empty: any.
	Method string
	// Path is a pattern in the way of path.Match of the path below repos/OWNER/NAME,
	// as "issues/*/comments"; for git of the last parts: "git-receive-pack" or
	// "info/refs". Empty: any.
	Path string
	// After lets so many matching requests through first.
	After int
	// Times is how often it happens; 0: once; below: always.
	Times int

	// Before is called first, outside of all locks: it may wait for something.
	Before func(*http.Request)
	// Cut ends the connection without doing anything.
	Cut bool
	// Lost does what was asked, then ends the connection without an answer.
	Lost bool
	// Answer is given instead of doing anything, where its status is not 0.
	Answer Answer
}

// Answer is an HTTP answer.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// PrimaryLimit is GitHub's answer once the hour's calls are used up.
func PrimaryLimit(reset time.Time) Answer {
	h := http.Header{}
	h.Set("X-RateLimit-Limit", "1000")
	h.Set("X-RateLimit-Remaining", "0")
	h.Set("X-RateLimit-Used", "1000")
	h.Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
	h.Set("X-RateLimit-Resource", "core")
	return Answer{Status: http.StatusForbidden, Header: h, Body: `{"message":"API rate limit exceeded for installation ID 1. If you reach out to GitHub Support for help, please include the request ID.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api","status":"403"}`}
}

// SecondaryLimit is GitHub's answer to too many requests at once; without a time,
// the header Retry-After is left out, as GitHub now and then does.
func SecondaryLimit(retry time.Duration) Answer {
	h := http.Header{}
	if retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(retry/time.Second)))
	}
	return Answer{Status: http.StatusForbidden, Header: h, Body: `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again. If you reach out to GitHub Support for help, please include the request ID.","documentation_url":"https://docs.github.com/free-pro-team@latest/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits","status":"403"}`}
}

// Broken is an answer of a proxy before a forge that is down.
func Broken(status int) Answer {
	return Answer{Status: status, Header: http.Header{"Content-Type": {"text/html"}}, Body: fmt.Sprintf("<html><body><h1>%d %s</h1></body></html>", status, http.StatusText(status))}
}

// Inject makes something go wrong from now on. Faults are tried in the order in
// which they were injected; the first that matches happens.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.fault = append(s.fault, &f)
}

// ClearFaults ends all faults.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = nil
}

// due is the fault that happens to a request now.
func (s *Server) due(r *http.Request, git bool, name string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.fault {
		if f.Git != git || f.Times == 0 || f.Method != "" && f.Method != r.Method || !f.meets(name) {
			continue
		}
		if f.After > 0 {
			f.After--
			continue
		}
		if f.Times > 0 {
			f.Times--
		}
		return f
	}
	return nil
}

func (f *Fault) meets(name string) bool {
	if f.Path == "" {
		return true
	}
	if f.Git {
		return strings.HasSuffix(name, f.Path)
	}
	ok, err := path.Match(f.Path, name)
	return ok && err == nil
}

// faulty puts the faults before a handler.
func (s *Server) faulty(w http.ResponseWriter, r *http.Request, git bool, name string, next func(http.ResponseWriter)) {
	f := s.due(r, git, name)
	if f == nil {
		next(w)
		return
	}
	if f.Before != nil {
		f.Before(r)
	}
	switch {
	case f.Cut:
		panic(http.ErrAbortHandler)
	case f.Lost:
		next(newRecorder())
		panic(http.ErrAbortHandler)
	case f.Answer.Status != 0:
		for k, v := range f.Answer.Header {
			w.Header()[k] = v
		}
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
		}
		w.WriteHeader(f.Answer.Status)
		_, _ = w.Write([]byte(f.Answer.Body)) // a client that is gone is its own affair
	default:
		next(w)
	}
}
