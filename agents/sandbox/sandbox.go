package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Mode says how much has to be enforced.
type Mode string

// The modes, from the loosest to the strictest.
const (
	// Off: agents run as this process's user, with all its rights.
	Off Mode = "off"
	// Auto: whatever the machine can do, and at least another user or Landlock.
	Auto Mode = "auto"
	// Require: all of it, or the agent isn't run.
	Require Mode = "require"
)

// Network says what an agent may reach.
type Network string

// The networks, from the loosest to the strictest.
const (
	Open        Network = "open"    // everything
	GatewayOnly Network = "gateway" // the model gateway's port, and nothing else
)

// AgentName is the user that agents run as where uwf is root and that user exists.
const AgentName = "uwf-agent"

// AgentID is the number of the user and the group that agents run as where there
// is no such user. It lies where no distribution assigns numbers.
const AgentID = 60_999

// Options configure a Sandbox. Self and Environ are required.
type Options struct {
	Mode    Mode    // empty: Off
	Network Network // empty: Open
	// Optional: nobody asked to be confined. See Sandbox.Waives.
	Optional bool
	// Read and Write are more places, absolute, that agents may read or write.
	Read, Write []string
	// Protect are places that no agent may read, besides those that Environ names.
	Protect []string
	// Self is this binary's command line, up to where a command's name follows.
	Self []string
	// Environ is this process's environment, NAME=value.
	Environ []string
	// Report is what the machine can do. Nil: it is looked at.
	Report *Report

	nested *nestedFiles
}

// Sandbox confines agents. It is safe for concurrent use. A nil Sandbox confines
// nothing.
type Sandbox struct {
	o      Options
	report func() Report
}

// New returns a Sandbox; nil where nothing is to be confined.
func New(o Options) *Sandbox {
	if o.Mode == Off || o.Mode == "" {
		return nil
	}
	s := &Sandbox{o: o, report: sync.OnceValue(Probe)}
	if o.Report != nil {
		r := *o.Report
		s.report = func() Report { return r }
	}
	s.o.Network = cmp.Or(s.o.Network, Open)
	s.o.nested = &nestedFiles{}
	return s
}

// RefusedError says why no agent is run.
type RefusedError struct {
	Mode Mode
	Why  []string // one sentence each
	Fix  string   // what to do; empty: follows from the mode
}

func (e *RefusedError) Error() string {
	fix := e.Fix
	switch {
	case fix != "":
	case e.Mode == Require:
		fix = "use a machine that can, or set sandbox: auto to go without"
	default:
		fix = "use a Linux machine with Landlock (5.19 or later) or macOS, or set sandbox: off if you trust the agents with all that you can read"
	}
	return fmt.Sprintf("agents can't be confined here as sandbox: %s wants it: %s; %s", e.Mode, strings.Join(e.Why, "; "), fix)
}

// Check says whether agents can be confined here at all, as a *RefusedError.
func (s *Sandbox) Check() error {
	if s == nil {
		return nil
	}
	return s.checkNetwork(s.o.Network)
}

// checkNetwork is Check for what has a network of its own.
func (s *Sandbox) checkNetwork(n Network) error {
	r := s.report()
	gaps := r.Gaps(n)
	if !r.Usable() || s.o.Mode == Require && len(gaps) > 0 {
		return &RefusedError{Mode: s.o.Mode, Why: gaps}
	}
	return nil
}

// Waives reports whether an error of Check or Enter only says that agents can't be confined,
// and nobody asked for that: then they run unconfined.
func (s *Sandbox) Waives(err error) bool {
	return s != nil && s.o.Optional && errors.As(err, new(*RefusedError))
}

// OwnUser returns the user whom files of a Run's Own workspace are left to, or -1: nobody but this
// process's user.
func (s *Sandbox) OwnUser() int {
	if s == nil || !s.report().Root {
		return -1
	}
	return s.report().UID
}

// Gaps are what this machine can't enforce of what is wanted, a sentence each.
func (s *Sandbox) Gaps() []string {
	if s == nil {
		return nil
	}
	return s.report().Gaps(s.o.Network)
}

// Run is one run of an agent, or of a command that a repository brings.
type Run struct {
	// Workspace is the folder that the agent may change. Absolute.
	Workspace string
	// Own: this process made the workspace. Its content is left to the agents' user, so that the next
	// run need not take it over; Leave closes the folder to that user.
	Own bool
	// Base is a folder that belongs to this run alone and is removed after it. Enter
	// puts HOME, TMPDIR and, where it has to, a copy of this binary into it. HOME may be
	// there already, see HomeOf: with what is in it, it is the agent's until Leave.
	Base string
	// Context and Stage are folders below Base: one to read, one to write. Empty: there
	// are none.
	Context, Stage string
	// Argv is the agent's command line; the first word is an absolute path.
	Argv []string
	// Files are more files that this agent may read, such as its own scripts.
	Files []string
	// Ports are the TCP ports that the agent reaches in any case.
	Ports []uint16
	// Network is that of this run. Empty: that of the Options. GatewayOnly without Ports
	// reaches nothing at all.
	Network Network
	// Read and Write are more places of this run alone, absolute, besides those of the
	// Options. Those to write are lent to the agent's user as Workspace is, so that no two
	// runs may have one at once; those to read have to be open to that user.
	Read, Write []string
	// Shared are files to write that stay whose they are.
	Shared []string
}

// Cell is a run whose place is prepared. Leave gives the workspace back.
type Cell struct {
	// Argv starts the agent confined, in an environment from Environ.
	Argv []string
	// Gaps are what is not enforced in this run, a sentence each.
	Gaps []string
	// Self is this binary where the agent reaches it.
	Self string

	policy   policy
	seatbelt bool // it is enforced by macOS
	named    bool // the system knows the agents' user by name
	run      Run
	home     string
	temp     string
	o        Options
	taken    []*ownershipLoan
	// homeLoan is HOME's, which goes back only where somebody wants it.
	homeLoan *ownershipLoan
}

// HomeOf is the folder in the Base of a run that is HOME there.
func HomeOf(base string) string { return filepath.Join(base, "home") }

// TempOf is the folder in the Base of a run that is TMPDIR there.
func TempOf(base string) string { return filepath.Join(base, "tmp") }

// Enter prepares a run. Where it fails, nothing stays changed.
func (s *Sandbox) Enter(run Run) (*Cell, error) {
	network := cmp.Or(run.Network, s.o.Network)
	if err := s.checkNetwork(network); err != nil {
		return nil, err
	}
	if err := s.checkPlaces(run); err != nil {
		return nil, err
	}
	r := s.report()
	c := &Cell{Gaps: r.Gaps(network), run: run, o: s.o, home: HomeOf(run.Base), temp: TempOf(run.Base)}
	c.seatbelt, c.named = r.Seatbelt, r.User != ""
	c.policy = policy{UID: keep, GID: keep, ABI: r.Landlock, Filter: r.Seccomp}
	if err := s.chooseUser(c, r); err != nil {
		return nil, err
	}
	if network == GatewayOnly {
		c.policy.Gateway, c.policy.Ports = true, run.Ports
	}
	// Landlock has a right for these from ABI 9 on.
	c.policy.CloseUnix = r.Landlock < 9 && (c.policy.UID <= 0 || c.policy.Gateway || canUseContainerEngine(s.o.Environ, r.UID, r.GID))
	if err := c.prepareCell(); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the agent's sandbox: %w", err), c.Leave())
	}
	return c, nil
}

// AllowTraverse lets the agents' user go through folders of this process's own, without
// seeing what is in them, so that it gets to its workspace.
func (s *Sandbox) AllowTraverse(dirs ...string) error {
	if s == nil || !s.report().Root {
		return nil
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			if err := os.Chmod(dir, info.Mode().Perm()|0o011); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPlaces refuses a workspace that holds what agents must not read: a place
// that may be written whole can't have a hole.
func (s *Sandbox) checkPlaces(run Run) error {
	denied := s.o.findDeniedPaths()
	// It confines agents, and would be theirs to change.
	for _, place := range slices.Concat([]string{run.Workspace}, s.o.Write, run.Write) {
		if self := resolvePath(s.o.Self[0]); isWithin(self, resolvePath(place)) {
			return fmt.Errorf("confine agents: uwf itself (%s) lies in %s, which they may change; put it elsewhere, or name another folder", self, place)
		}
	}
	for _, place := range slices.Concat([]string{run.Workspace}, s.o.Read, s.o.Write, run.Read, run.Write, run.Shared) {
		if !filepath.IsAbs(place) {
			return fmt.Errorf("confine agents: %s is no absolute path", place)
		}
		if p := denied.deniedIn(resolvePath(place)); p != "" {
			return fmt.Errorf("confine agents: %s, which they may use, holds %s, which they must not read; name another folder", place, p)
		}
	}
	return nil
}

// usersFile lists the system's users.
const usersFile = "/etc/passwd"

// chooseUser decides who the agent is. An own user must be able to get to its
// folders; where it can't, auto takes root's capabilities away instead.
func (s *Sandbox) chooseUser(c *Cell, r Report) error {
	if !r.Root {
		c.policy.Processes = bounded
		return nil
	}
	for _, dir := range append([]string{c.run.Workspace, c.run.Base}, c.run.Write...) {
		closed := closedAncestor(dir, r.UID, r.GID)
		if closed == "" {
			continue
		}
		gap := fmt.Sprintf("user: agents get none of their own, since %s is closed to other users and %s lies in it", closed, dir)
		if s.o.Mode == Require || r.Landlock == 0 {
			return &RefusedError{Mode: s.o.Mode, Why: []string{gap}, Fix: "use a folder that other users can get to: chmod o+x " + closed + ", or TMPDIR and --workspace elsewhere"}
		}
		c.Gaps = append(c.Gaps, gap)
		c.policy.UID, c.policy.GID, c.policy.Processes = 0, 0, 0
		return nil
	}
	c.policy.UID, c.policy.GID, c.policy.Processes = r.UID, r.GID, ownProcesses
	return nil
}

// prepareCell makes the run's folders, writes down what may be read and written, and
// takes the workspace over.
func (c *Cell) prepareCell() error {
	if err := c.makeFolders(); err != nil {
		return err
	}
	self, argv, err := c.helperCommand()
	if err != nil {
		return err
	}
	c.Self = self
	c.policy.Write = slices.Concat([]string{c.run.Workspace, c.run.Stage, c.home, c.temp}, c.o.Write, c.run.Write, c.run.Shared)
	c.policy.Read = slices.Concat([]string{c.run.Context, self, argv[0]}, c.run.Files, readablePlaces(c.o), c.o.Read, c.run.Read)
	c.policy.Terminals = c.policy.UID > 0
	c.Argv = slices.Concat(c.o.Self, []string{helperName}, argv)
	if c.seatbelt {
		c.policy.Read, c.policy.Write = resolveAll(c.policy.Read), resolveAll(c.policy.Write)
		c.Argv = slices.Concat([]string{seatbeltProgram, "-p", seatbeltProfile(c.policy)}, argv)
	}
	if c.policy.UID == keep {
		return nil
	}
	if c.homeLoan, err = borrowFolder(c.home, c.policy.UID, c.policy.GID, false); err != nil {
		return err
	}
	for i, dir := range append([]string{c.run.Workspace}, c.run.Write...) {
		taken, err := borrowFolder(dir, c.policy.UID, c.policy.GID, i == 0 && c.run.Own)
		c.taken = append(c.taken, taken)
		if err != nil {
			return err
		}
	}
	return nil
}

// makeFolders makes HOME and TMPDIR, and gives the run's folders to the agent's
// user. The context stays ours: it can be read, and not written.
func (c *Cell) makeFolders() (err error) {
	root, err := os.OpenRoot(c.run.Base)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := root.Mkdir(filepath.Base(c.temp), 0o700); err != nil {
		return err
	}
	switch err := root.Mkdir(filepath.Base(c.home), 0o700); {
	case err == nil:
		c.fillHome(root)
	case !errors.Is(err, fs.ErrExist): // else somebody's commands may have filled it: nothing is written through what is there
		return err
	}
	if c.policy.UID <= 0 {
		return nil
	}
	uid, gid := c.policy.UID, c.policy.GID
	if users, err := os.ReadFile(usersFile); err == nil && !c.named {
		c.policy.Users = filepath.Join(c.run.Base, "passwd")
		users = fmt.Appendf(users, "%s:x:%d:%d::%s:/bin/sh\n", AgentName, uid, gid, c.home)
		if err := root.WriteFile("passwd", users, 0o444); err != nil {
			return err
		}
	}
	own := func(dir string, uid int, mode os.FileMode) error {
		name, err := filepath.Rel(c.run.Base, dir)
		if err != nil {
			return err
		}
		return errors.Join(root.Chown(name, uid, gid), root.Chmod(name, mode))
	}
	err = errors.Join(own(c.temp, uid, 0o700), own(c.run.Base, os.Geteuid(), 0o710))
	if c.run.Stage != "" {
		err = errors.Join(err, own(c.run.Stage, uid, 0o700))
	}
	if c.run.Context != "" {
		err = errors.Join(err, own(c.run.Context, os.Geteuid(), 0o550))
	}
	return err
}

// helperCommand is this binary where the agent reaches it, and the agent's command line
// with that. A binary in a folder that is closed to the agent's user, as those of
// `go run` are, is copied into the run's folder.
func (c *Cell) helperCommand() (self string, argv []string, err error) {
	self, argv = c.o.Self[0], slices.Clone(c.run.Argv)
	if c.policy.UID <= 0 || closedAncestor(self, c.policy.UID, c.policy.GID) == "" {
		return self, argv, nil
	}
	copied := filepath.Join(c.run.Base, "uwf")
	if err := copyProgram(self, copied); err != nil {
		return "", nil, err
	}
	if argv[0] == self {
		argv[0] = copied
	}
	return copied, argv, nil
}

// TakeHome gives HOME, with what the run left in it, to this process's user. It is called
// once nothing of the run lives.
func (c *Cell) TakeHome() error {
	if err := c.homeLoan.giveBack(); err != nil {
		return fmt.Errorf("take the HOME of a run over: %w", err)
	}
	return nil
}

// Leave gives the workspace, and what else was lent, back to its owner. It can be called
// twice.
func (c *Cell) Leave() error {
	taken := c.taken
	c.taken = nil
	var errs []error
	for i, dir := range append([]string{c.run.Workspace}, c.run.Write...)[:len(taken)] {
		if err := taken[i].giveBack(); err != nil {
			errs = append(errs, fmt.Errorf("give %s back to its owner: %w; do it with chown -hR", dir, err))
		}
	}
	if c.policy.UID > 0 {
		errs = append(errs, emptyShm(c.policy.UID))
	}
	return errors.Join(errs...)
}

// copyProgram copies an executable file so that everybody may run it.
func copyProgram(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(0o555), out.Close())
}
