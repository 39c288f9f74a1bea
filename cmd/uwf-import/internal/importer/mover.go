package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf-import/internal/ocas"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/bundle"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/commitmsg"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// mover moves threads from a source into a store.
type mover struct {
	o      *Options
	src    *ocas.Source
	store  *gitcas.Store
	redact *redact.Redactor
	clean  map[node.Hash]bool // nodes that were checked
}

// refusal is why a thread or workflow is left out: of what it is, not of the store.
type refusal struct{ error }

func newRefusal(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

// noteRefusal notes why something is left out. Any other error ends the import.
func noteRefusal(what string, err error, result, why *string) error {
	var no refusal
	switch {
	case errors.As(err, &no):
		*result, *why = refused, no.Error()
	case errors.Is(err, gitcas.ErrInvalid), errors.Is(err, gitcas.ErrCollision): // what it holds can't be stored
		*result, *why = refused, err.Error()
	case err != nil:
		return fmt.Errorf("import %s: %w", what, err)
	}
	return nil
}

// moveAll moves everything. A refusal keeps one thread out.
func (m *mover) moveAll(ctx context.Context, res *result) error {
	m.clean = map[node.Hash]bool{}
	for _, t := range m.src.Threads() {
		out := moved{Thread: t.ID, Status: t.Status}
		if err := noteRefusal("thread "+string(t.ID), m.moveThread(ctx, t, &out), &out.Result, &out.Why); err != nil {
			return err
		}
		if out.Result == refused {
			out.Added = 0
		}
		res.Threads = append(res.Threads, out)
		m.src.Forget()
	}
	flows := m.src.Workflows()
	for _, name := range slices.Sorted(maps.Keys(flows)) {
		out := registered{Name: name, Hash: flows[name].Hash}
		err := m.registerWorkflow(ctx, flows[name], &out, res)
		if err := noteRefusal("workflow "+name, err, &out.Result, &out.Why); err != nil {
			return err
		}
		res.Workflows = append(res.Workflows, out)
	}
	return nil
}

// moveThread moves one thread.
func (m *mover) moveThread(ctx context.Context, t ocas.Thread, out *moved) error {
	chain, err := m.src.ReadChain(t.Head)
	if err != nil {
		return refusal{err}
	}
	out.Steps, out.Workflow = len(chain.Parts)-1, chain.Workflow
	def, err := workflow.FromNode(m.src, chain.Workflow)
	if err != nil {
		return newRefusal("its workflow %s: %w", chain.Workflow, err)
	}
	out.Name, out.Rehashed = def.Name, len(chain.Former)
	t.Head = chain.Parts[len(chain.Parts)-1].Head // another one, if it was re-rooted
	if t.Status == ocas.Untold {
		t.Status, out.Why = m.judgeEnding(def, chain)
		out.Status = t.Status
	}
	if err := m.checkNoSecretIn("what it waits for", t.Role+"\n"+t.Reason); err != nil {
		return err
	}
	for _, p := range chain.Parts {
		for _, p := range slices.Concat(p.Attempts, []ocas.Part{p}) {
			if err := m.checkNodes(p.Nodes); err != nil {
				return err
			}
		}
	}
	out.Result = imported
	at, err := m.findProgress(ctx, t, chain)
	if err != nil || at.next == len(chain.Parts) {
		out.Result, out.Why = exists, cmp.Or(at.why, out.Why)
		return err
	}
	if out.Added = len(chain.Parts) - max(at.next, 1); at.hasHead {
		out.Added = 0
	}
	if m.o.DryRun {
		return nil
	}
	for at.next < len(chain.Parts) {
		if err = m.pushPart(ctx, &at, t, def.Name, chain); err != nil {
			return err
		}
	}
	return nil
}

// progress is how far the store has a thread.
type progress struct {
	view    *gitcas.View
	next    int           // the part of the chain that is to be pushed next
	hasHead bool          // the store has that part, and the thread in another status
	reopen  *gitcas.Ended // it had ended, and went on where it comes from
	why     string        // how it stands here, where that is otherwise; may be empty
}

// findProgress says which part of the chain is to be pushed next: all of them where the
// store doesn't have the thread, none where it has; where it has a former state of it, as it
// was imported, those after that.
func (m *mover) findProgress(ctx context.Context, t ocas.Thread, chain ocas.Chain) (progress, error) {
	v, err := m.store.Load(ctx, t.ID)
	if err != nil {
		if m.o.DryRun && errors.Is(err, gitcas.ErrNoStore) {
			return progress{}, nil
		}
		return progress{}, err
	}
	heads := make([]node.Hash, len(chain.Parts))
	for i, p := range chain.Parts {
		heads[i] = p.Head
	}
	last := len(heads) - 1
	done := progress{view: v, next: len(heads)}
	if e, alive := v.Entry(t.ID); alive {
		at := slices.Index(heads, e.Head)
		switch {
		case at == last && !isUnderWay(e) && (!isAsImported(v, t.ID, e) || isState(e, m.buildChange(t, "", chain, last, true), t.ID)):
			done.why = describeStanding(t, cmp.Or(string(e.Status), ocas.Active))
			return done, nil
		case at == last: // it ended since, or waits
			return progress{view: v, next: at, hasHead: true}, nil
		case at >= 0 && isAsImported(v, t.ID, e):
			return progress{view: v, next: at + 1}, nil
		case at >= 0:
			return progress{}, newRefusal("it went on in both: there from step %d to step %d, and here somebody has worked on it since it was imported at step %d; here it stays as it is", at, last, at)
		}
		done.why, err = checkExport(ctx, bundle.Thread{ID: t.ID, View: v, Entry: e}, heads)
		return done, err
	}
	e, there, err := v.FindEnded(ctx, t.ID)
	switch {
	case err != nil:
		return progress{}, err
	case !there:
		return progress{view: v}, nil
	case e.Head == t.Head:
		done.why = describeStanding(t, e.Reason)
		return done, nil
	}
	if at := slices.Index(heads, e.Head); at >= 0 && e.Note == importedNote {
		return progress{view: v, next: at + 1, reopen: &e}, nil
	}
	past, err := v.LoadEnded(ctx, e)
	if err != nil {
		return progress{}, err
	}
	done.why, err = checkExport(ctx, bundle.Thread{ID: t.ID, View: past, Entry: gitcas.Entry{Head: e.Head}, Ended: &e}, heads)
	return done, err
}

// describeStanding says that a thread stands otherwise than where it comes from; empty where it
// doesn't.
func describeStanding(t ocas.Thread, here string) string {
	if here == t.Status {
		return ""
	}
	return fmt.Sprintf("it is %s there, and %s here, where it stays as it is", t.Status, here)
}

// importedNote is the note of threads that had ended where they come from.
const importedNote = "imported"

func isUnderWay(e gitcas.Entry) bool {
	return e.Suspended != nil && e.Suspended.Reason == bundle.UnderWay
}

// isAsImported reports whether nobody has worked on a thread since it was imported: it has no
// claim, and its entry nothing but what an import writes and what the Store adds to that.
func isAsImported(v *gitcas.View, id gitcas.ThreadID, e gitcas.Entry) bool {
	if _, claimed := v.FindClaim(id); claimed {
		return false
	}
	bare := gitcas.Entry{Head: e.Head, Workflow: e.Workflow, Status: e.Status, Title: e.Title, Suspended: e.Suspended, Used: e.Used}
	return reflect.DeepEqual(e, bare) && (e.Suspended == nil || e.Suspended.By == nil)
}

// isState reports whether a thread is alive in the state that a change gives it.
func isState(e gitcas.Entry, c *gitcas.Change, id gitcas.ThreadID) bool {
	want := c.Threads[id]
	return len(c.Archive) == 0 && e.Status == want.Status && reflect.DeepEqual(e.Suspended, want.Suspended)
}

// pushPart makes the commit of one part. The last one gives the thread its status, and
// takes it off the tip where it has ended.
func (m *mover) pushPart(ctx context.Context, at *progress, t ocas.Thread, flow string, chain ocas.Chain) error {
	// What brings a thread back can't end it again: that is one more commit.
	i, last := at.next, at.next == len(chain.Parts)-1 && at.reopen == nil
	part := chain.Parts[i]
	c := m.buildChange(t, flow, chain, i, last)
	if at.reopen != nil {
		c.Reopen = []gitcas.Ended{*at.reopen}
	}
	next, err := m.store.Update(ctx, at.view, func(v *gitcas.View) (*gitcas.Change, error) {
		e, alive := v.Entry(t.ID)
		switch {
		case alive && e.Head == part.Head && (!last || isState(e, c, t.ID)):
			return nil, nil // an earlier try of ours
		case alive && (i == 0 && e.Head != part.Head || i > 0 && e.Head != chain.Parts[i-1].Head && e.Head != part.Head || !isAsImported(v, t.ID, e)),
			!alive && i > 0 && at.reopen == nil:
			return nil, newRefusal("somebody else works on it in the store")
		case !alive: // it may have ended since it was looked for: another import may be at it
			ended, there, err := v.FindEnded(ctx, t.ID)
			if err != nil {
				return nil, err
			}
			if there != (at.reopen != nil) || there && ended.Head != at.reopen.Head {
				return nil, newRefusal("somebody else works on it in the store")
			}
		}
		if i == 0 || last { // those between would be written over
			story.AddPages(ctx, v, c)
		}
		return c, nil
	}, t.ID)
	if err != nil {
		return err
	}
	if last {
		m.o.Factory.Notes().Printf("%s: %d steps\n", t.ID, i)
	}
	at.view, at.reopen = next, nil
	if last || i < len(chain.Parts)-1 {
		at.next++
	}
	return nil
}

// buildChange is the commit of one part. The last one gives the thread its status.
func (m *mover) buildChange(t ocas.Thread, flow string, chain ocas.Chain, i int, last bool) *gitcas.Change {
	part := chain.Parts[i]
	e := &gitcas.Entry{Head: part.Head, Workflow: chain.Workflow, Status: gitcas.StatusSuspended, Title: titleOfChain(chain), Suspended: &gitcas.Suspended{Reason: bundle.UnderWay}}
	c := &gitcas.Change{Subject: commitmsg.Subject(e.Title, "imported · "+flow, t.ID.Short()), Threads: map[gitcas.ThreadID]*gitcas.Entry{t.ID: e}, Nodes: placeNodes(t.ID, part.Head, part.Nodes)}
	c.Trailers = []gitcas.Trailer{{Key: "Uwf-Thread", Value: string(t.ID)}, {Key: "Uwf-Step", Value: strconv.Itoa(i)}, {Key: "Uwf-Head", Value: string(part.Head)}}
	for _, a := range part.Attempts {
		c.Nodes = append(c.Nodes, placeNodes(t.ID, a.Head, a.Nodes)...)
	}
	if part.Step != nil {
		c.Subject = commitmsg.Subject(e.Title, fmt.Sprintf("imported · %s · step %d", part.Step.Role, i), t.ID.Short())
		text := m.writePage(i, part)
		c.Body, c.Readable = text, map[string][]byte{layout.PagePath(t.ID, i, part.Step.Role): []byte(text)}
		c.Trailers = append(c.Trailers, gitcas.Trailer{Key: "Uwf-Role", Value: part.Step.Role}, gitcas.Trailer{Key: "Uwf-Agent", Value: part.Step.Agent})
	}
	if !last {
		return c
	}
	if len(chain.Former) > 0 { // with the last node: no list is to name one that is not there
		c.Former = map[string][]gitcas.Former{layout.FormerName(t.ID): chain.Former}
	}
	e.Status, e.Suspended = gitcas.StatusActive, nil
	switch t.Status {
	case ocas.Suspended:
		e.Status, e.Suspended = gitcas.StatusSuspended, &gitcas.Suspended{Role: t.Role, Reason: t.Reason}
	case ocas.Ended, ocas.Cancelled:
		reason := gitcas.ReasonCancelled
		if t.Status == ocas.Ended {
			e.Status, reason = gitcas.StatusEnded, gitcas.ReasonEnded
		}
		c.Archive = []gitcas.Ended{{
			Thread: t.ID, Title: e.Title, Workflow: chain.Workflow, Head: part.Head, Reason: reason, Note: importedNote, CompletedAt: completedAt(t, part), Steps: stepsOf(chain),
		}}
	}
	return c
}

// titleOfChain is what a thread is about, by the task that it began with.
func titleOfChain(chain ocas.Chain) string {
	for _, n := range chain.Parts[0].Nodes {
		if s, err := record.ParseStart(n.Node); err == nil && n.Hash == chain.Parts[0].Head {
			return reading.TitleOfPrompt(s.Prompt)
		}
	}
	return ""
}

func placeNodes(id gitcas.ThreadID, head node.Hash, nodes []ocas.Node) []gitcas.PlacedNode {
	out := make([]gitcas.PlacedNode, len(nodes))
	for i, n := range nodes {
		out[i] = gitcas.PlacedNode{Hash: n.Hash, Node: n.Node}
		switch n.To {
		case record.ToRecord:
			out[i].Place = gitcas.Place{Thread: id}
		case record.ToOwn, record.ToDetail:
			out[i].Place = gitcas.Place{Thread: id, Of: head, Detail: n.To == record.ToDetail}
		}
	}
	return out
}

func stepsOf(chain ocas.Chain) []node.Hash {
	return lists.Map(chain.Parts[1:], func(p ocas.Part) node.Hash { return p.Head })
}

// completedAt is when a thread ended: as its list says, else when its last step did.
func completedAt(t ocas.Thread, last ocas.Part) int64 {
	switch {
	case t.CompletedAt > 0:
		return t.CompletedAt
	case last.Step != nil:
		return max(last.Step.CompletedAtMs, 0)
	}
	return max(t.ID.Time().UnixMilli(), 0)
}

// writePage is a step for a reader.
func (m *mover) writePage(n int, p ocas.Part) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Step %d: %s\n\nAgent %s, %s. Imported.\n\n## Output\n\n", n, output.Line(p.Step.Role, 100), output.Line(p.Step.Agent, 100),
		text.Time(time.UnixMilli(max(p.Step.CompletedAtMs, 0))))
	if out, err := m.src.Get(p.Step.Output); err == nil {
		if text, err := node.FormatJSON(out.Payload); err == nil {
			for line := range strings.Lines(string(text)) {
				b.WriteString("    " + line)
			}
		}
	}
	return b.String()
}

// checkNoSecretIn looks a text through, which would be stored beside the nodes.
func (m *mover) checkNoSecretIn(what, text string) error {
	if _, found := m.redact.String(text); found > 0 {
		return newRefusal("%s holds a secret, or what looks like one", what)
	}
	return nil
}

// checkNodes makes sure, before the first of them is stored, that all can be, and that none
// holds a secret: without changing hashes nothing can be taken out of them.
func (m *mover) checkNodes(nodes []ocas.Node) error {
	for _, n := range nodes {
		if m.clean[n.Hash] {
			continue
		}
		if _, err := gitcas.EncodeNode(n.Node); err != nil {
			return newRefusal("node %s: %w", n.Hash, err)
		}
		_, found, err := m.redact.Value(n.Node.Payload)
		switch {
		case err != nil:
			return newRefusal("node %s: check for secrets: %w", n.Hash, err)
		case found > 0:
			return newRefusal("node %s holds a secret, or what looks like one; what is stored can be read by everybody who can read the repository", n.Hash)
		}
		m.clean[n.Hash] = true
	}
	return nil
}

// registerWorkflow registers a name with its former versions, unless the store has it. A
// name that was imported and has a new version since gets that.
func (m *mover) registerWorkflow(ctx context.Context, entry gitcas.RegistryEntry, out *registered, res *result) error {
	if err := m.checkNoSecretIn("its name", out.Name); err != nil {
		return err
	}
	flow, err := m.readWorkflow(entry.Hash)
	if err != nil {
		return err
	}
	c := &gitcas.Change{Subject: "import workflow " + out.Name, Registry: map[string]*gitcas.RegistryEntry{out.Name: &entry}}
	entry.Hash = addWorkflow(c, flow)
	out.Hash, out.Rehashed = flow.Hash, len(flow.Former)
	var former []gitcas.RegistryVersion
	for _, f := range entry.History {
		flow, err := m.readWorkflow(f.Hash)
		if err != nil {
			res.Problems = append(res.Problems, ocas.Problem{File: "workflow " + out.Name, Why: fmt.Sprintf("its former version %s is left out: %s", f.Hash, err)})
			continue
		}
		f.Hash = addWorkflow(c, flow)
		if f.Hash != entry.Hash {
			former = append(former, f)
		}
	}
	entry.History = former
	out.Result = imported
	v, err := m.store.Load(ctx)
	if err != nil {
		if m.o.DryRun && errors.Is(err, gitcas.ErrNoStore) {
			return nil
		}
		return err
	}
	_, err = m.store.Update(ctx, v, func(v *gitcas.View) (*gitcas.Change, error) {
		old, there := v.Registry()[out.Name]
		switch {
		case there && old.Hash == entry.Hash:
			out.Result = exists
			return nil, nil
		case there && !isFormer(old, entry):
			if h, _, err := workflow.ForPeers(v.Getter(ctx), old.Hash); err == nil && h == entry.Hash {
				out.Result = exists // it was exported from here
				return nil, nil
			}
			return nil, newRefusal("the store has another workflow of this name, %s; its own is kept", old.Hash)
		case m.o.DryRun:
			return nil, nil
		}
		entry.Timestamp = cmp.Or(entry.Timestamp, v.Time().UnixMilli())
		return c, nil
	})
	return err
}

// addWorkflow puts a workflow into a change, and returns its hash.
func addWorkflow(c *gitcas.Change, flow ocas.Flow) node.Hash {
	c.Nodes = append(c.Nodes, placeNodes("", "", flow.Nodes)...)
	if name := layout.FormerName(flow.Hash); len(flow.Former) > 0 {
		if c.Former == nil {
			c.Former = map[string][]gitcas.Former{}
		}
		// Two versions may differ in nothing but the rule of hashes.
		list := slices.Concat(c.Former[name], flow.Former)
		slices.SortFunc(list, func(a, b gitcas.Former) int { return cmp.Compare(a.Former, b.Former) })
		c.Former[name] = slices.Compact(list)
	}
	return flow.Hash
}

// readWorkflow is a workflow with all that it needs, checked.
func (m *mover) readWorkflow(h node.Hash) (ocas.Flow, error) {
	flow, err := m.src.ReadWorkflow(h)
	if err == nil {
		_, err = workflow.FromNode(m.src, flow.Hash)
	}
	if err != nil {
		return flow, refusal{err}
	}
	return flow, m.checkNodes(flow.Nodes)
}

// isFormer reports whether all versions of a name are former ones of the other.
func isFormer(old, now gitcas.RegistryEntry) bool {
	for _, o := range append([]gitcas.RegistryVersion{{Hash: old.Hash}}, old.History...) {
		if !slices.ContainsFunc(now.History, func(n gitcas.RegistryVersion) bool { return n.Hash == o.Hash }) {
			return false
		}
	}
	return true
}
