package thread_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/commitmsg"
)

// Some people.
var (
	alice = &story.Person{By: record.By{Kind: record.ByForge, Login: "alice", ID: 1, URL: "https://forge.example/o/r/issues/7"}, Email: "1+alice@users.noreply.forge.example"}
	bob   = &story.Person{By: record.By{Kind: record.ByForge, Login: "bob", ID: 2, URL: "https://forge.example/o/r/issues/7#issuecomment-9"}}
	carol = &story.Person{By: record.By{Kind: record.ByLocal, Name: "Carol <x>"}, Email: "carol@example.com"}
	robot = &story.Person{By: record.By{Kind: record.ByBot, Login: "robot[bot]", ID: 4}}
)

// as is the engine of somebody's process.
func (f *fixture) as(p *story.Person) *engine {
	e := f.engine("person", 1)
	e.By = p
	return e
}

// tip is the newest commit of the state branch.
func (f *fixture) tip() (gitobj.Commit, string, []gitcas.Trailer) {
	f.Helper()
	o, _ := f.mem.Get(f.view().Tip())
	c, err := gitobj.DecodeCommit(o.Data)
	f.ok(err)
	m := commitmsg.Parse(c.Message)
	return c, m.Subject, m.Trailers
}

// did checks whose deed the newest commit is.
func (f *fixture) did(name, email, trailer string) {
	f.Helper()
	c, subject, trailers := f.tip()
	if c.Author.Name != name || c.Author.Email != email || c.Committer.Name != "uwf" {
		f.Errorf("%q is by %s <%s> and %s, want %s <%s> and uwf", subject, c.Author.Name, c.Author.Email, c.Committer.Name, name, email)
	}
	got := ""
	for _, t := range trailers {
		if t.Key == "Uwf-By" {
			got += t.Value
		}
	}
	if got != trailer || strings.Contains(got, "@") || strings.Contains(got, "://") {
		f.Errorf("%q has the trailer %q, want %q", subject, got, trailer)
	}
}

const (
	bobs   = "forge: bob (id 2, forge.example/o/r/issues/7#issuecomment-9)"
	carols = "local: Carol <x>"
)

// TestWhoDid: each deed of a person is on record with the person: author and trailer of
// the commit, the entry, the history's line.
func TestWhoDid(t *testing.T) {
	ended := func(f *fixture) gitcas.Ended {
		line, ok, err := f.view().FindEnded(f.Context(), testThread)
		if err != nil || !ok {
			f.Fatal(err)
		}
		return line
	}
	for name, tt := range map[string]struct {
		before func(f *fixture)
		deed   string
		after  func(f *fixture) *record.By
	}{
		"suspend":                   {func(f *fixture) { f.start() }, "suspend", func(f *fixture) *record.By { return f.entry().Suspended.By }},
		"pause":                     {func(f *fixture) { f.start() }, "pause", func(f *fixture) *record.By { return f.entry().Suspended.By }},
		"pause of a step that runs": {func(f *fixture) { f.start(); f.claimBy(f.other(0)) }, "pause", func(f *fixture) *record.By { return f.entry().Pause.By }},
		"resume":                    {func(f *fixture) { f.start(); f.ok(f.deed("suspend")) }, "resume", func(f *fixture) *record.By { return f.entry().Next.By }},
		"resume after the end":      {func(f *fixture) { f.start(); f.steps("r1", "r2") }, "resume", func(f *fixture) *record.By { return f.entry().Next.By }},
		"retry": {func(f *fixture) {
			f.start()
			f.agent = f.fails
			_, err := f.step("f")
			f.code(err, life.KindFailed)
		}, "retry", func(f *fixture) *record.By { return f.entry().Next.By }},
		"poke":   {func(f *fixture) { f.start(); f.steps("r1") }, "poke", func(f *fixture) *record.By { return f.entry().Next.By }},
		"fork":   {func(f *fixture) { f.start() }, "fork", func(f *fixture) *record.By { e, _ := f.view().Entry(forked); return e.By }},
		"cancel": {func(f *fixture) { f.start() }, "cancel", func(f *fixture) *record.By { return ended(f).ClosedBy }},
		"remove": {func(f *fixture) { f.start(); f.steps("r1", "r2") }, "remove", func(f *fixture) *record.By { return ended(f).ClosedBy }},
	} {
		t.Run(name, func(t *testing.T) {
			for _, p := range []*story.Person{bob, carol, nil} {
				inBubble(t, func(f *fixture) {
					tt.before(f)
					f.by = p
					f.ok(f.deed(tt.deed))
					switch p {
					case bob:
						f.did("bob", story.NoAddress, bobs)
					case carol:
						f.did("Carol x", "carol@example.com", carols)
					default:
						f.did("uwf", "uwf@localhost", "")
					}
					if got := tt.after(f); !reflect.DeepEqual(got, p.OnRecord()) {
						t.Errorf("the store says %+v, want %+v", got, p.OnRecord())
					}
				})
			}
		})
	}
}

// Who starts a thread is in its StartNode, its entry, and its line at the end.
func TestWhoStarted(t *testing.T) {
	inBubble(t, func(f *fixture) {
		req := startRequest(testThread)
		req.Title, req.Prompt = "  Fix\nslugs ", "# Something\nelse"
		_, err := f.as(alice).Start(f.Context(), req)
		f.ok(err)
		f.did("alice", alice.Email, "forge: alice (id 1, forge.example/o/r/issues/7)")
		e, s := f.entry(), f.chain().Start
		if !reflect.DeepEqual(e.By, &alice.By) || !reflect.DeepEqual(s.By, &alice.By) || e.Title != "Fix slugs" || s.Title != e.Title {
			t.Errorf("entry %+v %q, start %+v %q", e.By, e.Title, s.By, s.Title)
		}
		f.steps("r1", "r2")
		f.ok(f.view().History(f.Context(), time.Time{}, func(line gitcas.Ended) error {
			want := &gitcas.Cost{Steps: 2, Tokens: 22, CostUSD: 1}
			if line.Title != "Fix slugs" || line.Result != "approved" || !reflect.DeepEqual(line.By, &alice.By) || line.ClosedBy != nil || !reflect.DeepEqual(line.Used, want) {
				t.Errorf("%+v, used %+v", line, line.Used)
			}
			f.usage(line, "a  1, b  1")
			return nil
		}))
	})
}

// Without a title a thread is about the first line of its prompt that says something.
func TestTitles(t *testing.T) {
	for prompt, want := range map[string]string{
		"do it": "do it", "\n\n## Fix slugs\n\nThey": "Fix slugs", "---\n- one": "one", "": "", "# \n": "",
		"> \x1b[2J\u202equoted": "\uFFFD[2J\uFFFDquoted", strings.Repeat("word ", 30): strings.Repeat("word ", 15) + "wo…",
	} {
		if got := reading.TitleOfPrompt(prompt); got != want {
			t.Errorf("%.40q is about %q, want %q", prompt, got, want)
		}
	}
}

// What failed attempts took is in the line of a thread that ended, or was cancelled, too.
func TestCostOfFailures(t *testing.T) {
	for _, end := range []string{"end", "cancel"} {
		inBubble(t, func(f *fixture) {
			f.start()
			works := f.agent
			f.agent = f.fails
			res, err := f.step("f")
			f.code(err, life.KindFailed)
			if u := res.Usage; u == nil || u.InputTokens != 100 || u.CostUSD != 1 {
				t.Errorf("the result says %+v", u)
			}
			f.used(110, 1)
			f.agent, f.model = works, &task.Model{Name: "vendor/big-1"}
			want := gitcas.Cost{Steps: 0, Tokens: 110, CostUSD: 1}
			if end == "cancel" {
				f.ok(f.deed("cancel"))
			} else {
				f.steps("r1", "r2")
				want = gitcas.Cost{Steps: 2, Tokens: 132, CostUSD: 2}
			}
			line, _, err := f.view().FindEnded(f.Context(), testThread)
			f.ok(err)
			if line.Used == nil || *line.Used != want {
				t.Errorf("%s: %+v, want %+v", end, line.Used, want)
			}
			f.usage(line, map[string]string{"end": "a  0, a vendor/big-1 1, b vendor/big-1 1", "cancel": "a  0"}[end])
		})
	}
}

// usage checks how a history line divides what the thread used: that it is all of it, and that of
// these roles, models and steps.
func (f *fixture) usage(line gitcas.Ended, want string) {
	f.Helper()
	var sum gitcas.Cost
	var rows []string
	for _, u := range line.Usage {
		sum.Steps, sum.Tokens, sum.CostUSD = sum.Steps+u.Steps, sum.Tokens+u.TokensIn+u.TokensOut, sum.CostUSD+u.CostUSD
		rows = append(rows, fmt.Sprint(u.Role, " ", u.Model, " ", u.Steps))
	}
	if line.Used == nil || sum.Steps != line.Used.Steps || sum.Tokens != line.Used.Tokens || math.Abs(sum.CostUSD-line.Used.CostUSD) > 1e-9 {
		f.Errorf("the rows are %+v, and used is %+v", line.Usage, line.Used)
	}
	if got := strings.Join(rows, ", "); got != want {
		f.Errorf("used by %s, want %s", got, want)
	}
}

// used checks what the thread has used so far.
func (f *fixture) used(tokens int64, costUSD float64) {
	f.Helper()
	_, got, err := attempt.CountThread(f.Context(), f.store(), f.view(), testThread)
	f.ok(err)
	if got.Tokens != tokens || got.CostUSD != costUSD {
		f.Errorf("it has used %+v, want %d tokens and $%v", got, tokens, costUSD)
	}
}

// A job that died is counted with what its claim says; a step that was taken back stays
// paid for.
func TestUsed(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.used(0, 0)
		f.steps("r1")
		f.used(11, 0.5)
		f.ok(f.deed("poke"))
		f.used(11, 0.5)
		c := f.other(2 * life.RenewedLife)
		c.Head, c.Tokens, c.CostUSD = f.entry().Head, 5, 0.25
		f.claimBy(c)
		f.ok(f.deed("retry")) // which takes the claim away
		f.used(16, 0.75)
		f.steps("r2")
		f.used(27, 1.25)
	})
}

// What a thread took that isn't there nobody knows.
func TestUsedByNoThread(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		if _, _, err := attempt.CountThread(f.Context(), f.store(), f.view(), "01JD0000000000000000000009"); !errors.Is(err, gitcas.ErrUnknownThread) {
			t.Error(err)
		}
	})
}

// An answer is part of the step that it led to: who gave it, to what question, in which
// words. Several people's stand beside each other.
func TestAnswersAreKept(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.agent = f.answer("ask", "")
		f.steps("r1")
		e := f.as(bob)
		f.ok(e.Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "the second"}))
		f.ok(f.deed("suspend"))
		f.ok(f.as(carol).Resume(f.Context(), thread.ResumeRequest{Thread: testThread}))
		f.ok(f.deed("suspend"))
		f.ok(f.as(alice).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "and quickly"}))
		f.agent = f.answer("done", "approved")
		f.steps("r2")
		last := f.chain().Steps[1]
		if !reflect.DeepEqual(last.By, &alice.By) || last.Answer == nil || last.Digests.Answer == "" {
			t.Fatalf("the step is by %+v, answer %v", last.By, last.Answer)
		}
		words, err := reading.ReadAnswer(f.places(), testThread, last.Hash, *last.Answer)
		f.ok(err)
		var got []string
		for _, w := range words {
			got = append(got, fmt.Sprintf("%s %s %q→%q %s", w.Do, w.Role, w.Question, w.Text, w.By))
		}
		want := []string{
			`resume a "what now?"→"the second" bob`, `resume a ""→"" Carol <x>, as git on their machine says`, `resume a "what now?"→"and quickly" alice`,
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		f.says(last.EdgePrompt, "From bob (id 2):\n> the second\n\nFrom alice (id 1):\n> and quickly")
		f.says(f.page(2, "a"), "What people said", "Role a asked:\n\n    what now?", "bob (id 2) answered, ", bob.URL, "    the second", "Carol <x>, as git on their machine says let it go on", "    and quickly")
	})
}

// page is the page of a step.
func (f *fixture) page(n int, role string) string {
	f.Helper()
	c, _, _ := f.tip()
	at := c.Tree
	for name := range strings.SplitSeq(layout.PagePath(testThread, n, role), "/") {
		o, ok := f.mem.Get(at)
		if !ok {
			f.Fatalf("%s is not there", name)
		}
		entries, err := gitobj.DecodeTree(o.Data)
		f.ok(err)
		i := slices.IndexFunc(entries, func(e gitobj.Entry) bool { return e.Name == name })
		if i < 0 {
			f.Fatalf("%s is not there", name)
		}
		at = entries[i].ID
	}
	o, _ := f.mem.Get(at)
	return string(o.Data)
}

// A question needs an answer. What asked nothing goes on without one.
func TestSilence(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.agent = f.answer("ask", "")
		f.steps("r1")
		for _, silence := range []string{"", " \n"} {
			err := f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: silence, Limits: map[string]float64{"maxSteps": 50}})
			f.says(f.code(err, life.KindNotYours), "role a asks something, and this is no answer: what now?", "resume ", life.NeedsText)
		}
		if e := f.entry(); e.Status != gitcas.StatusSuspended || len(e.Limits) > 0 {
			t.Errorf("the entry changed: %+v", e)
		}
		f.ok(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "this"}))
		f.ok(f.deed("suspend"))
		f.ok(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread}))
	})
}

const approvalFlow = `
name: deploy
description: d
roles:
  planner: {description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: {type: object, properties: {$status: {enum: [proposed, approved, declined]}, plan: {type: string}}, required: [$status]}}
  operator: {description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: {type: object, properties: {$status: {enum: [done]}}, required: [$status]}}
graph:
  $START: {_: {role: planner, prompt: Propose.}}
  planner:
    proposed: {role: $SUSPEND, prompt: "{{plan}}"}
    approved: {role: operator, prompt: "{{plan}}", approval: {not: [starter, author]}}
    declined: {role: $END, prompt: ""}
  operator:
    done: {role: $END, prompt: ""}
`

// startApproval starts a thread that alice asked for, about an issue of dave's.
func (f *fixture) startApproval() {
	f.Helper()
	def, err := workflow.Parse("deploy.yaml", []byte(approvalFlow), workflow.Options{})
	f.ok(err)
	req := f.requestOf(def)
	req.Trigger = map[string]any{"event": "issues", "author": "dave", "authorId": int64(5)}
	_, err = f.as(alice).Start(f.Context(), req)
	f.ok(err)
}

// An agent can't take an edge that only a person's approval opens, whatever it puts out;
// what people say counts only from those who may.
func TestApprovals(t *testing.T) {
	dave := &story.Person{By: record.By{Kind: record.ByForge, Login: "renamed-dave", ID: 5}}
	local := &story.Person{By: record.By{Kind: record.ByLocal, Name: "bob"}}
	comments := 0
	answered := func(people ...*story.Person) func(f *fixture) {
		return func(f *fixture) {
			f.script(map[string]any{"$status": "proposed", "plan": "2.4.0"})
			f.steps("r1")
			for i, p := range people {
				if i > 0 {
					f.ok(f.deed("suspend"))
				}
				q := *p
				if comments++; q.Kind != record.ByLocal {
					q.URL = fmt.Sprintf("https://forge.example/c/%d", comments)
				}
				f.ok(f.as(&q).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "yes"}))
			}
		}
	}
	for name, tt := range map[string]struct {
		before func(f *fixture)
		want   string // empty: it is an approval
	}{
		"nobody was asked":             {func(*fixture) {}, "nobody was asked"},
		"another person of the forge":  {answered(bob), ""},
		"a forged git user":            {answered(local), "the forge doesn't confirm"},
		"a bot":                        {answered(robot), "only a person can approve"},
		"who started it":               {answered(alice), "than who started the thread: alice"},
		"the author under a new login": {answered(dave), "than who wrote what it is about"},
		"the starter adds to it":       {answered(bob, alice), "than who started the thread: alice"},
		"another confirms the starter": {answered(alice, bob), "than who started the thread: alice"},
		"a retry asks nobody": {func(f *fixture) {
			f.agent = f.fails
			_, err := f.step("f")
			f.code(err, life.KindFailed)
			f.ok(f.as(bob).Retry(f.Context(), testThread))
		}, "nobody was asked"},
		"the starter pokes what was approved": {func(f *fixture) {
			answered(bob)(f)
			f.script(map[string]any{"$status": "approved", "plan": "2.4.0"})
			f.steps("r2")
			f.ok(f.as(alice).Poke(f.Context(), testThread, "2.5.0 as well"))
		}, "than who started the thread: alice"},
		"another pokes what was approved": {func(f *fixture) {
			answered(bob)(f)
			f.script(map[string]any{"$status": "approved", "plan": "2.4.0"})
			f.steps("r2")
			f.ok(f.as(bob).Poke(f.Context(), testThread, "2.5.0 as well"))
		}, ""},
		"the starter pokes the proposal": {func(f *fixture) {
			answered()(f)
			f.ok(f.as(alice).Poke(f.Context(), testThread, "approve it"))
		}, "nobody was asked"},
		"a silent poke of the starter": {func(f *fixture) {
			answered(bob)(f)
			f.script(map[string]any{"$status": "approved", "plan": "2.4.0"})
			f.steps("r2")
			f.ok(f.as(alice).Poke(f.Context(), testThread, ""))
		}, "than who started the thread: alice"},
		"said to what was poked": {func(f *fixture) {
			answered(alice)(f) // no approval, and it stays in what the role is told
			f.script(map[string]any{"$status": "proposed", "plan": "2.4.1"})
			f.steps("r2")
			for range 98 {
				f.ok(f.as(bob).Poke(f.Context(), testThread, ""))
			}
			f.says(f.code(f.as(bob).Poke(f.Context(), testThread, "once more"), life.KindDone))
			f.says(f.code(f.as(bob).Poke(f.Context(), testThread, "and more"), life.KindNotYours), "100 things", "fork ")
		}, "than who started the thread: alice"},
		"a word before a poke": {func(f *fixture) {
			answered(bob)(f)
			f.script(map[string]any{"$status": "approved", "plan": "2.4.0"})
			f.steps("r2")
			f.ok(f.deed("suspend"))
			f.ok(f.as(local).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "no, wait"}))
			f.ok(f.as(bob).Poke(f.Context(), testThread, "look again"))
		}, "the forge doesn't confirm"},
		"a fork of the question": {func(f *fixture) {
			answered()(f)
			f.ok(f.deed("cancel"))
			_, err := f.as(bob).Fork(f.Context(), thread.ForkRequest{ID: forked, From: testThread, Steps: -1})
			f.ok(err)
			f.thread = forked
			f.ok(f.as(bob).Resume(f.Context(), thread.ResumeRequest{Thread: forked, Text: "yes"}))
		}, "than who started the thread: bob"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.startApproval()
				tt.before(f)
				id := testThread
				if f.thread != "" {
					id = f.thread
				}
				f.script(map[string]any{"$status": "approved", "plan": "now"})
				f.mu.Lock()
				f.runs = nil
				f.mu.Unlock()
				res, err := f.stepWith("r9", 1, f.at(id))
				task := f.runs[0]
				if tt.want == "" {
					f.ok(err)
					if res.NextRole != "operator" || len(task.Closed) > 0 || !strings.Contains(strings.Join(task.Statuses, " "), "approved") {
						t.Errorf("%+v; statuses %q, closed %q", res, task.Statuses, task.Closed)
					}
					f.says(task.Prompt, "`approved` is open: who said this may approve")
					return
				}
				f.says(f.code(err, life.KindFailed), "approved only after a person's approval", tt.want)
				var failed *life.FailedError
				if !errors.As(err, &failed) || failed.Phase != "extract" {
					t.Errorf("%v", err)
				}
				if !reflect.DeepEqual(task.Closed, []string{"approved"}) || strings.Contains(strings.Join(task.Statuses, " "), "approved") {
					t.Errorf("statuses %q, closed %q", task.Statuses, task.Closed)
				}
				f.says(task.Prompt, "`approved` is refused: there is no approval", tt.want, "- `approved`: not now; only a person's approval opens it")
				if strings.Contains(task.Prompt, "$status: approved") {
					t.Error("the prompt shows how to approve")
				}
			})
		})
	}
}

// What a comment says counts once, and only for what was asked before it was written.
func TestOldWords(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.agent = f.answer("ask", "")
		f.steps("r1")
		time.Sleep(time.Minute)
		asked := time.Now()
		says := func(at time.Time) error {
			return f.as(bob).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "yes", Written: at})
		}
		f.says(f.code(says(asked.Add(-time.Hour)), life.KindNotYours), "it was written before role a asked: what now?")
		f.ok(says(asked))
		f.ok(f.deed("suspend"))
		f.says(f.code(says(asked), life.KindNotYours), "what this comment says was said to it before")
		f.ok(f.deed("resume"))
		f.steps("r2")
		f.says(f.code(says(time.Now()), life.KindNotYours), "was said to it before")
		f.agent = f.answer("done", "approved")
		f.ok(f.deed("resume"))
		f.steps("r3", "r4")
		f.says(f.code(says(time.Now()), life.KindNotYours), "was said to it before")
	})
}

// On a machine the forge is asked who speaks, where it matters and is known.
func TestProve(t *testing.T) {
	for name, tt := range map[string]struct {
		start func(f *fixture)
		prove func() (*story.Person, error)
		want  *story.Person
		asked int
		note  string
	}{
		"the forge knows":           {(*fixture).startApproval, func() (*story.Person, error) { return bob, nil }, bob, 1, ""},
		"the forge doesn't":         {(*fixture).startApproval, func() (*story.Person, error) { return nil, errors.New("there is no token") }, carol, 1, "is no approval: there is no token"},
		"nothing is to be approved": {(*fixture).start, func() (*story.Person, error) { return bob, nil }, carol, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				tt.start(f)
				f.ok(f.deed("suspend"))
				asked, notes := 0, ""
				e := f.as(carol)
				e.ProvePerson = func(ctx context.Context) (*story.Person, error) { asked++; return tt.prove() }
				e.Observe = func(ev thread.Event) { notes += ev.Text }
				f.ok(e.Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "yes"}))
				if got := f.entry().Next.By; !reflect.DeepEqual(got, tt.want.OnRecord()) || asked != tt.asked || !strings.Contains(notes, tt.note) {
					t.Errorf("by %+v, asked %d times, notes %q", got, asked, notes)
				}
			})
		})
	}
}

// A question without words is what the role reported.
func TestWordlessQuestion(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.agent = func(_ context.Context, task task.Task, _ *task.Meter) (task.Draft, error) {
			return f.draftOf(task).output(map[string]any{"$status": "ask"}).body("Both ways work.\nWhich one?").done(), nil
		}
		f.steps("r1")
		if got := f.entry().Suspended.Reason; got != "Both ways work.\nWhich one?" {
			t.Errorf("it asks %q", got)
		}
	})
}

// An answer that somebody put in the place of the one that was given is refused.
func TestForeignAnswer(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.ok(f.deed("suspend"))
		f.ok(f.deed("resume"))
		n, h, err := node.New(node.String, "go on", time.Now())
		f.ok(err)
		entry := f.entry()
		entry.Next.Answer = h
		_, err = gitcas.Open(f.mem, gitcas.Options{}).Push(f.Context(), f.view(), &gitcas.Change{
			Subject: "by hand", Threads: map[gitcas.ThreadID]*gitcas.Entry{testThread: &entry},
			Nodes: []gitcas.PlacedNode{{Hash: h, Node: n, Place: gitcas.Place{Thread: testThread, Of: h}}},
		})
		f.ok(err)
		_, err = f.step("r1")
		f.says(f.code(err, life.KindDamaged), "is no answer of people")
	})
}

// An edge for outputs without a status can be guarded, and so can one with a condition.
func TestApprovalOfOtherEdges(t *testing.T) {
	const role = "  a: {description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: {type: object, properties: {$status: {enum: [ask]}, n: {type: integer}}}}\n"
	for name, tt := range map[string]struct {
		graph  string
		out    map[string]any
		closed []string
		told   string
	}{
		"without a status": {"  a: {ask: {role: $SUSPEND, prompt: Well}, _: {role: $END, approval: true}}\n", map[string]any{}, []string{""}, "An output without a status is refused: there is no approval, as nobody was asked."},
		"on a condition": {"  a: [{role: $END, condition: big, approval: true}, {role: $SUSPEND, prompt: Well}]\nconditions: {big: 'steps[-1].output.n > 1'}\n",
			map[string]any{"n": int64(2)}, nil, "An output for which big holds is refused: there is no approval"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.startText("name: odd\ndescription: d\nroles:\n" + role + "graph:\n  $START: {_: {role: a, prompt: Go.}}\n" + tt.graph)
				f.script(tt.out)
				_, err := f.step("r1")
				f.says(f.code(err, life.KindFailed), "only after a person's approval", "nobody was asked")
				task := f.runs[0]
				if !reflect.DeepEqual(task.Closed, tt.closed) || task.StatusOptional != (tt.closed == nil) {
					t.Errorf("closed %q, optional %v", task.Closed, task.StatusOptional)
				}
				f.says(task.Prompt, tt.told)
			})
		})
	}
}

// However long a status is that nobody lists, the thread comes to its end; so does one
// with a title, a prompt or a name of any length.
func TestLongResults(t *testing.T) {
	inBubble(t, func(f *fixture) {
		const flow = "name: odd\ndescription: d\nroles:\n  a: {description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: {type: object}}\n" +
			"graph:\n  $START: {_: {role: a, prompt: Go.}}\n  a: {_: {role: $END, prompt: ''}}\n"
		def, err := workflow.Parse("odd.yaml", []byte(flow), workflow.Options{})
		f.ok(err)
		req := f.requestOf(def)
		req.Title = strings.Repeat("title\n", 10_000)
		_, err = f.as(&story.Person{By: record.By{Kind: record.ByForge, Login: strings.Repeat("l", 200), ID: 1, URL: "https://forge.example/" + strings.Repeat("u", 1900)}}).Start(f.Context(), req)
		f.ok(err)
		f.script(map[string]any{"$status": strings.Repeat("so so\n", 10_000)})
		if res, err := f.step("r1"); err != nil || !res.Done {
			t.Fatalf("%+v, %v", res, err)
		}
		line, _, err := f.view().FindEnded(f.Context(), testThread)
		f.ok(err)
		if !strings.HasPrefix(line.Result, "so so so") || len(line.Result) > 200 || len(line.Title) > 200 {
			t.Errorf("%d bytes of a result, %d of a title", len(line.Result), len(line.Title))
		}
	})
}
