package thread

import (
	"context"
	"fmt"
	"reflect"

	"github.com/united-workforce/uwf/gitcas"
)

// Effects are what a job made for a thread outside of the store: the comment that
// tells of it, and its pull request. 0: not known.
type Effects struct {
	Comment int64
	PR      int
}

// into puts what is known into an entry. base is the entry that the job began with:
// what it only repeats from there does not undo what somebody else wrote since.
func (f Effects) into(entry *gitcas.Entry, base gitcas.Entry) {
	if f.Comment > 0 && (f.Comment != base.Comment || entry.Comment == 0) {
		entry.Comment = f.Comment
	}
	if f.PR > 0 && (f.PR != base.PR || entry.PR == 0) {
		entry.PR = f.PR
	}
}

// effects puts what the job knows of its effects into an entry that is about to be
// written.
func (r *stepRun) effects(entry *gitcas.Entry) {
	if r.req.Effects != nil {
		r.req.Effects().into(entry, r.entry)
	}
}

// withoutEffects is an entry without what a job may write there beside the one that
// works on the thread, and that doesn't concern its work.
func withoutEffects(e gitcas.Entry) gitcas.Entry {
	e.Comment, e.PR = 0, 0
	return e
}

// Record writes a thread's comment and pull request into its entry, for a job that
// takes no step and so has no commit of its own for it. A step that runs is not
// concerned. Of a thread that is not alive nothing is noted.
func (e *Engine) Record(ctx context.Context, id gitcas.ThreadID, f Effects) error {
	v, err := e.Store.Load(ctx, id)
	if err != nil {
		return fmt.Errorf("note the comment and the pull request of thread %s: %w", id, err)
	}
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		entry, alive := v.Entry(id)
		was := entry
		f.into(&entry, gitcas.Entry{})
		if !alive || reflect.DeepEqual(entry, was) {
			return nil, nil
		}
		return &gitcas.Change{
			Subject: subjectOf(entry.Title, id, "comment and pull request noted"), Trailers: entryTrailers(id, entry),
			Threads: map[gitcas.ThreadID]*gitcas.Entry{id: &entry},
		}, nil
	}
	if _, err := e.update(ctx, v, build, id); err != nil {
		return fmt.Errorf("note the comment and the pull request of thread %s: %w", id, err)
	}
	e.reached("record")
	return nil
}
