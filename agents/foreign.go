package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/agents/program"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/internal/wholefile"
)

// EnvProgram is the program that an agent of this binary runs, as an absolute path, where it
// runs one of somebody else's.
const EnvProgram = "UWF_PROGRAM"

// Foreign says that an agent of this binary runs a program of somebody else's, which keeps
// settings, sessions and logins below HOME. It gets a HOME of its own in any case, and may read
// the folder that it is installed in.
type Foreign struct {
	Agent   string // the agent's name, which FindForeign sets
	Program string // its name, looked up on PATH
	Install string // how people get it, for messages
	// Tried are its versions that were run with uwf; none: nobody has run it.
	Tried program.Range
	// Window is the least of a model in tokens with which it works; 0: it works with any.
	Window int
	// Credential is the file below a user's home, with slashes, that holds the program's own
	// login; empty: there is none that could be lent.
	Credential string
	// Token is the variable that takes a token in that file's place; empty: none does.
	Token string
	// Hide are names of files of a workspace that this program obeys whatever it is told, besides
	// those of package toolsettings.
	Hide []string
	// Seed is what the program fills a HOME with when it first runs, and needs not write again;
	// nil: nothing that takes long.
	Seed *Seed
}

// DescribeVersion says in a sentence that nobody has tried a version of the program with uwf; empty:
// somebody has, or it is of a version that is not known.
func (f Foreign) DescribeVersion(version string) string {
	if f.Install == "" { // a person's own command line
		return ""
	}
	if f.Tried == (program.Range{}) {
		return fmt.Sprintf("nobody has run %s with uwf", f.Program)
	}
	if in, known := f.Tried.Contains(version); in || !known {
		return ""
	}
	return fmt.Sprintf("%s is of version %s; tried with uwf: %s (%s)", f.Program, version, f.Tried, f.Install)
}

// CheckWindow refuses a model whose window is too small for the program. One that is not known, 0,
// may do.
func (f Foreign) CheckWindow(model string, window int) error {
	if window <= 0 || window >= f.Window {
		return nil
	}
	return fmt.Errorf("%s fills a window of %d tokens before it has done any work: it needs %d; set models.%s.window to what the model really has, or give the role another model or agent",
		f.Program, window, f.Window, model)
}

// resolved is an agent's command line, resolved.
type resolved struct {
	argv []string
	env  map[string]string // of the configuration
	own  string            // the agent of this binary that it is; empty: another program
	// ownLogin: the program uses a login, not the gateway.
	ownLogin bool
}

// foreignRun is a run of an agent that runs somebody else's program.
type foreignRun struct {
	Foreign
	program program.Program
	home    string // private
	temp    string
	login   string // the credential's file; empty: none is lent
	seed    string // what stands for Seed.Folder; empty: the program fills it itself
}

// FindForeign finds the program of somebody else's that an agent runs. Ok is false for agents
// that run none: for one of this binary, only f.Agent says which it is, and for a command of the
// configuration p is where that lies.
func (s *Spawner) FindForeign(line string) (f Foreign, p program.Program, ok bool, err error) {
	r, err := s.o.resolveCommand(line)
	if err != nil {
		return Foreign{}, program.Program{}, false, err
	}
	f, ok = s.foreignOf(r)
	if !ok && r.own != "" {
		return Foreign{Agent: r.own}, program.Program{}, false, nil
	}
	if !ok {
		p, err = program.Locate(r.argv[0], func(name string) (string, error) { return s.o.findProgram(name, name) })
		return f, p, false, err
	}
	p, err = s.locateProgram(f)
	return f, p, true, err
}

func (s *Spawner) foreignOf(r resolved) (Foreign, bool) {
	if s.o.Foreign == nil || r.own == "" {
		return Foreign{}, false
	}
	f, ok := s.o.Foreign(r.own, r.argv)
	f.Agent = r.own
	return f, ok
}

func (s *Spawner) locateProgram(f Foreign) (program.Program, error) {
	find := func(name string) (string, error) { return s.o.findProgram(name, name) }
	file, err := find(f.Program)
	if missing, ok := errors.AsType[*CommandError](err); ok && f.Install != "" {
		missing.Fix = "install it: " + f.Install
	}
	if err != nil {
		return program.Program{}, err
	}
	return program.Locate(file, find)
}

// beginForeign makes a run's own HOME and TMPDIR; nil: the agent runs nobody else's program.
func (s *Spawner) beginForeign(ctx context.Context, r resolved, f *folders) (*foreignRun, error) {
	foreign, ok := s.foreignOf(r)
	if !ok {
		return nil, nil
	}
	run := &foreignRun{Foreign: foreign, home: sandbox.HomeOf(f.base), temp: sandbox.TempOf(f.base)}
	var err error
	if run.program, err = s.locateProgram(foreign); err != nil {
		return nil, err
	}
	if run.seed, err = s.makeSeed(ctx, foreign, run.program); err != nil || !r.ownLogin || r.env[foreign.Token] != "" {
		return run, err
	}
	if foreign.Credential == "" {
		return nil, fmt.Errorf("login: own: %s has no file with a login that could be lent to it: remove login from the agent's settings, so that it uses the gateway", foreign.Program)
	}
	file := filepath.Join(sandbox.Getenv(s.o.Environ, "HOME"), filepath.FromSlash(foreign.Credential))
	if run.login, err = filepath.EvalSymlinks(file); err != nil {
		return nil, fmt.Errorf("login: own: %s is not logged in here (%w): log in with it first, or remove login from the agent's settings, so that it uses the gateway", foreign.Program, err)
	}
	return run, nil
}

// makeHome makes the folders where no sandbox does.
func (r *foreignRun) makeHome() error {
	for _, dir := range []string{r.home, r.temp} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// ownHome turns an environment into one with these folders.
func (r *foreignRun) ownHome(env []string) []string {
	if r == nil {
		return env
	}
	env = slices.DeleteFunc(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"}, name)
	})
	return append(env, "HOME="+r.home, "TMPDIR="+r.temp, EnvProgram+"="+r.program.Path)
}

// openedPlaces are what the sandbox has to open: to read, and to write.
func (r *foreignRun) openedPlaces() (read, write []string) {
	if r == nil {
		return nil, nil
	}
	read = append(read, r.program.Path)
	read = append(read, r.program.Places...)
	if r.seed != "" {
		read = append(read, r.seed)
	}
	if r.login != "" {
		write = []string{r.login}
	}
	return read, write
}

// fillHome puts links into HOME: to what is the same in each run of the program, and to the
// credential's file, of which a copy would be worth nothing as soon as the program renews it.
func (r *foreignRun) fillHome() error {
	if r == nil {
		return nil
	}
	var err error
	if r.seed != "" {
		err = r.linkInto(r.Seed.Folder, r.seed)
	}
	if r.login != "" {
		err = errors.Join(err, r.linkInto(r.Credential, r.login))
	}
	return err
}

// linkInto puts a link into HOME, whose folders belong to whom HOME does.
func (r *foreignRun) linkInto(name, target string) error {
	home, err := os.OpenRoot(r.home)
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	var owner unix.Stat_t
	if err := unix.Stat(r.home, &owner); err != nil {
		return err
	}
	for i, c := range name {
		if c != '/' {
			continue
		}
		if err := home.Mkdir(name[:i], 0o700); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := home.Lchown(name[:i], int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	return home.Symlink(target, name)
}

// maxCredential bounds a credential's file, in bytes.
const maxCredential = 1 << 20

// takeLoginBack keeps what the program wrote in the link's place, as some do when they renew a
// login: the one before is worth nothing any more.
func (r *foreignRun) takeLoginBack() (err error) {
	if r == nil || r.login == "" {
		return nil
	}
	root, err := os.OpenRoot(r.home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	info, err := root.Lstat(r.Credential)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCredential {
		return nil // it is the link as before, or gone
	}
	in, err := root.Open(r.Credential)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if err := wholefile.Write(r.login, io.LimitReader(in, maxCredential), 0o600); err != nil {
		return fmt.Errorf("keep the login that %s has renewed: %w: log in with it again", r.Program, err)
	}
	return nil
}
