package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Variables that say where things are; .ci/gitea sets them.
const (
	envGitea  = "UWF_GITEA"        // Gitea's program
	envStatic = "UWF_GITEA_STATIC" // its module's folder, which has its templates
	envUwf    = "UWF_BINARY"       // uwf's program; the action's host variant reads it too
)

// Who Gitea runs as where the tests run as root, which it refuses. The number needs no
// entry in /etc/passwd.
const (
	giteaUser = "uwf-gitea"
	giteaID   = 60997
)

// deadline bounds what is waited for. Nothing depends on how long it takes.
const deadline = 30 * time.Minute

// site is a running Gitea.
type site struct {
	*testing.T
	URL    string
	dir    string
	static string
	binary string
	tokens map[string]string // by login
}

// on is the site for a part of the test.
func (s *site) on(t *testing.T) *site {
	part := *s
	part.T = t
	return &part
}

// startGitea starts a Gitea with a site administrator, root.
func startGitea(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	// Another user has to get there.
	for _, d := range []string{filepath.Dir(dir), dir} {
		mustDo(t, os.Chmod(d, 0o755))
	}
	s := &site{T: t, dir: dir, static: filepath.Join(dir, "static"), binary: filepath.Join(dir, "gitea"), tokens: map[string]string{}}
	// The module cache and the program may lie where only root gets to.
	from := setting(t, envStatic)
	for _, name := range []string{"templates", "options", "public"} {
		mustDo(t, os.CopyFS(filepath.Join(s.static, name), os.DirFS(filepath.Join(from, name))))
	}
	copyFile(t, setting(t, envGitea), s.binary)
	mustDo(t, os.Mkdir(filepath.Join(dir, "data"), 0o755))
	if os.Geteuid() == 0 {
		mustDo(t, os.Chown(filepath.Join(dir, "data"), giteaID, giteaID))
	}
	// Somebody may take the free port before Gitea does.
	for range 3 {
		if s.serve() {
			s.addUser("root", "--admin")
			return s
		}
	}
	t.Fatal("Gitea does not start")
	return nil
}

func setting(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run .ci/gitea", name)
	}
	return value
}

func mustDo(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	mustDo(t, err)
	defer func() { _ = in.Close() }() // it was only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	mustDo(t, err)
	_, err = io.Copy(out, in)
	mustDo(t, err)
	mustDo(t, out.Close())
}

const appIni = `APP_NAME = uwf's test
RUN_USER = %[1]s
RUN_MODE = prod
WORK_PATH = %[2]s/data

[server]
PROTOCOL = http
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[3]d
ROOT_URL = http://127.0.0.1:%[3]d/
STATIC_ROOT_PATH = %[4]s
APP_DATA_PATH = %[2]s/data/data
DISABLE_SSH = true
OFFLINE_MODE = true
LFS_START_SERVER = false

[database]
DB_TYPE = sqlite3
PATH = %[2]s/data/gitea.db

[repository]
ROOT = %[2]s/data/repositories
DEFAULT_BRANCH = main

[security]
INSTALL_LOCK = true
SECRET_KEY = not-a-secret
PASSWORD_HASH_ALGO = pbkdf2$1$50

[service]
DISABLE_REGISTRATION = true

[mailer]
ENABLED = false

[actions]
ENABLED = true
DEFAULT_ACTIONS_URL = self

[cron]
ENABLED = false

[cron.start_schedule_tasks]
ENABLED = false

[log]
MODE = console
LEVEL = info
ROOT_PATH = %[2]s/data/log
`

// serve starts the server and waits until it answers; false: it ended.
func (s *site) serve() bool {
	s.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	mustDo(s, err)
	port := listener.Addr().(*net.TCPAddr).Port
	mustDo(s, listener.Close())
	s.URL = fmt.Sprintf("http://127.0.0.1:%d", port)
	data := filepath.Join(s.dir, "data")
	mustDo(s, os.WriteFile(s.config(), fmt.Appendf(nil, appIni, s.user(), s.dir, port, s.static), 0o600))
	if os.Geteuid() == 0 {
		mustDo(s, os.Chown(s.config(), giteaID, giteaID))
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "gitea.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	mustDo(s, err)
	defer func() { _ = log.Close() }() // the server has its own
	cmd := s.command(context.Background(), "web")
	cmd.Dir, cmd.Stdout, cmd.Stderr = data, log, log
	mustDo(s, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(s.Context(), deadline)
	defer cancel()
	for {
		if s.up(ctx) {
			break
		}
		select {
		case err := <-ended:
			s.Logf("Gitea ended: %v\n%s", err, s.log())
			return false
		case <-ctx.Done():
			s.Fatalf("Gitea does not answer:\n%s", s.log())
		case <-time.After(100 * time.Millisecond):
		}
	}
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("the end of Gitea's log:\n%s", s.log())
		}
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill() // it may have ended
			<-ended
		}
	})
	return true
}

func (s *site) up(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/version", nil)
	mustDo(s, err)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = res.Body.Close() // nothing is read
	return res.StatusCode == http.StatusOK
}

// log is the end of what the server said.
func (s *site) log() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "gitea.log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-20_000):])
}

func (s *site) config() string { return filepath.Join(s.dir, "data", "app.ini") }

func (s *site) user() string {
	if os.Geteuid() == 0 {
		return giteaUser
	}
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	out, err := exec.CommandContext(s.Context(), "id", "-un").Output()
	mustDo(s, err)
	return strings.TrimSpace(string(out))
}

// command is Gitea's program with an environment of its own.
func (s *site) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.binary, append(args, "--config", s.config())...)
	data := filepath.Join(s.dir, "data")
	cmd.Dir = data
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + data, "USER=" + s.user(), "TMPDIR=" + data, "LC_ALL=C"}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: giteaID, Gid: giteaID}}
	}
	return cmd
}

// admin runs an administrator's command and returns the last line that it prints.
func (s *site) admin(args ...string) string {
	s.Helper()
	cmd := s.command(s.Context(), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		s.Fatalf("gitea %s: %v\n%s%s", strings.Join(args, " "), err, out.Bytes(), errs.Bytes())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[len(lines)-1]
}

// addUser adds a user with a token for everything.
func (s *site) addUser(login string, more ...string) {
	s.Helper()
	s.admin(slices.Concat([]string{"admin", "user", "create", "--username", login, "--email", login + "@example.com",
		"--random-password", "--must-change-password=false"}, more)...)
	s.tokens[login] = s.admin("admin", "user", "generate-access-token", "--username", login, "--token-name", "test", "--scopes", "all", "--raw")
}

// answer is what a forge said.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask makes one request of the API; an empty token sends none.
func ask(t testing.TB, token, method, url string, body any) answer {
	t.Helper()
	var in io.Reader
	if text, ok := body.(string); ok {
		in = strings.NewReader(text)
	} else if body != nil {
		raw, err := json.Marshal(body)
		mustDo(t, err)
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, in)
	mustDo(t, err)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	mustDo(t, err)
	defer func() { _ = res.Body.Close() }() // it was read whole
	raw, err := io.ReadAll(res.Body)
	mustDo(t, err)
	return answer{status: res.StatusCode, header: res.Header, body: raw}
}

// call makes a request that has to succeed, and decodes the answer into out.
func (s *site) call(login, method, path string, body, out any) {
	s.Helper()
	a := ask(s.T, s.tokens[login], method, s.URL+"/api/v1/"+path, body)
	if a.status >= 300 {
		s.Fatalf("%s %s by %s: %d %s", method, path, login, a.status, a.body)
	}
	if out != nil {
		mustDo(s, json.Unmarshal(a.body, out))
	}
}

// repository is a repository of octo's on the site. Its collaborators are the users
// whose permission is given.
type repository struct {
	*site
	name string // owner/name
}

func (s *site) addRepository(owner, name string, private bool, files map[string]string) *repository {
	s.Helper()
	s.call(owner, http.MethodPost, "user/repos", map[string]any{"name": name, "private": private, "default_branch": "main"}, nil)
	r := &repository{site: s, name: owner + "/" + name}
	r.begin(owner, files)
	return r
}

// begin pushes the first commit and waits until Gitea knows of it, which is a while after it
// has answered. Events that come before are dropped.
func (r *repository) begin(login string, files map[string]string) {
	r.Helper()
	r.commit(login, "main", "Begin", files)
	r.waitUntil("the repository is not empty", func() bool {
		var repo struct {
			Empty bool `json:"empty"`
		}
		r.call(login, http.MethodGet, "repos/"+r.name, nil, &repo)
		return !repo.Empty
	})
}

func (r *repository) allow(login, permission string) {
	r.Helper()
	owner, _, _ := strings.Cut(r.name, "/")
	r.call(owner, http.MethodPut, r.path("collaborators/"+login), map[string]string{"permission": permission}, nil)
}

func (r *repository) path(rest string) string {
	return strings.TrimSuffix("repos/"+r.name+"/"+rest, "/")
}

// waitUntil asks again and again until something is so.
func (s *site) waitUntil(what string, is func() bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), deadline)
	defer cancel()
	for !is() {
		select {
		case <-ctx.Done():
			s.Fatalf("it never came to pass that %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// dirOf is the folder of the served bare repository.
func (r *repository) dirOf() string {
	return filepath.Join(r.dir, "data", "repositories", r.name+".git")
}

// git runs git in the served repository, or elsewhere.
func (r *repository) git(args ...string) string {
	r.Helper()
	out, err := r.tryGit(r.dirOf(), args...)
	mustDo(r, err)
	return out
}

func (r *repository) tryGit(dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(r.Context(), "git", append([]string{"-c", "safe.directory=*"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Octo", "GIT_AUTHOR_EMAIL=octo@example.com", "GIT_COMMITTER_NAME=Octo", "GIT_COMMITTER_EMAIL=octo@example.com",
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// clone clones a branch of the repository with a user's token.
func (r *repository) clone(login, branch string) string {
	r.Helper()
	dir := filepath.Join(r.TempDir(), "clone")
	url := strings.Replace(r.URL, "://", "://"+login+":"+r.tokens[login]+"@", 1) + "/" + r.name + ".git"
	if _, err := r.tryGit(r.dir, "clone", "--quiet", "--branch", branch, url, dir); err != nil {
		r.Fatal(err)
	}
	return dir
}

// commit pushes files to a branch as somebody, the branch's first ones where there is
// none.
func (r *repository) commit(login, branch, message string, files map[string]string) {
	r.Helper()
	dir := filepath.Join(r.TempDir(), "work")
	url := strings.Replace(r.URL, "://", "://"+login+":"+r.tokens[login]+"@", 1) + "/" + r.name + ".git"
	do := func(args ...string) {
		r.Helper()
		_, err := r.tryGit(dir, args...)
		mustDo(r, err)
	}
	mustDo(r, os.Mkdir(dir, 0o755))
	do("init", "--quiet", "--initial-branch="+branch)
	if _, err := r.tryGit(dir, "fetch", "--quiet", url, branch); err == nil {
		do("reset", "--quiet", "--hard", "FETCH_HEAD")
	} else if _, err := r.tryGit(dir, "fetch", "--quiet", url, "main"); err == nil {
		do("reset", "--quiet", "--hard", "FETCH_HEAD")
	}
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		mustDo(r, os.MkdirAll(filepath.Dir(file), 0o755))
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		mustDo(r, os.WriteFile(file, []byte(text), mode))
	}
	do("add", "--all")
	do("commit", "--quiet", "--allow-empty", "--message", message)
	do("push", "--quiet", url, "HEAD:refs/heads/"+branch)
}
