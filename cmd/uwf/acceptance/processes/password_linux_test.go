package processes

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/internal/testpty"
)

// TestNobodyIsAskedForAPassword: at a terminal, of a remote that wants a password, git asks
// nobody, by whatever way a person's settings name, and the terminal is left as it was: also by
// ctrl-C.
func TestNobodyIsAskedForAPassword(t *testing.T) {
	t.Parallel()
	l := newLab(t, loop, "", nil)
	m := l.machine("a")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	asked, waits := l.path("asked"), l.path("waits")
	l.write(l.path("askpass"), "#!/bin/sh\necho \"$1\" >> '"+asked+"'\necho guess\n")
	l.check(os.Chmod(l.path("askpass"), 0o700))
	l.git(m.clone, "remote", "set-url", "origin", server.URL+"/acme/svc.git")
	l.write(filepath.Join(m.clone, ".uwf", "config.yaml"), "state: {remote: origin}\n")
	l.write(filepath.Join(l.path("home"), ".gitconfig"), "[core]\n\taskPass = "+l.path("askpass")+"\n")
	l.check(unix.Mkfifo(waits, 0o600))

	for _, args := range [][]string{{"thread", "list"}, {"doctor"}, {"init", "--provider", "openai", "--yes"}} {
		tty, j := startUnasked(t, m, args...)
		<-j.done
		j.looksUnasked(tty, asked)
		if args[0] == "thread" {
			j.says("access denied", "gh auth login")
		}
	}
	// A helper that takes its time, and a person who does not.
	l.write(filepath.Join(l.path("home"), ".gitconfig"), "[credential]\n\thelper = \"!cat '"+waits+"' #\"\n")
	tty, j := startUnasked(t, m, "thread", "list")
	fifo, err := os.OpenFile(waits, os.O_WRONLY, 0) // it has begun
	l.check(err)
	j.signal(syscall.SIGINT)
	<-j.done
	l.check(fifo.Close())
	j.looksUnasked(tty, asked)
}

// startUnasked starts uwf at a terminal of its own, with nothing in the environment that keeps
// git from asking.
func startUnasked(t *testing.T, m *machine, args ...string) (tty *os.File, j *job) {
	t.Helper()
	_, tty = testpty.Open(t)
	j, ctx := m.newJob(args)
	j.unset = []string{"GIT_TERMINAL_PROMPT", "GIT_CONFIG_GLOBAL"}
	j.runProcess(ctx, []string{"SSH_ASKPASS=" + m.path("askpass"), "GIT_ASKPASS=" + m.path("askpass"), "DISPLAY=:0"}, tty)
	return tty, j
}

// looksUnasked checks what is left of a job that had nobody to ask.
func (j *job) looksUnasked(tty *os.File, asked string) {
	j.m.Helper()
	if said := j.errs.String() + j.out.String(); strings.Contains(said, "Username") || strings.Contains(said, "Password for") {
		j.m.Errorf("it asks: %s", said)
	}
	if n := j.m.lines(asked); n > 0 {
		j.m.Errorf("the askpass program was called %d times by uwf %s", n, strings.Join(j.args, " "))
	}
	mode, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	j.m.check(err)
	if mode.Lflag&unix.ECHO == 0 {
		j.m.Errorf("uwf %s leaves the terminal without echo", strings.Join(j.args, " "))
	}
}
