package sandbox

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A confined agent can do its work: the workspace, its stage, a home of its own,
// the task, git, devices, pipes and temporary files.
func TestAgentsWork(t *testing.T) {
	required(t)
	p := newPlace(t)
	p.options.Environ = append(p.options.Environ, "XDG_CONFIG_HOME="+p.path("outside"), "GOCACHE="+p.path("outside"))
	script := `set -e
		cat own.txt >/dev/null; echo new > new.txt; mkdir -p a/b; mv new.txt a/b/moved.txt; ln a/b/moved.txt a/linked; ln -s a/linked soft; rm -r a
		cat "$RUN/context/context.json"; echo '{}' > "$RUN/stage/x.json"
		test "$HOME" = "$RUN/home"; echo x > "$HOME/.rc"; test "$TMPDIR" = "$RUN/tmp"; f=$(mktemp); rm "$f"
		test -z "$XDG_CONFIG_HOME$GOCACHE"
		printf x > /dev/null; head -c 1 /dev/urandom | cat >/dev/null; ls /usr/bin >/dev/null; cat /proc/self/status >/dev/null
		if command -v git >/dev/null; then
			git init -q repo; cd repo; echo x > x; git add x
			git -c user.name=n -c user.email=n@example.com commit -qm m; git gc -q; git status --short; git log --oneline | wc -l
		fi
		if touch "$RUN/context/new" 2>/dev/null || echo x 2>/dev/null >> "$RUN/context/context.json"; then echo the task can be changed; exit 1; fi
		`
	c, err := p.enter("/bin/sh", "-c", "RUN=$(dirname \"$HOME\")\n"+script)
	p.must(err)
	env, err := c.Confined(c.Environ(p.options.Environ))
	p.must(err)
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env = p.workspace, env
	out, err := cmd.CombinedOutput()
	p.must(c.Leave())
	if err != nil || !strings.HasPrefix(string(out), "{}") || strings.Contains(string(out), policyName) {
		t.Errorf("%v: %s", err, out)
	}
}

// uwf's own agents hide what they know from the commands that they run, as ever.
func TestAgentsConcealThemselves(t *testing.T) {
	required(t)
	if got := newPlace(t).confined("conceal"); got.code != 0 {
		t.Error(got.text)
	}
}

// This binary in a folder that is closed to the agents' user is there for the
// agent all the same.
func TestBinaryInAClosedFolder(t *testing.T) {
	p := rooted(t)
	closed := p.path("closed/tests")
	p.must(os.Mkdir(p.path("closed"), 0o700))
	p.must(copyProgram(p.self, closed))
	p.self, p.options.Self = closed, []string{closed}
	if got := p.confined("nothing"); got.code != 0 {
		t.Errorf("%s", got.text)
	}
}

// A fork storm ends at the limit, and leaves nothing.
func TestForkStorm(t *testing.T) {
	p := rooted(t)
	p.edit = func(pol *policy) {
		if pol.Processes != ownProcesses {
			t.Errorf("the limit is %d", pol.Processes)
		}
		pol.Processes = 40
	}
	if got := p.confined("storm", "60"); got.code != 1 || !strings.Contains(got.text, "resource temporarily unavailable") {
		t.Errorf("%+v", got)
	}
	if free := p.free("storm", "60"); free.code != 0 {
		t.Errorf("without a limit: %s", free.text)
	}
}

// Everyone else's processes are counted too where agents have no user of their
// own: the limit lies above what the machine runs.
func TestLimits(t *testing.T) {
	required(t)
	p := newPlace(t)
	p.report.Root = false
	p.edit = func(pol *policy) {
		if pol.Processes != bounded || pol.UID != keep {
			t.Errorf("policy %+v", *pol)
		}
	}
	got := p.program("/bin/sh", "-c", "grep 'Max processes' /proc/self/limits; ulimit -c")
	var soft, hard int
	if _, err := fmt.Sscanf(got.text, "Max processes %d %d", &soft, &hard); err != nil || soft < ownProcesses || hard != soft {
		t.Errorf("%s (%v)", got.text, err)
	}
	if !strings.HasSuffix(got.text, "\n0") {
		t.Errorf("core files: %s", got.text)
	}
}

// A uwf that agents could change is not what confines them: the next one would be
// started by it, with all its rights.
func TestBinaryInTheWorkspace(t *testing.T) {
	p := newPlace(t)
	inside := p.path("workspace/bin")
	p.must(os.MkdirAll(inside, 0o755))
	inside = filepath.Join(inside, "uwf")
	p.must(copyProgram(p.self, inside))
	link := p.path("outside/link")
	p.must(os.Symlink(inside, link))
	for _, self := range []string{inside, link} {
		p.options.Mode, p.options.Self = Auto, []string{self}
		if _, err := p.enter("/bin/true"); err == nil || !strings.Contains(err.Error(), "uwf itself ("+resolvePath(inside)+") lies in "+p.workspace) {
			t.Errorf("%s: %v", self, err)
		}
	}
}

// A daemon that cut itself off ends with the run.
func TestDaemonsEnd(t *testing.T) {
	required(t)
	p := newPlace(t)
	got := p.confined("daemon", p.path("outside/secret.txt"), p.path("workspace/report"))
	var pid int
	b, err := os.ReadFile(p.path("workspace/report"))
	p.must(err)
	if _, err := fmt.Sscan(string(b), &pid); err != nil || got.left == 0 || p.alive(pid) {
		t.Errorf("daemon %d (%v): %+v", pid, err, got)
	}
	if !strings.Contains(string(b), "permission denied") {
		t.Errorf("the daemon read the secret: %s", b)
	}
}

// On an older kernel, what the report says is missing is what an agent can do, and
// the rest holds.
func TestOlderKernels(t *testing.T) {
	required(t)
	for _, tt := range []struct {
		abi     int
		network Network
		gap     string
		open    func(p *place) []string
	}{
		{5, Open, "abstract unix sockets", abstractSocket},
		{3, GatewayOnly, "TCP is not limited", anotherPort("dial", "tcp")},
		{2, Open, "empty files outside", words("truncate", "{out}/victim.txt")},
		{0, Open, "every user of this machine may read", words("read", "{out}/secret.txt")},
	} {
		t.Run(fmt.Sprint(tt.abi), func(t *testing.T) {
			p := rooted(t)
			p.report.Landlock, p.report.Why = tt.abi, "as on an older kernel"
			p.options.Network, p.options.Mode, p.ports = tt.network, Auto, []uint16{9}
			// A file that only root may read stays closed by the agents' user.
			p.must(os.Chmod(p.path("outside/victim.txt"), 0o666))
			p.must(os.WriteFile(p.path("outside/roots.txt"), []byte(secret), 0o600))
			all := [][]string{{"read", p.path("outside/roots.txt")}, {"signal", "parent"}, {"process", "parent", "mem"}, {"ptrace", "parent"}, tt.open(p)}
			got, gaps := p.many(p.confined, all)
			if got[4] != "" || !strings.Contains(strings.Join(gaps, "\n"), tt.gap) {
				t.Errorf("the gap %q isn't there: %s; told: %q", tt.gap, got[4], gaps)
			}
			for i, refused := range got[:4] {
				if refused == "" {
					t.Errorf("%v: an agent could do it", all[i])
				}
			}
			p.options.Mode = Require
			if _, err := p.enter("/bin/true"); err == nil || !strings.Contains(err.Error(), tt.gap) {
				t.Errorf("require: %v", err)
			}
		})
	}
}

// An open network is open: servers of the agent's own tests, and packages.
func TestOpenNetwork(t *testing.T) {
	required(t)
	p := newPlace(t)
	srv := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	if got := p.confined("dial", "tcp", srv.Listener.Addr().String()); got.code != 0 {
		t.Error(got.text)
	}
	if got := p.confined("udp", "127.0.0.1:53"); got.code != 0 && !strings.Contains(got.text, "refused") {
		t.Error(got.text)
	}
}

// Places of the settings are opened, and refused where they hold what is closed.
func TestConfiguredPlaces(t *testing.T) {
	required(t)
	p := newPlace(t)
	read, write := p.path("read"), p.path("write")
	p.must(os.Mkdir(read, 0o755))
	p.must(os.Mkdir(write, 0o777))
	p.must(os.Chmod(write, 0o777))
	p.write("read/secret.txt", secret)
	p.options.Read, p.options.Write = []string{read}, []string{write}
	got, _ := p.many(p.confined, [][]string{{"read", read + "/secret.txt"}, {"create", write + "/new"}, {"append", read + "/secret.txt"}})
	if got[0] != "" || got[1] != "" || got[2] == "" {
		t.Errorf("reading, making, changing: %q", got)
	}
	for _, bad := range []string{p.dir, p.outside, "/", "relative"} {
		p.options.Read = []string{bad}
		if _, err := p.enter("/bin/true"); err == nil || !strings.Contains(err.Error(), "confine agents") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	p.options.Read, p.workspace = nil, p.dir
	if _, err := p.enter("/bin/true"); err == nil || !strings.Contains(err.Error(), "must not read") {
		t.Errorf("a workspace that holds the home: %v", err)
	}
}

// What encloses a protected place is opened in parts: of the runner's folder below
// /opt, the tools and not the credentials.
func TestReadableLeavesOutWhatIsProtected(t *testing.T) {
	dir := resolvePath(t.TempDir())
	for _, d := range []string{"runner/_work/_temp", "tools/bin", "home/.nvm/versions/node/bin", "home/.local/bin", "home/.rustup"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "runner/.credentials"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	got := readablePlaces(Options{Environ: []string{
		"HOME=" + at("home"), "RUNNER_TEMP=" + at("runner/_work/_temp"), "RUNNER_TOOL_CACHE=" + dir,
		"PATH=relative:" + at("home/.nvm/versions/node/bin") + ":" + at("home/.local/bin") + ":" + at("tools/bin"),
	}})
	got = slices.DeleteFunc(got, func(p string) bool { return !isWithin(p, dir) })
	want := []string{at("home/.local/bin"), at("home/.nvm"), at("home/.nvm/versions/node"), at("home/.nvm/versions/node/bin"), at("home/.rustup"), at("tools"), at("tools/bin")}
	if !slices.Equal(got, want) {
		t.Errorf("readable:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, p := range readablePlaces(Options{}) {
		if newDeniedPaths([]string{"/root", "/etc/shadow", "/etc/ssl/private", "/run/docker.sock", "/tmp", "/var/log"}, nil).deniedIn(p) != "" {
			t.Errorf("%s is readable", p)
		}
	}
}

// Places and network of one run are looked at as those of the settings are.
func TestPlacesOfARunAreChecked(t *testing.T) {
	p := newPlace(t)
	missing := p.path("missing")
	r := Run{Workspace: p.workspace, Argv: []string{"/bin/true"}}
	tests := map[string]struct {
		edit func(*Run, *Options)
		want string
	}{
		"reading the home":       {func(r *Run, _ *Options) { r.Read = []string{p.outside} }, "must not read"},
		"reading above the home": {func(r *Run, _ *Options) { r.Read = []string{p.dir} }, "must not read"},
		"reading from here":      {func(r *Run, _ *Options) { r.Read = []string{"cache"} }, "no absolute path"},
		"writing the home":       {func(r *Run, _ *Options) { r.Write = []string{p.outside} }, "must not read"},
		"writing from here":      {func(r *Run, _ *Options) { r.Write = []string{"cache"} }, "no absolute path"},
		"writing what is uwf's":  {func(r *Run, _ *Options) { r.Write = []string{filepath.Dir(p.self)} }, "uwf itself"},
		"what is protected":      {func(r *Run, o *Options) { r.Read, o.Protect = []string{p.path("kept")}, []string{p.path("kept/key")} }, "must not read"},
		"a network of its own":   {func(r *Run, o *Options) { r.Network, o.Report.Landlock = GatewayOnly, 3 }, "not limited to the gateway's port"},
	}
	for name, tt := range tests {
		run, o, report := r, p.options, p.report
		run.Base, _, _ = p.base()
		report.Landlock, report.Seccomp = 6, true
		o.Report = &report
		tt.edit(&run, &o)
		if _, err := New(o).Enter(run); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if !p.report.Root {
		return
	}
	// What can't be lent is no reason to keep what was.
	run := r
	run.Base, _, _ = p.base()
	run.Write = []string{missing}
	if _, err := New(Options{Mode: Auto, Self: p.options.Self, Report: &p.report}).Enter(run); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("a missing place: %v", err)
	}
	if got := p.ownership(p.workspace)["."]; got != owner {
		t.Errorf("the workspace was left to %d", got)
	}
}

// The helper is no command of people's, and refuses before the agent runs.
func TestHelperRefuses(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for env, want := range map[string]string{
		"X=y":             "only uwf itself calls this",
		policyName + "={": "unexpected end",
	} {
		cmd := exec.Command(self, helperName, "/bin/echo", "ran")
		cmd.Env = []string{env}
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != exitRefused || !strings.Contains(string(out), want) || strings.Contains(string(out), "ran\n") {
			t.Errorf("%s: %v: %s", env, err, out)
		}
	}
	// One whose parent has ended meanwhile has another one.
	out, err := exec.Command(self, "attempt", "follow").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "uwf has ended") {
		t.Errorf("without a parent: %v: %s", err, out)
	}
	if _, ours := Helper([]string{"uwf", "run", "x"}, nil); ours {
		t.Error("it takes other commands")
	}
}

// A library that the agent's environment has its programs load is not loaded by the
// helper, which is not confined yet: the library may lie in the workspace.
func TestHelperLoadsNoLibrary(t *testing.T) {
	required(t)
	if _, err := os.Stat("/usr/bin/gcc"); err != nil {
		t.Skip("NOT TESTED: there is no C compiler here")
	}
	p := newPlace(t)
	loaded := p.path("outside/loaded")
	source := p.write("workspace/lib.c", fmt.Sprintf(`#include <stdio.h>
		__attribute__((constructor)) static void load(void) { FILE *f = fopen("%s", "w"); if (f) fclose(f); }`, loaded))
	library := p.path("workspace/lib.so")
	if out, err := exec.Command("/usr/bin/gcc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.options.Environ = append(p.options.Environ, "LD_PRELOAD="+library, "A=b")
	if got := p.program("/bin/sh", "-c", `test "$LD_PRELOAD" = "$0" && test "$A" = b`, library); got.code != 0 {
		t.Errorf("the agent's environment is another one: %+v", got)
	}
	if pathExists(loaded) {
		t.Error("it was loaded where nothing is confined")
	}
	// Who has no libraries loads none, which shows nothing.
	if free := p.free("nothing"); free.code != 0 || !pathExists(loaded) {
		t.Log("this binary loads no libraries, so this shows nothing")
	}
}

// No program of another architecture's system calls passes the filter.
func TestFilterRefusesOtherArchitectures(t *testing.T) {
	if auditArch == 0 {
		t.Skip("NOT TESTED: there is no filter for this architecture")
	}
	f := policy{Gateway: true, CloseUnix: true}.buildFilter()
	if len(f) > 200 {
		t.Errorf("%d instructions: a jump reaches 255", len(f))
	}
	if f[0].K != atArch || f[1].K != auditArch || f[2].K != unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS) {
		t.Errorf("it begins with %+v", f[:3])
	}
	if last := f[len(f)-1]; last.K != unix.SECCOMP_RET_ALLOW {
		t.Errorf("it ends with %+v", last)
	}
}

// BenchmarkStart is what the sandbox adds to an agent's start.
func BenchmarkStart(b *testing.B) {
	if !Probe().Usable() {
		b.Skip("no agent can be confined here")
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		cmd := exec.Command(self, helperName, "/bin/true")
		p := policy{UID: keep, GID: keep, ABI: Probe().Landlock, Filter: true, Read: readablePlaces(Options{Environ: os.Environ()}), Write: []string{b.TempDir()}}
		env, err := p.helperEnviron(nil)
		if err != nil {
			b.Fatal(err)
		}
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
}
