package servers

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
)

// serveBackend serves by git's own http-backend, with more variables in its environment.
func serveBackend(env ...string) func(*lab) access {
	return func(l *lab) access { return l.serveHandler(l.backend(env...)) }
}

func (l *lab) serveHandler(h http.Handler) access {
	s := httptest.NewServer(h)
	l.Cleanup(s.Close)
	return access{url: s.URL + "/r.git"}
}

// backend is git's http-backend as a handler.
func (l *lab) backend(env ...string) http.Handler {
	h := &cgi.Handler{
		Path:   l.backendProgram(),
		Dir:    l.root,
		Env:    append(l.environ("GIT_PROJECT_ROOT="+l.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=someone"), env...),
		Stderr: io.Discard,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // CGI wants the length beforehand
		if err != nil {
			http.Error(w, "the request broke off", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		r.TransferEncoding = nil
		h.ServeHTTP(w, r)
	})
}

func (l *lab) backendProgram() string {
	return filepath.Join(l.run("", l.program(), "--exec-path"), "git-http-backend")
}

// inProtocol0 takes the header away by which clients ask for protocol 2.
func inProtocol0(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Git-Protocol")
		next.ServeHTTP(w, r)
	})
}

// readOnly is a mirror.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.String(), "git-receive-pack") {
			http.Error(w, "This is a mirror.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// newGit is a git that knows reftable, or a name that isn't there.
func newGit() string {
	if git := os.Getenv(newGitVariable); git != "" {
		return git
	}
	return "git-with-reftable"
}

// backendRows are git's own http-backend, set up in many ways.
func backendRows() []row {
	namespace := func(l *lab) {
		l.run(l.repo, "git", "update-ref", "refs/namespaces/team/refs/heads/main", "refs/heads/main")
		l.run(l.repo, "git", "symbolic-ref", "refs/namespaces/team/HEAD", "refs/namespaces/team/refs/heads/main")
	}
	rows := []row{
		{name: "git http-backend"},
		{name: "git http-backend, protocol 0", serve: func(l *lab) access { return l.serveHandler(inProtocol0(l.backend())) }},
		{name: "git http-backend, GIT_NAMESPACE", prepare: namespace, serve: serveBackend("GIT_NAMESPACE=team")},
		{name: "receive.fsckObjects, strict", config: []string{"receive.fsckObjects", "true", "transfer.fsckObjects", "true", "fetch.fsckObjects", "true"}},
		{name: "receive.advertiseAtomic = false", config: []string{"receive.advertiseAtomic", "false"}},
		{name: "push options and signed pushes are offered", config: []string{"receive.advertisePushOptions", "true", "receive.certNonceSeed", "seed"}},
		{name: "receive.denyDeletes", config: []string{"receive.denyDeletes", "true"}},
		{name: "receive.denyNonFastForwards", config: []string{"receive.denyNonFastForwards", "true"}, says: map[string]string{"purge": "the remote takes no new history of the state branch"}},
		{name: "a hook that prints 400 lines", hooks: map[string]string{"pre-receive": "i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo \"line $i of a hook\" >&2; done\n"}},
		{name: "a pre-receive hook that says no", hooks: map[string]string{"pre-receive": "echo 'Ask the release team.' >&2\nexit 1\n"}, says: refusedAtStart("Ask the release team.")},
		{name: "an update hook that keeps refs/uwf", hooks: map[string]string{"update": "case $1 in refs/uwf/*) echo 'No such folder here.' >&2; exit 1;; esac\n"}, says: refusedAtStart("No such folder here.")},
		{name: "transfer.hideRefs = refs/uwf", config: []string{"transfer.hideRefs", "refs/uwf"}, says: refusedAtStart("the server hides this ref")},
		{name: "receive.hideRefs = refs/uwf", config: []string{"receive.hideRefs", "refs/uwf"}, says: refusedAtStart("the server hides this ref")},
		{name: "uploadpack.hideRefs = refs/uwf", config: []string{"uploadpack.hideRefs", "refs/uwf"}, says: refusedAtStart("the server lists no refs/uwf")},
		{name: "a reference-transaction hook that says no", hooks: map[string]string{"reference-transaction": "! grep -q refs/uwf/\n"}, says: refusedAtStart("the server ends without a report")},
		{name: "receive.procReceiveRefs without a hook", config: []string{"receive.procReceiveRefs", "refs/uwf"}, says: refusedAtStart("cannot find hook 'proc-receive'")},
		{name: "a SHA-256 repository", init: []string{"--object-format=sha256"}, says: refusedAtOnce("this repository names its objects by SHA-256, which uwf can't read yet")},
		{name: "receive.maxInputSize is too small", config: []string{"receive.maxInputSize", "2000"}, says: refusedAtStart("larger than the server takes")},
		{name: "a mirror that takes no pushes", serve: func(l *lab) access { return l.serveHandler(readOnly(l.backend())) }, says: refusedAtStart("access denied: HTTP status 403 Forbidden: This is a mirror.")},
		{name: "a folder of files (dumb HTTP)", serve: serveFiles, says: refusedAtOnce("check that the remote's address is that of a git repository")},
	}
	for i := range rows {
		rows[i].needs = append(rows[i].needs, "git")
		rows[i].version = []string{"git", "version"}
		rows[i].config = append(rows[i].config, "http.receivepack", "true")
		if rows[i].serve == nil {
			rows[i].serve = serveBackend()
		}
	}
	for _, format := range []string{"files", "reftable"} {
		rows = append(rows, row{
			name: "a newer git's http-backend, " + format, git: newGit(), needs: []string{newGit()}, version: []string{newGit(), "version"},
			init: []string{"--ref-format=" + format}, config: []string{"http.receivepack", "true"}, serve: serveBackend(),
		})
	}
	return rows
}

// serveFiles serves the repository's files as they are.
func serveFiles(l *lab) access {
	l.run(l.repo, "git", "update-server-info")
	return l.serveHandler(http.FileServer(http.Dir(l.root)))
}

// refusedAtStart is a server on which no thread can be started, for a reason that is told.
func refusedAtStart(words string) map[string]string { return map[string]string{"start": words} }

// refusedAtOnce is a server that can't be read either.
func refusedAtOnce(words string) map[string]string {
	return map[string]string{"list": words, "start": words}
}
