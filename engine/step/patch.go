package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/step/patch"
	"github.com/united-workforce/uwf/engine/step/seal"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// patchTimeout bounds how long the old versions of changed files are read.
const patchTimeout = 30 * time.Second

// sealPatch gives a step that changed files the patch of it. One that can't be made is
// left out, and said: the work itself is in the commit.
func (r *agentRun) sealPatch(ctx context.Context, o *sealed) {
	if r.snap.Unchanged || len(r.snap.Changes) == 0 {
		return
	}
	files, err := patch.Files(r.snap.Objects, r.snap.Changes, func(ids []wire.ID) (map[wire.ID][]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, patchTimeout)
		defer cancel()
		return r.e.fetchBlobs(ctx, ids)
	})
	if err != nil {
		r.emitNotice("the record of what the step changed has no diff: " + err.Error())
	}
	base := ""
	if !r.from.IsZero() {
		base = r.from.String()
	}
	s := r.newSealer(nil)
	p := patch.Make(base, files, r.e.Clock.Now)
	h, clean, err := addPatch(s, p)
	if err != nil {
		r.emitNotice("what the step changed is not on record beside its commit: " + err.Error())
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

// ReadBlobs fetches contents of files that the remote has; those that it could get also
// beside an error. A file that is empty is not nil. A remote that is away is waited for,
// however little time ctx leaves for the work on this machine.
func (e *Stepper) ReadBlobs(ctx context.Context, ids []wire.ID) (map[wire.ID][]byte, error) {
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.CommitGrace)
	defer cancel()
	return e.fetchBlobs(ctx, ids)
}

func (e *Stepper) fetchBlobs(ctx context.Context, ids []wire.ID) (map[wire.ID][]byte, error) {
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
