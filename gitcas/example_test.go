package gitcas_test

import (
	"context"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// A store is made, a thread is started in it, and another job reads the thread.
func Example() {
	ctx := context.Background()
	remote := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}) // wire.Dial for a real one
	store := gitcas.Open(remote, gitcas.Options{})
	view, err := store.Init(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	workflow, workflowHash, _ := node.New(node.String, "stands for a workflow", now)
	start, head, _ := record.Start{Workflow: workflowHash, Prompt: "Fix the test.", Cwd: "."}.Node(now)
	id := gitcas.ThreadID("01KJMM5D80EXAMP1E000000000")
	_, err = store.Update(ctx, view, func(v *gitcas.View) (*gitcas.Change, error) {
		if _, there := v.Entry(id); there {
			return nil, nil // an earlier try, whose answer was lost
		}
		return &gitcas.Change{
			Subject: "started",
			Nodes: []gitcas.PlacedNode{
				{Hash: workflowHash, Node: workflow},
				{Hash: head, Node: start, Place: gitcas.Place{Thread: id}},
			},
			Threads: map[gitcas.ThreadID]*gitcas.Entry{id: {Head: head, Workflow: workflowHash}},
		}, nil
	}, id)
	if err != nil {
		fmt.Println(err)
		return
	}

	view, err = gitcas.Open(remote, gitcas.Options{}).Load(ctx, id)
	if err != nil {
		fmt.Println(err)
		return
	}
	chain, err := view.ReadChain(ctx, id)
	fmt.Println(chain.Start.Prompt, len(chain.Steps), err)
	// Output: Fix the test. 0 <nil>
}
