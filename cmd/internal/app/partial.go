package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// completedRemote is this repository as a remote. If it is a partial clone, uwf's own client
// fetches what a request lacks from the promisor remote, and git keeps it as if it had fetched it.
// Git itself fetches nothing: settings, which agents may have written, name programs for it to run.
type completedRemote struct {
	wire.Remote
	f *Factory
}

// Fetch returns objects, see [wire.Remote].
func (r *completedRemote) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	objs, err := r.Remote.Fetch(ctx, req)
	if !errors.Is(err, wire.ErrPromised) {
		return objs, err
	}
	if cerr := completeObjects(ctx, r.f, req); cerr != nil {
		return nil, cerr
	}
	return r.Remote.Fetch(ctx, req)
}

// CompletePartialClone fetches the files of a commit that this repository lacks as a partial
// clone, if threads are kept in it. It is for the time before anything is started. An empty
// commit has no files.
func (f *Factory) CompletePartialClone(ctx context.Context, commit string) error {
	loc, err := f.Locate(ctx)
	if err != nil || loc.Kind != RepositoryStore || commit == "" {
		return err
	}
	return completeObjects(ctx, f, wire.FetchRequest{Wants: []wire.ID{plumbing.NewHash(commit)}})
}

// maxLevels bounds how often what was fetched may show that more is missing: a folder its
// files, if the clone lacks folders, too.
const maxLevels = 8

// completeObjects fetches what this repository lacks of a request. It does nothing if the
// repository has no promisor remote.
func completeObjects(ctx context.Context, f *Factory, req wire.FetchRequest) error {
	names, err := promisorRemotes(ctx, f)
	if err != nil || len(names) == 0 {
		return err
	}
	for range maxLevels {
		missing, err := listMissing(ctx, f, req)
		if err != nil || len(missing) == 0 {
			return err
		}
		var failed error
		for _, name := range names {
			if failed = fetchPromised(ctx, f, name, wire.FetchRequest{Wants: missing, Depth: 1, Filter: req.Filter}); failed == nil {
				break
			}
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// promisorRemotes are the names of the remotes that this repository was cloned from in part.
func promisorRemotes(ctx context.Context, f *Factory) ([]string, error) {
	out, err := GitHere(ctx, f, "config", "--type=bool", "--get-regexp", `^remote\..*\.promisor$`)
	if exit := (*GitError)(nil); errors.As(err, &exit) && exit.Stderr == "" {
		return nil, nil // there are none
	}
	var names []string
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if value == "true" {
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(key, "remote."), ".promisor"))
		}
	}
	return names, err
}

// listMissing lists the objects of a request that this repository lacks, as far as it can know
// them: of a folder that is missing itself, not its files.
func listMissing(ctx context.Context, f *Factory, req wire.FetchRequest) ([]wire.ID, error) {
	args := []string{"rev-list", "--objects", "--no-walk", "--no-object-names", "--ignore-missing", "--missing=print", "--stdin"}
	if req.Filter != "" {
		args = append(args, "--filter="+req.Filter)
	}
	var wants bytes.Buffer
	for _, id := range req.Wants {
		fmt.Fprintln(&wants, id)
	}
	out, err := GitIn(ctx, f, GitCall{Dir: f.RepoRoot(), Stdin: wants.Bytes(), Args: args})
	if err != nil {
		return nil, fmt.Errorf("look for what this partial clone lacks: %w", err)
	}

	here := make(map[string]bool)
	var missing []wire.ID
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if id, lacks := strings.CutPrefix(line, "?"); lacks {
			missing = append(missing, plumbing.NewHash(id))
			line = id
		}
		here[line] = true
	}
	// git prints only some of the wants that are missing.
	more := lists.Filter(req.Wants, func(id wire.ID) bool { return !here[id.String()] })
	return append(missing, more...), nil
}

// fetchPromised fetches objects from a promisor remote, and has git keep them.
func fetchPromised(ctx context.Context, f *Factory, name string, req wire.FetchRequest) error {
	address, err := GitHere(ctx, f, "remote", "get-url", name)
	if err != nil {
		return &promisedError{name, len(req.Wants), err}
	}
	remote, err := f.Dial(addressOf(f, address))
	if err != nil {
		return &promisedError{name, len(req.Wants), err}
	}
	objs, err := remote.Fetch(ctx, req)
	if err != nil {
		return &promisedError{name, len(req.Wants), err}
	}
	pack, err := objs.Pack()
	if err == nil {
		_, err = GitIn(ctx, f, GitCall{Dir: f.RepoRoot(), Stdin: pack, Args: []string{"index-pack", "--stdin", "--promisor"}})
	}
	if err != nil {
		return fmt.Errorf("keep what %s has of this partial clone: %w", name, err)
	}
	return nil
}

// promisedError says that a promisor remote did not give what a partial clone lacks.
type promisedError struct {
	remote string // its name
	count  int
	err    error
}

func (e *promisedError) Error() string {
	return fmt.Sprintf("this partial clone lacks %s, and its remote %s does not give them: %v", text.Plural(e.count, "file"), e.remote, e.err)
}

// Unwrap gives the kind, and the cause.
func (e *promisedError) Unwrap() []error { return []error{wire.ErrPromised, e.err} }

// promisedAdvice says how to get what a partial clone lacks.
func promisedAdvice(err error) string {
	name := "origin"
	if e := (*promisedError)(nil); errors.As(err, &e) {
		name = cmp.Or(e.remote, name)
	}
	return "get all files with git fetch --refetch --no-filter " + text.ShellWord(name) +
		", or keep threads on that remote: uwf config set --repo state.remote " + text.ShellWord(name)
}
