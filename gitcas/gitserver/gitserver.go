// Package gitserver serves bare git repositories of one folder over HTTP on
// the loopback interface, by git's own http-backend. It is the remote of
// `uwf demo`, of tests and of benchmarks; it knows no users and no permissions
// and never listens on another interface.
package gitserver

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/internal/gitenv"
)

// Options configure a Server. The zero value works.
type Options struct {
	// Config is git configuration for the served repositories, over the
	// server's own: "receive.advertiseAtomic": "false".
	Config map[string]string
	// Hooks lets the repositories' own hooks run.
	Hooks bool
	// Middleware, when set, wraps the handler: tests inject faults with it.
	Middleware func(http.Handler) http.Handler
}

// Server is a running server.
type Server struct {
	// URL is the base: repository r.git of the folder is at URL + "/r.git".
	URL string

	root string
	http *http.Server
	done chan struct{}
	busy sync.WaitGroup // requests under way
}

// ErrNoBackend says that this machine's git has no http-backend.
var ErrNoBackend = errors.New("git http-backend is not installed")

// Available reports whether a Server can run with that git program (empty: the
// one on PATH). The error says what is missing.
func Available(git string) error {
	_, err := findBackend(cmp.Or(git, "git"))
	return err
}

// findBackend finds the http-backend of a git program.
func findBackend(git string) (string, error) {
	cmd := exec.Command(git, "--exec-path")
	cmd.Env = append(gitenv.Clean(), "PATH="+os.Getenv("PATH"))
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking git for its folder of programs: %w", err)
	}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if fi, err := os.Stat(backend); err != nil || !fi.Mode().IsRegular() {
		return "", fmt.Errorf("%w: there is no %s", ErrNoBackend, backend)
	}
	return backend, nil
}

// Serve starts serving the repositories below root until Close.
func Serve(root string, o Options) (*Server, error) {
	prog, err := findBackend("git")
	if err != nil {
		return nil, err
	}
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("serving %s: %w", root, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serving %s: %w", root, err)
	}
	s := &Server{URL: "http://" + l.Addr().String(), root: root, done: make(chan struct{})}
	handler := bufferBody(&cgi.Handler{
		Path:   prog,
		Dir:    root,
		Env:    append(serverEnv(o), "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1", "PATH="+os.Getenv("PATH")),
		Stderr: io.Discard,
	})
	if o.Middleware != nil {
		handler = o.Middleware(handler)
	}
	handler = s.countRequests(handler)
	s.http = &http.Server{Handler: handler, ReadHeaderTimeout: 30 * time.Second}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // always ErrServerClosed, or the listener's end
	}()
	return s, nil
}

// serverEnv is git's environment, with configuration that overrules what a repository's
// own file says.
func serverEnv(o Options) []string {
	config := map[string]string{
		"http.receivepack":              "true",
		"uploadpack.allowFilter":        "true",
		"uploadpack.allowAnySHA1InWant": "true",
		"gc.auto":                       "0",
		"maintenance.auto":              "false",
		"receive.autoGC":                "false",
		"safe.directory":                "*",
		// What lies here is made for a demo or a test, and a crash of the whole
		// machine is no matter.
		"core.fsync": "none",
		// A push is checked in a quarantine whose "alternate" is the repository
		// itself: without this every push lists every ref once more.
		"core.alternateRefsCommand": "true",
	}
	if !o.Hooks {
		config["core.hooksPath"] = os.DevNull
	}
	maps.Copy(config, o.Config)
	var settings []gitenv.Setting
	for _, key := range slices.Sorted(maps.Keys(config)) {
		settings = append(settings, gitenv.Setting{Key: key, Value: config[key]})
	}
	return append(gitenv.Clean(), gitenv.Variables(settings)...)
}

// maxBody bounds a request's body.
const maxBody = 1 << 30

// bufferBody lets a request through only once its body is there: CGI has to know
// the length beforehand, which git doesn't say of large pushes, and
// git-http-backend spins for ever on a body that ends before that length.
func bufferBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, n, err := spoolBody(http.MaxBytesReader(w, r.Body, maxBody))
		if err == nil && r.ContentLength >= 0 && n != r.ContentLength {
			err = errors.Join(io.ErrUnexpectedEOF, body.Close())
		}
		if err != nil {
			http.Error(w, "reading the request failed", http.StatusBadRequest)
			return
		}
		defer func() { _ = body.Close() }()
		r.Body, r.ContentLength, r.TransferEncoding = body, n, nil
		next.ServeHTTP(w, r)
	})
}

// spoolBody reads all of r into a file without a name. The program gets the file itself,
// not a pipe, so that it sees the end even when this process dies.
func spoolBody(r io.Reader) (io.ReadCloser, int64, error) {
	f, err := os.CreateTemp("", "uwf-push-*")
	if err != nil {
		return nil, 0, err
	}
	var n int64
	if err = os.Remove(f.Name()); err == nil {
		n, err = io.Copy(f, r)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, n, nil
}

// countRequests lets Close wait for requests.
func (s *Server) countRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.busy.Add(1)
		defer s.busy.Done()
		next.ServeHTTP(w, r)
	})
}

// closeTime is how long Close waits for programs that it broke off.
const closeTime = 30 * time.Second

// Close stops the server: it breaks off what is under way and waits until the
// programs behind it have ended, so that the repositories can be removed.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	idle := make(chan struct{})
	go func() {
		s.busy.Wait()
		close(idle)
	}()
	late := time.NewTimer(closeTime)
	defer late.Stop()
	select {
	case <-idle:
	case <-late.C:
		err = errors.Join(err, fmt.Errorf("closing the server of %s: a request is still under way after %s", s.root, closeTime))
	}
	return err
}
