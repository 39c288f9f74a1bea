package thread

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/thread/patch"
	"github.com/united-workforce/uwf/engine/thread/seal"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// patchTimeout bounds how long the old versions of changed files are read.
const patchTimeout = 30 * time.Second

// sealPatch gives a step that changed files the patch of it. One that can't be made is
// left out, and said: the work itself is in the commit.
func (r *stepRun) sealPatch(ctx context.Context, o *sealed) {
	if r.snap.Unchanged || len(r.snap.Changes) == 0 {
		return
	}
	files, err := r.changedFiles(ctx)
	if err != nil {
		r.e.observe(Event{Kind: "notice", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Text: "the record of what the step changed has no diff: " + err.Error()})
	}
	base := ""
	if !r.from.IsZero() {
		base = r.from.String()
	}
	s := r.newSealer(nil)
	p := patch.Make(base, files, r.e.Clock.Now)
	h, clean, err := addPatch(s, p)
	if err != nil {
		r.e.observe(Event{Kind: "notice", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Text: "what the step changed is not on record beside its commit: " + err.Error()})
		return
	}
	o.step.Patch, o.Patch = &h, &clean
	o.nodes = append(o.nodes, s.Nodes()...)
}

// addPatch seals a patch, and returns it as it is then: without secrets.
func addPatch(s *seal.Sealer, p record.Patch) (node.Hash, record.Patch, error) {
	h, err := s.AddUpTo(maxPatch, record.PatchSchema, p.Payload(), true)
	if err != nil {
		return "", p, err
	}
	n, err := s.Get(h)
	if err != nil {
		return "", p, err
	}
	p, err = record.ParsePatch(n)
	return h, p, err
}

// maxPatch bounds the node of a patch, in bytes: a diff or hashes of lines, and names.
const maxPatch = 4 << 20

// changedFiles are the files that the agent changed, with their contents as far as they
// can be had; the error says why not all could.
func (r *stepRun) changedFiles(ctx context.Context) ([]patch.File, error) {
	data := make(map[wire.ID][]byte, len(r.snap.Objects))
	for _, o := range r.snap.Objects {
		data[o.ID] = o.Data
	}
	changes := r.snap.Changes
	var missing []wire.ID
	for _, c := range changes[:min(len(changes), patch.MaxFiles)] {
		if c.OldMode == filemode.Submodule {
			data[c.Old] = fmt.Appendf(nil, "Subproject commit %s\n", c.Old) // as git shows it
		}
		if c.Size > patch.MaxText || patch.IsBinary(data[newBlob(c)]) {
			continue // the old version would change nothing
		}
		for _, id := range []wire.ID{c.Old, newBlob(c)} {
			if _, ok := data[id]; !ok && !id.IsZero() {
				data[id] = nil
				missing = append(missing, id)
			}
		}
	}
	err := r.readBlobs(ctx, missing, data)
	files := make([]patch.File, len(changes))
	for i, c := range changes {
		now := newBlob(c)
		files[i] = patch.File{
			Path: c.Path,
			Old:  patch.Side{ID: c.Old, Mode: c.OldMode, Data: data[c.Old]},
			New:  patch.Side{ID: now, Mode: c.Mode, Data: data[now]},
		}
	}
	return files, err
}

// newBlob is the new content of a file; zero where it was deleted.
func newBlob(c workspace.Change) wire.ID {
	if c.Kind == workspace.Deleted {
		return wire.ZeroID
	}
	return c.Blob
}

// readBlobs fetches contents that the remote has.
func (r *stepRun) readBlobs(ctx context.Context, ids []wire.ID, data map[wire.ID][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	got, err := r.e.fetchBlobs(ctx, ids)
	maps.Copy(data, got)
	return err
}

// ReadBlobs fetches contents of files that the remote has; those that it could get also
// beside an error. A file that is empty is not nil. A remote that is away is waited for,
// however little time ctx leaves for the work on this machine.
func (e *Engine) ReadBlobs(ctx context.Context, ids []wire.ID) (map[wire.ID][]byte, error) {
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.CommitGrace)
	defer cancel()
	return e.fetchBlobs(ctx, ids)
}

func (e *Engine) fetchBlobs(ctx context.Context, ids []wire.ID) (map[wire.ID][]byte, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	objs, err := e.Store.Remote().Fetch(ctx, wire.FetchRequest{Wants: ids})
	if err != nil {
		return nil, fmt.Errorf("read the files as they were: %w", err)
	}
	data := make(map[wire.ID][]byte, len(ids))
	for _, id := range ids {
		o, ok := objs[id]
		if !ok {
			err = errors.Join(err, fmt.Errorf("file %s is not on the remote", id))
			continue
		}
		if data[id] = o.Data; data[id] == nil {
			data[id] = []byte{}
		}
	}
	return data, err
}
