// Package worker puts an engine together for one process: the store, the
// configured agents and models, a working folder, the redactor and this run's
// identity. It decides nothing about threads and prints no result.
package worker

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/builtin"
	"github.com/united-workforce/uwf/agents/gateway/cassette"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/agent"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/removal"
	"golang.org/x/sys/unix"
)

// Options say how this process works on threads. The zero value is the
// configured way.
type Options struct {
	// Workspace is the folder that agents work in; empty: a folder of the
	// thread's own below the storage root.
	Workspace string
	// Agent overrides the configured agent.
	Agent string
	// Record and Replay name a cassette; at most one of them is set.
	Record, Replay string
	// AllowShell opens the shell gate of the builtin agent.
	AllowShell bool
	// Sandbox confines agents: off, auto or require; empty: as configured. Of this
	// and the configuration the stricter one counts.
	Sandbox string
	// Timeout of one agent run; 0: the configured one.
	Timeout time.Duration
	// Observe is told what goes on; nil: people are told on stderr what the engine remarks.
	Observe func(thread.Event)
	// Stderr is where agents' stderr goes, redacted; nil: nowhere.
	Stderr io.Writer
	// New allows that the store does not exist yet.
	New bool
	// AsksNobody: nothing is run here, and so no consent is asked for.
	AsksNobody bool
	// Elsewhere: the agents' work was done by another job. No model is needed.
	Elsewhere bool
}

// Worker is an engine with what has to be known beside it.
type Worker struct {
	*step.Stepper
	f      *app.Factory
	o      Options
	config *config.Config
	redact *redact.Redactor
	player *cassette.Cassette
	// sandbox confines agents; nil: they are not confined.
	sandbox *sandbox.Sandbox
	told    sync.Once // what agents may do
	// checkAgent refuses a command that can't be run.
	checkAgent func(command string) error
	folder     *folder
	noticed    sync.Map // what was told once
	// shellOffered: the person knows that a role has no shell, or has given one.
	shellOffered bool
	// prepared makes workspaces ready; nil: nothing does.
	prepared *preparer
	// locks are the lock files at the top whose packages the person has agreed to install.
	locks []string
	// checksSettled are the names of checks that the person was asked of, where the repository
	// has them by itself.
	checksSettled []string
}

// New puts a worker together. It reads the configuration and opens the store,
// but makes no request.
func New(ctx context.Context, f *app.Factory, o Options) (*Worker, error) {
	c, err := f.Config()
	if err != nil {
		return nil, err
	}
	if o.Record != "" && o.Replay != "" {
		return nil, app.Usagef("--record and --replay exclude each other")
	}
	if err := checkWorkspace(f, o); err != nil {
		return nil, err
	}
	if f.Job == nil { // what a job's inputs say is told and held, see package action
		if err := refuseLooser(c, config.Config{Sandbox: config.Sandbox(o.Sandbox), Limits: config.Limits{StepTime: o.Timeout}}); err != nil {
			return nil, err
		}
	}
	open := f.Store
	if o.New {
		open = f.NewStore
	}
	store, err := open(ctx)
	if err != nil {
		return nil, err
	}
	who, err := f.Identity()
	if err != nil {
		return nil, err
	}
	red, err := f.Redactor(ctx)
	if err != nil {
		return nil, err
	}
	w := &Worker{f: f, o: o, config: c, redact: red}
	if o.Replay != "" {
		if w.player, err = cassette.Load(f.Path(o.Replay)); err != nil {
			return nil, &app.UsageError{Err: fmt.Errorf("--replay: %w", err)}
		}
	}
	w.folder = &folder{store: store, notice: w.noticeOnce}
	w.Stepper = &step.Stepper{
		Engine: &thread.Engine{
			Store: store, Redact: red, Settings: settings{w}, Who: who, Clock: clock{f},
			Observe: w.logEvent, Hook: f.Hook,
			ShowRef: func(ref string) string { return f.ShowRef(ctx, "show", ref) },
			Nonce:   func() string { return randomWord(f.Rand) },
		},
		Folder: w.folder, Repository: w.folder, CommonFirst: func(agent string) bool { return agent == builtin.Name },
	}
	if root, err := f.StorageRoot(); err == nil && (f.Job == nil || f.Job.Wrap == nil) { // else nothing is pushed
		w.Unpushed = &unpushed.Folder{Dir: UnpushedRoot(root)}
	}
	self, err := w.f.Self()
	if err != nil {
		return nil, err
	}
	if err := w.offerInstall(); err != nil { // before the network of agents is settled
		return nil, err
	}
	spawner := w.newSpawner(self)
	if err := w.useCommands(ctx, self); err != nil {
		return nil, err
	}
	w.Agent, w.RemoveLeftovers, w.checkAgent = loggedAgent{Spawner: spawner, w: w}, spawner.RemoveLeftovers, spawner.Check
	return w, nil
}

// checkWorkspace refuses a working folder that is not there, or holds what it must not; and
// lets no program be taken from there.
func checkWorkspace(f *app.Factory, o Options) error {
	dir := f.Path(o.Workspace)
	if o.Workspace == "" {
		return nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return app.Usagef("--workspace %s: there is no such folder; make it first", o.Workspace)
	}
	f.ExcludeProgramsFrom(dir)
	return refuseOwnCheckout(f, dir)
}

func (w *Worker) newSpawner(self []string) *agents.Spawner {
	o := SpawnerOptions(w.f, w.config, self)
	o.Gateway, o.AllowShell = w.openGateway, w.allowsShell
	o.FillHome = func(ctx context.Context, home string) error { return w.fillHome(ctx, home, w.folder.dir) }
	if w.o.Stderr != nil {
		o.Stderr = w.redact.NewWriter(w.o.Stderr)
	}
	w.confineAgents(&o)
	return agents.NewSpawner(o)
}

// SpawnerOptions are what agents are found by, with these settings: whoever runs one adds its
// model and what confines it. self is this binary's command line.
func SpawnerOptions(f *app.Factory, c *config.Config, self []string) agents.Options {
	aliases := make(map[string]agents.Command, len(c.Agents))
	for name, a := range c.Agents {
		aliases[name] = agents.Command{Command: a.Command, Args: a.Args, Env: lendToken(f, c, name), OwnLogin: a.Login != ""}
	}
	o := agents.Options{
		Self: self, Own: agent.Names(), Foreign: agent.Foreign, Aliases: aliases, Environ: f.Environ, Dir: f.Dir, Inside: f.Inside, Now: f.Now,
	}
	if root, err := f.StorageRoot(); err == nil {
		o.SeedDir = SeedRoot(root)
	}
	return o
}

// SeedRoot is the folder below the storage root with what coding agents unpack when they first run.
func SeedRoot(root string) string { return filepath.Join(root, "seeds") }

// randomWord is a word that nobody can guess; empty where there are no random numbers.
func randomWord(r io.Reader) string {
	var b [9]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return ""
	}
	return hex.EncodeToString(b[:])
}

// clock is the Factory's clock.
type clock struct{ f *app.Factory }

func (c clock) Now() time.Time { return c.f.Now() }

func (c clock) After(d time.Duration) (<-chan time.Time, func()) { return c.f.After(d) }

// folder is the working folder, once Use has chosen it.
type folder struct {
	store *gitcas.Store
	dir   string
	ws    *workspace.Workspace
	// far reads commits as long as ws is nil.
	far *workspace.Workspace
	// thread is whose folder it is.
	thread gitcas.ThreadID
	// notice tells a person something, once.
	notice func(text string)
	// submodules fills those of commits; nil: they are left out.
	submodules *submodules
	// left is how the last picture of the folder shows it; empty: there is none since
	// it was made equal to a commit.
	left leftState
	// lock is held while a folder that was named is in use.
	lock *os.File
}

// leftState is a folder as a step left it: its tree, and the commit that it was compared
// with, if any, which says what of the ignored files belongs to it.
type leftState []string

// takePicture makes one that can be compared with this.
func (l leftState) takePicture(ctx context.Context, ws *workspace.Workspace, now time.Time) (string, error) {
	req := workspace.SnapshotRequest{When: now}
	if len(l) > 1 {
		req.Parents = []wire.ID{plumbing.NewHash(l[1])}
	}
	snap, err := ws.TakeSnapshot(ctx, req)
	return snap.Tree.String(), err
}

// CheckHome refuses to begin a thread where no working folder could be made for it.
func CheckHome(w *Worker) error {
	root, err := w.f.StorageRoot()
	if err != nil || w.o.Workspace != "" {
		return err
	}
	work := w.f.Path(WorkRoot(root))
	at := work // or what there is of the way to it: nothing is left behind
	for _, err = os.Stat(at); errors.Is(err, fs.ErrNotExist); _, err = os.Stat(at) {
		at = filepath.Dir(at)
	}
	try, err := os.MkdirTemp(at, ".uwf-try-")
	if err == nil {
		err = os.Remove(try)
	}
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		p.Path = work // which is what people can change
	}
	if err != nil {
		return fmt.Errorf("make the working folder: %w", err)
	}
	return nil
}

// PrepareFolder chooses the working folder of a thread and makes it where it is missing.
//
// A folder that was named is made equal to the work branch, which deletes what is
// not on it. So it must be empty, or as the last step left it: nobody loses work by
// naming the wrong folder. RememberFolder lets other processes have it again.
func (w *Worker) PrepareFolder(ctx context.Context, id gitcas.ThreadID) error {
	root, err := w.f.StorageRoot()
	if err != nil {
		return err
	}
	dir := w.f.Path(w.o.Workspace)
	if w.o.Workspace == "" {
		dir = w.f.Path(WorkDir(root, id))
		// The agents' user must be able to go there, though not to look around on the way.
		if err := errors.Join(os.MkdirAll(dir, 0o700), w.sandbox.AllowTraverse(root, WorkRoot(root))); err != nil {
			return fmt.Errorf("make the working folder: %w", err)
		}
	}
	ws, err := workspace.Open(dir, w.folder.store.Remote())
	if err != nil {
		return &app.UsageError{Err: err}
	}
	w.folder.dir, w.folder.ws, w.folder.thread = dir, ws, id
	_ = ws.RecallStamps(CacheFile(root, dir)) // else every file is read
	if w.o.Workspace == "" {
		ws.AddOwner(w.sandbox.OwnUser())
		return nil
	}
	if err := w.lockFolder(dir); err != nil { // before a thread is claimed for it
		return err
	}
	if err = w.checkFolder(ctx, dir); err != nil {
		_ = w.folder.lock.Close() // which unlocks it
	}
	return err
}

// lockFolder keeps other processes out of a folder: what one's agent made would be the other's.
func (w *Worker) lockFolder(dir string) error {
	lock, err := os.OpenFile(w.leftFile(dir), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock the working folder: %w", err)
	}
	if w.folder.lock = lock; errors.Is(unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
		_ = lock.Close()
		return app.Usagef("--workspace %s: another uwf lets an agent work there: wait for it, or name another folder", dir)
	}
	return nil
}

// checkFolder refuses a folder that is neither empty nor just as the last step left it.
func (w *Worker) checkFolder(ctx context.Context, dir string) error {
	aside, err := w.newAside()
	if err == nil {
		_, err = aside.Restore(ctx) // of a process that was killed
	}
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return app.Usagef("--workspace: %w", err)
	}
	if len(entries) == 0 {
		return nil
	}
	if text, err := os.ReadFile(w.leftFile(dir)); err == nil {
		left := leftState(strings.Fields(string(text)))
		if tree, err := left.takePicture(ctx, w.folder.ws, w.f.Now()); err == nil && len(left) > 0 && left[0] == tree {
			return nil
		}
	}
	return app.Usagef("--workspace %s: the folder is neither empty nor as a step left it; a step would delete what is not on the work branch: %s", dir, emptyFolder)
}

// leftFile remembers how a step left a folder that was named. It lies outside of the
// folder, where agents can't write it; empty where there is no place for it.
func (w *Worker) leftFile(dir string) string {
	root, err := w.f.StorageRoot()
	if err != nil || os.MkdirAll(CacheRoot(root), 0o700) != nil {
		return ""
	}
	return CacheFile(root, dir) + ".left"
}

// RememberFolder remembers what is in the folder, so that the next process need not read all of
// it; and how a named folder is now, so that the next step may use it. Where that fails, the next
// step refuses the named folder and says what to do.
func (w *Worker) RememberFolder(ctx context.Context) {
	fo := w.folder
	if fo.ws == nil {
		return
	}
	if root, err := w.f.StorageRoot(); err == nil && os.MkdirAll(CacheRoot(root), 0o700) == nil {
		_ = fo.ws.KeepStamps(CacheFile(root, fo.dir)) // else the next process reads every file
	}
	if w.o.Workspace == "" {
		return
	}
	defer func() { _ = fo.lock.Close() }() // which unlocks it
	if fo.left == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
		defer cancel()
		tree, err := fo.left.takePicture(ctx, fo.ws, w.f.Now())
		if err != nil {
			return
		}
		fo.left = leftState{tree}
	}
	_ = os.WriteFile(w.leftFile(fo.dir), []byte(strings.Join(fo.left, " ")), 0o600)
}

// leaveTime is little: an interrupted job has seconds.
const leaveTime = time.Second

// RemoveFolder removes the folder of a thread that has ended, if uwf made it: all that was
// in it is on the work branch. If there is very much in it, or ctx ends, uwf gc removes
// the rest.
func (w *Worker) RemoveFolder(ctx context.Context, id gitcas.ThreadID) error {
	root, err := w.f.StorageRoot()
	if err != nil || w.o.Workspace != "" {
		return err
	}
	_ = os.Remove(CacheFile(root, w.f.Path(WorkDir(root, id)))) // gc removes it as well
	err = removal.Tree(ctx, WorkDir(root, id), maxTidied)
	if w.prepared != nil {
		err = errors.Join(err, removal.Tree(ctx, w.prepared.threadFolder(id), maxTidied))
	}
	if err != nil && !errors.Is(err, removal.ErrLeft) && ctx.Err() == nil {
		return fmt.Errorf("remove the working folder of the ended thread: %w", err)
	}
	return nil
}

// maxTidied is how many things are removed of a working folder: more than a commit may
// have files.
const maxTidied = 1_000_000

// Dir is where agents are started.
func (f *folder) Dir() string { return f.dir }

// Sub is a folder inside of the working folder, reached without leaving it.
func (f *folder) Sub(location string) (dir string, err error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	sub, err := root.OpenRoot(location)
	if err != nil {
		return "", err
	}
	// The name that was opened: links in it were followed only inside the root.
	dir, err = filepath.EvalSymlinks(filepath.Join(f.dir, location))
	return dir, errors.Join(err, sub.Close())
}

// ReadFile implements step.Repository, also before a folder is chosen.
func (f *folder) ReadFile(ctx context.Context, commit wire.ID, path string, limit int64) ([]byte, error) {
	return f.commits().ReadFile(ctx, commit, path, limit)
}

// ListFiles implements step.Repository, too.
func (f *folder) ListFiles(ctx context.Context, commit wire.ID) ([]string, error) {
	return f.commits().ListFiles(ctx, commit)
}

// Expect implements step.Repository, too.
func (f *folder) Expect(commit wire.ID) { f.commits().Expect(commit) }

// commits is what files of commits are read from.
func (f *folder) commits() *workspace.Workspace {
	if f.ws == nil && f.far == nil {
		f.far = workspace.OpenRemote(f.store.Remote())
	}
	return cmp.Or(f.ws, f.far)
}

// Restore makes the folder equal to a commit, and tells what it left out.
func (f *folder) Restore(ctx context.Context, commit, base wire.ID) error {
	f.left = nil
	f.ws.NoteFilled(nil, nil) // those of another commit
	err := f.ws.Restore(ctx, commit)
	if err == nil && f.submodules != nil {
		err = f.submodules.fillFolder(ctx, f, commit, base)
	}
	if said := workspace.DescribeLeftOut(f.ws.ListLeftOut()); said != "" && err == nil {
		f.notice(said)
	}
	return err
}

// ListLeftOut is what it left out.
func (f *folder) ListLeftOut() []workspace.LeftOut { return f.ws.ListLeftOut() }

// Snapshot makes a commit of the folder.
func (f *folder) TakeSnapshot(ctx context.Context, req workspace.SnapshotRequest) (workspace.Snapshot, error) {
	snap, err := f.ws.TakeSnapshot(ctx, req)
	if err == nil && len(req.Without) == 0 { // else it doesn't show the folder
		f.left = leftState{snap.Tree.String()}
		if len(req.Parents) > 0 {
			f.left = append(f.left, req.Parents[0].String())
		}
	}
	return snap, err
}

// NextIdentity is that of the worker's next step, where it made up the old one itself: a
// run is in a thread's chain at most once.
func (w *Worker) NextIdentity() (lease.Identity, error) { return w.f.NextIdentity() }

// WorkRoot is the folder below the storage root with the working folders of threads:
// each is named by its thread.
func WorkRoot(root string) string { return filepath.Join(root, "work") }

// WorkDir is a thread's working folder.
func WorkDir(root string, id gitcas.ThreadID) string {
	return filepath.Join(WorkRoot(root), string(id))
}

// UnpushedRoot is the folder below the storage root with the sealed steps that are not
// pushed yet.
func UnpushedRoot(root string) string { return filepath.Join(root, "pending") }

// CacheRoot is the folder below the storage root with what is in the working folders, and how
// steps left those that were named. Agents can't write there.
func CacheRoot(root string) string { return filepath.Join(root, "cache") }

// CacheFile is the file with the stamps of one working folder.
func CacheFile(root, dir string) string {
	return filepath.Join(CacheRoot(root), wire.NewObject(0, []byte(dir)).ID.String()[:16]+".stat")
}
