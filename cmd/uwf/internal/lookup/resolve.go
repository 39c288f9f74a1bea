package lookup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// candidate is a thread that a ref may stand for.
type candidate struct {
	id    gitcas.ThreadID
	ended *gitcas.Ended // nil: alive
}

// grace is how far clocks may be apart, when a thread's end is compared with the
// time that its id says.
const grace = 24 * time.Hour

// maxListed is how many threads an error about an ambiguous beginning names.
const maxListed = 8

// resolveRef finds what a beginning, or @latest, stands for. Live threads go first:
// only where none fits is the history of the ended ones read.
func (r Ref) resolveRef(ctx context.Context, store *gitcas.Store, v *gitcas.View) (candidate, error) {
	if r.text == Latest {
		return findLatest(ctx, store, v)
	}
	if !isPrefix(r.text) {
		return r.byStep(ctx, store, v)
	}
	var fits []candidate
	for id := range v.Threads() {
		if strings.HasPrefix(string(id), r.text) {
			fits = append(fits, candidate{id: id})
		}
	}
	if len(fits) == 0 {
		var err error
		if fits, err = r.findEnded(ctx, store, v); err != nil {
			return candidate{}, err
		}
	}
	switch len(fits) {
	case 0:
		return r.byStep(ctx, store, v)
	case 1:
		return fits[0], nil
	}
	return candidate{}, newAmbiguousError(r.text, fits)
}

// findEnded are the ended threads whose ids begin so. None of them ended before the
// first moment that an id with this beginning stands for.
func (r Ref) findEnded(ctx context.Context, store *gitcas.Store, v *gitcas.View) ([]candidate, error) {
	from := gitcas.ThreadID(r.text + filler[len(r.text):]).Time()
	var fits []candidate
	err := store.HistorySince(ctx, v, historyStart(v, from), func(e gitcas.Ended) error {
		if strings.HasPrefix(string(e.Thread), r.text) {
			fits = append(fits, candidate{id: e.Thread, ended: &e})
		}
		return nil
	})
	return fits, err
}

// historyStart is where to begin with the history for a thread that was started then.
// A time to come says nothing: it would skip today.
func historyStart(v *gitcas.View, started time.Time) time.Time {
	if now := v.Time(); started.After(now) {
		started = now
	}
	return started.Add(-grace)
}

// byStep finds the thread of a step's hash, which may be taken for the beginning
// of an id.
func (r Ref) byStep(ctx context.Context, store *gitcas.Store, v *gitcas.View) (candidate, error) {
	if h := node.Hash(r.text); h.Valid() {
		c, err := findStep(ctx, store, v, h)
		if err == nil || app.ExitCode(err) != app.CodeUsage {
			return c, err
		}
	}
	return candidate{}, newUnknownError(ctx, store, v, r.text)
}

// findStep finds the thread in which a hash is that of a StepNode.
func findStep(ctx context.Context, store *gitcas.Store, v *gitcas.View, h node.Hash) (candidate, error) {
	found, err := store.Find(ctx, v, h)
	switch {
	case errors.Is(err, node.ErrNotFound):
		var heads []string // what is known without reading any thread
		for _, e := range v.Threads() {
			heads = append(heads, string(e.Head))
		}
		return candidate{}, &app.UnknownError{What: "step", ID: string(h), Near: app.Near(string(h), heads), See: "uwf thread steps THREAD"}
	case err == nil && (!record.IsStep(found.Node.Type) || found.Place.Thread == ""):
		err = app.Usagef("node %s is no step (see: uwf cas get %s)", h, h)
	}
	return candidate{found.Place.Thread, found.Ended}, err
}

// findLatest finds the thread that was started last. The history is read from its end
// on until what comes had ended before the best one was started.
func findLatest(ctx context.Context, store *gitcas.Store, v *gitcas.View) (candidate, error) {
	var best candidate
	for id := range v.Threads() {
		if startedLater(id, best.id) {
			best = candidate{id: id}
		}
	}
	from := time.Time{}
	if best.id != "" {
		from = historyStart(v, best.id.Time())
	}
	err := store.HistorySince(ctx, v, from, func(e gitcas.Ended) error {
		if best.id != "" && time.UnixMilli(e.CompletedAt).Before(best.id.Time().Add(-grace)) {
			return gitcas.ErrStop
		}
		if startedLater(e.Thread, best.id) {
			best = candidate{id: e.Thread, ended: &e}
		}
		return nil
	})
	if err == nil && best.id == "" {
		err = app.Usagef("there is no thread yet, so none is the latest; start one with: uwf thread start WORKFLOW -p \"…\"")
	}
	return best, err
}

// startedLater reports whether a was started after b.
func startedLater(a, b gitcas.ThreadID) bool {
	if c := a.Time().Compare(b.Time()); c != 0 || b == "" {
		return c > 0 || b == ""
	}
	return a > b
}

func newAmbiguousError(text string, fits []candidate) error {
	ids := make([]string, len(fits))
	for i, c := range fits {
		ids[i] = string(c.id)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	shown := strings.Join(ids[:min(len(ids), maxListed)], ", ")
	if len(ids) > maxListed {
		shown += ", …"
	}
	return app.Usagef("%q is the beginning of %d threads: %s: write more of it", text, len(ids), shown)
}

// maxNearRead is how many ended threads are read for suggestions.
const maxNearRead = 1000

// newUnknownError is the error for an id that nothing has, with what is near: among the
// live threads and those that ended after its time.
func newUnknownError(ctx context.Context, store *gitcas.Store, v *gitcas.View, text string) error {
	var ids []string
	for id := range v.Threads() {
		ids = append(ids, string(id))
	}
	from, alive := gitcas.ThreadID(text+filler[min(len(text), len(filler)):]).Time(), len(ids)
	// A history that can't be read is no reason to hide that the id is unknown.
	_ = store.HistorySince(ctx, v, historyStart(v, from), func(e gitcas.Ended) error {
		ids = append(ids, string(e.Thread))
		if len(ids) == alive+maxNearRead {
			return gitcas.ErrStop
		}
		return nil
	})
	return &app.UnknownError{What: "thread", ID: text, Near: app.Near(text, ids), See: "uwf thread list --all"}
}
