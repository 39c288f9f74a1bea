package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/testmode"
)

func newFactory(t *testing.T, environ ...string) *Factory {
	t.Helper()
	f := &Factory{
		IO:      IO{In: strings.NewReader("input"), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}},
		Environ: environ, Dir: t.TempDir(), Now: time.Now, Rand: strings.NewReader("12345678"),
	}
	f.Git = func(context.Context, GitCall) ([]byte, error) {
		t.Error("git was called")
		return nil, errors.New("git was called")
	}
	return f
}

func TestExitCode(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("anything"), 1},
		{&life.FailedError{Err: errors.New("x")}, 1},
		{Usagef("x"), 2},
		{fmt.Errorf("put: %w", Usagef("x")), 2},
		{&UnknownError{What: "node", ID: "x"}, 2},
		{&workflow.InvalidError{}, 2},
		{fmt.Errorf("x: %w", gitcas.ErrNoStore), 2},
		{&life.DeedError{Kind: life.KindSuspended}, 3},
		{&life.DeedError{Kind: life.KindNotYours}, 4},
		{&gitcas.DamagedError{Kind: gitcas.ErrRewritten}, 5},
		{fmt.Errorf("x: %w", &wire.RemoteError{Kind: wire.ErrUnreachable}), 5},
		{life.NewLimitError("", errors.New("x")), 6},
		{&Exit{Code: 5}, 5},
	} {
		if got := ExitCodeOf(tt.err); got != tt.want {
			t.Errorf("%v: exit code %d, want %d", tt.err, got, tt.want)
		}
	}
	if Message(&Exit{Code: 1}) != "" || Message(nil) != "" || Message(Usagef("x")) != "x" {
		t.Error("wrong messages")
	}
	// What the error itself says is not said again in other words.
	for kind, advised := range map[error]bool{wire.ErrUnreachable: true, wire.ErrTooLong: false} {
		if got := Message(&wire.RemoteError{Op: "fetch", Kind: kind}); strings.Contains(got, "check the network") != advised {
			t.Errorf("%v: %s", kind, got)
		}
	}
}

func TestIdentity(t *testing.T) {
	local, err := newFactory(t).Identity()
	if err != nil || local.Run != "local-3132333435363738" || local.Attempt != 1 || local.PID != os.Getpid() || local.Host == "" {
		t.Errorf("local: %+v, %v", local, err)
	}
	if !local.Alive(os.Getpid(), local.Started) {
		t.Error("this process counts as dead")
	}
	if runtime.GOOS == "linux" && (local.PIDNS == "" || local.Started == 0 || local.Alive(os.Getpid(), local.Started+1)) {
		t.Errorf("another process of this number counts as alive: %+v", local)
	}
	ci, err := newFactory(t, "GITHUB_RUN_ID=42", "GITHUB_RUN_ATTEMPT=3", "GITHUB_JOB=step").Identity()
	if err != nil || ci.Run != "42" || ci.Attempt != 3 || ci.Job != "step" {
		t.Errorf("CI: %+v, %v", ci, err)
	}
	for _, v := range []string{"0", "-1", "x"} {
		if _, err := newFactory(t, "GITHUB_RUN_ID=42", "GITHUB_RUN_ATTEMPT="+v).Identity(); ExitCodeOf(err) != 2 {
			t.Errorf("attempt %s: %v", v, err)
		}
	}
	f := newFactory(t)
	first, err := f.Identity()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := f.Identity(); err != nil || again.Run != first.Run {
		t.Errorf("asked twice, %s and %s, %v", first.Run, again.Run, err)
	}
}

func TestGetenvTakesTheLast(t *testing.T) {
	f := newFactory(t, "A=1", "AB=2", "A=3")
	if f.Getenv("A") != "3" || f.Getenv("B") != "" {
		t.Error(f.Getenv("A"), f.Getenv("B"))
	}
}

// Credentials go to the server that they are for, and nowhere else: the URL may
// come from a repository's own file.
func TestBasicAuth(t *testing.T) {
	token := "t" + "oken"
	env := func(more ...string) []string { return append(more, "GITHUB_TOKEN="+token) }
	for _, tt := range []struct {
		name    string
		environ []string
		url     string
		want    string // "": git is asked
	}{
		{"github", env(), "https://github.com/o/r", token},
		{"github in capitals", env(), "https://GitHub.com/o/r.git", token},
		{"another server", env(), "https://evil.example/o/r", ""},
		{"a longer name", env(), "https://github.com.evil.example/o/r", ""},
		{"in the clear", env(), "http://github.com/o/r", ""},
		{"another port", env(), "https://github.com:8443/o/r", ""},
		{"enterprise", env("GITHUB_SERVER_URL=https://git.corp.example"), "https://git.corp.example/o/r", token},
		{"github from enterprise", env("GITHUB_SERVER_URL=https://git.corp.example"), "https://github.com/o/r", ""},
		{"loopback", env("GITHUB_SERVER_URL=http://127.0.0.1:3000"), "http://127.0.0.1:3000/o/r", token},
		{"no token", nil, "https://github.com/o/r", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFactory(t, tt.environ...)
			var asked string
			f.Git = func(_ context.Context, c GitCall) ([]byte, error) {
				if slices.Contains(c.Args, "config") {
					return []byte("global\x00credential.helper\nstore\x00"), nil
				}
				asked = string(c.Stdin)
				if !slices.Equal(c.Args, []string{"credential", "fill"}) {
					t.Errorf("git %v", c.Args)
				}
				return []byte("protocol=https\nusername=me\npassword=known=to=git\n"), nil
			}
			user, pass, err := newCredentialSource(f, tt.url)(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tt.want != "" && (pass != tt.want || user != tokenUser || asked != "") {
				t.Errorf("%s, %s; git was asked %q", user, pass, asked)
			}
			if tt.want == "" && (pass != "known=to=git" || user != "me" || strings.Contains(asked, token) || !strings.Contains(asked, "host=")) {
				t.Errorf("%s, %s; git was asked %q", user, pass, asked)
			}
		})
	}
	f := newFactory(t)
	if newCredentialSource(f, "ssh://git@example.com/x") != nil || newCredentialSource(f, "file:///x") != nil || newCredentialSource(f, "https://me:pw@example.com/x") != nil {
		t.Error("credentials where none are needed")
	}
	f.Git = func(context.Context, GitCall) ([]byte, error) { return nil, errors.New("no helper") }
	if user, pass, err := newCredentialSource(f, "https://example.com/x")(t.Context()); user != "" || pass != "" || err != nil {
		t.Errorf("without a helper: %q %q %v", user, pass, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := newCredentialSource(f, "https://example.com/x")(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	// A line break in a URL must not become a field of its own.
	f.Git = func(_ context.Context, c GitCall) ([]byte, error) {
		if strings.Contains(string(c.Stdin), "host=good") {
			t.Errorf("git was asked %q", c.Stdin)
		}
		return nil, errors.New("x")
	}
	if ask := newCredentialSource(f, "https://evil.example/x%0ahost=good.example"); ask != nil {
		if _, _, err := ask(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFindRepo(t *testing.T) {
	top := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		full := filepath.Join(top, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("repo/.git/HEAD", "ref: refs/heads/main\n")
	write("repo/a/b/file", "")
	write("repo/.git/worktrees/side/HEAD", "ref: refs/heads/uwf-state\n")
	write("repo/.git/worktrees/side/commondir", "../..\n")
	write("repo/.git/worktrees/side/gitdir", filepath.Join(top, "side", ".git")+"\n")
	write("side/.git", "gitdir: "+filepath.Join(top, "repo/.git/worktrees/side")+"\n")
	write("repo/module/.git", "gitdir: ../.git/modules/module\n")
	write("repo/.git/modules/module/HEAD", "ref: refs/heads/main\n")
	write("repo/odd/.git", "no git file at all")
	write("repo/empty/.git/nothing", "")
	write("none/file", "")

	repo := filepath.Join(top, "repo")
	for _, tt := range []struct{ dir, root, git string }{
		{"repo", "repo", "repo/.git"},
		{"repo/a/b", "repo", "repo/.git"},
		{"side", "side", "repo/.git"},
		{"repo/module", "repo/module", "repo/.git/modules/module"},
		{"repo/odd", "repo", "repo/.git"},
		{"repo/empty", "repo", "repo/.git"},
	} {
		got := findRepo(filepath.Join(top, tt.dir))
		if got.Root != filepath.Join(top, tt.root) || got.Dir != filepath.Join(top, tt.git) {
			t.Errorf("%s: %+v", tt.dir, got)
		}
	}
	if got := findRepo(filepath.Join(top, "none")); got != (Repo{}) {
		t.Errorf("outside of a repository: %+v", got)
	}
	r := Repo{Root: repo, Dir: filepath.Join(repo, ".git")}
	for branch, want := range map[string]string{"main": repo, "uwf-state": filepath.Join(top, "side"), "other": ""} {
		if got, err := r.checkedOut(branch); err != nil || got != want {
			t.Errorf("%s is checked out in %q, %v; want %q", branch, got, err, want)
		}
	}
}

func TestNear(t *testing.T) {
	all := []string{"01JY0000000000000000000001", "01JY0000000000000000000002", "01KZ0000000000000000000009", "solve-issue"}
	for _, tt := range []struct {
		id   string
		want []string
	}{
		{"01JY", all[:2]},
		{"01jy", all[:2]},
		{"01KZ0000000000000000000009X", all[2:3]},
		{"solve-isue", all[3:]},
		{"Solve-Issue", all[3:]},
		{"01", nil}, // too short to mean one
		{"zzzzzz", nil},
	} {
		if got := SuggestNames(tt.id, append(all, all...)); !slices.Equal(got, tt.want) {
			t.Errorf("SuggestNames(%q) = %v, want %v", tt.id, got, tt.want)
		}
	}
}

func TestReadInput(t *testing.T) {
	f := newFactory(t)
	if b, err := f.ReadInput("-", 5); err != nil || string(b) != "input" {
		t.Errorf("stdin: %q, %v", b, err)
	}
	f.IO.In = strings.NewReader("input")
	if _, err := f.ReadInput("", 4); ExitCodeOf(err) != 2 {
		t.Errorf("stdin beyond the limit: %v", err)
	}
	if err := os.WriteFile(filepath.Join(f.Dir, "x"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := f.ReadInput("x", 4); err != nil || string(b) != "text" {
		t.Errorf("file: %q, %v", b, err)
	}
	for _, name := range []string{"missing", ".", "/dev/null"} {
		if _, err := f.ReadInput(name, 4); ExitCodeOf(err) != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGroup(t *testing.T) {
	run := func(args ...string) error {
		g := Group(&cobra.Command{Use: "noun", SilenceErrors: true, SilenceUsage: true},
			&cobra.Command{Use: "verb", RunE: func(*cobra.Command, []string) error { return nil }})
		g.SetOut(io.Discard)
		g.SetArgs(args)
		return g.Execute()
	}
	if err := run(); err != nil {
		t.Errorf("alone: %v", err)
	}
	if err := run("verb"); err != nil {
		t.Errorf("verb: %v", err)
	}
	err := run("vreb")
	var unknown *UnknownError
	if !errors.As(err, &unknown) || !slices.Contains(unknown.Near, "verb") {
		t.Errorf("vreb: %v", err)
	}
}

// A second process that makes the user's own store at the same time must not
// break it.
func TestMakePersonalTwice(t *testing.T) {
	f := newFactory(t)
	dir := filepath.Join(f.Dir, "home", "store.git")
	calls := 0
	f.Git = func(_ context.Context, c GitCall) ([]byte, error) {
		calls++
		// Another process is done while this one runs git init.
		if err := os.MkdirAll(filepath.Join(dir, "objects"), 0o700); err != nil {
			return nil, err
		}
		return nil, os.WriteFile(filepath.Join(c.Dir, "HEAD"), nil, 0o600)
	}
	if err := makePersonal(t.Context(), f, dir); err != nil {
		t.Fatal(err)
	}
	if err := makePersonal(t.Context(), f, dir); err != nil || calls != 1 {
		t.Errorf("made again: %v, git ran %d times", err, calls)
	}
	left, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	f.Git = func(context.Context, GitCall) ([]byte, error) { return nil, errors.New("no git") }
	other := filepath.Join(f.Dir, "other", "store.git")
	if err := makePersonal(t.Context(), f, other); err == nil {
		t.Error("made without git")
	}
	if left, err := os.ReadDir(filepath.Dir(other)); err != nil || len(left) != 0 {
		t.Errorf("left behind after a failure: %v, %v", left, err)
	}
}

func TestGitErrorHidesArguments(t *testing.T) {
	f := newFactory(t)
	_, err := f.runGit(t.Context(), GitCall{Dir: f.Dir, Args: []string{"-c", "a=secret", "nonsense-command"}})
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "git") {
		t.Errorf("%v", err)
	}
}

// TestProgramsOfAgents: no git, ssh or gh is taken from where agents work, by whichever
// way uwf runs one.
func TestProgramsOfAgents(t *testing.T) {
	testmode.NeedGit(t)
	usual := os.Getenv("PATH")
	top := realPath(t.TempDir())
	repo, named, home := filepath.Join(top, "repo"), filepath.Join(top, "named"), filepath.Join(top, "home")
	bin := func(dir string) string {
		in := filepath.Join(dir, "node_modules/.bin")
		for _, name := range []string{"git", "ssh", "gh"} {
			put(t, filepath.Join(in, name), "#!/bin/sh\necho planted\n")
		}
		return in
	}
	for _, dir := range []string{repo, home} {
		put(t, filepath.Join(dir, ".git/HEAD"), "ref: refs/heads/main\n")
		put(t, filepath.Join(dir, "sub/file"), "")
	}
	for _, c := range []struct {
		name, first, dir string
		kept             bool
	}{
		{"of the repository", bin(repo), filepath.Join(repo, "sub"), false},
		{"of a named workspace", bin(named), filepath.Join(repo, "sub"), false},
		{"of the home", bin(home), filepath.Join(home, "sub"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := NewAt(c.dir, []string{"PATH=" + c.first + ":" + usual, "HOME=" + home}, IO{})
			f.ExcludeProgramsFrom(named)
			out, err := f.Git(t.Context(), GitCall{Dir: f.RepoRoot(), Args: []string{"version"}})
			if err != nil || strings.HasPrefix(string(out), "planted") != c.kept {
				t.Errorf("git: %s %v", out, err)
			}
			gh, environ, _ := f.Program("gh") // which may be installed here
			if strings.HasPrefix(gh, c.first) != c.kept {
				t.Errorf("gh: %s", gh)
			}
			var dialled []string
			f.DialWire = func(_ string, o wire.DialOptions) (wire.Remote, error) {
				dialled = o.Env
				return nil, errors.New("not dialled")
			}
			_, _ = f.DialAs("ssh://forge.example/r", nil)
			for child, environ := range map[string][]string{"gh": environ, "git and ssh": dialled} {
				if path := NewAt("", environ, IO{}).Getenv("PATH"); path == "" || strings.Contains(path, c.first) != c.kept {
					t.Errorf("%s looks in %q", child, path)
				}
			}
		})
	}
	// Where there is no other git, the one there is used.
	f := NewAt(repo, []string{"PATH=" + bin(repo), "HOME=" + home}, IO{})
	if out, err := f.Git(t.Context(), GitCall{Dir: repo, Args: []string{"version"}}); err != nil || string(out) != "planted\n" {
		t.Errorf("%s %v", out, err)
	}
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // as package managers do
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil { //nolint:gosec // some are programs
		t.Fatal(err)
	}
}

// TestGitOfTheWorkspace: a git that lies in the folder that is asked about, or in the
// job's workspace, is not run, though PATH names it first.
func TestGitOfTheWorkspace(t *testing.T) {
	testmode.NeedGit(t)
	workspace, other := t.TempDir(), t.TempDir()
	bin := filepath.Join(workspace, "node_modules", ".bin")
	if err := os.MkdirAll(bin, 0o755); err != nil { //nolint:gosec // as package managers do
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\necho planted\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	link := filepath.Join(other, "bin")
	if err := os.Symlink(bin, link); err != nil {
		t.Fatal(err)
	}
	usual := os.Getenv("PATH")
	for _, first := range []string{bin, link} {
		t.Setenv("PATH", first+":"+usual)
		f := NewAt(workspace, []string{"PATH=" + first + ":" + usual, "GITHUB_WORKSPACE=" + workspace}, IO{})
		for _, dir := range []string{workspace, other} {
			out, err := f.Git(t.Context(), GitCall{Dir: dir, Args: []string{"version"}})
			if err != nil || !strings.HasPrefix(string(out), "git version") {
				t.Errorf("%s in %s: %s %v", first, dir, out, err)
			}
		}
	}
}

// TestWithin: by its name or where it leads, also what isn't there yet.
func TestWithin(t *testing.T) {
	top := realPath(t.TempDir())
	dir, link := filepath.Join(top, "dir"), filepath.Join(top, "link")
	put(t, filepath.Join(dir, "sub/file"), "")
	if err := errors.Join(os.Symlink(dir, link), os.Symlink(filepath.Join(dir, "sub"), filepath.Join(top, "other"))); err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]bool{
		dir: true, link: true, filepath.Join(link, "sub"): true, filepath.Join(link, "not/there"): true, filepath.Join(dir, "not/there"): true,
		filepath.Join(top, "other"): true, top: false, dir + "2": false, filepath.Join(top, "not/there"): false, filepath.Join(dir, "../dir2"): false, "/": false,
	} {
		for _, in := range []string{dir, link} {
			if got := Within(place, in); got != want {
				t.Errorf("%s in %s: %v", place, in, got)
			}
		}
	}
}

// TestNewStoreInAgents: no store begins inside of an agent, whatever program asks for it.
func TestNewStoreInAgents(t *testing.T) {
	f := newFactory(t, "HOME="+t.TempDir(), "UWF_PROCESS_MARK=outer")
	if _, err := f.NewStore(t.Context()); !errors.As(err, new(*UsageError)) || !strings.Contains(err.Error(), "an agent cannot start or change threads") {
		t.Errorf("%v", err)
	}
	if _, err := f.Store(t.Context()); strings.Contains(err.Error(), "cannot") {
		t.Errorf("a look: %v", err)
	}
}

// TestOldGit: a git that is older than uwf needs is refused by name, and counts as none. A script
// that names no version is the person's.
func TestOldGit(t *testing.T) {
	for version, refused := range map[string]bool{"git version 2.30.9": true, "git version 1.99": true, "git version 2.31.0.windows.1": false, "git version 2.39.5 (Apple Git-154)": false, "git version 3.0": false, "own": false} {
		f := newFactory(t)
		dir := t.TempDir()
		script := "#!/bin/sh\necho called >>" + filepath.Join(dir, "log") + "\necho '" + version + "'\n"
		if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
		f.Environ = []string{"PATH=" + dir}
		var old *OldGitError
		for range 2 {
			_, err := f.runGit(t.Context(), GitCall{Dir: f.Dir, Args: []string{"status"}})
			if errors.As(err, &old) != refused || errors.Is(err, exec.ErrNotFound) != refused {
				t.Errorf("%s: %v", version, err)
			}
		}
		if log, err := os.ReadFile(filepath.Join(dir, "log")); !refused && (err != nil || strings.Count(string(log), "called") != 3) {
			t.Errorf("%s: one look at the version and two calls, and it was run %q, %v", version, log, err)
		}
	}
}
