package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Uwf signs what is nobody's own deed.
var Uwf = gitobj.Author{Name: "uwf", Email: "uwf@localhost"}

// Claim is a job's hold on a thread: the content of refs/uwf/claims/<thread>.
// Since and Renewed are milliseconds by the server's clock.
type Claim struct {
	Run     string    `json:"run"`
	Attempt int       `json:"attempt"`
	Host    string    `json:"host"`
	Boot    string    `json:"boot,omitempty"`
	PID     int       `json:"pid"`
	Head    node.Hash `json:"head"`
	Tokens  int64     `json:"tokens"`
	Since   int64     `json:"since"`
	Renewed int64     `json:"renewed"`
	// For is what the thread is held for: "deliver", or what a person does, "poke";
	// empty: a step. Only a step's claim that is found dead is a failed attempt at the
	// step, and only a delivery's one at the delivery.
	For string `json:"for,omitempty"`
	// CostUSD is what was charged so far, in US dollars; Job the job's name; PIDNS the
	// pid namespace, and Started the time at which the process PID began there, in clock
	// ticks of the machine; Until when the claim is over whoever renews it
	// (milliseconds); Nonce, a random word, what tells the claim from every other one: it
	// is its maker's by that. Zero: not known.
	CostUSD  float64 `json:"cost,omitempty"`
	Unpriced bool    `json:"unpriced,omitempty"` // it cost more: of some tokens nobody knows the price
	Job      string  `json:"job,omitempty"`
	PIDNS    string  `json:"pidns,omitempty"`
	Started  int64   `json:"started,omitempty"`
	Until    int64   `json:"until,omitempty"`
	Nonce    string  `json:"nonce,omitempty"`
	// Ahead: it was made for other jobs, by the one that starts them. They know it by its
	// nonce, and don't renew it.
	Ahead bool `json:"ahead,omitempty"`
	// ReserveTokens and ReserveUSD are all that its agent may use; 0: without bound.
	ReserveTokens int64   `json:"reserveTokens,omitempty"`
	ReserveUSD    float64 `json:"reserveCost,omitempty"`
	// Died names the attempts ("run.attempt") whose claims on this head were
	// found dead, oldest first: each counts as a failed attempt.
	Died []string `json:"died,omitempty"`
}

// Held is a claim as it stands on the remote.
type Held struct {
	ID wire.ID // the claim commit, for compare-and-swap
	Claim
}

// maxClaim is the largest claim commit that is read, in bytes.
const maxClaim = 64 << 10

// ClaimUpdate is the change of refs/uwf/claims/<thread> from the claim old to the
// claim c: a nil old means that there must be none, a nil c deletes it. at is the
// date of the claim's commit. Equal arguments give equal objects.
//
// A claim is a commit without parents on the empty tree, whose message is the
// claim as JSON.
func ClaimUpdate(id layout.ThreadID, old *Held, c *Claim, at time.Time) (wire.RefUpdate, []wire.PackObject) {
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
	sig := Uwf.Sign(time.Unix(max(at.Unix(), 0), 0))
	data, _ := gitobj.EncodeCommit(gitobj.Commit{Tree: wire.EmptyTree, Author: sig, Committer: sig, Message: string(msg) + "\n"})
	o := wire.NewObject(plumbing.CommitObject, data)
	u.New = o.ID
	// The remote may never have seen the empty tree.
	return u, []wire.PackObject{{Object: o}, {Object: wire.NewObject(plumbing.TreeObject, nil)}}
}

// ParseClaim reads a claim's commit.
func ParseClaim(o wire.Object) (Claim, error) {
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
	if c.Run == "" || c.Head != "" && !c.Head.Valid() || c.Tokens < 0 || c.Since < 0 || c.Renewed < 0 || !(c.CostUSD >= 0) || c.Started < 0 || c.Until < 0 || c.ReserveTokens < 0 || !(c.ReserveUSD >= 0) {
		return c, fmt.Errorf("the claim %s has no run, or values out of range", o.ID)
	}
	return c, nil
}
