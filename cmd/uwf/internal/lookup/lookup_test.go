package lookup_test

import (
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

const id gitcas.ThreadID = "01KN0000000000000000000001"

// store makes a store in memory that holds one thread.
func store(t *testing.T, now time.Time) (*gitcas.Store, *gitcas.View) {
	t.Helper()
	s := gitcas.Open(wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, Now: func() time.Time { return now }}), gitcas.Options{Now: func() time.Time { return now }})
	v, err := s.Init(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	flow, workflow, err := node.New(node.String, "a workflow", now)
	if err != nil {
		t.Fatal(err)
	}
	start, head, err := record.Start{Workflow: workflow, Prompt: "do it", Cwd: "."}.Node(now)
	if err != nil {
		t.Fatal(err)
	}
	v, err = s.Push(t.Context(), v, &gitcas.Change{
		Subject: "started", Threads: map[gitcas.ThreadID]*gitcas.Entry{id: {Head: head, Workflow: workflow}},
		Nodes: []gitcas.PlacedNode{{Hash: workflow, Node: flow}, {Hash: head, Node: start, Place: gitcas.Place{Thread: id}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, v
}

// A thread is running while a job that counts works on its present head. A person who is
// about to change it, or a job that delivers, is no such job.
func TestStatus(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		claim *gitcas.Claim // on the thread's head, where it names none
		entry func(*gitcas.Entry)
		want  string
	}{
		"nobody works on it":          {want: "active"},
		"a job works on it":           {claim: &gitcas.Claim{Run: "r"}, want: lookup.Running},
		"it is about to be poked":     {claim: &gitcas.Claim{Run: "p", For: "poke"}, want: "active"},
		"its end is delivered":        {claim: &gitcas.Claim{Run: "r", For: "deliver"}, want: "active"},
		"its job was on another head": {claim: &gitcas.Claim{Run: "r", Head: "0000000000000"}, want: "active"},
		"its job died":                {claim: &gitcas.Claim{Run: "r", Since: now.Add(-life.RenewedLife).UnixMilli()}, want: "active"},
		"it waits":                    {claim: &gitcas.Claim{Run: "r"}, entry: func(e *gitcas.Entry) { e.Status = gitcas.StatusSuspended }, want: "suspended"},
		"a try failed":                {entry: func(e *gitcas.Entry) { e.Attempts = make([]string, 1) }, want: lookup.Failed},
		"a try failed, poked":         {claim: &gitcas.Claim{Run: "p", For: "poke"}, entry: func(e *gitcas.Entry) { e.Attempts = make([]string, 1) }, want: lookup.Failed},
		"a try failed, once more":     {claim: &gitcas.Claim{Run: "r"}, entry: func(e *gitcas.Entry) { e.Attempts = make([]string, 1) }, want: lookup.Running},
		"a try failed, forgiven":      {entry: func(e *gitcas.Entry) { e.Attempts, e.Next = make([]string, 1), &gitcas.Next{Forgiven: 1} }, want: "active"},
		"more forgiven than failed":   {entry: func(e *gitcas.Entry) { e.Next = &gitcas.Next{Forgiven: 1} }, want: "active"},
	} {
		t.Run(name, func(t *testing.T) {
			s, v := store(t, now)
			entry, _ := v.Entry(id)
			if c.claim != nil {
				claim := *c.claim
				if claim.Head == "" {
					claim.Head = entry.Head
				}
				if claim.Since == 0 {
					claim.Since = now.UnixMilli()
				}
				claim.Renewed = claim.Since
				claim.Attempt = 1
				u, objs := view.ClaimUpdate(id, nil, &claim, now)
				var err error
				if v, err = s.Push(t.Context(), v, &gitcas.Change{Refs: []wire.RefUpdate{u}, Objects: objs}); err != nil {
					t.Fatal(err)
				}
			}
			if c.entry != nil {
				c.entry(&entry)
			}
			if got := lookup.StatusOf(v, id, entry); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
			if _, works := life.WorkingClaim(v, id, entry); entry.Status == gitcas.StatusActive && works != (c.want == lookup.Running) {
				t.Errorf("somebody works on it: %v", works)
			}
		})
	}
}
