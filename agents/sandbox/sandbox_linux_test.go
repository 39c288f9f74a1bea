package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/agents/internal/proc"
)

// TestMain makes the test binary what uwf is for an agent: its sandbox's helper;
// and the agent itself.
func TestMain(m *testing.M) {
	if code, ours := proc.Watch(os.Args); ours {
		os.Exit(code)
	}
	if code, ours := Helper(os.Args, os.Environ()); ours {
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == "attempt" {
		os.Exit(attempt(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// owner is whom workspaces of the tests belong to where they run as root.
const owner = 1001

// quickExit takes the second away that the race detector waits for at the end of
// each process.
const quickExit = "GORACE=atexit_sleep_ms=0"

// place is a machine in small: a workspace, and what lies around it. Everything
// outside is open to every user, so that only Landlock keeps an agent out of it.
type place struct {
	*testing.T
	dir, workspace, outside string
	self                    string
	options                 Options
	report                  Report
	edit                    func(*policy) // what a test changes
	files                   []string
	ports                   []uint16
	by                      RunLine // nil: this package's own means
	own                     bool    // the workspace is, see Run.Own
}

func newPlace(t *testing.T) *place {
	t.Helper()
	report := Probe()
	if !report.Usable() {
		t.Skipf("NOT TESTED: no agent can be confined here: %s", report)
	}
	dir, err := os.MkdirTemp("", "uwf-sandbox-") //nolint:usetesting // no other user gets to those of t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &place{T: t, dir: resolvePath(dir), report: report}
	p.workspace, p.outside = filepath.Join(p.dir, "workspace"), filepath.Join(p.dir, "outside")
	for _, d := range []string{p.dir, p.workspace, p.outside} {
		p.must(os.MkdirAll(d, 0o755))
		p.must(os.Chmod(d, 0o777))
	}
	p.must(os.Chmod(p.workspace, 0o755))
	p.write("workspace/own.txt", "own\n")
	p.write("outside/secret.txt", secret)
	p.write("outside/victim.txt", secret)
	if os.Geteuid() == 0 {
		p.must(os.Chown(p.workspace, owner, owner))
	}
	p.self, err = os.Executable()
	p.must(err)
	p.options = Options{Mode: Require, Self: []string{p.self}, Environ: []string{"PATH=/usr/bin:/bin", "HOME=" + p.path("outside"), quickExit}}
	return p
}

func (p *place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

func (p *place) write(name, text string) string {
	p.Helper()
	p.must(os.WriteFile(p.path(name), []byte(text), 0o600))
	p.must(os.Chmod(p.path(name), 0o666))
	return p.path(name)
}

// base makes the folders of a run.
func (p *place) base() (base, context, stage string) {
	p.Helper()
	base, err := os.MkdirTemp(p.dir, "run-")
	p.must(err)
	context, stage = filepath.Join(base, "context"), filepath.Join(base, "stage")
	p.must(os.Mkdir(context, 0o700))
	p.must(os.Mkdir(stage, 0o700))
	p.must(os.WriteFile(filepath.Join(context, "context.json"), []byte("{}"), 0o444))
	return base, context, stage
}

func (p *place) enter(argv ...string) (*Cell, error) {
	p.Helper()
	base, context, stage := p.base()
	o := p.options
	o.Report = &p.report
	return New(o).Enter(Run{Workspace: p.workspace, Own: p.own, Base: base, Context: context, Stage: stage, Argv: argv, Files: p.files, Ports: p.ports})
}

// outcome is how a program ended.
type outcome struct {
	code int
	left int
	text string
	gaps []string
}

// confined does an attempt in a sandbox.
func (p *place) confined(args ...string) outcome {
	p.Helper()
	return p.program(append([]string{p.self, "attempt"}, args...)...)
}

// program runs a command line in a sandbox.
func (p *place) program(argv ...string) outcome {
	p.Helper()
	if p.by != nil {
		o := p.options
		o.Report = &p.report
		if binary := p.path("tests"); argv[0] == p.self { // where every user gets to it
			if !pathExists(binary) {
				p.must(copyProgram(p.self, binary))
			}
			argv[0] = binary
		}
		code, output := p.by(p.T, o, p.workspace, p.dir, argv, append([]string{argv[0]}, p.files...))
		return outcome{code: code, text: strings.TrimSpace(output)}
	}
	c, err := p.enter(argv...)
	p.must(err)
	defer func() { p.must(c.Leave()) }()
	if p.edit != nil {
		p.edit(&c.policy)
	}
	env, err := c.Confined(c.Environ(p.options.Environ))
	p.must(err)
	var out bytes.Buffer
	res, err := proc.NewRunner("", p.self, proc.WatchName).Run(p.Context(), proc.Spec{Argv: c.Argv, Dir: p.workspace, Env: env, Stdout: &out, Merge: true})
	p.must(err)
	return outcome{code: res.Code, left: res.Left, text: strings.TrimSpace(out.String()), gaps: c.Gaps}
}

// free does an attempt without a sandbox, as this process's user.
func (p *place) free(args ...string) outcome { return p.freeAs(keep, args...) }

// freeAs does it as another user.
func (p *place) freeAs(uid int, args ...string) outcome {
	p.Helper()
	cmd := exec.Command(p.self, append([]string{"attempt"}, args...)...)
	cmd.Dir, cmd.Env = p.workspace, p.options.Environ
	if uid != keep {
		cmd.Path = filepath.Join(p.dir, "binary")
		p.must(copyProgram(p.self, cmd.Path))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	out, err := cmd.CombinedOutput()
	code := 0
	if err != nil {
		code = -1
		if cmd.ProcessState != nil {
			code = cmd.ProcessState.ExitCode()
		}
	}
	return outcome{code: code, text: strings.TrimSpace(string(out))}
}

// many does several attempts in one process, confined or free, and returns what
// each came to. Starting processes is what these tests take their time for.
func (p *place) many(run func(...string) outcome, list [][]string) ([]string, []string) {
	p.Helper()
	if len(list) == 0 {
		return nil, nil
	}
	b, err := json.Marshal(list)
	p.must(err)
	got := run("many", string(b))
	var results []string
	if err := json.Unmarshal([]byte(got.text), &results); err != nil || len(results) != len(list) {
		p.Fatalf("the attempts did not run: %v: %+v", err, got)
	}
	return results, got.gaps
}

// listen serves a socket for the test's time.
func (p *place) listen(network, address string) net.Listener {
	p.Helper()
	l, err := net.Listen(network, address)
	p.must(err)
	p.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return l
}

func portOf(l net.Listener) uint16 {
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		return uint16(a.Port)
	}
	return 0
}

// ownership is the user of everything below a folder.
func (p *place) ownership(dir string) map[string]int {
	p.Helper()
	out := map[string]int{}
	p.must(filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		p.must(unix.Lstat(path, &st))
		rel, err := filepath.Rel(dir, path)
		out[rel] = int(st.Uid)
		return err
	}))
	return out
}

func (p *place) alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && len(b) > 0
}
