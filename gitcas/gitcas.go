// Package gitcas is the Store: nodes, thread heads, claims, the registry and the
// history of ended threads, on one orphan branch of a git remote. It knows the
// branch's layout and how to change it in one push; it never decides what a
// thread does next, never runs an agent and never touches a working tree.
//
// A [View] is the store at one moment; a [Change] on top of it becomes one commit
// (two where a thread is archived) and one push with the refs that go with it.
// [Store.Update] repeats that while other jobs are faster.
//
// # Refs
//
//	refs/heads/uwf-state              the state branch, one line of history
//	refs/uwf/store                    the last state commit that uwf wrote
//	refs/uwf/claims/<thread>          the job that works on a thread, see [view.Claim]
//	refs/uwf/attempts/<thread>/<run>.<attempt>   a try that did not become a step
//	refs/heads/uwf/<thread>           a thread's work branch
//
// refs/uwf/store moves in the same push as the branch. So whoever lists the two
// sees whether the branch was deleted, set back or rewritten, and the remote keeps
// what it was until somebody has decided.
//
// # Files
//
// Package statefile has the formats of the YAML, history and version files. A node is
// looked up in its [Place] and nowhere else: shared ones (workflows and their schemas)
// in cas/, a thread's StartNode and StepNodes in threads/<id>/, and all that one of
// these refers to in threads/<id>/<its hash>.<hash>.json, with the details of what an agent
// did in threads/<id>/detail/<its hash>/. An agent chooses what its step refers to, and a hash is no more
// than a name: so what an agent makes can't take the place of anything outside of its
// own step. Pages for people (README.md, threads/<id>/pages/) are never read back.
//
// All that is read is taken for hostile: plain files with expected names only,
// every node compared with its hash, its schema and the SHA-256 that the record which
// refers to it has for it, every chain followed to its start. What doesn't fit is a
// [DamagedError] that names the file.
package gitcas

import (
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/commitmsg"
)

// What a view shows is defined in package view, and the content of the state branch's
// files in package statefile, with its codecs.
type (
	// View is the store as it was at one moment.
	View = view.View
	// Claim is a job's hold on a thread, and Held one as it stands on the remote.
	Claim = view.Claim
	Held  = view.Held
	// Chain is a thread as it was worked, and ChainStep one step of it.
	Chain     = view.Chain
	ChainStep = view.ChainStep
	// PlacedNode is a node to store and where, and Nodes are nodes by where they are.
	PlacedNode = view.PlacedNode
	Nodes      = view.Nodes
	// Place says where on the branch a node's file is.
	Place = layout.Place
	// ThreadID names a thread.
	ThreadID = layout.ThreadID
	// Status of a thread's entry in threads.yaml.
	Status = statefile.Status
	// Entry is one thread in threads.yaml.
	Entry = statefile.Entry
	// Work is where the agents' edits are.
	Work = statefile.Work
	// Next names the role whose turn it is.
	Next = statefile.Next
	// Suspended says which role waits and why.
	Suspended = statefile.Suspended
	// Pause asks for a thread to wait before its next step.
	Pause = statefile.Pause
	// By says who did something.
	By = statefile.By
	// Cost is what a thread took, and Used what an entry says of its thread's steps.
	Cost = statefile.Cost
	Used = statefile.Used
	// Spent is what a thread took, and how much of that before a month.
	Spent = statefile.Spent
	// Ended is one line of the history of ended threads.
	Ended = statefile.Ended
	// RegistryEntry is one name in registry.yaml.
	RegistryEntry = statefile.RegistryEntry
	// Former is what a node is called that had another hash where it was imported from.
	Former = statefile.Former
	// RegistryVersion is one earlier hash of a name.
	RegistryVersion = statefile.RegistryVersion
	// Trailer is one "Key: value" line at the end of a commit message.
	Trailer = commitmsg.Trailer
)

// The statuses that threads.yaml knows. A cancelled thread has no entry: its
// history line says so.
const (
	StatusActive    = statefile.StatusActive
	StatusSuspended = statefile.StatusSuspended
	StatusEnded     = statefile.StatusEnded
)

// The reasons of history lines.
const (
	ReasonEnded     = statefile.ReasonEnded
	ReasonCancelled = statefile.ReasonCancelled
	ReasonRemoved   = statefile.ReasonRemoved
)

// Change is what one push does: at most one commit on the state branch (and an
// archive commit after it), and any number of other refs.
type Change struct {
	// Subject, Body and Trailers make the commit message. Body is indented by
	// the Store, so that no text in it can form a trailer.
	Subject  string
	Body     string
	Trailers []Trailer
	// Deed makes a commit also where nothing in the tree changes: something was done to
	// the store that its history is to tell.
	Deed bool
	// Author is whose deed it is; nil: the Store's own.
	Author *gitobj.Author

	Nodes    []PlacedNode
	Readable map[string][]byte         // pages: by layout.PagePath, TaskPath or IndexPath
	Threads  map[ThreadID]*Entry       // entries to set
	Registry map[string]*RegistryEntry // entries to set; nil removes
	Archive  []Ended                   // threads to take off the tip: a second commit
	Forks    map[ThreadID]ThreadID     // new thread → thread whose files it shares
	Reopen   []Ended                   // ended threads whose folders come back; each needs an entry
	Removed  []Ended                   // ended threads to take off the lists, by a history line
	// Former are the lists of the hashes that imported nodes had, by layout.FormerName.
	Former map[string][]Former

	Refs    []wire.RefUpdate // claims, attempts, work branches
	Objects []wire.PackObject

	// Landed is called by Update when this change is known to be in the store, with the
	// store as it is then: others may have gone on from it. Nil: nobody asks.
	Landed func(*View)
}

func (c *Change) callLanded(v *View) {
	if c.Landed != nil {
		c.Landed(v)
	}
}
