package gitcas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// maxClaim is the largest claim commit that is read, in bytes.
const maxClaim = 64 << 10

// ClaimUpdate is the change of refs/uwf/claims/<thread> from the claim old to the
// claim c: a nil old means that there must be none, a nil c deletes it. at is the
// date of the claim's commit. Equal arguments give equal objects.
//
// A claim is a commit without parents on the empty tree, whose message is the
// claim as JSON.
func ClaimUpdate(id ThreadID, old *Held, c *Claim, at time.Time) (wire.RefUpdate, []wire.PackObject) {
	u := wire.RefUpdate{Name: layout.ClaimRef(id)}
	if old != nil {
		u.Old = old.ID
	}
	if c == nil {
		return u, nil
	}
	// Marshalling text and numbers can't fail, and the commit's parts are valid
	// by construction.
	msg, _ := json.Marshal(c)
	sig := gitobj.Signature{Name: defaultAuthor.Name, Email: defaultAuthor.Email, When: time.Unix(max(at.Unix(), 0), 0).UTC()}
	data, _ := gitobj.EncodeCommit(gitobj.Commit{Tree: wire.EmptyTree, Author: sig, Committer: sig, Message: string(msg) + "\n"})
	o := wire.NewObject(plumbing.CommitObject, data)
	u.New = o.ID
	// The remote may never have seen the empty tree.
	return u, []wire.PackObject{{Object: o}, {Object: wire.NewObject(plumbing.TreeObject, nil)}}
}

// parseClaim reads a claim's commit.
func parseClaim(o wire.Object) (Claim, error) {
	var c Claim
	if o.Type != plumbing.CommitObject || len(o.Data) > maxClaim {
		return c, fmt.Errorf("a %s of %d bytes is no claim", o.Type, len(o.Data))
	}
	commit, err := gitobj.DecodeCommit(o.Data)
	if err != nil {
		return c, err
	}
	if commit.Tree != wire.EmptyTree || len(commit.Parents) > 0 {
		return c, fmt.Errorf("commit %s is no claim: it has content or history", o.ID)
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(commit.Message)))
	if err := dec.Decode(&c); err != nil {
		return c, fmt.Errorf("the claim %s is no JSON: %w", o.ID, err)
	}
	if c.Run == "" || c.Head != "" && !c.Head.Valid() || c.Tokens < 0 || c.Since < 0 || c.Renewed < 0 || !(c.CostUSD >= 0) || c.Started < 0 || c.Until < 0 {
		return c, fmt.Errorf("the claim %s has no run, or values out of range", o.ID)
	}
	return c, nil
}
