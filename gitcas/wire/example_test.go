package wire_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// Two jobs want the same claim: the one whose push comes second learns it by
// the kind of the error. With [wire.Dial] in place of NewMemory the same code
// speaks to a git server.
func Example() {
	ctx := context.Background()
	var remote wire.Remote = wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})

	claim := func(job string) error {
		tree := wire.NewObject(plumbing.TreeObject, nil)
		commit := wire.NewObject(plumbing.CommitObject, []byte("tree "+tree.ID.String()+`
author uwf <uwf@localhost> 0 +0000
committer uwf <uwf@localhost> 0 +0000

`+job+"\n"))
		_, err := remote.Push(ctx, wire.PushRequest{
			Atomic:  true,
			Updates: []wire.RefUpdate{{Name: "refs/uwf/claims/t", New: commit.ID}}, // no Old: it must not exist
			Objects: []wire.PackObject{{Object: tree}, {Object: commit}},
		})
		return err
	}
	fmt.Println(claim("one"))
	fmt.Println(errors.Is(claim("two"), wire.ErrLostRace))

	l, err := remote.List(ctx, "refs/uwf/claims/")
	if err != nil {
		panic(err)
	}
	objs, err := remote.Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{l.Refs["refs/uwf/claims/t"]}, Depth: 1, Filter: "tree:0"})
	fmt.Println(len(objs), err)
	// Output:
	// <nil>
	// true
	// 1 <nil>
}
