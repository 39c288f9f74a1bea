package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/text"
)

// Location is which store is meant: that of the configuration, else the repository that one
// stands in, else a personal one.
type Location struct {
	URL    string // of the git remote
	Branch string // the state branch
	// Kind says how it was found: "remote" by state.remote of the configuration,
	// "repository" as the repository itself, "personal" outside of one.
	Kind string
}

// The kinds of a Location.
const (
	RemoteStore     = "remote"
	RepositoryStore = "repository"
	PersonalStore   = "personal"
)

// Locate finds the store without opening it: state.remote of the configuration
// (the name of one of the repository's remotes, or a URL); without it the
// repository itself; outside of one the user's own store below the storage root.
// It is found once.
func (f *Factory) Locate(ctx context.Context) (Location, error) {
	return f.location.findOnce(func() (Location, error) { return locateStore(ctx, f) })
}

func locateStore(ctx context.Context, f *Factory) (Location, error) {
	c, err := f.Config()
	if err == nil && c.WithoutPlace() { // no request goes there before the person has said so
		if err = SettleTrust(f); err == nil {
			c, err = f.Config()
		}
	}
	if err != nil {
		return Location{}, err
	}
	loc := Location{Branch: c.State.Branch}
	if loc.Branch == "" {
		loc.Branch = gitcas.DefaultBranch
	}
	if f.Job != nil {
		if f.Job.Branch != "" {
			loc.Branch = f.Job.Branch
		}
		loc.Kind, loc.URL = RemoteStore, f.Job.Remote
		return loc, nil
	}
	r := f.FindRepo()
	switch {
	case c.State.Remote != "":
		loc.Kind = RemoteStore
		loc.URL, err = f.RemoteURL(ctx, c.State.Remote)
	case r.Root != "":
		loc.Kind, loc.URL = RepositoryStore, fileURL(r.Dir)
		err = r.refuseCheckedOut(loc.Branch)
	default:
		loc.Kind = PersonalStore
		var root string
		root, err = f.StorageRoot()
		loc.URL = fileURL(filepath.Join(root, "store.git"))
	}
	return loc, err
}

func (r Repo) refuseCheckedOut(branch string) error {
	tree, err := r.checkedOut(branch)
	if err != nil {
		return err
	}
	if tree != "" {
		return Usagef("the state branch %s is checked out in %s, where a push can't move it: switch that working tree to another branch (git -C %s switch -)", branch, tree, tree)
	}
	return nil
}

// RemoteURL is the address of a remote of the repository, by its name, or of a URL or path
// as state.remote has it. A name is looked up as git does, with the user's insteadOf rules.
func (f *Factory) RemoteURL(ctx context.Context, remote string) (string, error) {
	if config.IsRemoteName(remote) {
		if f.RepoRoot() == "" {
			return "", Usagef("state.remote is %q, the name of a git remote, but %s is in no repository: use a URL", remote, f.Dir)
		}
		all, err := readSettings(ctx, f)
		address := all.remoteURL(remote)
		if address == "" {
			address, err = GitHere(ctx, f, "remote", "get-url", remote)
		}
		if errors.Is(err, exec.ErrNotFound) {
			return "", Usagef("state.remote is %q: %w", remote, err)
		}
		if err != nil {
			return "", Usagef("state.remote is %q: %w; add it (git remote add %s URL), or set state.remote to a URL", remote, err, remote)
		}
		remote = address
	}
	return addressOf(f, remote), nil
}

// addressOf is a URL as it is, and a path as an absolute one.
func addressOf(f *Factory, remote string) string {
	if strings.Contains(remote, "://") || filepath.IsAbs(remote) {
		return remote
	}
	if host, _, ok := strings.Cut(remote, ":"); ok && !strings.ContainsAny(host, `/\`) {
		return remote // ssh's short form, user@host:path
	}
	return filepath.Join(cmp.Or(f.RepoRoot(), f.Dir), remote)
}

// isOwnRemote says whether a remote of this checkout has an address. Without an answer of git
// it has not.
func isOwnRemote(f *Factory, address string) bool {
	listed, err := GitHere(context.Background(), f, "remote", "--verbose") // NAME<tab>URL (fetch)
	if err != nil || f.RepoRoot() == "" {
		return false
	}

	trimmed := func(s string) string { return strings.TrimRight(addressOf(f, s), "/") }
	for line := range strings.Lines(listed) {
		_, own, _ := strings.Cut(strings.TrimSpace(line), "\t")
		own = strings.TrimSuffix(strings.TrimSuffix(own, " (push)"), " (fetch)")
		if own != "" && trimmed(own) == trimmed(address) {
			return true
		}
	}
	return false
}

// DescribePlace says where threads are kept: a remote of this checkout by its name.
func (f *Factory) DescribePlace(ctx context.Context) string {
	loc, err := f.Locate(ctx)
	if err != nil {
		return "" // who opens the store says so
	}

	where := "this repository"
	if dir, personal := loc.personalDir(); personal {
		where = ShortenPath(f, dir)
	} else if c, err := f.Config(); err == nil && config.IsRemoteName(c.State.Remote) && c.State.Remote != "" {
		where = c.State.Remote
	} else if loc.Kind == RemoteStore {
		where = remoteAddress(f, loc)
	}
	return "threads are kept on " + loc.Branch + " of " + where
}

func fileURL(path string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// Store opens the store for reading or for changing what is there. It makes no
// request yet. Where the user's own store does not exist yet, it is
// gitcas.ErrNoStore.
func (f *Factory) Store(ctx context.Context) (*gitcas.Store, error) {
	loc, err := f.Locate(ctx)
	if err != nil {
		return nil, err
	}
	if dir, ok := loc.personalDir(); ok {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: not in a git repository, and %s does not exist yet; start a thread or put a workflow to make it", gitcas.ErrNoStore, dir)
		}
	}
	return openStore(f, loc)
}

// NewStore opens the store for the commands that may begin one: init, workflow
// put, thread start. It makes the user's own repository where that is meant and
// missing; the state branch is made by the Store's Init.
func (f *Factory) NewStore(ctx context.Context) (*gitcas.Store, error) {
	if err := f.RefuseInAgent("a new store"); err != nil {
		return nil, err
	}
	loc, err := f.Locate(ctx)
	if err != nil {
		return nil, err
	}
	if dir, ok := loc.personalDir(); ok {
		if err := makePersonal(ctx, f, dir); err != nil {
			return nil, err
		}
	}
	return openStore(f, loc)
}

// RefuseInAgent refuses what would start or change threads where an agent runs this process: it
// would go into a store of the agent's private HOME, and be lost with that.
func (f *Factory) RefuseInAgent(what string) error {
	if f.Getenv(agents.EnvMark) == "" {
		return nil
	}
	return Usagef("an agent cannot start or change threads: %s is refused, since this process runs inside of an agent (%s is set); say in your answer what is to be done, so that the workflow or a person does it", what, agents.EnvMark)
}

// OwnStore opens the user's own store, wherever one stands, on the branch that it has outside
// of repositories. gitcas.ErrNoStore: there is none.
func OwnStore(f *Factory) (*gitcas.Store, error) {
	root, err := f.StorageRoot()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, "store.git")
	switch _, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s does not exist yet", gitcas.ErrNoStore, dir)
	case err != nil:
		return nil, fmt.Errorf("open your own store: %w", err)
	}
	sources := f.ConfigSources()
	sources.RepoFile = ""
	c, err := config.Load(sources)
	if err != nil {
		return nil, fmt.Errorf("open your own store: %w", err)
	}
	return openStore(f, Location{URL: fileURL(dir), Branch: cmp.Or(c.State.Branch, gitcas.DefaultBranch), Kind: PersonalStore})
}

func (l Location) personalDir() (string, bool) {
	u, err := url.Parse(l.URL)
	if l.Kind != PersonalStore || err != nil {
		return "", false
	}
	return filepath.FromSlash(u.Path), true
}

// makePersonal makes the bare repository unless it is there. It is made beside
// its place and renamed, so that a killed process leaves no half of one.
func makePersonal(ctx context.Context, f *Factory, dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("make the folder of your own store: %w", err)
	}
	tmp, err := os.MkdirTemp(parent, "store-*")
	if err != nil {
		return fmt.Errorf("make your own store: %w", err)
	}
	if _, err := f.Git(ctx, GitCall{Dir: tmp, Args: []string{"init", "--quiet", "--bare", "--template=", "."}}); err != nil {
		return errors.Join(fmt.Errorf("make your own store: %w", err), os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, dir); err != nil {
		if _, there := os.Stat(dir); there == nil {
			return os.RemoveAll(tmp) // another process was faster
		}
		return errors.Join(fmt.Errorf("make your own store: %w", err), os.RemoveAll(tmp))
	}
	return nil
}

func openStore(f *Factory, loc Location) (*gitcas.Store, error) {
	var remote wire.Remote
	if f.Job != nil {
		remote = f.Job.Dialed
	}
	if remote == nil {
		var err error
		if remote, err = f.DialAs(loc.URL, newCredentialSource(f, loc.URL)); err != nil {
			return nil, err
		}
	}
	o := gitcas.Options{Branch: loc.Branch, Now: f.Now, ExpectStore: f.ExpectStore}
	policy := f.Outages()
	o.Until, o.Waiting, o.Sleep = policy.Until, policy.Tell, policy.Sleep
	if loc.Kind == RemoteStore && f.RepoRoot() != "" && f.Job == nil {
		o.LocalTip = func(ctx context.Context) (wire.ID, bool, error) {
			return localTip(ctx, f, loc.Branch)
		}
	}
	remote = logSessions(f, remote)
	if loc.Kind == RepositoryStore {
		remote = &completedRemote{remote, f}
	}
	if f.Job != nil && f.Job.Wrap != nil {
		remote = f.Job.Wrap(remote)
	}
	return gitcas.Open(remote, o), nil
}

// DialAs reaches a git remote with credentials that the caller has. It makes no request
// yet.
func (f *Factory) DialAs(url string, auth func(context.Context) (user, pass string, err error)) (wire.Remote, error) {
	dial := f.DialWire
	if dial == nil {
		dial = wire.Dial
	}
	return dial(url, wire.DialOptions{
		BasicAuth: auth, Env: environApart(f), Now: f.Now, Timeout: f.Silence,
		SSHCommand: func(ctx context.Context) string { return readSSHCommand(ctx, f) },
	})
}

// readSSHCommand is core.sshCommand of the user's or the system's settings, also those that they
// include for this repository; empty: there is none. The repository's own value is not obeyed,
// since an agent may have written it.
func readSSHCommand(ctx context.Context, f *Factory) string {
	all, _ := readSettings(ctx, f) // without git the remote is reached without
	for _, s := range slices.Backward(all) {
		if s.key == "core.sshcommand" && s.isPersonal() {
			return s.value
		}
	}
	return ""
}

// ShowRef is the command that shows a ref of the store's remote, typed where this process
// runs; empty where that can't be told. The verb is git's: show, or log -p for a branch. Only
// a store that is this repository itself has its refs here; of another one the ref is
// fetched first.
func (f *Factory) ShowRef(ctx context.Context, verb, ref string) string {
	loc, err := f.Locate(ctx)
	if err != nil {
		return ""
	}
	dir, personal := loc.personalDir()
	remote := remoteWord(f, loc)
	switch {
	case personal:
		return "git -C " + text.ShellWord(dir) + " " + verb + " " + ref
	case loc.Kind == RepositoryStore:
		return "git " + verb + " " + ref
	case f.RepoRoot() == "" && f.Job == nil:
		return "git init -q uwf-look && git -C uwf-look fetch " + remote + " " + ref + " && git -C uwf-look " + verb + " FETCH_HEAD"
	}
	return "git fetch " + remote + " " + ref + " && git " + verb + " FETCH_HEAD"
}

// remoteWord is how git is told which remote: by its name, where it has one here.
func remoteWord(f *Factory, loc Location) string {
	if c, err := f.Config(); err == nil && f.Job == nil && config.IsRemoteName(c.State.Remote) && c.State.Remote != "" {
		return c.State.Remote
	}
	if f.Job != nil {
		return "origin"
	}
	return text.ShellWord(remoteAddress(f, loc))
}

// remoteAddress is the URL of the store's remote without credentials.
func remoteAddress(f *Factory, loc Location) string {
	r, err := wire.Dial(loc.URL, wire.DialOptions{Env: f.Environ})
	if err != nil {
		return "<remote>"
	}
	return r.URL()
}
