package forgetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/internal/gitservertest"
)

// Options of a Server. The zero value is a public repository octo/demo on GitHub.
type Options struct {
	Gitea bool
	// Owner, Name and Branch of the repository; octo, demo and main where empty.
	Owner, Name, Branch string
	// Organisation: the owner is one, and no person. Gitea says so only to who asks for it.
	Organisation bool
	// Private: reading needs a token too.
	Private bool
	// RunDetails is how the forge takes the request for a dispatch's run id.
	RunDetails RunDetails
	// Git is configuration for the served repository.
	Git map[string]string
	// Now is the server's clock; nil: the machine's. Advance moves it.
	Now func() time.Time
}

// RunDetails is what a forge does with return_run_details.
type RunDetails int

// What forges do with it: github.com and Gitea 1.26 answer with the run, older Giteas
// ignore the question, GitHub Enterprise Server ignores the field or refuses the
// request, as its version is.
const (
	DetailsGiven RunDetails = iota
	DetailsIgnored
	DetailsRefused
)

// Server is a running forge. All methods are safe for concurrent use.
type Server struct {
	URL    string // GITHUB_SERVER_URL
	APIURL string // GITHUB_API_URL

	o     Options
	dir   string // of the bare repository
	git   *gitservertest.Server
	api   []route
	ahead atomic.Int64 // how far the clock was moved, in nanoseconds
	known sync.Map     // what git said of commits

	mu    sync.Mutex // guards all below
	state state
	calls []Call
	fault []*Fault
}

// Start serves a repository until the test ends. The test is skipped where this
// machine's git has no http-backend.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if err := gitserver.Available(""); err != nil {
		t.Skip(err)
	}
	s, err := New(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// New serves a new, empty repository below dir until Close.
func New(dir string, o Options) (*Server, error) {
	o.Owner, o.Name, o.Branch = or(o.Owner, "octo"), or(o.Name, "demo"), or(o.Branch, "main")
	s := &Server{o: o, state: newState(o)}
	s.dir = filepath.Join(dir, o.Owner, o.Name+".git")
	if err := os.MkdirAll(filepath.Dir(s.dir), 0o700); err != nil {
		return nil, fmt.Errorf("make the forge's folder: %w", err)
	}
	s.api = s.routes()
	var err error
	s.git, err = gitservertest.Serve(dir, gitserver.Options{Config: o.Git, Hooks: true, Middleware: s.middleware})
	if err != nil {
		return nil, err
	}
	s.URL = s.git.URL
	s.APIURL = s.URL + s.prefix()
	if err := s.makeRepository(); err != nil {
		return nil, errors.Join(err, s.git.Close())
	}
	return s, nil
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// prefix is where the API lies: that of GitHub Enterprise Server, or Gitea's.
func (s *Server) prefix() string {
	if s.o.Gitea {
		return "/api/v1"
	}
	return "/api/v3"
}

// Close stops the server.
func (s *Server) Close() error { return s.git.Close() }

// Repository is owner/name.
func (s *Server) Repository() string { return s.o.Owner + "/" + s.o.Name }

// CloneURL is the repository's address for git, without a token.
func (s *Server) CloneURL() string { return s.URL + "/" + s.Repository() + ".git" }

// Branch is the default branch's name.
func (s *Server) Branch() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.branch
}

// Advance moves the server's clock, which the Date of its answers shows.
func (s *Server) Advance(d time.Duration) { s.ahead.Add(int64(d)) }

func (s *Server) now() time.Time {
	now := time.Now
	if s.o.Now != nil {
		now = s.o.Now
	}
	return now().Add(time.Duration(s.ahead.Load())).UTC()
}
