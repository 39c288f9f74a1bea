// Package cachetest is a cache service of GitHub's Actions for tests, version 2. Its answers are
// those that github.com/tonistiigi/go-actions-cache reads (cache_v2.go) and that its tests, which
// run in real jobs, expect of the service (cache_test.go): an entry is found by how its key begins,
// the newest one first, and a key that exists is refused with status 409. Data is put as Azure's
// Put Blob takes it, in one request.
package cachetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Server is a cache service with the entries of one repository.
type Server struct {
	*httptest.Server
	// Token is what jobs authorize themselves by.
	Token string

	mu      sync.Mutex
	entries []*entry
	asked   []string
	fail    func(w http.ResponseWriter, r *http.Request) bool
}

type entry struct {
	key string
	// version is what clients of one kind know each other by; empty: any.
	version string
	data    []byte
	done    bool
}

// signature is what grants access to the data of entries.
const signature = "se=2030&sig=signature-of-data"

// Start starts an empty one, which ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{Token: "token-of-a-job"}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// Environ is what a job has of it: of GitHub's runner where github is set, else of Gitea's, which
// has its own cache's address, and that of version 2 for other services than the cache.
func (s *Server) Environ(github bool) []string {
	env := []string{"ACTIONS_RUNTIME_TOKEN=" + s.Token, "ACTIONS_RESULTS_URL=" + s.URL + "/"}
	if github {
		return append(env, "ACTIONS_CACHE_SERVICE_V2=True")
	}
	return append(env, "ACTIONS_CACHE_URL="+s.URL+"/")
}

// Fail has all requests answered by a function first, for as long as it returns true.
func (s *Server) Fail(by func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = by
}

// Put makes an entry.
func (s *Server) Put(key string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, &entry{key: key, data: data, done: true})
}

// Entries are the data of all that was saved, by keys.
func (s *Server) Entries() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string][]byte{}
	for _, e := range s.entries {
		if e.done {
			out[e.key] = e.data
		}
	}
	return out
}

// TakeRequests are the requests since it was called last: the method and the path.
func (s *Server) TakeRequests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.asked
	s.asked = nil
	return out
}

// ServeHTTP answers.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	if s.fail != nil && s.fail(w, r) {
		return
	}
	name, isData := strings.CutPrefix(r.URL.Path, "/data/")
	if isData {
		s.serveData(w, r, name)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+s.Token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if call, ok := strings.CutPrefix(r.URL.Path, "/twirp/github.actions.results.api.v1.CacheService/"); ok {
		s.serveCall(w, r, call)
		return
	}
	w.WriteHeader(http.StatusNotFound)
}

// find is the newest entry of a version whose key begins so, or -1.
func (s *Server) find(key, version string) int {
	for i, e := range slices.Backward(s.entries) {
		if e.done && strings.HasPrefix(e.key, key) && (e.version == version || e.version == "") {
			return i
		}
	}
	return -1
}

// reserve makes an entry that is not done yet; -1: there is one with that key.
func (s *Server) reserve(key, version string) int {
	if slices.ContainsFunc(s.entries, func(e *entry) bool { return e.key == key }) {
		return -1
	}
	s.entries = append(s.entries, &entry{key: key, version: version})
	return len(s.entries) - 1
}

func (s *Server) address(i int) string { return fmt.Sprintf("%s/data/%d?%s", s.URL, i, signature) }

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client is gone
}

func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, call string) {
	var req struct {
		Key       string `json:"key"`
		Version   string `json:"version"`
		SizeBytes int    `json:"size_bytes"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		answer(w, http.StatusBadRequest, map[string]string{"code": "malformed", "msg": err.Error()})
		return
	}
	switch call {
	case "GetCacheEntryDownloadURL":
		if i := s.find(req.Key, req.Version); i >= 0 {
			answer(w, http.StatusOK, map[string]any{"ok": true, "signed_download_url": s.address(i), "matched_key": s.entries[i].key})
			return
		}
		answer(w, http.StatusOK, map[string]any{"ok": false, "signed_download_url": "", "matched_key": ""})
	case "CreateCacheEntry":
		i := s.reserve(req.Key, req.Version)
		if i < 0 {
			answer(w, http.StatusConflict, map[string]string{"code": "already_exists", "msg": "cache entry with the same key, version, and scope already exists"})
			return
		}
		answer(w, http.StatusOK, map[string]any{"ok": true, "signed_upload_url": s.address(i)})
	case "FinalizeCacheEntryUpload":
		for i, e := range s.entries {
			if e.key == req.Key && len(e.data) == req.SizeBytes {
				e.done = true
				answer(w, http.StatusOK, map[string]any{"ok": true, "entry_id": strconv.Itoa(i)})
				return
			}
		}
		answer(w, http.StatusOK, map[string]any{"ok": false})
	}
}

// serveData is the storage of data, which asks for a signature and no token.
func (s *Server) serveData(w http.ResponseWriter, r *http.Request, name string) {
	i, err := strconv.Atoi(name)
	if err != nil || i >= len(s.entries) || !strings.Contains(r.URL.RawQuery, "sig=signature-of-data") || r.Header.Get("Authorization") != "" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	e := s.entries[i]
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Length", strconv.Itoa(len(e.data)))
		_, _ = w.Write(e.data) // the client is gone
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("X-Ms-Blob-Type") != "BlockBlob" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.data = body
	w.WriteHeader(http.StatusCreated)
}
