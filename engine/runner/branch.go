package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
)

// checkWorkBranch says why a thread may not work on the branch that its entry names; nil: it
// may. An entry is read from the state branch, where everybody may have written it whose
// token can push there, and this job's token may push where theirs can't: to a protected
// branch. So a thread works on its own branch, or on that of the pull request that
// it is about, or was: whether people still want that is for askSubject to say.
func (j *steps) checkWorkBranch(ctx context.Context, id gitcas.ThreadID, entry gitcas.Entry, p *threadview.Thread) error {
	branch := entry.Work.Branch
	if branch == "" || branch == layout.WorkBranch(id) {
		return nil
	}
	trunk, err := j.DefaultBranch(ctx)
	if err != nil {
		return err
	}
	no := fmt.Errorf("the thread may not work on the branch %q: it is neither its own nor that of its pull request", branch)
	if p == nil || p.ID != id || !p.Trigger.Pull || p.Trigger.Number == 0 || branch == trunk || branch == j.Job.StateBranch {
		return no
	}
	n := p.Trigger.Number
	pull, err := j.pull, error(nil)
	if pull == nil || pull.Number != n {
		var read forge.Pull
		read, err = j.Forge.ReadPull(ctx, n)
		pull = &read
	}
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return no
	case err != nil:
		return fmt.Errorf("look whose branch %q is: read pull request #%d: %w", branch, n, err)
	case pull.Head.Name != branch || !strings.EqualFold(pull.Head.Repo, j.Job.Repository):
		return no
	}
	return nil
}
