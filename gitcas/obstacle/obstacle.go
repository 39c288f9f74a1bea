// Package obstacle is the list of what keeps a remote from taking uwf's pushes: how each is
// recognised, ahead of an agent or in a refusal, and what mends it. It never changes a ref.
package obstacle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Obstacle is one thing that keeps a remote from taking uwf's pushes.
type Obstacle struct {
	Name string
	What string // in one sentence
	// Setting: a setting of the repository's, or of its server, mends it.
	Setting bool

	kind error  // the refusals that it is behind
	mend string // see Mend
}

// List is every obstacle, the special ones before the general one. docs/action.md has a table of
// them.
func List() []Obstacle {
	return []Obstacle{
		{"branch", "A branch stands where uwf's branches go: BRANCH keeps git from making BRANCH/….", false, wire.ErrInTheWay,
			"rename the branch BRANCH: git branch -m BRANCH NEW (on the remote: git push REMOTE REMOTE/BRANCH:refs/heads/NEW :BRANCH)"},
		{"sha256", "The repository names its objects by SHA-256, which uwf can't read yet.", false, wire.ErrSHA256,
			"use a repository whose objects are named by SHA-1: git init --object-format=sha1, or the forge's setting for a new repository"},
		{"hidden", "The server hides refs/uwf/**, or takes no pushes but of branches and tags.", true, wire.ErrHidden,
			"show refs/uwf/** on the server: git config --add transfer.hideRefs '!refs/uwf' (in the repository there), or let its hooks and settings take it"},
		{"signature", "A rule takes signed commits only. uwf's commits have no signature.", true, wire.ErrUnsigned,
			"leave STATE and uwf/** out of the rule that requires signed commits, or let uwf bypass it: PLACE"},
		{"size", "A file, or the whole push, is larger than the server takes.", true, wire.ErrTooLarge,
			"name the large file in .gitignore, or raise the server's limit (git: receive.maxInputSize; nginx: client_max_body_size)"},
		{"objects", "The server can't read the objects of a push.", false, wire.ErrUnpack,
			"see the server's log, and what git says of the repository there: git fsck"},
		{"rule", "A branch rule or a hook of the server refuses the push: the state branch is protected, say.", true, wire.ErrProtected,
			"let uwf push to STATE, uwf/** and refs/uwf/**: PLACE"},
	}
}

// Of finds the obstacle behind an error. Too many refs in a push is none: then they are pushed
// one by one.
func Of(err error) (Obstacle, bool) {
	if errors.Is(err, wire.ErrTooManyRefs) {
		return Obstacle{}, false
	}
	for _, o := range List() {
		if !errors.Is(err, o.kind) {
			continue
		}
		var e *wire.RemoteError
		if errors.As(err, &e) && e.InTheWay != "" {
			o.name(e.InTheWay, "origin")
		}
		return o, true
	}
	return Obstacle{}, false
}

// name puts the branch into the texts that is in the way.
func (o *Obstacle) name(ref, remote string) {
	branch := strings.TrimPrefix(ref, layout.Heads)
	fill := strings.NewReplacer("BRANCH", branch, "NEW", "add-"+strings.ReplaceAll(branch, "/", "-"), "REMOTE", remote)
	o.What, o.mend = fill.Replace(o.What), fill.Replace(o.mend)
}

// Mend is the command or the setting that takes the obstacle away. state is the state branch,
// and place where the rules of its repository are set.
func (o Obstacle) Mend(state, place string) string {
	return strings.NewReplacer("STATE", state, "PLACE", place).Replace(o.mend)
}

// FindInTheWay finds a branch among refs that keeps git from making one of some branches, as the
// error of a push that would make it; nil: there is none.
func FindInTheWay(refs map[string]wire.ID, url string, branches ...string) error {
	for _, branch := range branches {
		for name := range refs {
			ref := layout.Heads + branch
			if !strings.HasPrefix(ref, name+"/") && !strings.HasPrefix(name, ref+"/") {
				continue
			}
			return &wire.RemoteError{
				Op: "push", URL: url, Ref: ref, Kind: wire.ErrInTheWay, InTheWay: name,
				Detail: fmt.Sprintf("'%s' exists; cannot create '%s'", name, ref),
			}
		}
	}
	return nil
}

// TriedRefs is how many refs a push of TryBranch names, if the remote takes as many.
const TriedRefs = 3

// TryBranch asks a remote whether it would take a commit on a branch, whose tip is known; zero:
// it is to be made. The commit goes in one atomic push with updates of refs that are not there,
// which git refuses, so that nothing changes: no branch is made, and no job starts. Hooks and
// rules judge the push before that. most is how many refs the remote takes at once; of one that
// takes a single ref only the names of branches and refs/uwf are looked at. A branch that
// moved is for the push to say that counts. more are the objects that the remote lacks of the commit.
func TryBranch(ctx context.Context, remote wire.Remote, most int, branch string, tip wire.ID, commit wire.Object, more ...wire.PackObject) error {
	ref := layout.Heads + branch
	updates := []wire.RefUpdate{
		{Name: ref, Old: tip, New: commit.ID},
		// No ref has these values; they are no rewrite, which some servers refuse. A hidden ref is no part of what git does at once, so the
		// update that is certain to fail stands beside the branch.
		{Name: ref + "-never", Old: commit.ID, New: commit.ID},
		{Name: layout.Trials + "never", Old: commit.ID, New: commit.ID},
	}
	if most < 2 {
		parent, _, _ := strings.Cut(branch, "/")
		l, err := remote.List(ctx, layout.Heads+parent)
		if err == nil {
			err = FindInTheWay(l.Refs, remote.URL(), branch)
		}
		if err != nil {
			return fmt.Errorf("look for what is in the way of %s: %w", branch, err)
		}
		updates = updates[2:]
	}
	updates = updates[:min(len(updates), max(most, 1))]
	_, err := remote.Push(ctx, wire.PushRequest{
		Updates: updates, Atomic: len(updates) > 1,
		Objects: append(slices.Clone(more), wire.PackObject{Object: wire.NewObject(plumbing.TreeObject, nil)}, wire.PackObject{Object: commit}),
	})
	if err == nil || errors.Is(err, wire.ErrLostRace) {
		return nil
	}
	return fmt.Errorf("ask whether a commit on %s would be taken: %w", branch, err)
}
