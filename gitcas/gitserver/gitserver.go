// Package gitserver serves bare git repositories of one folder over HTTP on
// the loopback interface, by git's own http-backend. It is the remote of
// `uwf demo`, of tests and of benchmarks; it knows no users and no permissions
// and never listens on another interface.
package gitserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options configure a Server. The zero value works.
type Options struct {
	// Git is the git program; empty means "git" on PATH.
	Git string
	// Config is git configuration for the served repositories, over the
	// server's own: "receive.advertiseAtomic": "false".
	Config map[string]string
	// Hooks lets the repositories' own hooks run.
	Hooks bool
	// Middleware, when set, wraps the handler: tests inject faults with it.
	Middleware func(http.Handler) http.Handler
	// Log gets what the git programs write to their error output; nil discards.
	Log io.Writer
}

// Server is a running server.
type Server struct {
	// URL is the base: repository r.git of the folder is at URL + "/r.git".
	URL string

	root string
	env  []string
	http *http.Server
	done chan struct{}
	busy sync.WaitGroup // requests under way
}

// ErrNoBackend says that this machine's git has no http-backend.
var ErrNoBackend = errors.New("git http-backend is not installed")

// Available reports whether a Server can run with that git program (empty: the
// one on PATH). The error says what is missing.
func Available(git string) error {
	_, _, err := findBackend(git)
	return err
}

// execPaths holds the folders of programs of gits, by the git's path: each question
// costs a process, and the answer stays the same.
var execPaths sync.Map

// findBackend finds the git program and its http-backend.
func findBackend(git string) (gitPath, backendPath string, err error) {
	if git == "" {
		git = "git"
	}
	gitPath, err = exec.LookPath(git)
	if err != nil {
		return "", "", fmt.Errorf("finding git: %w", err)
	}
	folder, known := execPaths.Load(gitPath)
	if !known {
		cmd := exec.Command(gitPath, "--exec-path")
		cmd.Env = baseEnv()
		out, err := cmd.Output()
		if err != nil {
			return "", "", fmt.Errorf("asking git for its folder of programs: %w", err)
		}
		folder = strings.TrimSpace(string(out))
		execPaths.Store(gitPath, folder)
	}
	backendPath = filepath.Join(fmt.Sprint(folder), "git-http-backend")
	if fi, err := os.Stat(backendPath); err != nil || !fi.Mode().IsRegular() {
		return "", "", fmt.Errorf("%w: there is no %s", ErrNoBackend, backendPath)
	}
	return gitPath, backendPath, nil
}

// baseEnv is an environment without any configuration of user or system.
func baseEnv() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_CONFIG_SYSTEM=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0",
		"LC_ALL=C",
	}
}

// Serve starts serving the repositories below root until Close.
func Serve(root string, o Options) (*Server, error) {
	_, prog, err := findBackend(o.Git)
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
	s.env = append(baseEnv(), configEnv(o)...)
	handler := bufferBody(&cgi.Handler{
		Path: prog,
		Dir:  root,
		Env:  append([]string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}, s.env...),
		Stderr: func() io.Writer {
			if o.Log == nil {
				return io.Discard
			}
			return o.Log
		}(),
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

// configEnv gives the configuration to git as environment variables, which
// overrule what a repository's own file says.
func configEnv(o Options) []string {
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
	for k, v := range o.Config {
		config[k] = v
	}
	keys := make([]string, 0, len(config))
	for k := range config {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(keys))}
	for i, k := range keys {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, k), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, config[k]))
	}
	return env
}

const (
	maxBody   = 1 << 30  // bounds a request's body
	memoryMax = 32 << 10 // larger bodies go through a file; this fits into a pipe at once
)

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

// spoolBody reads all of r and gives it back from memory, or from a file without a
// name. The program gets the file itself, not a pipe, so that it sees the end
// even when this process dies.
func spoolBody(r io.Reader) (io.ReadCloser, int64, error) {
	var b bytes.Buffer
	n, err := io.CopyN(&b, r, memoryMax)
	if errors.Is(err, io.EOF) {
		return io.NopCloser(&b), n, nil
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := os.CreateTemp("", "uwf-push-*")
	if err != nil {
		return nil, 0, err
	}
	if err = os.Remove(f.Name()); err == nil {
		n, err = io.Copy(f, io.MultiReader(&b, r))
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

// Init makes an empty bare repository, whose HEAD is main, and returns its URL.
// The name ends in ".git" and has no folders.
func (s *Server) Init(ctx context.Context, name string) (string, error) {
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") {
		return "", fmt.Errorf("making a repository: %q is no plain name", name)
	}
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("making the repository %s: %w", name, err)
	}
	if err := MakeBare(s.Dir(name), "main"); err != nil {
		return "", err
	}
	return s.URL + "/" + name, nil
}

// MakeBare makes what git init --bare makes of a folder, without hooks, in the format
// that every git reads, and without a process.
func MakeBare(dir, branch string) error {
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o777); err != nil {
			return fmt.Errorf("making the repository %s: %w", dir, err)
		}
	}
	for name, text := range map[string]string{
		"HEAD":   "ref: refs/heads/" + branch + "\n",
		"config": "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return fmt.Errorf("making the repository %s: %w", dir, err)
		}
	}
	return nil
}

// Dir is where a repository that Init made lies.
func (s *Server) Dir(name string) string { return filepath.Join(s.root, name) }
