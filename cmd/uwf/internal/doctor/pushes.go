package doctor

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/obstacle"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lists"
)

// checkPush makes as many refs below refs/uwf as a step updates, in one push as a step does, and
// removes them.
func (e *examination) checkPush(ctx context.Context) (found Finding, most int) {
	if e.o.ReadOnly {
		return findUnknown(false, "nothing was pushed, as you asked", "run it without --read-only"), 0
	}
	most, err := e.probeRefs(ctx)
	switch {
	case err == nil:
		return findOK("refs below refs/uwf can be made and removed, %d in a push", most), most
	case errors.Is(err, wire.ErrProtected):
		return e.findObstacle(err), 0
	case errors.Is(err, wire.ErrDenied):
		return findMissing(err.Error(), e.rightFix("contents: write", "Contents: read and write")), 0
	}
	return findUnknown(true, err.Error(), remoteFix(err)), 0
}

// findObstacle is what is said of an error that an obstacle is behind.
func (e *examination) findObstacle(err error) Finding {
	o, _ := obstacle.Of(err)
	return findMissing(err.Error(), o.Mend(e.o.Branch, e.rulesPage()))
}

// checkNames looks for a branch that is in the way of uwf's, here or on the remote.
func (e *examination) checkNames() Finding {
	if e.o.Unreadable != nil {
		return e.findObstacle(e.o.Unreadable)
	}
	for _, refs := range []map[string]wire.ID{e.o.Branches, e.listed} {
		if err := obstacle.FindInTheWay(refs, e.o.RemoteName, e.o.Branch, triedBranch); err != nil {
			return e.findObstacle(err)
		}
	}
	return Finding{}
}

// triedBranch stands for the branches that the work goes to.
const triedBranch = layout.WorkBranches + "doctor"

// checkWork asks whether the remote takes a step's commit. most is how many refs it takes at once.
func (e *examination) checkWork(ctx context.Context, most int) Finding {
	commit, err := newTrial()
	if err != nil || most == 0 {
		return Finding{} // said before
	}
	if atomic, err := e.o.Remote.Atomic(ctx); err == nil && !atomic {
		most = 1
	}
	err = obstacle.TryBranch(ctx, e.o.Remote, most, triedBranch, wire.ZeroID, commit)
	switch _, found := obstacle.Of(err); {
	case found:
		return e.findObstacle(err)
	case err != nil:
		return findUnknown(true, err.Error(), remoteFix(err))
	}
	return findOK("commits of agents' work would be taken on branches %s*", layout.WorkBranches)
}

// newTrial makes the commit that is pushed to see whether it is taken.
func newTrial() (wire.Object, error) {
	who := gitobj.Signature{Name: "uwf doctor", Email: "uwf@localhost", When: time.Unix(0, 0).UTC()}
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: wire.EmptyTree, Author: who, Committer: who, Message: "May uwf push here? [skip ci]\n"})
	return wire.NewObject(plumbing.CommitObject, data), err
}

// checkRefs says what it means that a push takes fewer refs than a step updates, and
// where the store knows of a bound that is raised by now: nothing but a push that is refused
// changes what VERSION says. With 0 it is not known how many a push takes.
func (e *examination) checkRefs(ctx context.Context, most int) (found []Finding) {
	if most == 0 {
		return nil
	}
	if noted := e.notedRefs(ctx); noted < most {
		found = append(found, findLacking(
			fmt.Sprintf("VERSION on the branch %s says that a push updates no more than %d refs, and %d were taken: each step takes up to %d pushes for nothing",
				e.o.Branch, noted, most, gitcas.PushesOfStep(noted)),
			fmt.Sprintf("take the line \"refs: %d\" out of VERSION on the branch %s, by a commit there: %s", noted, e.o.Branch, e.editPage("VERSION"))))
	}
	if most < gitcas.StepRefs {
		found = append(found, findLacking(
			fmt.Sprintf("a push may update no more than %d refs here, where a step updates up to %d: each step takes up to %d pushes instead of one",
				most, gitcas.StepRefs, gitcas.PushesOfStep(most)),
			fmt.Sprintf(`allow %d or more, below "Limit how many branches and tags can be updated in a single push": %s`, gitcas.StepRefs, e.settingsPage("settings"))))
	}
	return found
}

// notedRefs is how many refs a push updates by what the store says.
func (e *examination) notedRefs(ctx context.Context) int {
	store := gitcas.Open(e.o.Remote, gitcas.Options{Branch: e.o.Branch})
	v, err := store.Load(ctx)
	if err != nil {
		return gitcas.StepRefs // there is none yet, or whatever reads it says so
	}
	return store.MostRefs(v)
}

// cleanUp bounds the removal of the refs when the rest was given up.
const cleanUp = 30 * time.Second

// probeRefs makes refs and removes them. It returns how many a push took, of as many as a step
// updates.
func (e *examination) probeRefs(ctx context.Context) (most int, err error) {
	var random [8]byte
	if _, err := io.ReadFull(e.o.Rand, random[:]); err != nil {
		return 0, fmt.Errorf("choose a name for refs: %w", err)
	}
	commit, err := newTrial()
	if err != nil {
		return 0, err
	}
	folder := layout.Trials + hex.EncodeToString(random[:])
	refs := make([]wire.RefUpdate, gitcas.StepRefs)
	for i := range refs {
		refs[i] = wire.RefUpdate{Name: fmt.Sprintf("%s/%d", folder, i+1), New: commit.ID}
	}
	for fewer, ok := len(refs), true; ok; fewer, ok = wire.RefLimitAfter(err, len(refs)) {
		refs = refs[:fewer]
		_, err = e.o.Remote.Push(ctx, wire.PushRequest{
			Updates: refs, Objects: []wire.PackObject{{Object: commit}, {Object: wire.NewObject(plumbing.TreeObject, nil)}},
		})
	}
	var part *wire.PartialError
	refused := errors.Is(err, wire.ErrDenied) || errors.Is(err, wire.ErrProtected)
	if refused && !errors.As(err, &part) {
		return 0, fmt.Errorf("make refs in %s: %w", folder, err)
	}
	if part != nil {
		refs = slices.DeleteFunc(refs, func(u wire.RefUpdate) bool { return part.Refused[u.Name] != nil })
	}
	// After a lost reply they may be there.
	gone := e.removeRefs(context.WithoutCancel(ctx), refs)
	switch {
	case err != nil:
		return 0, fmt.Errorf("make refs in %s: %w", folder, err)
	case gone != nil:
		return 0, fmt.Errorf("remove the refs in %s, which were made to try: %w", folder, gone)
	}
	return len(refs), nil
}

// removeRefs deletes refs that were made.
func (e *examination) removeRefs(ctx context.Context, made []wire.RefUpdate) error {
	ctx, cancel := context.WithTimeout(ctx, cleanUp)
	defer cancel()
	drop := lists.Map(made, func(u wire.RefUpdate) wire.RefUpdate { return wire.RefUpdate{Name: u.Name, Old: u.New} })
	_, err := e.o.Remote.Push(ctx, wire.PushRequest{Updates: drop})
	return err
}
