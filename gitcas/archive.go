package gitcas

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// archive makes the commit that takes threads off the tip: their folders and
// entries go, and a history line for each names the commit that still has them.
func (b *builder) archive() error {
	lines, err := b.endings()
	if err != nil {
		return err
	}
	root, edit := dirEdit{}, dirEdit{}
	drop := make([]ThreadID, 0, len(lines))
	b.cur.folders = maps.Clone(b.cur.folders)
	for _, e := range lines {
		drop = append(drop, e.Thread)
		edit.remove(string(e.Thread))
		delete(b.cur.folders, e.Thread)
	}
	if b.cur.threadDirs, err = b.edited(threadsDir, b.cur.threadDirs, b.v.threadDirs, edit); err != nil {
		return err
	}
	root.folder(threadsDir, b.cur.threadDirs)
	if b.cur.threads, err = b.cur.threads.With(nil, drop...); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := b.rootFile(root, threadsName, b.cur.threads.Encode(), statefile.MaxThreadsFile); err != nil {
		return err
	}
	if err := b.historyLines(root, lines); err != nil {
		return err
	}
	subject, body, trailers := b.archiveMessage(lines)
	return b.commit(root, subject, body, trailers)
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
		return "archived · " + string(lines[0].Thread) + " · " + lines[0].Reason, "", trailers
	}
	return fmt.Sprintf("archived · %d threads", len(lines)), "", trailers
}

// endings checks the threads to archive against their entries and completes their
// history lines.
func (b *builder) endings() ([]Ended, error) {
	lines := slices.Clone(b.c.Archive)
	seen := map[ThreadID]bool{}
	for i := range lines {
		e := &lines[i]
		entry, ok := b.cur.threads.Get(e.Thread)
		switch {
		case !ok || seen[e.Thread]:
			return nil, fmt.Errorf("%w: archive thread %s: it has no entry", ErrStale, e.Thread)
		case entry.Head != e.Head:
			return nil, fmt.Errorf("%w: archive thread %s at %s: its head is %s", ErrStale, e.Thread, e.Head, entry.Head)
		case e.Reason == statefile.ReasonEnded && entry.Status != StatusEnded:
			return nil, fmt.Errorf("%w: archive thread %s: its status is %s", ErrStale, e.Thread, entry.Status)
		}
		seen[e.Thread] = true
		e.Commit = b.cur.tip.String()
		if e.Steps == nil {
			if err := b.fillSteps(e); err != nil {
				return nil, err
			}
		}
	}
	return lines, nil
}

// fillSteps reads the steps of a thread from its chain.
func (b *builder) fillSteps(e *Ended) error {
	folder, err := b.v.folder(b.ctx, e.Thread)
	if err != nil {
		return err
	}
	c, err := readChain(e.Head, threadPath(e.Thread), func(h node.Hash) (node.Node, error) {
		if n, ok := b.fresh[h]; ok {
			return n, nil
		}
		f, ok := folder.get(nodeFile(h))
		if !ok {
			return node.Node{}, content(threadPath(e.Thread)+"/"+nodeFile(h), "the chain needs it, and it is missing")
		}
		return b.v.read(b.ctx, folder.at(f.Name), f.ID, h)
	})
	if err != nil {
		return err
	}
	e.Steps = c.hashes()
	if e.Workflow == "" {
		e.Workflow = c.Start.Workflow
	}
	return nil
}

// historyLines appends lines to the files of their days. Only those files are
// read, and only here: an ended thread costs the others nothing.
func (b *builder) historyLines(root dirEdit, lines []Ended) error {
	byDay := map[string][]Ended{}
	var days []string
	for _, e := range lines {
		p := statefile.HistoryPath(time.UnixMilli(e.CompletedAt))
		if byDay[p] == nil {
			days = append(days, p)
		}
		byDay[p] = append(byDay[p], e)
	}
	slices.Sort(days)
	years := map[string]dirEdit{}
	for _, path := range days {
		year, day := path[len("history/"):len("history/YYYY")], path[len("history/YYYY/"):]
		if years[year] == nil {
			years[year] = dirEdit{}
		}
		id, err := b.appendDay(path, year, day, byDay[path])
		if err != nil {
			return err
		}
		years[year].file(day, id)
	}
	edit := dirEdit{}
	for year, days := range years {
		old, err := b.v.year(b.ctx, year)
		if err != nil {
			return err
		}
		d, err := b.edited(historyDir+"/"+year, old, old, days)
		if err != nil {
			return err
		}
		edit.folder(year, d)
	}
	d, err := b.edited(historyDir, b.cur.history, b.v.history, edit)
	if err != nil {
		return err
	}
	b.cur.history = d
	root.folder(historyDir, d)
	return nil
}

func (b *builder) appendDay(path, year, day string, lines []Ended) (wire.ID, error) {
	old, err := b.v.year(b.ctx, year)
	if err != nil {
		return wire.ZeroID, err
	}
	var data []byte
	var base *wire.Object
	if e, ok := old.get(day); ok {
		o, err := b.v.object(b.ctx, path, e.ID, plumbing.BlobObject, statefile.MaxHistoryFile)
		if err != nil {
			return wire.ZeroID, err
		}
		base, data = &o, slices.Clone(o.Data)
		if len(data) > 0 && data[len(data)-1] != '\n' {
			return wire.ZeroID, content(path, "its last line is cut off")
		}
	}
	for _, e := range lines {
		line, err := statefile.EncodeEnded(e)
		if err != nil {
			return wire.ZeroID, fmt.Errorf("%w: archive thread %s: %w", ErrInvalid, e.Thread, err)
		}
		data = append(data, line...)
	}
	if len(data) > statefile.MaxHistoryFile {
		return wire.ZeroID, fmt.Errorf("%w: %s would have %d bytes, more than %d", ErrInvalid, path, len(data), statefile.MaxHistoryFile)
	}
	o := wire.NewObject(plumbing.BlobObject, data)
	b.send(o, base)
	return o.ID, nil
}

// fork gives a new thread the part of another one's folder that its head needs:
// the chain with its outputs and bodies, the details and pages of these steps.
// They are the same git objects, so nothing of them is uploaded.
func (b *builder) fork(id, from ThreadID) error {
	entry := b.c.Threads[id]
	_, alive := b.cur.threads.Get(id)
	if !id.Valid() || entry == nil || alive || b.cur.threadDirs.id(string(id)) != wire.ZeroID {
		return fmt.Errorf("%w: fork %s of %s: the new thread needs an entry, and must not be there yet", ErrInvalid, id, from)
	}
	src, err := b.forkSource(from)
	if err != nil {
		return err
	}
	t := newThreadEdit()
	t.known = src
	need, steps, err := b.shared(src, entry.Head)
	if err != nil {
		return fmt.Errorf("fork %s of %s: %w", id, from, err)
	}
	edit := dirEdit{}
	for _, e := range src.list() {
		h, isNode := nodeOf(e.Name)
		switch {
		case isNode && need[h], readablePattern.MatchString(e.Name) && pageNumber(e.Name) <= steps:
			edit[e.Name] = e
		case e.Name == detailDir:
			if t.detail, err = b.forkDetail(src, e.ID, need); err != nil {
				return err
			}
			edit.folder(detailDir, t.detail)
		}
	}
	if t.base, err = (*dir)(nil).with(threadPath(id), edit); err != nil {
		return err
	}
	b.threads[id] = t
	return nil
}

// forkSource is the folder of the thread to fork, also of one that has ended.
func (b *builder) forkSource(from ThreadID) (*dir, error) {
	if src, err := b.v.folder(b.ctx, from); err != nil || src != nil {
		return src, err
	}
	e, ok, err := b.v.s.FindEnded(b.ctx, b.v, from)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrUnknownThread, from)
	}
	past, err := b.v.s.LoadEnded(b.ctx, b.v, e)
	if err != nil {
		return nil, err
	}
	return past.folder(b.ctx, from)
}

// shared walks the chain from head and returns all that it refers to, and the
// number of its steps that src has. The new thread's own nodes may come first.
func (b *builder) shared(src *dir, head node.Hash) (map[node.Hash]bool, int, error) {
	get := func(h node.Hash) (node.Node, error) {
		if n, ok := b.fresh[h]; ok {
			return n, nil
		}
		f, ok := src.get(nodeFile(h))
		if !ok {
			return b.v.Get(b.ctx, h)
		}
		return b.v.read(b.ctx, src.at(f.Name), f.ID, h)
	}
	c, err := readChain(head, src.path, get)
	if err != nil {
		return nil, 0, err
	}
	need := map[node.Hash]bool{}
	todo := append(c.hashes(), c.StartHash)
	steps := 0
	for _, s := range c.Steps {
		if _, ok := src.get(nodeFile(s.Hash)); ok {
			steps++
		}
	}
	for len(todo) > 0 {
		h := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, there := src.get(nodeFile(h)); need[h] || !there && b.fresh[h].Type == "" {
			continue // details, and what is in cas/
		}
		need[h] = true
		n, err := get(h)
		if err != nil {
			return nil, 0, err
		}
		refs, err := b.v.s.schemas.Refs(b, n)
		if err != nil {
			return nil, 0, err
		}
		todo = append(todo, refs...)
	}
	return need, steps, nil
}

// forkDetail is detail/ with the folders of the steps that are needed.
func (b *builder) forkDetail(src *dir, id wire.ID, need map[node.Hash]bool) (*dir, error) {
	d, err := b.v.dir(b.ctx, src.at(detailDir), id, checkDetail)
	if err != nil {
		return nil, err
	}
	edit := dirEdit{}
	for _, e := range d.entries {
		if !e.IsDir() || need[node.Hash(e.Name)] {
			edit[e.Name] = e
		}
	}
	kept, err := (*dir)(nil).with(d.path, edit)
	if err != nil || kept == nil {
		return nil, err
	}
	b.send(kept.obj, &d.obj)
	return kept, nil
}

// pageNumber is the step that a page for people is about.
func pageNumber(name string) int {
	n := 0
	for _, c := range name {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}
