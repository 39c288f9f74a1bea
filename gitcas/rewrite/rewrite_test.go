package rewrite_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/rewrite"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// grown is a store with forks, details, ended and cancelled threads, and a thread
// that has nothing to do with the secret.
func grown(f *fixture) {
	f.start(id(1), "clean")
	f.step(id(1), note("nothing here"), "nor here", "nor here")
	f.start(id(2), "the password is "+secret)
	f.step(id(2), note("I saw it"), "body", "turn")
	f.step(id(2), note("it is "+secret+" indeed"), "body with "+secret, `{"key":"`+strings.ReplaceAll(secret, `"`, `\"`)+`"}`)
	f.fork(id(3), id(2))
	f.step(id(3), note("the fork's own"), "own", "own turn")
	f.plain[id(4)] = true
	f.start(id(4), "leaks in its details")
	f.step(id(4), note("quiet"), "quiet", "Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("me:"+secret)))
	f.step(id(4), note("quiet"), "quiet", url.QueryEscape(secret)+" "+hex.EncodeToString([]byte(secret)))
	f.end(id(4), "ended", "")
	f.start(id(5), "cancelled")
	f.step(id(5), map[string]any{"$status": "finished", "more": map[string]any{secret: []any{secret, "x" + secret + secret}}}, "b", "d")
	f.end(id(5), "cancelled", strings.Repeat("because ", 23)+secret) // a page shows half of it
	f.start(id(6), "after all that")
	f.step(id(6), note("clean"), "clean", "clean")
	v := f.load(id(6))
	e, _ := v.Entry(id(6))
	e.Status, e.Suspended = gitcas.StatusSuspended, &gitcas.Suspended{Role: "developer", Reason: "may I use\n" + secret + "?"}
	f.push(v, &gitcas.Change{Subject: "suspended", Body: "may I use " + secret, Threads: map[gitcas.ThreadID]*gitcas.Entry{id(6): &e}})
}

func TestPurgeText(t *testing.T) {
	f := memory(t)
	grown(f)
	f.sound()
	before, oldCommits := f.log()
	plan := f.purge(f.options(finder(t, secret)))
	f.sound()
	f.nowhere(secret)

	after, newCommits := f.log()
	if len(after) != len(before) || plan.Commits != len(before) || plan.New != after[0] || plan.Old != before[0] {
		t.Errorf("%d commits, were %d; plan %+v", len(after), len(before), plan)
	}
	same := 0
	for i := range after {
		a, b := oldCommits[i], newCommits[i]
		if a.Author.Name != b.Author.Name || !a.Author.When.Equal(b.Author.When) || !a.Committer.When.Equal(b.Committer.When) {
			t.Errorf("commit %d: %+v became %+v", i, a, b)
		}
		if before[i] == after[i] {
			same++
		}
	}
	if same != 3 { // init, start and step of the first thread
		t.Errorf("%d commits are as they were", same)
	}
	if plan.Changed != len(before)-same {
		t.Errorf("%d commits changed, by the plan %d", len(before)-same, plan.Changed)
	}
	threadsAre(t, plan, id(2), id(3), id(4), id(5))
	for _, p := range plan.Found {
		if strings.Contains(p.String(), "LEAK") {
			t.Errorf("the plan quotes it: %s", p)
		}
	}
	goesOn(f)

	// Twice: nothing is left.
	if again := f.purge(f.options(finder(t, secret))); !again.Empty() || len(again.Found) > 0 {
		t.Errorf("the second time: %+v", again)
	}
}

// threadsAre checks whose heads a plan changes.
func threadsAre(t *testing.T, plan *rewrite.Plan, want ...gitcas.ThreadID) {
	t.Helper()
	var got []gitcas.ThreadID
	for _, x := range plan.Threads {
		got = append(got, x.ID)
		if x.Old == x.New || !x.New.Valid() {
			t.Errorf("thread %+v", x)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("threads %v, want %v", got, want)
	}
}

// goesOn reads, continues and forks every thread of a grown store.
func goesOn(f *fixture) {
	f.Helper()
	v := f.load()
	for t := range v.Threads() {
		v := f.load(t)
		c, err := v.ReadChain(f.Context(), t)
		f.ok(err)
		for _, s := range c.Steps {
			for _, r := range s.Refs() {
				if r.To == record.ToOwn || r.To == record.ToDetail {
					f.below(v, t, s.Hash, r.Hash)
				}
			}
		}
		f.step(t, note("goes on"), "b", "d")
	}
	f.fork(id(17), id(2))
	f.step(id(17), note("of a live one"), "b", "d")
	f.ok(f.load().History(f.Context(), time.Time{}, func(e gitcas.Ended) error {
		past, err := f.load().LoadEnded(f.Context(), e)
		f.ok(err)
		c, err := past.ReadChain(f.Context(), e.Thread)
		f.ok(err)
		if len(c.Steps) != len(e.Steps) || c.Steps[len(c.Steps)-1].Hash != e.Head {
			f.Errorf("thread %s: chain and line differ", e.Thread)
		}
		return nil
	}))
	late := id(18)
	e, ok, err := f.load().FindEnded(f.Context(), id(4))
	if err != nil || !ok {
		f.Fatal(err)
	}
	f.push(f.load(), &gitcas.Change{Subject: "forked", Threads: map[gitcas.ThreadID]*gitcas.Entry{late: {Head: e.Head, Workflow: e.Workflow}}, Forks: map[gitcas.ThreadID]gitcas.ThreadID{late: id(4)}})
	f.step(late, note("of an ended one"), "b", "d")
	f.sound()
}

// TestSchemasAndWorkflows: what all refer to holds it.
func TestSchemasAndWorkflows(t *testing.T) {
	f := memory(t)
	f.setSchema("use " + secret)
	f.setFlow("log in with " + secret)
	f.start(id(1), "p")
	f.step(id(1), note("n"), "b", "d")
	f.start(id(2), "q")
	f.end(id(2), "cancelled", "")
	old := f.load().Registry()["solve-issue"].Hash
	plan := f.purge(f.options(finder(t, secret)))
	f.sound()
	f.nowhere(secret)
	threadsAre(t, plan, id(1), id(2))
	e := f.load().Registry()["solve-issue"]
	if ended, _, err := f.load().FindEnded(t.Context(), id(2)); err != nil || ended.Workflow != e.Hash {
		t.Errorf("history line %+v, %v", ended, err)
	}
	if e.Hash == old || e.Timestamp != 5 {
		t.Errorf("registry %+v", e)
	}
	if e, _ := f.load().Entry(id(1)); e.Workflow == old {
		t.Error("the entry names the old workflow")
	}
}

// TestNames: what other things depend on is refused, or left.
func TestNames(t *testing.T) {
	f := memory(t)
	f.start(id(1), "p")
	f.step(id(1), note("the developer has finished"), "b", "d")
	before, _ := f.log()
	for _, text := range []string{"developer", "finished", "solve-issue"} {
		o := f.options(finder(t, text))
		_, err := rewrite.New(f.remote, o).MakePlan(t.Context())
		var fixed *rewrite.FixedError
		if !errors.As(err, &fixed) || strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if after, _ := f.log(); after[0] != before[0] {
		t.Error("the branch moved")
	}
	o := f.options(finder(t, "finished"))
	o.LeaveNames = true
	plan := f.purge(o)
	if len(plan.Left) == 0 || plan.Changed == 0 {
		t.Errorf("plan %+v", plan)
	}
	f.sound()
	v := f.load(id(1))
	c, err := v.ReadChain(t.Context(), id(1))
	f.ok(err)
	n := f.below(v, id(1), c.Steps[0].Hash, c.Steps[0].Output)
	out, _ := n.Payload.(map[string]any)
	if out["$status"] != "finished" || out["note"] != "the developer has [purged]" {
		t.Errorf("output %v", out)
	}
	// Words of the format are nobody's text.
	for _, text := range []string{"properties", "additionalProperties", "completedAtMs", "frontmatter", "number", "object", "Uwf-Thread", "[skip ci]"} {
		plan, err := rewrite.New(f.remote, f.options(finder(t, text))).MakePlan(t.Context())
		if err != nil || !plan.Empty() {
			t.Errorf("%s: %+v, %v", text, plan, err)
		}
	}
}

// TestWordsOfApprovals: who may not approve is a word of the format; a status of the
// same name is none.
func TestWordsOfApprovals(t *testing.T) {
	f := memory(t)
	f.setFlow("g")
	payload, _ := f.flow.Node.Payload.(map[string]any)
	payload["dialect"] = "status-map"
	graph, _ := payload["graph"].(map[string]any)
	graph["developer"] = map[string]any{
		"finished": map[string]any{"role": "$END", "prompt": "{{{note}}}", "approval": map[string]any{"not": []any{"starter", "author"}}},
		"rejected": map[string]any{"role": "developer", "prompt": "ask the starter-kit"},
	}
	f.flow = f.placed(gitcas.Place{}, record.OwnWorkflowSchema, payload)
	f.start(id(1), "p")
	f.step(id(1), note("n"), "b", "d")
	for text, empty := range map[string]bool{"author": true, "approval": true, "starter": false} {
		plan, err := rewrite.New(f.remote, f.options(finder(t, text))).MakePlan(t.Context())
		if err != nil || plan.Empty() != empty {
			t.Errorf("%s: %+v, %v", text, plan, err)
		}
	}
	f.purge(f.options(finder(t, "starter-kit")))
	f.sound()
}

// TestFits: what stands in the place of a text fits the schema.
func TestFits(t *testing.T) {
	f := memory(t)
	f.start(id(1), "p")
	f.step(id(1), map[string]any{"$status": "finished", "code": "a-4711-4711-leak", "count": int64(47114711)}, "b", "d")
	f.purge(f.options(finder(t, "4711-4711", "47114711")))
	f.sound()
	v := f.load(id(1))
	c, err := v.ReadChain(t.Context(), id(1))
	f.ok(err)
	n := f.below(v, id(1), c.Steps[0].Hash, c.Steps[0].Output)
	out, _ := n.Payload.(map[string]any)
	if out["code"] != "a-0000-0000-leak" || out["count"] != int64(0) {
		t.Errorf("output %v", out)
	}
}

// TestPurgeNode: a node that is named, and what quotes it.
func TestPurgeNode(t *testing.T) {
	f := memory(t)
	f.start(id(1), "p")
	f.step(id(1), note("keep me"), "first body", "d")
	f.step(id(1), note("a note to go\nwith another line of it"), "a body to go as well", "d")
	f.step(id(1), note("keep me too"), "third body", "d")
	f.start(id(2), "other")
	v := f.load(id(1))
	c, err := v.ReadChain(t.Context(), id(1))
	f.ok(err)
	o := f.options(nil)
	o.Nodes = append(o.Nodes, c.Steps[1].Output, *c.Steps[1].Body)
	plan := f.purge(o)
	f.sound()
	f.nowhere("a note to go\nwith another line of it", "a body to go as well")
	threadsAre(t, plan, id(1))
	v = f.load(id(1))
	c, err = v.ReadChain(t.Context(), id(1))
	f.ok(err)
	n := f.below(v, id(1), c.Steps[1].Hash, c.Steps[1].Output)
	out, _ := n.Payload.(map[string]any)
	if out["$status"] != "finished" || out["note"] != "[purged]" || len(plan.Nodes) != 2 {
		t.Errorf("output %v; plan %+v", out, plan)
	}
	n = f.below(v, id(1), c.Steps[0].Hash, c.Steps[0].Output)
	if out, _ = n.Payload.(map[string]any); out["note"] != "keep me" {
		t.Errorf("output %v", out)
	}
	f.step(id(1), note("goes on"), "b", "d")
	// A node without any text, and one that isn't there.
	o.Nodes = append(o.Nodes[:0], f.placed(gitcas.Place{}, "7VQ43ZSJTEWA7", "nobody's").Hash)
	if plan := f.purge(o); !plan.Empty() || len(plan.Nodes) > 0 {
		t.Errorf("plan %+v", plan)
	}
}

// TestPurgeFormer: the hashes that nodes had with what was taken out go along, those of others
// stay.
func TestPurgeFormer(t *testing.T) {
	f := memory(t)
	f.setFlow("do it well, says " + secret)
	f.start(id(1), "p")
	f.step(id(1), note("keep me"), "a body", "d")
	f.step(id(1), note("has "+secret), "second body", "d")
	v := f.load(id(1))
	c, err := v.ReadChain(t.Context(), id(1))
	f.ok(err)
	list := []gitcas.Former{
		{Former: "0000000000000", Hash: c.Steps[0].Output}, {Former: "0000000000001", Hash: c.Steps[1].Output}, {Former: "0000000000002", Hash: c.Steps[1].Hash},
		{Former: "0000000000003", Hash: f.flow.Hash}, {Former: "0000000000004", Hash: f.schema.Hash},
	}
	f.push(v, &gitcas.Change{Subject: "import", Former: map[string][]gitcas.Former{layout.FormerName(id(1)): list, layout.FormerName(f.flow.Hash): list[3:]}})
	f.purge(f.options(finder(t, secret)))
	f.sound()
	f.nowhere(secret)
	v = f.load(id(1))
	now, err := v.ReadChain(t.Context(), id(1))
	f.ok(err)
	if now.Start.Workflow == c.Start.Workflow {
		t.Fatal("the workflow is as it was")
	}
	lists := f.entries(f.tree(f.tipTree(), layout.FormerDir))
	for name, want := range map[string][]gitcas.Former{layout.FormerName(id(1)): {list[0], list[4]}, layout.FormerName(now.Start.Workflow): {list[4]}} {
		got, err := statefile.ParseFormer(f.object(lists[name]).Data)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	if len(lists) != 2 {
		t.Errorf("%v", lists)
	}
}

// TestBecomeEqual: two nodes that differ in the secret alone become one.
func TestBecomeEqual(t *testing.T) {
	f := memory(t)
	f.start(id(1), "p")
	f.step(id(1), note("first-secret"), "first-secret", "d")
	f.step(id(1), note("second-secret"), "second-secret", "d")
	f.step(id(1), note("[purged]"), "[purged]", "d")
	f.start(id(2), "p")
	f.step(id(2), note("[purged]"), "[purged]", "d") // the real one comes first
	f.step(id(2), note("first-secret"), "first-secret", "d")
	f.purge(f.options(finder(t, "first-secret", "second-secret")))
	f.sound()
	f.step(id(1), note("goes on"), "b", "d")
	f.sound()
}

// TestEntry: all that an entry names moves with it.
func TestEntry(t *testing.T) {
	f := memory(t)
	f.start(id(1), "p")
	f.step(id(1), note("about "+secret), "b", "d")
	v := f.load(id(1))
	e, _ := v.Entry(id(1))
	answer := f.said(id(1), "use "+secret)
	e.Key, e.Status = "issue/"+secret, gitcas.StatusSuspended
	e.Suspended = &gitcas.Suspended{Role: "developer", Reason: "may I?\n" + secret}
	e.Pause = &statefile.Pause{Reason: "because of " + secret}
	e.Next = &gitcas.Next{Role: "developer", Answer: answer.Hash, Poked: e.Head}
	e.Used = statefile.Used{Head: e.Head, Steps: 1}
	f.push(v, &gitcas.Change{Subject: "answered", Nodes: []gitcas.PlacedNode{answer}, Threads: map[gitcas.ThreadID]*gitcas.Entry{id(1): &e}})
	f.purge(f.options(finder(t, secret)))
	f.sound()
	f.nowhere(secret)
	v = f.load(id(1))
	now, _ := v.Entry(id(1))
	if now.Head == e.Head || now.Next.Poked != now.Head || now.Key != "issue/[purged]" || now.Suspended.Reason != "may I?\n[purged]" || now.Pause.Reason != "because of [purged]" {
		t.Errorf("entry %+v, next %+v", now, now.Next)
	}
	if _, ok := now.Known(); !ok {
		t.Error("what the steps took is no longer known")
	}
	n, err := v.In(t.Context(), gitcas.Place{Thread: id(1), Of: now.Next.Answer}).Get(now.Next.Answer)
	f.ok(err)
	if a, err := record.ParseAnswer(n); err != nil || a.Words[0].Text != "use [purged]" {
		t.Errorf("answer %+v, %v", a, err)
	}
}

// TestSigned: a commit of a person's, with a name and a signature. Its date stays,
// whatever is looked for.
func TestSigned(t *testing.T) {
	f := memory(t)
	f.start(id(1), "p")
	tip := f.load().Tip()
	objs, err := f.remote.Fetch(t.Context(), wire.FetchRequest{Wants: []wire.ID{tip}, Depth: 1, Filter: "tree:0"})
	f.ok(err)
	text := string(objs[tip].Data)
	head, msg, _ := strings.Cut(text, "\n\n")
	head = strings.Replace(head, "\nauthor uwf <uwf@localhost> ", "\nauthor Eve hunter-1234567 <eve-hunter-1234567@example.com> ", 1)
	when := head[strings.LastIndex(head, "> ")+2:]
	head = strings.Replace(head, "\nparent ", "\nparent "+tip.String()+"\nparent ", 1)
	i := strings.Index(head, "\nparent ")
	head = head[:i+len("\nparent ")+40] + head[i+2*(len("\nparent ")+40):]
	o := wire.NewObject(objs[tip].Type, []byte(head+"\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ hunter-1234567\n -----END PGP SIGNATURE-----\nencoding UTF-8\n\n"+msg))
	_, err = f.remote.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: f.store.Branch(), Old: tip, New: o.ID}}, Objects: []wire.PackObject{{Object: o}}})
	f.ok(err)
	if plan := f.purge(f.options(finder(t, when[:10]))); !plan.Empty() {
		t.Errorf("a date was taken for a text: %+v", plan)
	}
	plan := f.purge(f.options(finder(t, "hunter-1234567")))
	ids, commits := f.log()
	if plan.Changed != 1 || ids[1] != tip || commits[0].Author.Name != "Eve [purged]" || commits[0].Author.Email != "eve-[purged]@example.com" {
		t.Errorf("plan %+v, author %+v", plan, commits[0].Author)
	}
	objs, err = f.remote.Fetch(t.Context(), wire.FetchRequest{Wants: ids[:1], Depth: 1, Filter: "tree:0"})
	f.ok(err)
	got := string(objs[ids[0]].Data)
	if strings.Contains(got, "PGP") || !strings.Contains(got, "\nencoding UTF-8\n\n") || !strings.Contains(got, when) {
		t.Errorf("the commit is\n%s", got)
	}
	f.sound()
}

// TestForeign: what people put on the branch.
func TestForeign(t *testing.T) {
	f := memory(t)
	f.start(id(1), "p")
	tip := f.load().Tip()
	c := f.files(f.store.Branch(), "oops, "+secret+"\n", map[string]string{"notes-leaked-1234567.txt": "it is " + secret, "threads.yaml": "no: [yaml" + secret}, tip)
	f.restore(c, tip)
	plan := f.purge(f.options(finder(t, secret, "leaked-1234567")))
	f.nowhere(secret)
	if plan.Changed != 2 || len(plan.Threads) != 0 {
		t.Errorf("plan %+v", plan)
	}
	f.everything(func(_ string, o wire.Object) {
		if strings.Contains(string(o.Data), "leaked-1234567") {
			t.Errorf("%s holds the name", o.Type)
		}
	})
}

// restore makes a commit on top of one with the tree of another.
func (f *fixture) restore(on, like wire.ID) {
	f.Helper()
	objs, err := f.remote.Fetch(f.Context(), wire.FetchRequest{Wants: []wire.ID{like}, Depth: 1, Filter: "tree:0"})
	f.ok(err)
	text := strings.Replace(string(objs[like].Data), "\nparent ", "\nparent "+on.String()+"\nxparent ", 1)
	i := strings.Index(text, "xparent ")
	o := wire.NewObject(objs[like].Type, []byte(text[:i]+text[i+len("xparent ")+41:]))
	_, err = f.remote.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: f.store.Branch(), Old: on, New: o.ID}}, Objects: []wire.PackObject{{Object: o}}})
	f.ok(err)
}

// TestFieldsAreKnown: whoever adds a field to the state's files has to say here that
// fields.entry, fields of the registry or run.line look at it.
func TestFieldsAreKnown(t *testing.T) {
	for _, tt := range []struct {
		v    any
		want string
	}{
		{statefile.Entry{}, "Head Status Workflow Key Work Comment PR Next Deliver Since Released Suspended Pause Attempts Limits Title By Used Spent"},
		{statefile.Next{}, "Role Since Answer Poked Forgiven By"},
		{statefile.Suspended{}, "Role Reason By"},
		{statefile.Pause{}, "Reason By"},
		{statefile.By{}, "Kind Login ID URL Name"},
		{statefile.Cost{}, "Steps Tokens CostUSD Unpriced DurationMs"},
		{statefile.RoleUsage{}, "Role Model Steps TokensIn TokensOut CostUSD"},
		{statefile.Used{}, "Head Steps Tokens CostUSD Unpriced DurationMs"},
		{statefile.Spent{}, "Month Tokens CostUSD TokensBefore CostBefore"},
		{statefile.Work{}, "Branch Commit"},
		{statefile.RegistryEntry{}, "Hash Timestamp History"},
		{statefile.RegistryVersion{}, "Hash Timestamp"},
		{statefile.Ended{}, "Thread Title Workflow Head CompletedAt Reason Note Result By ClosedBy Used Usage Spent Commit Key Steps PR Work"},
	} {
		typ := reflect.TypeOf(tt.v)
		var got []string
		for i := range typ.NumField() {
			got = append(got, typ.Field(i).Name)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s has the fields %v, known are %s", typ, got, tt.want)
		}
	}
}

// TestDeep: nodes of one commit that refer to each other, one by one.
func TestDeep(t *testing.T) {
	f := memory(t)
	list := f.placed(gitcas.Place{}, node.MetaSchema, map[string]any{"type": "array", "items": map[string]any{"type": "string"}})
	nodes := []gitcas.PlacedNode{list, f.placed(gitcas.Place{}, list.Hash, []any{secret})}
	for range 20_000 {
		nodes = append(nodes, f.placed(gitcas.Place{}, list.Hash, []any{string(nodes[len(nodes)-1].Hash)}))
	}
	f.push(f.load(), &gitcas.Change{Subject: "deep", Nodes: nodes})
	plan := f.purge(f.options(finder(t, secret)))
	if plan.Purged != 1 || plan.Rehashed != 20_000 {
		t.Errorf("plan %+v", plan)
	}
	f.sound()
}
