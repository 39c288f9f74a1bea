package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestMain makes the test binary the agent that attempts something.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "attempt" {
		if err := attemptOnMac(os.Args[2], os.Args[3:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// attemptOnMac does what an agent must not be able to, or must.
func attemptOnMac(what string, args []string) error {
	switch what {
	case "read":
		_, err := os.ReadFile(args[0])
		return err
	case "list":
		_, err := os.ReadDir(args[0])
		return err
	case "write":
		return os.WriteFile(args[0], []byte("x"), 0o600)
	case "remove":
		return os.Remove(args[0])
	case "hard link":
		return os.Link(args[0], args[1])
	case "rename":
		return os.Rename(args[0], args[1])
	case "symlink":
		link := filepath.Join(args[1], "link")
		_ = os.Remove(link)
		if err := os.Symlink(args[0], link); err != nil {
			return err
		}
		return attemptOnMac("read", []string{link})
	case "signal":
		pid, err := strconv.Atoi(args[0])
		return errors.Join(err, syscall.Kill(pid, syscall.SIGWINCH))
	case "dial":
		c, err := net.Dial(args[0], args[1])
		if err == nil {
			err = c.Close()
		}
		return err
	case "listen":
		l, err := net.Listen(args[0], args[1])
		if err == nil {
			err = l.Close()
		}
		return err
	case "run":
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	return errors.New("nobody knows how to " + what)
}

// yard is a workspace, and what lies around it.
type yard struct {
	*testing.T
	dir, ws, out string
	network      Network
	ports        []uint16
}

func newYard(t *testing.T) *yard {
	t.Helper()
	if r := Probe(); !r.Usable() {
		t.Skipf("NOT TESTED: no agent can be confined here: %s", r)
	}
	dir, err := os.MkdirTemp("/private/tmp", "uwf-seatbelt-") // the names of unix sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	y := &yard{T: t, dir: dir, ws: filepath.Join(dir, "ws"), out: filepath.Join(dir, "out")}
	for _, d := range []string{y.ws, y.out} {
		y.check(os.Mkdir(d, 0o755))
	}
	for _, f := range []string{"ws/own", "ws/moved", "ws/moved-2", "out/secret", "out/victim", "out/removed", "out/replaced"} {
		y.check(os.WriteFile(filepath.Join(dir, f), []byte("secret"), 0o644)) //nolint:gosec // open to all but the sandbox
	}
	return y
}

func (y *yard) check(err error) {
	y.Helper()
	if err != nil {
		y.Fatal(err)
	}
}

func (y *yard) attempt(confined bool, words []string) (string, error) {
	y.Helper()
	self, err := os.Executable()
	y.check(err)
	argv, env := append([]string{self, "attempt"}, words...), os.Environ()
	if confined {
		base, err := os.MkdirTemp(y.dir, "run-")
		y.check(err)
		run := Run{Workspace: y.ws, Base: base, Context: filepath.Join(base, "context"), Stage: filepath.Join(base, "stage"), Argv: argv, Ports: y.ports}
		for _, d := range []string{run.Context, run.Stage} {
			y.check(os.Mkdir(d, 0o700))
		}
		c, err := New(Options{Mode: Require, Network: y.network, Self: []string{self}, Environ: append(os.Environ(), "HOME="+y.out)}).Enter(run)
		y.check(err)
		argv = c.Argv
		env, err = c.Confined(c.Environ(os.Environ()))
		y.check(err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = y.ws, env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// listenAt serves a socket for the test's time and returns its address.
func (y *yard) listenAt(network, address string) string {
	y.Helper()
	l, err := net.Listen(network, address)
	y.check(err)
	y.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// TestSeatbeltEscapes tries what TestEscapes tries on Linux, as far as there is such a thing
// here; each once more outside of the sandbox, where it must succeed.
func TestSeatbeltEscapes(t *testing.T) {
	for name, words := range map[string][]string{
		"reading the user's home":            {"read", "{out}/secret"},
		"listing a folder outside":           {"list", "{out}"},
		"writing a file outside":             {"write", "{out}/victim"},
		"making a file outside":              {"write", "{out}/new"},
		"removing a file outside":            {"remove", "{out}/removed"},
		"a symlink in the workspace":         {"symlink", "{out}/secret", "{ws}"},
		"..":                                 {"read", "../out/secret"},
		"a hard link into the workspace":     {"hard link", "{out}/secret", "{ws}/in"},
		"a hard link out of the workspace":   {"hard link", "{ws}/own", "{out}/linked"},
		"moving a file out of the workspace": {"rename", "{ws}/moved", "{out}/moved"},
		"moving a file over one outside":     {"rename", "{ws}/moved-2", "{out}/replaced"},
		"a child's reading":                  {"run", "/bin/cat", "{out}/secret"},
		"a shell's writing":                  {"run", "/bin/sh", "-c", "echo x >> {out}/victim"},
		"signals to uwf":                     {"signal", strconv.Itoa(os.Getpid())},
		"a socket of another program":        {"dial", "unix", "{sock}"},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			sock := y.listenAt("unix", filepath.Join(y.out, "s"))
			for i, w := range words {
				words[i] = strings.NewReplacer("{out}", y.out, "{ws}", y.ws, "{sock}", sock).Replace(w)
			}
			if out, err := y.attempt(true, words); err == nil || !strings.Contains(out, "not permitted") && !strings.Contains(out, "denied") {
				t.Errorf("confined: %v: %s", err, out)
			}
			if out, err := y.attempt(false, words); err != nil {
				t.Errorf("outside it can't be done either, so this shows nothing: %v: %s", err, out)
			}
		})
	}
}

// TestSeatbeltNetwork: with network: gateway the port of the model is all that there is.
func TestSeatbeltNetwork(t *testing.T) {
	y := newYard(t)
	gateway, other := y.listenAt("tcp4", "127.0.0.1:0"), y.listenAt("tcp4", "127.0.0.1:0")
	_, port, err := net.SplitHostPort(gateway)
	y.check(err)
	n, err := strconv.ParseUint(port, 10, 16)
	y.check(err)
	y.ports = []uint16{uint16(n)}
	for _, network := range []Network{Open, GatewayOnly} {
		y.network = network
		if out, err := y.attempt(true, []string{"dial", "tcp", gateway}); err != nil {
			t.Errorf("%s, the gateway: %v: %s", network, err, out)
		}
		for _, words := range [][]string{{"dial", "tcp", other}, {"listen", "tcp", "127.0.0.1:0"}} {
			if out, err := y.attempt(true, words); (err == nil) != (network == Open) {
				t.Errorf("%s, %v: %v: %s", network, words, err, out)
			}
		}
	}
}

// TestSeatbeltWork: an agent can do its work.
func TestSeatbeltWork(t *testing.T) {
	y := newYard(t)
	script := `set -e
		cat own >/dev/null; echo new > new; mkdir -p a/b; mv new a/b/moved; ln -s a/b/moved soft; rm -r a soft
		echo x > "$HOME/.rc"; f=$(mktemp); rm "$f"; printf x > /dev/null; head -c 1 /dev/urandom >/dev/null
		ls /usr/bin >/dev/null; (sleep 60 & kill $!)
		if command -v git >/dev/null; then git init -q repo; git -C repo status >/dev/null; fi`
	if out, err := y.attempt(true, []string{"run", "/bin/sh", "-c", script}); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := y.attempt(true, []string{"write", filepath.Join(y.ws, "own")}); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
