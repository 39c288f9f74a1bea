package thread_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/deliver"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// golden is the world of a golden store: a remote in memory, a folder on disk, and
// agents that say what they are told to. It runs in fake time.
type golden struct {
	*testing.T
	mem     *wiretest.Memory
	folder  goldenFolder
	answers answers
	said    map[string]int // answers given, by role
	fails   int            // how many of the next runs fail
	jobs    int
	by      *story.Person // whose the next deeds are
}

// answers are what each role says, one after the other; the last is said again.
type answers map[string][]answer

type answer struct {
	Output map[string]any    `json:"output"`
	Body   string            `json:"body,omitempty"`
	Files  map[string]string `json:"files,omitempty"` // written before
}

func newGolden(t *testing.T, mem *wiretest.Memory, a answers) *golden {
	t.Helper()
	dir := t.TempDir()
	ws, err := workspace.Open(dir, mem)
	g := &golden{T: t, mem: mem, folder: goldenFolder{ws, dir}, answers: a, said: map[string]int{}}
	g.ok(err)
	return g
}

func (g *golden) ok(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// goldenFolder is the working folder.
type goldenFolder struct {
	*workspace.Workspace
	dir string
}

func (f goldenFolder) Restore(ctx context.Context, commit, _ wire.ID) error {
	return f.Workspace.Restore(ctx, commit)
}

func (f goldenFolder) Dir() string { return f.dir }

func (f goldenFolder) Sub(location string) (string, error) {
	if !filepath.IsLocal(location) {
		return "", errors.New("it leads out")
	}
	return filepath.Join(f.dir, location), os.MkdirAll(filepath.Join(f.dir, location), 0o700)
}

// engine is that of the next job.
func (g *golden) engine() *engine {
	g.jobs++
	return &engine{&step.Stepper{Agent: g, Folder: g.folder, Engine: &thread.Engine{
		Store:  gitcas.Open(g.mem, gitcas.Options{Now: time.Now, Rand: zeros{}, Jitter: func() float64 { return 0.5 }}),
		Redact: noSecrets{}, Settings: g, Clock: deadline.SystemClock{}, Nonce: func() string { return fmt.Sprintf("nonce-%d", g.jobs) },
		By:  g.by,
		Who: lease.Identity{Run: fmt.Sprint(1000 + g.jobs), Attempt: 1, Host: "host", Boot: "boot", PID: 7},
	}}}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Agent, Model, ExtractModel, Limits and Timeout implement thread.Settings.
func (g *golden) Agent(*workflow.Definition, string, string) (string, string, error) {
	return "mock", "mock", nil
}
func (g *golden) Model(_, _ string) *task.Model        { return nil }
func (g *golden) ExtractModel(_, _ string) *task.Model { return nil }
func (g *golden) CheckPrices(_, _, _ string) error     { return nil }
func (g *golden) MonthLimits() moderator.MonthLimits   { return moderator.MonthLimits{} }
func (g *golden) Limits(string) moderator.Limits {
	return moderator.Limits{MaxSteps: 100, MaxStepsPerRole: 100}
}
func (g *golden) Timeout() time.Duration             { return 0 }
func (g *golden) at(id gitcas.ThreadID) step.Request { return step.Request{Thread: id} }
func (g *golden) store() *gitcas.Store               { return gitcas.Open(g.mem, gitcas.Options{}) }
func (g *golden) step(id gitcas.ThreadID) (thread.Result, error) {
	return g.engine().Step(g.Context(), g.at(id))
}

// deliver is a job that delivers a thread, or can't.
func (g *golden) deliver(id gitcas.ThreadID, made life.Effects, fails error) (thread.Result, error) {
	return g.engine().Deliver(g.Context(), deliver.Request{Thread: id, Do: func(context.Context, deliver.Delivery) (life.Effects, error) {
		return made, fails
	}})
}

// Run implements task.Agent.
func (g *golden) Run(_ context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
	m.Add(1000, 100, 0.01)
	if g.fails > 0 {
		g.fails--
		return task.Draft{Stderr: "no idea"}, &task.AgentError{Agent: "mock", Reason: "gave up"}
	}
	list := g.answers[t.Role]
	if len(list) == 0 {
		return task.Draft{}, fmt.Errorf("nobody says what role %s answers", t.Role)
	}
	a := list[min(g.said[t.Role], len(list)-1)]
	g.said[t.Role]++
	for name, text := range a.Files {
		if err := os.WriteFile(filepath.Join(t.Workspace, name), []byte(text), 0o600); err != nil {
			return task.Draft{}, err
		}
	}
	return goldenDraft(t, a)
}

// goldenDraft is what an agent stages.
func goldenDraft(t task.Task, a answer) (task.Draft, error) {
	d := task.Draft{Nodes: map[node.Hash]node.Node{}}
	var errs error
	put := func(n node.Node, h node.Hash, err error) node.Hash {
		errs = errors.Join(errs, err)
		d.Nodes[h] = n
		return h
	}
	typ := t.OutputSchema
	if a.Output["$status"] == "$SUSPEND" {
		typ = record.SuspendOutputSchema
	}
	step := record.Step{
		Start: t.Start, Prev: t.Prev, Role: t.Role, Agent: t.Agent, EdgePrompt: t.EdgePrompt, Cwd: t.Cwd,
		StartedAtMs: t.StartedAtMs, CompletedAtMs: t.StartedAtMs,
		Output: put(node.New(typ, a.Output, time.Now())),
		Detail: put(node.New(record.MockDetailSchema, map[string]any{"sessionId": "s", "role": t.Role, "stepIndex": t.Step - 1}, time.Now())),
	}
	if a.Body != "" {
		h := put(node.New(node.String, a.Body, time.Now()))
		step.Body = &h
	}
	d.Handle = put(step.Node(time.Now()))
	return d, errs
}

// facts is what a golden store says, for comparison by every later version.
type facts map[gitcas.ThreadID]threadFacts

type threadFacts struct {
	Status    string      `json:"status"`
	Workflow  string      `json:"workflow"`
	Title     string      `json:"title,omitempty"`
	By        string      `json:"by,omitempty"`
	Prompt    string      `json:"prompt"`
	Head      node.Hash   `json:"head"`
	Next      string      `json:"next,omitempty"`
	Suspended string      `json:"suspended,omitempty"`
	Resumes   bool        `json:"resumes,omitempty"` // its workflow has an edge for going on after the end
	Attempts  int         `json:"attempts,omitempty"`
	Comment   int64       `json:"comment,omitempty"`
	PR        int         `json:"pr,omitempty"`
	Deliver   bool        `json:"deliver,omitempty"` // it is still to be delivered
	Steps     []stepFacts `json:"steps"`
}

type stepFacts struct {
	Hash     node.Hash      `json:"hash"`
	Role     string         `json:"role"`
	Output   map[string]any `json:"output"`
	Body     string         `json:"body,omitempty"`
	Attempts int            `json:"attempts,omitempty"`
	By       string         `json:"by,omitempty"`
	Said     []string       `json:"said,omitempty"`
}

// read collects the facts.
func (g *golden) read() facts {
	g.Helper()
	s := g.store()
	v, err := s.Load(g.Context())
	g.ok(err)
	out := facts{}
	for id, e := range v.Threads() {
		alive, err := s.Load(g.Context(), id)
		g.ok(err)
		f := g.thread(alive, id)
		f.Status, f.Head, f.Attempts = string(e.Status), e.Head, len(e.Attempts)
		f.Comment, f.PR, f.Deliver = e.Comment, e.PR, e.Deliver
		if e.Suspended != nil {
			f.Suspended = e.Suspended.Role + ": " + e.Suspended.Reason
		}
		if e.Next != nil {
			f.Next = e.Next.Role
		}
		out[id] = f
	}
	g.ok(v.History(g.Context(), time.Time{}, func(e gitcas.Ended) error {
		past, err := v.LoadEnded(g.Context(), e)
		if err != nil {
			return err
		}
		f := g.thread(past, e.Thread)
		f.Status, f.Head, f.PR = e.Reason, e.Head, e.PR
		out[e.Thread] = f
		return nil
	}))
	return out
}

func (g *golden) thread(v *gitcas.View, id gitcas.ThreadID) threadFacts {
	g.Helper()
	c, err := v.ReadChain(g.Context(), id)
	g.ok(err)
	get := func(of, h node.Hash) any {
		n, err := v.In(g.Context(), gitcas.Place{Thread: id, Of: of}).Get(h)
		g.ok(err)
		return n.Payload
	}
	f := threadFacts{Prompt: c.Start.Prompt, Steps: []stepFacts{}}
	def, err := workflow.FromNode(c.Definition, c.Start.Workflow)
	g.ok(err)
	f.Title, f.By = c.Start.Title, shownBy(c.Start.By)
	f.Workflow, f.Resumes = def.Name, def.Resume != nil
	for _, s := range c.Steps {
		st := stepFacts{Hash: s.Hash, Role: s.Role, Attempts: len(s.PreviousAttempts)}
		st.Output, _ = get(s.Hash, s.Output).(map[string]any)
		if s.Body != nil {
			st.Body, _ = get(s.Hash, *s.Body).(string)
		}
		if s.Answer != nil {
			words, err := reading.ReadAnswer(func(p gitcas.Place) node.Getter { return v.In(g.Context(), p) }, id, s.Hash, *s.Answer)
			g.ok(err)
			for _, word := range words {
				st.Said = append(st.Said, fmt.Sprintf("%s: %s → %s (%s)", word.Do, word.Question, word.Text, shownBy(word.By)))
			}
		}
		st.By = shownBy(s.By)
		f.Steps = append(f.Steps, st)
	}
	return f
}

// shownBy is who did something; empty where nobody is known.
func shownBy(by *record.By) string {
	if by == nil {
		return ""
	}
	return fmt.Sprintf("%s %s%s %d %s", by.Kind, by.Login, by.Name, by.ID, by.URL)
}

// text is a value as indented JSON.
func (g *golden) text(v any) []byte {
	g.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	g.ok(err)
	return append(b, '\n')
}

// sound fails where fsck finds anything.
func (g *golden) sound() {
	g.Helper()
	r, err := g.store().Fsck(g.Context(), true)
	g.ok(err)
	for _, p := range r.Problems {
		g.Errorf("fsck: %s: %s", p.Path, p.Why)
	}
}

// ids are the threads in order.
func (f facts) ids() []gitcas.ThreadID {
	var out []gitcas.ThreadID
	for id := range f {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// goldenID is the id of the n-th new thread of a golden store.
func goldenID(n int) gitcas.ThreadID {
	return gitcas.ThreadID(fmt.Sprintf("01KT9%0*d", 21, n))
}

// goldenName is the name of a golden file.
func goldenName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".txtar") }
