package forgetest

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
)

// Call is a request that the server was asked.
type Call struct {
	// Git: a request of git; else one of the API.
	Git    bool
	Method string
	// Path is the path below repos/OWNER/NAME, or the whole below the API's root; for
	// git that below the server.
	Path  string
	Query string
	// Body as it was sent; empty for git.
	Body string
	// Login is whose token it carried; empty without one.
	Login string
	// Status of the answer; 0: none was given.
	Status int
}

// Calls are the requests of the API so far, in the order of their ends.
func (s *Server) Calls() []Call { return s.callsOf(false) }

// GitCalls are the requests of git so far.
func (s *Server) GitCalls() []Call { return s.callsOf(true) }

func (s *Server) callsOf(git bool) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Call
	for _, c := range s.calls {
		if c.Git == git {
			list = append(list, c)
		}
	}
	return list
}

// Count counts the requests of the API with that method (empty: any) whose path
// begins with a prefix.
func (s *Server) Count(method, prefix string) int {
	n := 0
	for _, c := range s.Calls() {
		if (method == "" || c.Method == method) && strings.HasPrefix(c.Path, prefix) {
			n++
		}
	}
	return n
}

// ForgetCalls empties the record.
func (s *Server) ForgetCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

func (s *Server) record(c Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

// recorder keeps an answer back.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newRecorder() *recorder { return &recorder{header: http.Header{}} }

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

// send gives the answer that was kept back.
func (r *recorder) send(w http.ResponseWriter) {
	for k, v := range r.header {
		w.Header()[k] = slices.Clone(v)
	}
	if r.status != 0 {
		w.WriteHeader(r.status)
	}
	_, _ = w.Write(r.body.Bytes()) // a client that is gone is its own affair
}

// witness notes the status of an answer.
type witness struct {
	http.ResponseWriter
	status int
}

func (w *witness) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *witness) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}
