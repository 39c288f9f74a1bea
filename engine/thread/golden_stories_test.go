package thread_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// goldenStories are those that this version tells. Add one for everything new that
// a chain or an entry can hold; never change one whose file is in testdata/golden.
func goldenStories() []goldenStory {
	return append(dialectStories(), []goldenStory{{
		name: "2026-06-04-status-map",
		about: `Threads of the 2026-06-04 dialect: one at work after it was sent back, one that
waits for a person, one that was answered, one that has ended and may be resumed.
Written by uwf before 0.2.`,
		answers: statusMapAnswers,
		tell: func(_ *golden, w *goldenWriter) {
			w.start("active", "Make it good.", statusMap)
			w.steps("active", 3)
			w.start("waits", "Make it better.", statusMap)
			w.says("developer", 3)
			w.steps("waits", 1)
			w.start("answered", "Make it best.", statusMap)
			w.says("developer", 3)
			w.steps("answered", 1)
			w.resume("answered", "Take the first one.\n\nIt is smaller.")
			w.steps("answered", 1)
			w.start("ended", "Make it last.", statusMap)
			w.says("developer", 2)
			w.says("reviewer", 1)
			w.steps("ended", 2)
		},
	}, {
		name: "2026-06-04-life",
		about: `What can happen to a thread: failed attempts before a step, failed attempts that are
still open, a fork, a fork of an ended thread, an end, a resumption after the end,
a cancellation with and without steps, a poke, a pause.
Written by uwf before 0.2.`,
		answers: statusMapAnswers,
		tell:    tellLife,
	}, {
		name: "limits",
		about: `Threads of a definition with limits, which is stored by a schema of our own: one has
reached the limit that it was started with, one went on after that was raised.
Written by uwf before 0.2.`,
		answers: statusMapAnswers,
		tell: func(g *golden, w *goldenWriter) {
			flow := statusMap + "limits: {maxSteps: 50, costUsd: 100, wall: 1000h}\n"
			for _, name := range []string{"reached", "raised"} {
				w.limits = map[string]float64{"maxSteps": 1}
				w.start(name, "Within limits.", flow)
				w.says("developer", 0)
				w.steps(name, 1)
				if _, err := g.step(w.id(name)); life.KindOf(err) != life.KindLimit {
					g.Fatal(err)
				}
				time.Sleep(time.Minute)
			}
			g.ok(g.engine().Resume(g.Context(), thread.ResumeRequest{Thread: w.id("raised"), Limits: map[string]float64{"maxSteps": 20}}))
			w.says("reviewer", 0)
			w.steps("raised", 1)
		},
	}, {
		name: "2026-06-04-predecessor",
		about: `Chains as the TypeScript uwf of 2026-06-04 makes them: nodes with its own schemas
and nothing of ours, its thread ids, threads.yaml in the short form; details of three
of its agents. One thread stands at its start, one in the middle, one asks a person.
Written by uwf before 0.2.`,
		answers: statusMapAnswers,
		tell:    tellPredecessor,
	}, {
		name: "delivery",
		about: `Threads of jobs that deliver: one that is to be delivered, one whose delivery failed
once, one whose deliveries failed too often, so that it waits for a person, one that was
delivered, with a comment and a pull request, and one that goes on after that.
Written by uwf before 0.2.`,
		answers: statusMapAnswers,
		tell:    tellDelivery,
	}, {
		name: "people",
		about: `Who did what: threads that people of a forge, a bot and git's user started, answered,
let go on, poked, paused, forked and cancelled; one was answered by several.
Written by uwf before 0.2.`,
		answers: statusMapAnswers,
		tell:    tellPeople,
	}}...)
}

func tellPeople(g *golden, w *goldenWriter) {
	forge := func(login string, id int64, at string) *story.Person {
		return &story.Person{By: record.By{Kind: record.ByForge, Login: login, ID: id, URL: "https://forge.example/o/r/issues/7" + at}, Email: login + "@noreply.forge.example"}
	}
	alice, bob := forge("alice", 1, ""), forge("bob", 2, "#issuecomment-9")
	carol := &story.Person{By: record.By{Kind: record.ByLocal, Name: "Carol"}, Email: "carol@example.com"}
	bot := &story.Person{By: record.By{Kind: record.ByBot, Login: "helper[bot]", ID: 3}}
	does := func(p *story.Person, do func(e *engine) error) {
		g.by = p
		g.ok(do(g.engine()))
		g.by = nil
		time.Sleep(time.Minute)
	}
	asks := func(name string, p *story.Person) gitcas.ThreadID {
		g.by = p
		w.start(name, "# Who decides?\n\nSay it.", statusMap)
		g.by = nil
		w.says("developer", 3)
		w.steps(name, 1)
		return w.id(name)
	}
	id := asks("answered", alice)
	does(bob, func(e *engine) error {
		return e.Resume(g.Context(), thread.ResumeRequest{Thread: id, Text: "Take the first one."})
	})
	does(carol, func(e *engine) error { return e.Pause(g.Context(), id, "not today") })
	does(alice, func(e *engine) error {
		return e.Resume(g.Context(), thread.ResumeRequest{Thread: id, Text: "Now."})
	})
	w.steps("answered", 1)
	id = asks("waits", carol)
	does(bob, func(e *engine) error {
		return e.Resume(g.Context(), thread.ResumeRequest{Thread: id, Text: "Take the second one."})
	})
	id = asks("poked", bot)
	does(bob, func(e *engine) error { return e.Poke(g.Context(), id, "Don't ask.") })
	does(carol, func(e *engine) error { return e.Pause(g.Context(), id, "not today") })
	does(alice, func(e *engine) error {
		_, err := e.Fork(g.Context(), thread.ForkRequest{ID: w.id("forked"), From: w.id("answered"), Steps: 1})
		return err
	})
	does(bob, func(e *engine) error {
		_, err := e.Cancel(g.Context(), w.id("forked"), "no longer wanted")
		return err
	})
}

func tellDelivery(g *golden, w *goldenWriter) {
	end := func(name string) gitcas.ThreadID {
		w.start(name, "Deliver it.", statusMap)
		w.says("developer", 1)
		w.says("reviewer", 1)
		w.steps(name, 1)
		_, err := g.engine().Step(g.Context(), step.Request{Thread: w.id(name), Deliver: true, Effects: func() life.Effects { return life.Effects{Comment: 34} }})
		g.ok(err)
		time.Sleep(time.Minute)
		return w.id(name)
	}
	fails := func(id gitcas.ThreadID, times int) {
		for range times {
			if _, err := g.deliver(id, life.Effects{}, errors.New("GitHub Actions is not permitted to create pull requests")); err == nil {
				g.Fatal("a delivery was to fail")
			}
			time.Sleep(time.Minute)
		}
	}
	delivers := func(id gitcas.ThreadID, made life.Effects) {
		_, err := g.deliver(id, made, nil)
		g.ok(err)
		time.Sleep(time.Minute)
	}
	end("to be delivered")
	fails(end("failed"), 1)
	fails(end("waits"), life.MaxAttempts)
	delivers(end("delivered"), life.Effects{PR: 12})
	delivers(end("again"), life.Effects{Comment: 56, PR: 13})
	w.resume("again", "One more thing.")
	w.says("developer", 2)
	w.steps("again", 1)
}

// statusMap is a workflow of the 2026-06-04 generation.
const statusMap = `name: solve
description: A developer and a reviewer.
roles:
  developer:
    description: Writes the code.
    goal: To do the task.
    capabilities: [reading, writing]
    procedure: Read. Write. Test.
    output: What was done.
    frontmatter:
      type: object
      properties:
        $status: {enum: [done, stuck]}
        summary: {type: string}
        files: {type: array, items: {type: string}}
      required: [$status, summary]
  reviewer:
    description: Reads the code.
    goal: To find mistakes.
    capabilities: []
    procedure: Read twice.
    output: What is wrong.
    frontmatter:
      oneOf:
        - {type: object, properties: {$status: {const: approved}, note: {type: string}}, required: [$status]}
        - {type: object, properties: {$status: {const: rejected}, problem: {type: string}}, required: [$status, problem]}
graph:
  $START:
    _: {role: developer, prompt: Begin.}
    resume: {role: developer, prompt: Look at it once more.}
  developer:
    done: {role: reviewer, prompt: "Check this: {{{summary}}}"}
    stuck: {role: $SUSPEND, prompt: "{{{summary}}}"}
  reviewer:
    approved: {role: $END, prompt: Good.}
    rejected: {role: developer, prompt: "Mend it: {{{problem}}}"}
`

var statusMapAnswers = answers{
	"developer": {
		{Output: map[string]any{"$status": "done", "summary": "first try", "files": []any{"a.txt"}}, Body: "# First\n\nIt is *there*.\n", Files: map[string]string{"a.txt": "a\n"}},
		{Output: map[string]any{"$status": "done", "summary": "second <try> & \"quotes\""}, Body: "Mended.", Files: map[string]string{"a.txt": "a\nb\n"}},
		{Output: map[string]any{"$status": "done", "summary": "another"}},
		{Output: map[string]any{"$status": "stuck", "summary": "Which one:\nthis or that?"}, Body: "I can't choose."},
		{Output: map[string]any{"$status": "done", "summary": "as you say: ünï 漢字 😀"}, Body: "Done as told."},
	},
	"reviewer": {
		{Output: map[string]any{"$status": "rejected", "problem": "no test"}, Body: "There is no test."},
		{Output: map[string]any{"$status": "approved", "note": "fine"}},
	},
}

func tellLife(g *golden, w *goldenWriter) {
	w.start("tried", "Try it.", statusMap)
	w.fails("tried")
	w.fails("tried")
	w.steps("tried", 1)
	w.fails("tried")
	w.start("ended", "End it.", statusMap)
	w.says("developer", 1)
	w.says("reviewer", 1)
	w.steps("ended", 2)
	w.fork("fork", "tried", 1)
	w.says("reviewer", 0)
	w.steps("fork", 1)
	w.fork("again", "ended", 1)
	w.start("twice", "End it twice.", statusMap)
	w.says("developer", 1)
	w.says("reviewer", 1)
	w.steps("twice", 2)
	w.resume("twice", "One more thing.")
	w.says("developer", 2)
	w.steps("twice", 1)
	w.start("stopped", "Stop it.", statusMap)
	w.says("developer", 1)
	w.steps("stopped", 1)
	w.cancel("stopped")
	w.start("nothing", "Never mind.", statusMap)
	w.cancel("nothing")
	w.start("poked", "Poke it.", statusMap)
	w.says("developer", 0)
	w.steps("poked", 1)
	g.ok(g.engine().Poke(g.Context(), w.id("poked"), "Write a test."))
	w.says("developer", 1)
	w.steps("poked", 1)
	w.start("paused", "Pause it.", statusMap)
	w.says("developer", 0)
	w.steps("paused", 1)
	g.ok(g.engine().Pause(g.Context(), w.id("paused"), "Wait for Monday."))
}

// tellPredecessor writes what the engine would not: nodes of the TypeScript uwf.
func tellPredecessor(g *golden, _ *goldenWriter) {
	p := &predecessor{g: g, store: g.engine().Store, heads: map[gitcas.ThreadID]*gitcas.Entry{}}
	var err error
	p.v, err = p.store.Init(g.Context())
	g.ok(err)
	p.flow()
	developer, reviewer := statusMapAnswers["developer"], statusMapAnswers["reviewer"]
	p.thread("06F2S0000000000000000000G0", "Begin it.")
	p.thread("06F2S0000000000000000000G4", "Bring it on.", said{"developer", developer[0]}, said{"reviewer", reviewer[0]}, said{"developer", developer[1]})
	p.thread("06F2S0000000000000000000G8", "Ask.", said{"developer", developer[3]})
	// Who has read no chain can say nothing but the head: the short form.
	v, err := p.store.Load(g.Context())
	g.ok(err)
	_, err = p.store.Push(g.Context(), v, &gitcas.Change{Subject: "moved over", Threads: p.heads})
	g.ok(err)
}

// said is what a role said.
type said struct {
	role string
	answer
}

type predecessor struct {
	g       *golden
	store   *gitcas.Store
	v       *gitcas.View
	nodes   []gitcas.PlacedNode // of the next commit
	heads   map[gitcas.ThreadID]*gitcas.Entry
	def     *workflow.Definition
	hash    node.Hash
	schemas map[string]node.Hash // of the roles' outputs
}

func (p *predecessor) flow() {
	var err error
	p.def, err = workflow.Parse("flow.yaml", []byte(statusMapPlain), workflow.Options{})
	p.g.ok(err)
	var nodes []node.Node
	p.hash, nodes, err = workflow.Materialize(p.def, time.Now())
	p.g.ok(err)
	p.schemas = map[string]node.Hash{}
	for _, n := range nodes {
		h, err := n.ComputeHash()
		p.g.ok(err)
		p.nodes = append(p.nodes, gitcas.PlacedNode{Hash: h, Node: n})
		if m, ok := n.Payload.(map[string]any); ok && n.Type == node.MetaSchema {
			title, _ := m["title"].(string)
			p.schemas[title] = h
		}
	}
}

func (p *predecessor) put(place gitcas.Place, n node.Node, h node.Hash, err error) node.Hash {
	p.g.Helper()
	p.g.ok(err)
	p.nodes = append(p.nodes, gitcas.PlacedNode{Hash: h, Node: n, Place: place})
	return h
}

// unsaid stands for the step that a node is of, until that is made.
const unsaid node.Hash = "0000000000000"

func (p *predecessor) thread(id gitcas.ThreadID, prompt string, steps ...said) {
	p.g.Helper()
	here, own := gitcas.Place{Thread: id}, gitcas.Place{Thread: id, Of: unsaid}
	n, start, err := record.Start{Workflow: p.hash, Prompt: prompt, Cwd: "/home/someone/project"}.Node(time.Now())
	p.put(here, n, start, err)
	p.push(id, start)
	var prev *node.Hash
	for i, s := range steps {
		at := time.Now().Add(time.Duration(i) * time.Minute)
		n, h, err := node.New(p.schemas["solve."+s.role], s.Output, at)
		step := record.Step{
			Start: start, Prev: prev, Role: s.role, Agent: []string{"uwf-builtin", "uwf-claude-code", "uwf-hermes"}[i%3], Cwd: "/home/someone/project",
			Output: p.put(own, n, h, err), Detail: p.detail(id, i, s, at), EdgePrompt: fmt.Sprintf("Step %d.", i+1),
			StartedAtMs: at.UnixMilli(), CompletedAtMs: at.UnixMilli() + 30_000,
		}
		n, h, err = node.New(node.String, "the whole prompt of step "+fmt.Sprint(i+1), at)
		prompt := p.put(gitcas.Place{Thread: id, Of: unsaid, Detail: true}, n, h, err)
		step.AssembledPrompt = &prompt
		n, h, err = step.Node(at)
		for i := range p.nodes {
			if p.nodes[i].Place.Of == unsaid {
				p.nodes[i].Place.Of = h
			}
		}
		p.put(here, n, h, err)
		p.push(id, h)
		prev = &h
	}
}

// push makes a commit of the nodes so far.
func (p *predecessor) push(id gitcas.ThreadID, head node.Hash) {
	p.g.Helper()
	for h, n := range record.Schemas() {
		if slices.ContainsFunc(p.nodes, func(p gitcas.PlacedNode) bool { return p.Node.Type == h }) {
			p.nodes = append(p.nodes, gitcas.PlacedNode{Hash: h, Node: n})
		}
	}
	var err error
	p.heads[id] = &gitcas.Entry{Head: head}
	p.v, err = p.store.Push(p.g.Context(), p.v, &gitcas.Change{Subject: "moved over", Nodes: p.nodes, Threads: map[gitcas.ThreadID]*gitcas.Entry{id: p.heads[id]}})
	p.g.ok(err)
	p.nodes = nil
}

// detail is what the agents of that time kept.
func (p *predecessor) detail(id gitcas.ThreadID, i int, s said, at time.Time) node.Hash {
	p.g.Helper()
	put := func(typ node.Hash, payload map[string]any) node.Hash {
		n, h, err := node.New(typ, payload, at)
		return p.put(gitcas.Place{Thread: id, Of: unsaid, Detail: true}, n, h, err)
	}
	session := fmt.Sprintf("s-%d", i)
	switch i % 3 {
	case 0:
		turn := put(record.BuiltinTurnSchema, map[string]any{"role": "assistant", "content": s.Body, "toolCalls": nil, "reasoning": "hm"})
		return put(record.BuiltinDetailSchema, map[string]any{"sessionId": session, "model": "gpt-4o", "duration": 30_000, "turnCount": 1, "turns": []any{string(turn)}})
	case 1:
		turn := put(record.ClaudeCodeTurnSchema, map[string]any{"index": 0, "role": "assistant", "content": s.Body, "toolCalls": []any{map[string]any{"name": "Read", "args": "{}"}}})
		usage := map[string]any{"inputTokens": 100, "outputTokens": 10, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0}
		return put(record.ClaudeCodeDetailSchema, map[string]any{
			"sessionId": session, "model": "claude", "subtype": "success", "durationMs": 30_000, "numTurns": 1, "totalCostUsd": 0.25,
			"stopReason": "end_turn", "usage": usage, "turns": []any{string(turn)},
		})
	default:
		return put(record.HermesDetailSchema, map[string]any{"sessionId": session, "model": "hermes", "duration": 30_000, "turnCount": 0, "turns": []any{}})
	}
}

// statusMapPlain is statusMap as the TypeScript uwf takes it.
var statusMapPlain = strings.Replace(statusMap, "    resume: {role: developer, prompt: Look at it once more.}\n", "", 1)
