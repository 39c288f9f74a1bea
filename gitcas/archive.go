package gitcas

import (
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/commitmsg"
)

// archiveThreads makes the commit that takes threads off the tip: their folders and
// entries go, and a history line for each names the commit that still has them.
// Threads that are removed from the lists only get such a line.
func (b *builder) archiveThreads() error {
	lines, err := b.completeEndings()
	if err != nil {
		return err
	}
	if err := b.removeThreads(lines); err != nil {
		return err
	}
	marks, err := b.checkRemoved()
	if err != nil {
		return err
	}
	lines = append(lines, marks...)
	if err := b.historyLines(lines); err != nil {
		return err
	}
	subject, body, trailers := b.archiveMessage(lines)
	return b.writeCommit(subject, body, trailers)
}

// removeThreads removes the folders and entries of threads.
func (b *builder) removeThreads(lines []Ended) (err error) {
	if len(lines) == 0 {
		return nil
	}
	gone := map[ThreadID]*Entry{}
	for _, e := range lines {
		gone[e.Thread] = nil
		b.edit.Remove(layout.ThreadPath(e.Thread))
	}
	if b.cur.ThreadsFile, err = b.cur.ThreadsFile.With(gone); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return b.rootFile(layout.ThreadsName, b.cur.ThreadsFile.Encode(), statefile.MaxThreadsFile)
}

// archiveMessage is the change's own message, unless that went to the commit
// before.
func (b *builder) archiveMessage(lines []Ended) (subject, body string, trailers []Trailer) {
	if !b.c.hasContent() && b.c.Subject != "" {
		return b.c.Subject, b.c.Body, b.c.Trailers
	}
	for _, e := range lines {
		trailers = append(trailers, Trailer{Key: "Uwf-Thread", Value: string(e.Thread)}, Trailer{Key: "Uwf-Result", Value: e.Reason}, Trailer{Key: "Uwf-Head", Value: string(e.Head)})
	}
	if len(lines) == 1 {
		return commitmsg.Subject(lines[0].Title, "archived, "+lines[0].Reason, lines[0].Thread.Short()), "", trailers
	}
	return fmt.Sprintf("archived · %d threads", len(lines)), "", trailers
}

// completeEndings checks the threads to archive against their entries and completes their
// history lines.
func (b *builder) completeEndings() ([]Ended, error) {
	lines := slices.Clone(b.c.Archive)
	seen := map[ThreadID]bool{}
	for i := range lines {
		e := &lines[i]
		entry, ok := b.cur.ThreadsFile.Get(e.Thread)
		switch {
		case !ok || seen[e.Thread]:
			return nil, fmt.Errorf("%w: archive thread %s: it has no entry", ErrStale, e.Thread)
		case entry.Head != e.Head:
			return nil, fmt.Errorf("%w: archive thread %s at %s: its head is %s", ErrStale, e.Thread, e.Head, entry.Head)
		case e.Reason == statefile.ReasonEnded && entry.Status != StatusEnded:
			return nil, fmt.Errorf("%w: archive thread %s: its status is %s", ErrStale, e.Thread, entry.Status)
		}
		seen[e.Thread] = true
		e.Commit = b.cur.Commit.String()
		if e.Steps == nil || e.Used == nil || e.Usage == nil {
			if err := b.fillFromChain(e, entry.WaitingRole()); err != nil {
				return nil, err
			}
		}
	}
	return lines, nil
}

// checkRemoved are the lines that say of ended threads that they are removed. Each must
// repeat the thread's newest line.
func (b *builder) checkRemoved() ([]Ended, error) {
	lines := slices.Clone(b.c.Removed)
	for i := range lines {
		e := &lines[i]
		if err := b.checkNewest(*e, "remove"); err != nil {
			return nil, err
		}
		e.Reason = statefile.ReasonRemoved
	}
	return lines, nil
}

// checkNewest makes sure that e names the last that the store says of a thread that is
// not alive, and that nobody has removed it.
func (b *builder) checkNewest(e Ended, what string) error {
	if _, alive := b.cur.ThreadsFile.Get(e.Thread); alive {
		return fmt.Errorf("%w: %s thread %s: it is alive", ErrStale, what, e.Thread)
	}
	last, ok, err := b.v.FindEnded(b.ctx, e.Thread)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("%w: %s", ErrUnknownThread, e.Thread)
	case last.Head != e.Head || last.Commit != e.Commit || last.Reason == statefile.ReasonRemoved:
		return fmt.Errorf("%w: %s thread %s: its newest line is another one: %s at %s", ErrStale, what, e.Thread, last.Reason, last.Head)
	}
	return nil
}

// fillFromChain reads from its chain what steps a thread had, and what they took. role is the one
// whose step is next.
func (b *builder) fillFromChain(e *Ended, role string) error {
	folder, err := b.v.ThreadFolder(b.ctx, e.Thread)
	if err != nil {
		return err
	}
	records, err := b.v.Records(b.ctx, folder)
	if err != nil {
		return err
	}
	get := func(h node.Hash) (node.Node, error) {
		if n, ok := b.fresh[Place{Thread: e.Thread}][h]; ok {
			return n, nil
		}
		return records(h)
	}
	c, err := view.FollowChain(e.Head, layout.ThreadPath(e.Thread), get)
	if err != nil {
		return err
	}
	if e.Steps == nil {
		e.Steps = c.StepHashes()
	}
	if e.Workflow == "" {
		e.Workflow = c.Start.Workflow
	}
	if e.Used == nil {
		n, err := c.Count(layout.ThreadPath(e.Thread), get)
		if err != nil {
			return err
		}
		e.Used = &n.Done
		e.Used.AddAll(n.Tries)
	}
	e.Usage, err = c.UsageByRole(*e.Used, role, get)
	return err
}

// historyLines appends lines to the files of their days. Only those files are
// read, and only here: an ended thread costs the others nothing.
func (b *builder) historyLines(lines []Ended) error {
	byDay := map[[2]string][]Ended{}
	for _, e := range lines {
		year, name := layout.HistoryFile(time.UnixMilli(e.CompletedAt))
		byDay[[2]string{year, name}] = append(byDay[[2]string{year, name}], e)
	}
	for day, lines := range byDay {
		year, err := b.v.Reader.Below(b.ctx, b.cur.HistoryDir, day[0])
		if err == nil {
			err = b.appendDay(year, layout.HistoryDir+"/"+day[0]+"/"+day[1], lines)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// appendDay adds lines to the file of a day, and writes the day's page anew.
func (b *builder) appendDay(year *tree.Dir, file string, lines []Ended) error {
	var data []byte
	var base *wire.Object
	if e, ok := year.Find(path.Base(file)); ok {
		o, err := b.v.Reader.Read(b.ctx, file, e.ID, plumbing.BlobObject, statefile.MaxHistoryFile)
		if err != nil {
			return err
		}
		base, data = &o, slices.Clone(o.Data)
		if len(data) > 0 && data[len(data)-1] != '\n' {
			return tree.Damaged(file, "its last line is cut off")
		}
	}
	for _, e := range lines {
		line, err := statefile.EncodeEnded(e)
		if err != nil {
			return fmt.Errorf("%w: archive thread %s: %w", ErrInvalid, e.Thread, err)
		}
		data = append(data, line...)
	}
	if len(data) > statefile.MaxHistoryFile {
		return fmt.Errorf("%w: %s would have %d bytes, more than %d", ErrInvalid, file, len(data), statefile.MaxHistoryFile)
	}
	b.putFile(file, data, base)
	if text, err := statefile.DayPage(data); err == nil { // else a line was damaged before: nothing depends on the page
		b.putFile(layout.DayPageOf(file), text, nil)
	}
	return nil
}
