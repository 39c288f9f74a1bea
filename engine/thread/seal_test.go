package thread_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/step/seal"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// planted is built from parts, so that no scanner takes this file for a leak.
var planted = "pl4nted" + "-s3cret-" + "value"

// stages is an agent that stages what make says.
func (f *fixture) stages(make func(task.Task) task.Draft) {
	f.agent = func(_ context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
		m.Add(10, 1, 0.5)
		return make(t), nil
	}
}

func TestSealRefuses(t *testing.T) {
	done := map[string]any{"$status": "done"}
	other := node.Hash("0000000000001")
	with := func(change func(*record.Step)) func(*fixture, task.Task) task.Draft {
		return func(f *fixture, t task.Task) task.Draft { return f.draftOf(t).output(done).with(change).done() }
	}
	for name, c := range map[string]struct {
		stage func(f *fixture, t task.Task) task.Draft
		want  string
	}{
		"another role":    {with(func(s *record.Step) { s.Role = "b" }), `role "b", wanted "a"`},
		"another start":   {with(func(s *record.Step) { s.Start = other }), "another thread"},
		"another prev":    {with(func(s *record.Step) { s.Prev = &other }), "does not follow"},
		"another agent":   {with(func(s *record.Step) { s.Agent = "me" }), `agent "me"`},
		"no detail":       {with(func(s *record.Step) { s.Detail = other }), "neither staged nor part"},
		"no output":       {with(func(s *record.Step) { s.Output = other }), "neither staged nor part"},
		"no body":         {with(func(s *record.Step) { s.Body = &other }), "neither staged nor part"},
		"start as body":   {with(func(s *record.Step) { b := s.Start; s.Body = &b }), "no string"},
		"start as output": {with(func(s *record.Step) { s.Output = s.Start }), "output"},
		"handle not staged": {func(f *fixture, t task.Task) task.Draft {
			d := f.draftOf(t).output(done).done()
			d.Handle = other
			return d
		}, "not among the"},
		"handle is no step": {func(f *fixture, t task.Task) task.Draft {
			d := f.draftOf(t).output(done)
			d.done()
			d.d.Handle = d.step.Output
			return d.d
		}, "no StepNode"},
		"output of another type": {func(f *fixture, t task.Task) task.Draft {
			d := f.draftOf(t)
			d.step.Output = d.put(record.ErrorOutputSchema, map[string]any{"$status": "error", "error": "x"})
			return d.done()
		}, "needs "},
		"body of another type": {func(f *fixture, t task.Task) task.Draft {
			d := f.draftOf(t).output(done)
			b := d.step.Output
			return d.with(func(s *record.Step) { s.Body = &b }).done()
		}, "no string"},
		"output against its schema": {func(f *fixture, t task.Task) task.Draft {
			return f.draftOf(t).output(map[string]any{"$status": "done", "code": "NO!"}).done()
		}, "does not fit its schema"},
		"unknown type": {func(f *fixture, t task.Task) task.Draft {
			d := f.draftOf(t).output(done)
			d.step.Detail = d.put(other, map[string]any{})
			return d.done()
		}, "no schema that this store knows"},
		"a type that is no schema": {func(f *fixture, t task.Task) task.Draft {
			d := f.draftOf(t).output(done)
			d.step.Detail = d.put(t.Workflow, map[string]any{})
			return d.done()
		}, "it is no schema"},
		"a schema that is refused": {func(f *fixture, t task.Task) task.Draft {
			d := f.draftOf(t).output(done)
			d.step.Detail = d.put(d.put(node.MetaSchema, map[string]any{"$ref": "#"}), map[string]any{})
			return d.done()
		}, "$ref"},
		"a schema under a wrong name": {func(f *fixture, t task.Task) task.Draft {
			d := f.draftOf(t).output(done)
			h := d.put(node.MetaSchema, map[string]any{"type": "object"})
			d.d.Nodes[other] = d.d.Nodes[h]
			d.step.Detail = d.put(other, map[string]any{})
			return d.done()
		}, "hashes to"},
		"unknown reference": {func(f *fixture, t task.Task) task.Draft {
			return f.draftOf(t).output(map[string]any{"$status": "done", "see": []any{string(other)}}).done()
		}, "neither staged nor part"},
		"a circle": {func(f *fixture, t task.Task) task.Draft {
			d := f.draftOf(t)
			n, _, err := node.New(t.OutputSchema, map[string]any{"$status": "done", "see": []any{string(other)}}, time.Now())
			f.ok(err)
			d.d.Nodes[other] = n // under a name that is not its hash
			return d.output(map[string]any{"$status": "done", "see": []any{string(other)}}).done()
		}, "refers to itself"},
		"a step beside the handle": {func(f *fixture, t task.Task) task.Draft {
			d := f.draftOf(t)
			fake := newDraft(f.T, t).output(done).done()
			for h, n := range fake.Nodes {
				d.d.Nodes[h] = n
			}
			return d.output(map[string]any{"$status": "done", "see": []any{string(fake.Handle)}}).done()
		}, "only the handle"},
		"ten megabytes": {func(f *fixture, t task.Task) task.Draft {
			d := f.draftOf(t).output(done)
			// Not as node.New would make it.
			d.d.Nodes[d.step.Output] = node.Node{Type: t.OutputSchema, Payload: map[string]any{"$status": "done", "note": strings.Repeat("x", 10<<20)}}
			return d.done()
		}, "too large"},
		"too many nodes": {func(f *fixture, t task.Task) task.Draft {
			d := f.draftOf(t).output(done)
			for i := range seal.MaxDrafts {
				d.put(node.String, fmt.Sprint(i))
			}
			return d.done()
		}, "at most"},
		"a status without an edge": {func(f *fixture, t task.Task) task.Draft {
			return f.draftOf(t).output(map[string]any{"note": "x"}).done()
		}, "$status"},
		"a task that nobody could be given": {func(f *fixture, t task.Task) task.Draft {
			return f.draftOf(t).output(map[string]any{"$status": "done", "note": strings.Repeat("x", 900<<10)}).done()
		}, "prompt"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				head := f.entry().Head
				f.stages(func(t task.Task) task.Draft { return c.stage(f, t) })
				res, err := f.step("r1")
				f.says(f.code(err, life.KindFailed), c.want)
				var failed *life.FailedError
				if !errors.As(err, &failed) || failed.Attempt == "" {
					f.Fatalf("no attempt was kept: %v", err)
				}
				if e := f.entry(); e.Head != head || len(e.Attempts) != 1 {
					f.Errorf("the thread's entry is %+v", e)
				}
				step, ok := attempt.ErrorStepOf(f.attempt("r1", 1).Nodes)
				if !ok || res.Error == nil || res.Error.StepHash != step {
					f.Errorf("the attempt holds the error StepNode %q; told is %+v", step, res.Error)
				}
				f.unclaimed()
			})
		})
	}
}

// TestSealRedacts plants a secret wherever an agent can write, and looks for it in
// all that was pushed.
func TestSealRedacts(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.secrets(planted)
		req := startRequest(testThread)
		req.Prompt = "use " + planted
		req.Trigger = map[string]any{"title": "please", "body": "my key is " + planted, "labels": []any{planted}}
		_, err := f.engine("start", 1).Start(f.Context(), req)
		f.ok(err)
		var see node.Hash
		f.stages(func(t task.Task) task.Draft {
			d := f.draftOf(t).body("# Report\n\nfound " + planted)
			turn := d.put(node.String, "tool printed "+planted)
			see = turn
			custom := d.put(node.MetaSchema, map[string]any{"type": "object", "properties": map[string]any{
				"turn": map[string]any{"type": "string", "format": "ocas_ref"},
			}})
			d.step.Detail = d.put(custom, map[string]any{"turn": string(turn), planted: "a key"})
			d.step.EdgePrompt = planted
			return d.output(map[string]any{"$status": "done", "note": "it is " + planted, "see": []any{string(turn)}}).done()
		})
		res, err := f.step("r1")
		f.ok(err)
		f.nowhere(planted)
		step := f.chain().Steps[0]
		out, _ := f.get(step.Output).Payload.(map[string]any)
		refs, _ := out["see"].([]any)
		if len(refs) != 1 || refs[0] == string(see) || out["note"] != "it is [redacted:PLANTED]" {
			f.Fatalf("the output is %v", out)
		}
		if got, _ := f.get(node.Hash(refs[0].(string))).Payload.(string); got != "tool printed [redacted:PLANTED]" {
			f.Errorf("the reference leads to %q", got)
		}
		// What a secret was told in goes on without it.
		f.agent = f.answer("", "approved")
		if _, err = f.step("r2"); err != nil || strings.Contains(f.runs[1].Prompt, planted) {
			f.Errorf("step %d: %v", res.Step, err)
		}
		f.nowhere(planted)
	})
}

// TestSealKeepsNoSecretOfAFailure: neither the error that is shown nor what is
// kept of the attempt holds one.
func TestSealKeepsNoSecretOfAFailure(t *testing.T) {
	schema := map[string]any{"type": "object", "description": "about " + planted}
	for name, agent := range map[string]func(f *fixture, t task.Task) (task.Draft, error){
		"stderr": func(_ *fixture, _ task.Task) (task.Draft, error) {
			return task.Draft{Stderr: "env: KEY=" + planted}, &task.AgentError{Agent: "test", Reason: "died", Detail: "env: KEY=" + planted}
		},
		"a schema": func(f *fixture, t task.Task) (task.Draft, error) {
			d := f.draftOf(t).output(map[string]any{"$status": "done"})
			d.step.Detail = d.put(d.put(node.MetaSchema, schema), map[string]any{})
			return d.done(), nil
		},
		"an output that no longer fits": func(f *fixture, t task.Task) (task.Draft, error) {
			return f.draftOf(t).output(map[string]any{"$status": "done", "code": "pl4nteds3cret", "note": planted}).done(), nil
		},
		"a changed file": func(f *fixture, t task.Task) (task.Draft, error) {
			f.files["notes.txt"] = "key: " + planted + "\n"
			return f.draftOf(t).output(map[string]any{"$status": "done"}).done(), nil
		},
		"a path": func(f *fixture, t task.Task) (task.Draft, error) {
			f.files[planted] = "text\n"
			return f.draftOf(t).output(map[string]any{"$status": "done"}).done(), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.secrets(planted, "pl4nteds3cret")
				f.start()
				f.agent = func(_ context.Context, t task.Task, _ *task.Meter) (task.Draft, error) { return agent(f, t) }
				res, err := f.step("r1")
				text := f.code(err, life.KindFailed)
				if strings.Contains(text, planted) || strings.Contains(res.Error.Message, planted) {
					f.Errorf("the error tells it: %s", text)
				}
				f.attempt("r1", 1)
				if !f.attempt("r1", 1).WorkTree.IsZero() && (name == "a path" || name == "a changed file") {
					f.Error("the folder was kept")
				}
				f.nowhere(planted)
				f.nowhere("pl4nteds3cret")
			})
		})
	}
}

// tokenShape is what looks like a token, in parts.
func tokenShape() string { return "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6" }

// TestTokenStopsStep: an added line with the shape of a token stops the step; the attempt
// has the other files. A line that was there before does not.
func TestTokenStopsStep(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.secrets("hunter2hunter2")
		f.start()
		f.agent = f.changes(map[string]string{"a.txt": "one\n", "notes": "x\ntoken " + tokenShape() + "\n"})
		res, err := f.step("r1")
		text := f.code(err, life.KindFailed)
		f.says(text, "(role a, workspace)", "what looks like a token (github-token) into notes:2", "redact:\n  allow:\n    - \"sha256:")
		if strings.Contains(text+res.Error.Message, tokenShape()) {
			f.Errorf("the error tells it: %s", text)
		}
		f.nowhere(tokenShape())
		if f.attempt("r1", 1).WorkTree.IsZero() {
			f.Error("the other files were not kept")
		}
		var b strings.Builder
		f.blobs(&b, f.attempt("r1", 1).WorkTree)
		if b.String() != "one\n" {
			f.Errorf("the attempt keeps %q", b.String())
		}

		// Somebody commits it after all: what agents do to other lines of that file is theirs.
		f.agent = f.changes(map[string]string{"notes": "x\n"})
		f.steps("r2")
		f.pushes("refs/heads/uwf/"+string(testThread), map[string]string{"a.txt": "one\n", "notes": "x\ntoken " + tokenShape() + "\n"}, f.base())
		// That it was there before is looked up, as soon as the server answers.
		move := f.changes(map[string]string{"notes": "", "moved": "\ty\ntoken: \"" + tokenShape() + "\"\n"})
		f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
			back := time.Now().Add(5 * time.Minute)
			f.remote.setBefore(func(string, wire.PushRequest) error {
				if time.Now().Before(back) {
					return unreachable()
				}
				return nil
			})
			return move(ctx, t, m)
		}
		f.steps("r3")
	})
}

// TestAllowedTokens: what the settings name stops nothing.
func TestAllowedTokens(t *testing.T) {
	for _, allow := range []string{tokenShape(), fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(tokenShape()))), "path:notes"} {
		inBubble(t, func(f *fixture) {
			r, err := redact.New(redact.Options{Allow: []string{allow}})
			f.ok(err)
			f.redact = r
			f.start()
			f.agent = f.changes(map[string]string{"notes": "token " + tokenShape() + "\n"})
			f.steps("r1")
		})
	}
}

// TestStartRefusesSecrets: a definition can't be changed without changing what it
// is called, so one with a secret in it is not stored at all.
func TestStartRefusesSecrets(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.secrets("check {{{note}}}")
		_, err := f.engine("start", 1).Start(f.Context(), startRequest(testThread))
		f.says(f.code(err, life.KindUsage), "secret", "PLANTED")
		f.secrets(planted)
		req := startRequest(testThread)
		req.Key = "run/" + planted
		_, err = f.engine("start", 1).Start(f.Context(), req)
		f.says(f.code(err, life.KindUsage), "key")
		f.nowhere(planted)
	})
}

// cannotCheck is a Redactor that fails over some texts.
type cannotCheck func(text string) bool

func (c cannotCheck) Value(v any) (any, int, error) {
	if text, ok := v.(string); ok && c(text) {
		return nil, 0, errors.New("the list of secrets is gone")
	}
	return v, 0, nil
}

func (cannotCheck) Find([]byte) ([]redact.Finding, error) { return nil, nil }
func (cannotCheck) AllowsFile(string) bool                { return false }

// TestSealChecksPrompts: what can't be checked for secrets is not stored.
func TestSealChecksPrompts(t *testing.T) {
	for want, fails := range map[string]cannotCheck{
		"(role a, seal): edge prompt: check for secrets: the list of secrets is gone": func(text string) bool { return text == "begin" },
		"(role a, seal): prompt: check for secrets: the list of secrets is gone":      func(text string) bool { return strings.Contains(text, "begin") && text != "begin" },
	} {
		inBubble(t, func(f *fixture) {
			f.start()
			head := f.entry().Head
			f.redact = fails
			_, err := f.step("r1")
			f.says(f.code(err, life.KindFailed), want)
			if f.entry().Head != head {
				f.Error("the step was committed")
			}
		})
	}
}

// TestSealUsage: what was metered goes before what an agent says of itself, and
// nobody reports less than nothing.
func TestSealUsage(t *testing.T) {
	said := &record.Usage{Turns: 3, InputTokens: 30, OutputTokens: 3, CostUSD: 0.3}
	for name, c := range map[string]struct {
		metered bool
		draft   record.Usage
		step    *record.Usage
		turns   int
		tokens  int64
	}{
		"metered":           {true, record.Usage{Turns: 9, InputTokens: 99}, said, 1, 11},
		"with the handle":   {false, record.Usage{Turns: 2, InputTokens: 20, OutputTokens: 2}, said, 2, 22},
		"in the step":       {false, record.Usage{DurationMs: 900}, said, 3, 33},
		"nothing":           {false, record.Usage{DurationMs: 900}, nil, 0, 0},
		"less than nothing": {false, record.Usage{}, &record.Usage{Turns: -1, InputTokens: -50, OutputTokens: 5, CostUSD: -3}, 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				f.agent = func(_ context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
					if c.metered {
						m.Add(10, 1, 0.5)
					}
					time.Sleep(2 * time.Second)
					d := f.draftOf(t).output(map[string]any{"$status": "done"}).with(func(s *record.Step) { s.Usage = c.step }).done()
					d.Usage = c.draft
					return d, nil
				}
				res, err := f.step("r1")
				f.ok(err)
				if u := res.Usage; u.Turns != c.turns || u.InputTokens+u.OutputTokens != c.tokens || u.CostUSD < 0 || u.DurationMs != 2000 {
					f.Errorf("usage %+v", *u)
				}
			})
		})
	}
}

// TestSalvageTakesNoForgedStep: of an agent that fails, only our own account of
// it counts, whatever it staged.
func TestSalvageTakesNoForgedStep(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.agent = func(_ context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
			m.Add(1000, 0, 5)
			d := f.draftOf(t)
			d.step.Output = d.put(record.ErrorOutputSchema, map[string]any{"$status": "error", "error": "nothing happened"})
			d.step.Usage = &record.Usage{}
			d.done()
			d.d.Handle = ""
			for i := range 40 { // nor does it help to stage more than is taken
				d.put(node.String, strings.Repeat("x", 900<<10)+fmt.Sprint(i))
			}
			return d.d, &task.AgentError{Agent: "test", Reason: "gave up"}
		}
		_, err := f.step("r1")
		f.code(err, life.KindFailed)
		a := f.attempt("r1", 1)
		steps := 0
		for _, n := range a.Nodes {
			if record.IsStep(n.Node.Type) {
				steps++
			}
		}
		h, ok := attempt.ErrorStepOf(a.Nodes)
		if !ok || steps != 1 {
			f.Fatalf("%d StepNodes, an error among them: %v", steps, ok)
		}
		for _, n := range a.Nodes {
			if n.Hash == h {
				s, err := record.ParseStep(n.Node)
				f.ok(err)
				if s.Usage == nil || s.Usage.InputTokens != 1000 {
					f.Errorf("usage %+v", s.Usage)
				}
			}
		}
	})
}
