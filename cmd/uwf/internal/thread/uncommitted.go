package thread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/text"
)

// maxNamed is how many uncommitted files are named.
const maxNamed = 10

// beginFrom is what the work of a thread begins from: base, or a commit on it with what the
// person takes along of the checkout, and what of that is not on the remote yet. What agents
// will not see is said.
func (o *StartOptions) beginFrom(ctx context.Context, w *worker.Worker, id gitcas.ThreadID, base string) (string, []wire.PackObject, error) {
	f := o.Factory
	changes, err := app.FindUncommitted(ctx, f)
	takes := o.IncludeUncommitted || len(o.IncludeUntracked) > 0
	if !takes {
		if what := changes.Describe(); err == nil && what != "" { // that git can't say it stops nobody
			f.Notes().Printf("agents see what is committed: not your %s (--include-uncommitted, --include-untracked FILE)\n", what)
		}
		o.tellUnpushed(ctx, base)
		return base, nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	if base == "" || f.RepoRoot() == "" {
		return "", nil, app.Usagef("--include-uncommitted needs a repository with a commit that the changes are based on")
	}
	if head, err := app.GitHere(ctx, f, "rev-parse", "HEAD"); err != nil || head != base {
		return "", nil, errors.Join(err, app.Usagef("--include-uncommitted: your changes are based on %.12s, and the work begins from %.12s: push your branch and name it with --base, or leave the flag out", head, base))
	}
	var files []string
	if o.IncludeUncommitted {
		files = changes.Tracked
		if len(changes.Unmerged) > 0 {
			return "", nil, app.Usagef("--include-uncommitted: there are conflicts that are not resolved: resolve them, and git add these files: %s", f.CleanMessage(strings.Join(changes.Unmerged, ", ")))
		}
	}
	untracked, err := app.FindUntracked(ctx, f, o.IncludeUntracked)
	if err != nil {
		return "", nil, fmt.Errorf("--include-untracked: %w", err)
	}
	if files = append(files, untracked...); len(files) == 0 {
		f.Notes().Println("no tracked file has uncommitted changes: agents see what is committed")
		return base, nil, nil
	}
	snap, err := worker.CommitUncommitted(ctx, w, id, base, files)
	if err != nil || snap.Unchanged {
		return base, nil, err
	}
	f.Notes().Printf("the work begins with your %s, as commit %.12s of its branch:\n", text.Plural(len(snap.Changes), "uncommitted file"), snap.Commit)
	for i, c := range snap.Changes {
		if i == maxNamed {
			f.Notes().Printf("  and %d more\n", len(snap.Changes)-maxNamed)
			break
		}
		f.Notes().Printf("  %-8s  %s\n", c.Kind, f.CleanMessage(c.Path))
	}
	if left := slices.DeleteFunc(changes.Untracked, func(p string) bool {
		return slices.ContainsFunc(untracked, func(taken string) bool { return strings.HasPrefix(taken, p) })
	}); len(left) > 0 {
		f.Notes().Printf("not taken along: %s (--include-untracked FILE)\n", text.Plural(len(left), "untracked file"))
	}
	return snap.Commit.String(), snap.Objects, nil
}

// tellUnpushed says that the work begins from a commit that lacks commits of the checkout.
func (o *StartOptions) tellUnpushed(ctx context.Context, base string) {
	f := o.Factory
	if base == "" || f.RepoRoot() == "" || f.Job != nil || o.Base != "" {
		return
	}
	count, err := app.GitHere(ctx, f, "rev-list", "--count", base+"..HEAD")
	if n, _ := strconv.Atoi(count); err == nil && n > 0 { // a base that is not here is told by nothing
		f.Notes().Printf("agents begin from %.12s of the remote's default branch, which lacks %s of your HEAD: push your branch and name it with --base\n", base, text.Plural(n, "commit"))
	}
}
