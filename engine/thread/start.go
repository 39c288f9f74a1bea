package thread

import (
	"cmp"
	"context"
	"fmt"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/text"
)

// StartRequest describes a new thread.
type StartRequest struct {
	ID gitcas.ThreadID
	// Workflow is the definition's hash, and Nodes what has to be stored for it:
	// the workflow node and its schemas. Nodes may be empty when the store has them.
	Workflow node.Hash
	Nodes    map[node.Hash]node.Node
	Prompt   string
	// Base is the commit that the work begins from; empty without a repository. Objects are what
	// the remote lacks of it: with any, the work branch is made at once, so that Base stays.
	Base    string
	Objects []wire.PackObject
	// Cwd is the folder of the work tree that roles work in whose edge names none, by a
	// path with slashes from its top; empty: the top.
	Cwd string
	// Branch is the work branch; empty: one of the thread's own. Base is its tip then.
	Branch string
	// Key makes the start idempotent: a thread that is alive with the same key is
	// returned instead of a new one.
	Key     string
	Trigger map[string]any
	// Title is what it is about, on one line; empty: the prompt's first line.
	Title  string
	Limits map[string]float64
}

// Started says what Start did.
type Started struct {
	Workflow node.Hash       `json:"workflow"`
	Name     string          `json:"name"` // the workflow's
	Thread   gitcas.ThreadID `json:"thread"`
	Head     node.Hash       `json:"head"`
	Role     string          `json:"nextRole"`
	Existed  bool            `json:"existed,omitempty"`
	// Status and Deliver are those of a thread that existed, see Result.
	Status  string `json:"-"`
	Deliver bool   `json:"-"`
	// ForkedFrom is what a fork begins with; nil for other threads.
	ForkedFrom *ForkPoint `json:"forkedFrom,omitempty"`
	// Suspended is set for a fork that waits for a person at once.
	Suspended *SuspendedInfo `json:"suspended,omitempty"`
}

// ForkPoint is where a fork leaves the thread that it begins with.
type ForkPoint struct {
	Step   node.Hash       `json:"step"` // the last step that both have, or their StartNode
	Thread gitcas.ThreadID `json:"thread"`
	Steps  int             `json:"steps"` // how many steps both have
}

// Start creates a thread. It creates the store's branch where there is none yet.
func (e *Engine) Start(ctx context.Context, req StartRequest) (Started, error) {
	v, err := e.Store.Init(ctx)
	if err != nil {
		return Started{}, fmt.Errorf("start a thread: %w", err)
	}
	if err := life.CheckLimits(req.Limits); err != nil {
		return Started{}, err
	}
	if req.Cwd != "" && !reading.InWorkTree(req.Cwd) {
		return Started{}, life.Usagef("%q is no path of a folder in the work tree, from its top", req.Cwd)
	}
	prompt, trigger, err := redactStart(e.Redact, &req)
	if err != nil {
		return Started{}, err
	}
	now := v.Time()
	def, err := workflow.FromNode(node.First{node.Map(req.Nodes), v.Getter(ctx)}, req.Workflow)
	if err != nil {
		return Started{}, fmt.Errorf("workflow %s: %w", req.Workflow, err)
	}
	if _, taken := FindByKey(v, req.Key); !taken {
		if err := CheckCostLimit(e.Settings, def, req.Limits); err != nil {
			return Started{}, err
		}
	}
	who := e.identifyPerson(ctx, def, req.ID, "the thread is started, and where its workflow wants the approval of somebody else than who started it, it can get none")
	digest, err := v.Definition(ctx, req.Workflow, req.Nodes)
	if err != nil {
		return Started{}, fmt.Errorf("workflow %s: %w", req.Workflow, err)
	}
	start := record.Start{
		Workflow: req.Workflow, Prompt: prompt, Cwd: cmp.Or(req.Cwd, "."), Trigger: trigger, Base: req.Base,
		Title: cmp.Or(text.OneLine(req.Title), reading.TitleOfPrompt(prompt)), By: who.OnRecord(),
		Digests: &record.StartDigests{Workflow: digest},
	}
	n, head, err := start.Node(now)
	if err != nil {
		return Started{}, fmt.Errorf("start node: %w", err)
	}
	payload, _ := n.Payload.(map[string]any)
	first, err := moderator.Next(def, moderator.Thread{Start: payload})
	if err != nil {
		return Started{}, life.Usagef("workflow %s can't say who begins: %v", def.Name, err)
	}
	out := Started{Thread: req.ID, Workflow: req.Workflow, Name: def.Name, Head: head, Role: first.Role, Status: string(gitcas.StatusActive)}
	entry := gitcas.Entry{
		Head: head, Status: gitcas.StatusActive, Workflow: req.Workflow, Key: req.Key,
		Work: gitcas.Work{Branch: cmp.Or(req.Branch, layout.WorkBranch(req.ID)), Commit: req.Base}, Limits: req.Limits,
		Next: &gitcas.Next{Role: first.Role, Since: now.UnixMilli()}, Title: start.Title, By: start.By,
	}
	if _, taken := FindByKey(v, req.Key); !taken {
		t := task.Task{Thread: req.ID, Role: first.Role, Step: 1, WorkflowName: def.Name, Entry: entry}
		if err := e.CheckPush(ctx, v, t); err != nil {
			return Started{}, fmt.Errorf("start thread %s: %w", req.ID, err)
		}
	}
	nodes := []gitcas.PlacedNode{{Hash: head, Node: n, Place: gitcas.Place{Thread: req.ID}}}
	types := map[node.Hash]bool{n.Type: true}
	for h, w := range req.Nodes {
		nodes = append(nodes, gitcas.PlacedNode{Hash: h, Node: w})
		types[w.Type] = true
	}
	for typ := range types {
		if s, ok := record.Schemas()[typ]; ok {
			nodes = append(nodes, gitcas.PlacedNode{Hash: typ, Node: s})
		}
	}
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		if other, taken, err := findTaken(ctx, v, life.Start, req.ID, req.Key); taken || err != nil {
			out = other
			return nil, err
		}
		var refs []wire.RefUpdate
		if len(req.Objects) > 0 {
			refs = []wire.RefUpdate{{Name: workbranch.Ref(entry.Work.Branch), New: workbranch.CommitID(entry.Work)}}
		}
		return story.Sign(&gitcas.Change{
			Refs: refs, Objects: req.Objects,
			Subject: story.Subject(start.Title, req.ID, "started · "+text.OneLine(def.Name)),
			Body:    prompt,
			Trailers: []gitcas.Trailer{
				{Key: "Uwf-Thread", Value: string(req.ID)}, {Key: "Uwf-Step", Value: "0"},
				{Key: "Uwf-Head", Value: string(head)},
				{Key: "Uwf-Run", Value: fmt.Sprintf("%s attempt %d", e.Who.Run, e.Who.Attempt)},
			},
			Nodes:   nodes,
			Threads: map[gitcas.ThreadID]*gitcas.Entry{req.ID: &entry},
		}, who), nil
	}
	if _, err := e.Update(ctx, v, build, req.ID); err != nil {
		return Started{}, fmt.Errorf("start thread %s: %w", req.ID, err)
	}
	e.Reached("start")
	return out, nil
}

// findTaken says which thread is taken for a new one, since it has the same key; false: none
// is. A thread of the same id is an error.
func findTaken(ctx context.Context, v *gitcas.View, d life.Deed, id gitcas.ThreadID, key string) (out Started, taken bool, err error) {
	if _, there := v.Entry(id); there {
		return out, false, life.Refuse(d, id, "a thread of that id is there already")
	}
	if id, taken = FindByKey(v, key); !taken {
		return out, false, nil
	}
	entry, _ := v.Entry(id)
	out = Started{Thread: id, Workflow: entry.Workflow, Head: entry.Head, Existed: true, Status: string(entry.Status), Deliver: entry.Deliver}
	out.Suspended = newSuspendedInfo(id, entry)
	if entry.Next != nil {
		out.Role = entry.Next.Role
	}
	if entry.Workflow != "" {
		def, err := workflow.FromNode(v.Getter(ctx), entry.Workflow)
		if err != nil {
			return out, true, fmt.Errorf("thread %s, which has the same key: %w", id, err)
		}
		out.Name = def.Name
	}
	return out, true, nil
}

// maxStartPrompt bounds the text that a thread starts from, in bytes: it is part of
// every prompt.
const maxStartPrompt = 1 << 20

// redactStart takes secrets out of what came from outside. The definition and the
// key are what others look for, so they can't be changed: with a known secret in
// them nothing is started.
func redactStart(r Redactor, req *StartRequest) (prompt string, trigger map[string]any, err error) {
	if len(req.Prompt) > maxStartPrompt {
		return "", nil, life.Usagef("the prompt has %d bytes; at most %d are taken: put long texts into the repository", len(req.Prompt), maxStartPrompt)
	}
	if prompt, err = CleanText(r, "prompt", req.Prompt); err != nil {
		return "", nil, err
	}
	if req.Title, err = CleanText(r, "title", req.Title); err != nil {
		return "", nil, err
	}
	if req.Trigger != nil {
		clean, _, err := r.Value(req.Trigger)
		if err != nil {
			return "", nil, fmt.Errorf("check the trigger for secrets: %w", err)
		}
		trigger, _ = clean.(map[string]any)
	}
	if err := refuseSecret(r, "the key", req.Key); err != nil {
		return "", nil, err
	}
	for h, n := range req.Nodes {
		if err := refuseSecret(r, "the definition (node "+string(h)+")", n.Payload); err != nil {
			return "", nil, err
		}
	}
	return prompt, trigger, nil
}
