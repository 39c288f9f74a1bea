package worker

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/engine/debuglog"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
)

// loggedAgent writes down each run of an agent.
type loggedAgent struct {
	*agents.Spawner
	w *Worker
}

// Run implements task.Agent.
func (a loggedAgent) Run(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
	log, began := a.w.f.Log(), a.w.f.Now()
	log.Info("A9ENTRVN", "agent starts", append(taskAttrs(t), slog.String("command", t.Command), slog.String("workspace", t.Workspace),
		slog.Int("promptBytes", len(t.Prompt)), slog.Duration("timeout", t.Timeout))...)
	d, err := a.w.removingGit(ctx, t, func() (task.Draft, error) {
		return a.w.hidingToolSettings(ctx, t, a.Spawner, func() (task.Draft, error) { return a.Spawner.Run(ctx, t, m) })
	})
	usage := m.Usage()
	log.LogOutcome(err, "A9ENTEND", "agent ended", append(taskAttrs(t), slog.Int("exit", exitOf(err)), slog.String("handle", string(d.Handle)), slog.Int("nodes", len(d.Nodes)),
		slog.Int64("inputTokens", usage.InputTokens), slog.Int64("outputTokens", usage.OutputTokens), slog.Int("stderrBytes", len(d.Stderr)),
		debuglog.DurationAttr(a.w.f.Now().Sub(began)))...)
	return d, err
}

// taskAttrs names the task that a record is about.
func taskAttrs(t task.Task) []slog.Attr {
	return []slog.Attr{
		slog.String("thread", string(t.Thread)), slog.Int("step", t.Step), slog.String("role", t.Role),
		slog.String("agent", t.Agent), slog.String("run", t.Run.ID), slog.Int("attempt", t.Run.Attempt),
	}
}

// exitOf is the exit code of an agent's process; -1: a signal ended it, or it had none.
func exitOf(err error) int {
	if exit, ok := errors.AsType[*agents.ExitError](err); ok {
		return exit.Code
	}
	if err != nil {
		return -1
	}
	return 0
}

// logCall writes down one exchange with a model, and what the model did not get of the
// request. It holds nothing of what was said.
func (w *Worker) logCall(t task.Task, c gateway.Call) {
	if c.Side != "" {
		w.f.Log().LogOutcome(c.Err, "S1DEASKD", "agent asked the gateway", append(taskAttrs(t), slog.String("path", c.Path), slog.String("for", c.Side),
			slog.Int("status", c.Status), debuglog.DurationAttr(c.Duration))...)
		return
	}
	if len(c.Dropped) > 0 {
		w.f.Log().Info("DR0PPEDF", "request fields that may cost money, or are not known, did not reach the model",
			append(taskAttrs(t), slog.String("model", c.Model), slog.String("path", c.Path), slog.String("fields", strings.Join(c.Dropped, ", ")))...)
	}
	w.f.Log().LogOutcome(c.Err, "M0DE1CA7", "model asked", append(taskAttrs(t), slog.String("model", c.Model), slog.String("path", c.Path), slog.Int("status", c.Status),
		slog.Int("tries", c.Tries), slog.Bool("stream", c.Stream), slog.Int64("inputTokens", c.In), slog.Int64("outputTokens", c.Out),
		slog.Float64("costUsd", c.CostUSD), slog.Bool("unpriced", c.Unpriced), slog.Bool("hungUp", c.HungUp), debuglog.DurationAttr(c.Duration))...)
}

// logEvent writes down what the engine tells, and tells it on. Before the first agent it tells
// what agents may do.
func (w *Worker) logEvent(e thread.Event) {
	if e.Kind == "agent" {
		w.told.Do(func() { w.logEvent(thread.Event{Kind: "notice", Thread: e.Thread, Text: w.describeCell(e.Agent)}) })
	}
	attrs := []slog.Attr{slog.String("event", e.Kind), slog.String("thread", string(e.Thread)), slog.Int("step", e.Step), slog.String("role", e.Role),
		slog.String("agent", e.Agent), slog.String("status", e.Status), slog.Int64("tokens", e.Tokens)}
	w.f.Log().SetThread(string(e.Thread)) // what follows, such as a push, is about it as well
	switch e.Kind {
	case "tokens":
		w.f.Log().Debug("EVNTT0KN", "tokens counted", attrs...)
	case "agent", "turn": // its text is the whole prompt, or what a model said
		w.f.Log().Info("EVNTAGNT", "engine event", attrs...)
	default:
		w.f.Log().Info("EVNTENGN", "engine event", append(attrs, slog.String("text", e.Text))...)
	}
	switch {
	case w.o.Observe != nil:
		w.o.Observe(e)
	case e.Kind == "notice":
		w.f.Notes().Printf("note: %s\n", e.Text)
	}
}
