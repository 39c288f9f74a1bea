package forgetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/gitservertest"
)

// middleware stands before git's server: the API, and who may clone and push.
func (s *Server) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, s.prefix()+"/") {
			s.serveAPI(w, r)
			return
		}
		if r.URL.Path == graphQL && !s.o.Gitea {
			s.serveGraphQL(w, r)
			return
		}
		s.serveGit(w, r, next)
	})
}

// headerApp tells the hook that a job's token pushes.
const headerApp = "X-Forgetest-App"

func (s *Server) serveGit(w http.ResponseWriter, r *http.Request, next http.Handler) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	repo := s.Repository()
	if !strings.HasPrefix(name, repo+".git/") && strings.HasPrefix(name, repo+"/") {
		name = repo + ".git/" + strings.TrimPrefix(name, repo+"/")
		r.URL.Path, r.URL.RawPath = "/"+name, ""
	}
	seen := &witness{ResponseWriter: w}
	seen.Header().Set("Date", s.now().Format(http.TimeFormat))
	push := strings.HasSuffix(name, "/git-receive-pack") || r.URL.Query().Get("service") == "git-receive-pack"
	s.mu.Lock()
	t, bad := s.who(r)
	may, app := s.may(t, "contents=read"), t != nil && t.app
	if push {
		may = t != nil && s.may(t, "contents=write")
	}
	s.mu.Unlock()
	defer func() {
		s.record(Call{Git: true, Method: r.Method, Path: name, Query: r.URL.RawQuery, Login: t.name(), Status: seen.status})
	}()
	s.faulty(seen, r, true, name, func(w http.ResponseWriter) {
		switch {
		case bad, !may && t == nil:
			s.gitDenied(w, http.StatusUnauthorized, "Authentication failed.\n")
		case !may:
			s.gitDenied(w, http.StatusForbidden, s.pushDenied())
		case push && r.Method == http.MethodPost:
			s.receive(w, r, next, app)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (s *Server) gitDenied(w http.ResponseWriter, status int, why string) {
	realm := "GitHub"
	if s.o.Gitea {
		realm = "Gitea"
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("Basic realm=%q", realm))
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(why)) // a client that is gone is its own affair
}

func (s *Server) pushDenied() string {
	if s.o.Gitea {
		return "User permission denied for writing.\n"
	}
	return "Write access to repository not granted.\n"
}

// receive takes a push. What the hook refuses is answered with the forge's reason
// instead of git's "pre-receive hook declined".
func (s *Server) receive(w http.ResponseWriter, r *http.Request, next http.Handler, app bool) {
	r.Header.Del(headerApp)
	if app {
		r.Header.Set(headerApp, "1")
	}
	kept := newRecorder()
	next.ServeHTTP(kept, r)
	if bytes.Contains(kept.body.Bytes(), []byte(declined)) {
		told := tellReason(kept.body.Bytes())
		kept.body.Reset()
		_, _ = kept.body.Write(told) // a buffer takes all
		kept.header.Del("Content-Length")
	}
	kept.send(w)
}

// rule is something that pushes must meet.
type rule struct {
	branch  string // a pattern in the way of the shell, below refs/heads
	kind    string // as in a ruleset: pull_request, creation, update, …; protection: no ruleset
	message string
}

// protection is the kind of the older rules: protections of branches.
const protection = "protection"

// ProtectBranches refuses pushes to branches that match a pattern, as a branch protection
// does, GitHub's older kind of rule. On Gitea there is no other.
func (s *Server) ProtectBranches(pattern string) { s.Protect(pattern, protection) }

// Protect refuses pushes to branches that match a pattern, as a ruleset with that
// type of rule does ("pull_request", "creation", "update", …).
func (s *Server) Protect(branches, kind string) {
	message := map[string]string{
		"pull_request":        "Changes must be made through a pull request.",
		"creation":            "Cannot create ref due to creations being restricted.",
		"update":              "Cannot update this protected ref.",
		"required_signatures": "Commits must have verified signatures.",
		protection:            "Protected branch update failed.",
	}[kind]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.rules = append(s.state.rules, rule{branches, kind, or(message, "Repository rule "+kind+" is not met.")})
	var b strings.Builder
	for _, r := range s.state.rules {
		fmt.Fprintf(&b, "refs/heads/%s\t%s\n", r.branch, r.message)
	}
	s.hookFile("protected", b.String())
}

// RefuseSecrets refuses pushes in which a commit adds that text, as push protection
// does.
func (s *Server) RefuseSecrets(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hookFile("secret", text)
}

// hookFile writes what the hook reads.
func (s *Server) hookFile(name, text string) {
	if err := os.WriteFile(filepath.Join(s.dir, "forgetest", name), []byte(text), 0o600); err != nil {
		panic(fmt.Sprintf("forgetest: %v", err)) // the test's folder is gone
	}
}

// makeRepository makes the bare repository with its hook.
func (s *Server) makeRepository() error {
	if err := gitservertest.MakeBare(s.dir, s.o.Branch); err != nil {
		return err
	}
	for _, dir := range []string{"hooks", "forgetest"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o700); err != nil {
			return fmt.Errorf("make the repository's %s: %w", dir, err)
		}
	}
	script := githubWords + hook
	if s.o.Gitea {
		script = giteaWords + hook
	}
	if err := os.WriteFile(filepath.Join(s.dir, "hooks", "pre-receive"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		return fmt.Errorf("write the repository's hook: %w", err)
	}
	return nil
}

// run runs git with nobody's configuration.
func (s *Server) run(ctx context.Context, dir string, stdin []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "LC_ALL=C",
		"GIT_AUTHOR_NAME=Octo", "GIT_AUTHOR_EMAIL=octo@example.com", "GIT_COMMITTER_NAME=Octo", "GIT_COMMITTER_EMAIL=octo@example.com",
	}
	if s.dir != "" && dir == s.dir {
		cmd.Env = append(cmd.Env, "GIT_DIR="+s.dir)
	}
	cmd.Stdin = bytes.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// Git runs git in the served bare repository and returns what it prints, without the
// last line's end.
func (s *Server) Git(args ...string) (string, error) {
	return s.run(context.Background(), s.dir, nil, args...)
}

// gitOnce is Git for what stays the same: a commit's id names what is asked about.
func (s *Server) gitOnce(args ...string) (string, error) {
	key := strings.Join(args, "\x00")
	if out, ok := s.known.Load(key); ok {
		return fmt.Sprint(out), nil
	}
	out, err := s.Git(args...)
	if err == nil {
		s.known.Store(key, out)
	}
	return out, err
}

// File is the text of a file as a branch has it.
func (s *Server) File(branch, name string) (string, error) {
	tip := s.rev(branch)
	if tip == "" {
		return "", fmt.Errorf("read %s: there is no branch %s", name, branch)
	}
	return s.gitOnce("show", tip+":"+name)
}

// Dir is the folder of the served bare repository.
func (s *Server) Dir() string { return s.dir }

// rev is the commit of a branch; empty where there is none.
func (s *Server) rev(branch string) string { return s.ref("refs/heads/" + branch) }

// ref is what a ref points to; empty where there is none. Most answers of the API ask
// for one, and a git for each would be most of their time.
func (s *Server) ref(name string) string {
	if !filepath.IsLocal(name) {
		return ""
	}
	if b, err := os.ReadFile(filepath.Join(s.dir, name)); err == nil {
		return strings.TrimSpace(string(b))
	}
	for line := range s.packedRefs() {
		if sha, packed, _ := strings.Cut(line, " "); packed == name {
			return sha
		}
	}
	return ""
}

// packedRefs are those that git pack-refs wrote down, as "id name".
func (s *Server) packedRefs() iter.Seq[string] {
	return func(yield func(string) bool) {
		b, err := os.ReadFile(filepath.Join(s.dir, "packed-refs"))
		if err != nil {
			return // there are none
		}
		for line := range strings.Lines(string(b)) {
			if line = strings.TrimRight(line, "\n"); strings.Contains(line, " refs/") && !yield(line) {
				return
			}
		}
	}
}

// empty reports that the repository has no branch at all.
func (s *Server) empty() bool {
	for line := range s.packedRefs() {
		if strings.Contains(line, " refs/heads/") {
			return false
		}
	}
	found := errors.New("a branch")
	err := filepath.WalkDir(filepath.Join(s.dir, "refs", "heads"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasSuffix(name, ".lock") {
			return found
		}
		return err
	})
	return err == nil
}

// Commit commits files to a branch as its newest commit, the branch's first where
// there is none, and returns its id. Files that are not named stay; an empty text
// removes one.
func (s *Server) Commit(branch, message string, files map[string]string) (string, error) {
	var in bytes.Buffer
	ref := "refs/heads/" + branch
	fmt.Fprintf(&in, "commit %s\ncommitter Octo <octo@example.com> %d +0000\ndata %d\n%s\n", ref, s.now().Unix(), len(message), message)
	if s.rev(branch) != "" {
		fmt.Fprintf(&in, "from %s^0\n", ref)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if text := files[name]; text == "" {
			fmt.Fprintf(&in, "D %s\n", name)
		} else {
			fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
		}
	}
	in.WriteString("done\n")
	if _, err := s.run(context.Background(), s.dir, in.Bytes(), "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet", "--done", "--force"); err != nil {
		return "", err
	}
	return s.rev(branch), nil
}

// MustCommit is Commit for tests, in which it can't fail.
func (s *Server) MustCommit(t testing.TB, branch, message string, files map[string]string) string {
	t.Helper()
	sha, err := s.Commit(branch, message, files)
	if err != nil {
		t.Fatal(err)
	}
	return sha
}
