package agentcheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/removal"
)

// fakeModel answers every request to a model at once, in the dialect that it is asked in: it
// stands for a provider's server behind a gateway, which counts and translates as always.
type fakeModel struct{}

// fakeName is what that model is called. A real one has that name nowhere.
const fakeName = "uwf-agent-check"

// finalAnswer is all that it says: the task is done.
const finalAnswer = "---\n$status: done\n---\n"

// RoundTrip implements http.RoundTripper.
func (fakeModel) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	d, known := dialect.ForPath(r.URL.Path)
	if !known {
		return answerHTTP(r, http.StatusNotFound, false, dialect.ErrorBody(d, http.StatusNotFound, "unknown_url", "the model that is part of uwf does not serve "+r.URL.Path)), nil
	}
	var asked struct{ Stream bool }
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, fmt.Errorf("read what the model is asked: %w", err)
	}
	if g, ok := dialect.ParseGeminiPath(r.URL.Path); ok {
		asked.Stream = g.Stream
	}
	reply := dialect.Reply{ID: fakeName, Model: fakeName, Answer: dialect.Answer{Text: finalAnswer, Usage: dialect.Usage{In: dialect.Estimate(len(body)), Out: dialect.Estimate(len(finalAnswer))}}}
	if asked.Stream {
		return answerHTTP(r, http.StatusOK, true, reply.Stream(d, true)), nil
	}
	return answerHTTP(r, http.StatusOK, false, reply.Body(d)), nil
}

func answerHTTP(r *http.Request, status int, stream bool, body []byte) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {dialect.ContentType(stream)}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// fakeProvider is the provider of that model, of the kind that serves a wire natively.
func fakeProvider(wires []string) gateway.Provider {
	p := gateway.Provider{Name: "the model that is part of uwf", API: gateway.OpenAI, BaseURL: "http://model.invalid/v1"}
	if len(wires) == 0 {
		return p
	}
	switch wires[0] {
	case "messages":
		p.API, p.BaseURL = gateway.Anthropic, "http://model.invalid"
	case "gemini":
		p.API, p.BaseURL = gateway.Gemini, "http://model.invalid"
	}
	return p
}

// probeTime bounds a probe: opencode takes half a minute on a busy machine for its first request.
const probeTime = 3 * time.Minute

// probed is how a probe went.
type probed struct {
	requests int64 // that reached the model
	took     time.Duration
}

// probe runs an agent as in a step, against the fake model. Its own login is left out of it.
func (s *survey) probe(ctx context.Context, a *agentFound, box *sandbox.Sandbox) (p probed, err error) {
	dir, err := worker.MakeTrialFolder(s.f)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, removal.Tree(context.WithoutCancel(ctx), dir, 0)) }()
	t, err := s.newTask(a, dir)
	if err != nil {
		return p, err
	}
	var requests atomic.Int64
	o := s.options
	o.Sandbox, o.Aliases = box, map[string]agents.Command{}
	for name, c := range s.options.Aliases {
		c.OwnLogin = false
		o.Aliases[name] = c
	}
	o.Gateway = func(ctx context.Context, t task.Task, m *task.Meter) ([]string, func(error) error, error) {
		g, err := gateway.Start(ctx, gateway.Options{
			Models: []gateway.Model{{Name: fakeName, Provider: fakeProvider(a.facts.Wires), Price: &gateway.Price{}}}, Meter: m, Transport: fakeModel{}, Now: s.f.Now,
			OnCall: func(c gateway.Call) {
				if c.Status == http.StatusOK {
					requests.Add(1)
				}
			},
		})
		if err != nil {
			return nil, nil, err
		}
		return g.Env(t.Model.Alias), func(run error) error {
			err := g.Close()
			if run != nil {
				err = errors.Join(err, g.Err())
			}
			return err
		}, nil
	}
	began := s.f.Now()
	spawner := agents.NewSpawner(o)
	_, err = spawner.Run(ctx, t, &task.Meter{})
	p = probed{requests: requests.Load(), took: s.f.Now().Sub(began)}
	return p, errors.Join(err, spawner.RemoveLeftovers(context.WithoutCancel(ctx)))
}

// newTask is what the probe asks of an agent.
func (s *survey) newTask(a *agentFound, workspace string) (task.Task, error) {
	const role, prompt = "probe", "This is uwf's check whether you can be run. Use no tool, and answer with these lines alone:\n\n" + finalAnswer
	now := s.f.Now()
	nodes := gitcas.Nodes{}
	add := func(n node.Node, h node.Hash, err error) (node.Hash, error) {
		if err == nil {
			nodes.Add(gitcas.Place{}, h, n)
		}
		return h, err
	}
	schema, err := add(node.New(node.MetaSchema, map[string]any{
		"type": "object", "title": "uwf-agent-check", "required": []any{"$status"}, "properties": map[string]any{"$status": map[string]any{"enum": []any{"done"}}},
	}, now))
	start, serr := add(record.Start{Workflow: schema, Prompt: prompt, Cwd: "."}.Node(now))
	id, ierr := ulid.New(ulid.Timestamp(now.UTC()), s.f.Rand)
	if err := errors.Join(err, serr, ierr); err != nil {
		return task.Task{}, fmt.Errorf("make the task of the probe: %w", err)
	}
	return task.Task{
		Thread: gitcas.ThreadID(id.String()), Role: role, Agent: a.name, Step: 1, Start: start, Workflow: schema, WorkflowName: "uwf-agent-check", OutputSchema: schema, StatusKey: "$status",
		Statuses: []string{"done"}, Prompt: prompt, EdgePrompt: prompt, StartPrompt: prompt, Cwd: ".", StartedAtMs: now.UnixMilli(), Nodes: nodes, Workspace: workspace,
		Model: &task.Model{Alias: fakeName, Name: fakeName, Provider: "uwf", API: string(fakeProvider(a.facts.Wires).API)}, Timeout: probeTime,
	}, nil
}
