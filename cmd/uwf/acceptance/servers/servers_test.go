// Package servers drives uwf against git servers that people host themselves, deed by deed. Its
// result is the table in docs/servers.md.
package servers

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/internal/removal"
)

// variable asks for the table. Its value is the folder that .ci/servers filled.
const variable = "UWF_SERVERS"

// newGitVariable names a git that knows reftable, if the one on PATH doesn't.
const newGitVariable = "UWF_GIT_NEW"

// deedLimit ends a deed that hangs. No refusal may take so long.
const deedLimit = 100 * time.Second

// startLimit ends the wait for a server that doesn't come up.
const startLimit = time.Minute

var update = flag.Bool("update", false, "write the rows that were checked into docs/servers.md")

func TestMain(m *testing.M) { clitest.Main(m, nil) }

// row is one server, or one way to set it up.
type row struct {
	name  string
	needs []string // programs, or files by their absolute paths or by their place in the folder of helpers
	git   string   // the git of the server; empty: the one on PATH

	// init are more arguments of git init, config are settings of the repository, key and value
	// in turn, and hooks are scripts by name.
	init, config []string
	hooks        map[string]string
	prepare      func(*lab) // after the repository was filled

	version []string // a command that prints the version
	serve   func(*lab) access

	// says has the words that a user reads, by the name of each deed that doesn't hold. After a
	// refused start the other deeds are not tried, and none after the deed last.
	says map[string]string
	last string
}

// access is how clients reach a server's repository.
type access struct {
	url string
	env []string
}

// lab is the place of one row.
type lab struct {
	*testing.T
	row
	dir  string // everything lies here
	repo string // the bare repository that is served, below root
	root string
}

// TestServers tries every row whose programs are here.
func TestServers(t *testing.T) {
	if os.Getenv(variable) == "" {
		t.Skip("on demand: .ci/run servers")
	}
	rows := slices.Concat(backendRows(), webServerRows(), proxyRows(), sshRows(), programRows())
	done := make([]*result, len(rows))
	t.Run("rows", func(t *testing.T) {
		for i, r := range rows {
			t.Run(strings.NewReplacer(" ", "_", "/", "-").Replace(r.name), func(t *testing.T) {
				t.Parallel()
				for _, need := range r.needs {
					if find(need) == "" {
						t.Skipf("not checked: %s: %s is not here", r.name, need)
					}
				}
				if of := newLab(t, r).try(); !t.Failed() {
					done[i] = of
				}
			})
		}
	})
	compareTable(t, rows, done)
}

// find is where a program or a file is; empty: nowhere. Daemons are not on everybody's PATH.
func find(need string) string {
	if strings.Contains(need, "/") {
		path := need
		if !filepath.IsAbs(path) {
			path = filepath.Join(os.Getenv(variable), path)
		}
		if _, err := os.Stat(path); err != nil {
			return ""
		}
		return path
	}
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/local/sbin", "/usr/sbin", "/sbin") {
		if path, err := exec.LookPath(filepath.Join(dir, need)); err == nil {
			return path
		}
	}
	return ""
}

// newLab makes a row's repository, with a workflow on its default branch.
func newLab(t *testing.T, r row) *lab {
	t.Helper()
	l := &lab{T: t, row: r}
	// Below a folder that every user may enter: servers give up root. And a short one, since it
	// is part of the names of sockets.
	dir, err := os.MkdirTemp("/var/tmp", "uwf-server-*") //nolint:usetesting // for that reason
	l.check(err)
	l.dir = dir
	t.Cleanup(func() { _ = removal.Tree(context.WithoutCancel(t.Context()), dir, 0) })
	l.check(os.Chmod(l.dir, 0o755)) //nolint:gosec // for that reason
	l.root = filepath.Join(l.dir, "served")
	l.repo = filepath.Join(l.root, "r.git")
	l.check(os.MkdirAll(l.root, 0o755))
	l.check(os.MkdirAll(filepath.Join(l.dir, "home"), 0o700))
	l.run("", l.program(), append([]string{"init", "-q", "--bare", "-b", "main", l.repo}, r.init...)...)

	seed := filepath.Join(l.dir, "seed")
	l.write(filepath.Join(seed, ".uwf/workflows/flow.yaml"), flow)
	l.write(filepath.Join(seed, ".uwf/config.yaml"), "state: {remote: origin}\n")
	l.write(filepath.Join(seed, "kept.txt"), "no agent touches this\n")
	l.run("", l.program(), append([]string{"init", "-q", "-b", "main", seed}, r.init...)...)
	l.run(seed, l.program(), "add", "-A")
	l.run(seed, l.program(), "commit", "-q", "-m", "Begin")
	l.run(seed, l.program(), "push", "-q", l.repo, "main")

	for key, value := range pairs(r.config) {
		l.run(l.repo, l.program(), "config", "--add", key, value)
	}
	for name, script := range r.hooks {
		hook := filepath.Join(l.repo, "hooks", name)
		l.write(hook, "#!/bin/sh\n"+script)
		l.check(os.Chmod(hook, 0o755)) //nolint:gosec // a hook
	}
	if r.prepare != nil {
		r.prepare(l)
	}
	return l
}

// pairs are keys and values that stand in turn.
func pairs(of []string) func(yield func(key, value string) bool) {
	return func(yield func(key, value string) bool) {
		for pair := range slices.Chunk(of, 2) {
			if !yield(pair[0], pair[1]) {
				return
			}
		}
	}
}

func (l *lab) program() string { return cmp.Or(l.git, "git") }

func (l *lab) check(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) write(path, text string) string {
	l.Helper()
	l.check(os.MkdirAll(filepath.Dir(path), 0o755))
	l.check(os.WriteFile(path, []byte(text), 0o644)) //nolint:gosec // servers that gave up root read it
	return path
}

// file writes a configuration into the lab's folder. Words like %PORT% are replaced, in turn by
// their values.
func (l *lab) file(name, text string, words ...string) string {
	l.Helper()
	return l.write(filepath.Join(l.dir, name), strings.NewReplacer(words...).Replace(text))
}

// environ is the environment of every client: nothing of this machine's user.
func (l *lab) environ(more ...string) []string {
	home := filepath.Join(l.dir, "home")
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LC_ALL=C", "TMPDIR=" + l.dir,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=someone", "GIT_AUTHOR_EMAIL=someone@example.com",
		"GIT_COMMITTER_NAME=someone", "GIT_COMMITTER_EMAIL=someone@example.com",
	}, more...)
}

// run runs a program that must succeed, and returns what it prints.
func (l *lab) run(dir, program string, args ...string) string {
	l.Helper()
	return l.runWith(nil, dir, program, args...)
}

func (l *lab) runWith(env []string, dir, program string, args ...string) string {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), deedLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = l.environ(env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// freePort is one on which nobody listens.
func (l *lab) freePort() string {
	l.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	l.check(err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	l.check(err)
	return port
}

// daemon starts a program that serves at an address, host:port or the path of a socket, until
// the test ends. It returns once somebody listens there.
func (l *lab) daemon(address string, env []string, program string, args ...string) {
	l.Helper()
	log, err := os.Create(filepath.Join(l.dir, filepath.Base(program)+".log"))
	l.check(err)
	path := find(program)
	if path == "" {
		l.Fatalf("%s is not here", program)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = l.dir
	cmd.Env = l.environ(env...)
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	l.check(cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the log says it
	}()
	l.Cleanup(func() {
		stop(cmd.Process.Pid, ended)
		said, _ := os.ReadFile(log.Name())
		if l.Failed() && len(said) > 0 {
			l.Logf("%s said:\n%s", program, said)
		}
		_ = log.Close()
	})
	l.check(awaitListener(address, ended))
}

// stop asks a program to end, then ends it and those that it started.
func stop(pid int, ended <-chan struct{}) {
	_ = syscall.Kill(pid, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	<-ended
}

func awaitListener(address string, ended <-chan struct{}) error {
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	for begun := time.Now(); time.Since(begun) < startLimit; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial(network, address); err == nil {
			return c.Close()
		}
		select {
		case <-ended:
			return errors.New("the server ended at once")
		default:
		}
	}
	return fmt.Errorf("nobody listens at %s", address)
}

// openRepository lets every user write to the repository: some servers give up root.
func (l *lab) openRepository() {
	l.Helper()
	l.run(l.repo, "git", "config", "core.sharedRepository", "0666")
	l.check(chmodAll(l.repo))
}

// chmodAll lets every user write to a file or a folder.
func chmodAll(root string) error {
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode()|0o666|info.Mode()&0o100>>3|info.Mode()&0o100>>6)
	})
}
