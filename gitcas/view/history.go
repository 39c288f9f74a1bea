package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lists"
)

// daysAtOnce bounds how many history files are fetched in one request. The first requests take
// few: who looks for a thread mostly finds it in the newest file.
var daysAtOnce = wire.Batches{First: 1, Most: 1024, Bytes: 8 << 20}

// readHistoryLines reads the history files of the tip.
type historyFiles struct{ *View }

// readYear is history/<year>, nil when the tip has none.
func (v historyFiles) readYear(ctx context.Context, year string) (*tree.Dir, error) {
	e, ok := v.HistoryDir.Find(year)
	if !ok {
		return nil, nil
	}
	return v.Reader.ReadDir(ctx, layout.HistoryDir+"/"+year, layout.YearFolder, e.ID)
}

// History gives every thread that has ended to fn, the one that ended last first,
// by its newest line. Threads that were removed, or live again, are left out, and so are
// the files of the days before a time: fn may still be given threads that ended earlier on
// that day. ErrStop from fn ends it early.
func (v *View) History(ctx context.Context, from time.Time, fn func(statefile.Ended) error) error {
	return v.Endings(ctx, from, func(e statefile.Ended) error {
		if e.Reason == statefile.ReasonRemoved {
			return nil
		}
		return fn(e)
	})
}

// Endings is History with the threads that were removed.
func (v *View) Endings(ctx context.Context, from time.Time, fn func(statefile.Ended) error) error {
	seen := map[layout.ThreadID]bool{}
	return historyFiles{v}.visitLines(ctx, from, func(e statefile.Ended) error {
		older := seen[e.Thread]
		seen[e.Thread] = true
		if _, alive := v.Entry(e.Thread); alive || older {
			return nil
		}
		return fn(e)
	})
}

// visitLines gives every history line to fn, the newest first.
func (v historyFiles) visitLines(ctx context.Context, from time.Time, fn func(statefile.Ended) error) error {
	days, err := v.listDays(ctx, from)
	if err != nil {
		return err
	}
	return v.readDays(ctx, days, fn)
}

// day is one history file.
type day struct {
	path string
	id   wire.ID
}

// listDays lists the history files from a time on, newest first.
func (v historyFiles) listDays(ctx context.Context, from time.Time) ([]day, error) {
	if err := v.Reader.FetchEntries(ctx, v.HistoryDir.Entries()); err != nil {
		return nil, err
	}
	var out []day
	firstYear, firstDay := layout.HistoryFile(from)
	first := layout.HistoryDir + "/" + firstYear + "/" + firstDay
	years := v.HistoryDir.Entries()
	for i := len(years) - 1; i >= 0; i-- {
		d, err := v.readYear(ctx, years[i].Name)
		if err != nil {
			return nil, err
		}
		for j := len(d.Entries()) - 1; j >= 0; j-- {
			if d.Kind.ChildOf(d.Entries()[j].Name) != layout.DayFile {
				continue // its page
			}
			if path := d.PathOf(d.Entries()[j].Name); from.IsZero() || path >= first {
				out = append(out, day{path, d.Entries()[j].ID})
			}
		}
	}
	return out, nil
}

// readDays reads history files in order, some at a time, and forgets each one
// that was read.
func (v historyFiles) readDays(ctx context.Context, days []day, fn func(statefile.Ended) error) error {
	err := daysAtOnce.Fetch(len(days), func(from, to int) (int64, error) {
		limit := int64(maxBatch)
		if to-from == 1 {
			limit = 0
		}
		ids := lists.Map(days[from:to], func(d day) wire.ID { return d.id })
		objs, err := v.Reader.FetchUpTo(ctx, limit, tree.OnlyWanted, ids)
		return objs.Size(), err
	}, func(from, to int) error {
		for _, d := range days[from:to] {
			if err := v.readDay(ctx, d, fn); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

func (v historyFiles) readDay(ctx context.Context, d day, fn func(statefile.Ended) error) error {
	o, err := v.Reader.Read(ctx, d.path, d.id, plumbing.BlobObject, statefile.MaxHistoryFile)
	if err != nil {
		return err
	}
	err = statefile.ParseHistory(o.Data, fn)
	if errors.Is(err, statefile.ErrMalformed) {
		return tree.DamagedBy(d.path, err)
	}
	if err == nil {
		v.Reader.Drop(d.id)
	}
	return err
}

// clockGrace is how far the clocks of those who make ids and lines may differ.
const clockGrace = 24 * time.Hour

// FindEnded looks for an ended thread and returns its newest line, also that of one
// that was removed. It reads the newest day first, and goes back no further than to where
// the thread is.
func (v *View) FindEnded(ctx context.Context, id layout.ThreadID) (statefile.Ended, bool, error) {
	found, err := FindAllEnded(ctx, v, time.Time{}, id)
	e, ok := found[id]
	return e, ok, err
}

// FindAllEnded is View.FindEnded of several threads, without the days before a time; the zero time
// leaves none out. It reads no day twice. Threads that it doesn't find are left out.
func FindAllEnded(ctx context.Context, v *View, from time.Time, ids ...layout.ThreadID) (map[layout.ThreadID]statefile.Ended, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	days, err := historyFiles{v}.listDays(ctx, from.Add(-clockGrace))
	if err != nil {
		return nil, err
	}
	found := map[layout.ThreadID]statefile.Ended{}
	err = historyFiles{v}.readDays(ctx, days, func(e statefile.Ended) error {
		if _, older := found[e.Thread]; !older && slices.Contains(ids, e.Thread) {
			found[e.Thread] = e
		}
		if len(found) == len(ids) {
			return ErrStop
		}
		return nil
	})
	return found, err
}

// LoadEnded returns a view of the commit that still has an ended thread's folder.
// It can be read like any other, but not pushed on.
func (v *View) LoadEnded(ctx context.Context, e statefile.Ended) (*View, error) {
	id := plumbing.NewHash(e.Commit)
	past, err := v.Source.OpenCommit(ctx, v.at, id)
	switch {
	case errors.Is(err, wire.ErrNotFound) && !errors.Is(err, wire.ErrNotGiven): // v was read, so that it isn't the repository
		return nil, &tree.DamagedError{
			What: "commit " + id.String(), Kind: tree.ErrContent, Why: fmt.Sprintf("history names it for the ended thread %s, and it is not there any more", e.Thread),
			Restore: fmt.Sprintf("push it from a clone that has it: git push <remote> %s:refs/heads/<name>", id), Err: err,
		}
	case err != nil:
		return nil, fmt.Errorf("read the state commit %s, which has the ended thread %s: %w", id, e.Thread, err)
	}
	if past.Version.Store != v.Version.Store {
		return nil, &tree.DamagedError{What: "commit " + id.String(), Kind: ErrOtherStore, Why: fmt.Sprintf("history names it for thread %s, but it is one of store %s", e.Thread, past.Version.Store)}
	}
	if entry, _ := past.Entry(e.Thread); entry.Head != e.Head {
		return nil, tree.Damaged("commit "+id.String(), "history names it for thread %s at %s, which it doesn't have", e.Thread, e.Head)
	}
	return past, past.ReadThreads(ctx, e.Thread)
}
