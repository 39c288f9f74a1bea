package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/builtin"
	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/gateway/cassette"
	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/agents/mock"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/agent"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/internal/outage"
)

// replayedModel is the name of the model whose words come from a cassette that does not
// say which one was recorded.
const replayedModel = "replayed"

// settings are the configuration as the engine asks for it.
type settings struct{ w *Worker }

// Agent returns the name of a role's agent and the command that runs it. An
// agent that can't work without a model is refused here, before anything is
// claimed.
func (s settings) Agent(def *workflow.Definition, role, override string) (name, command string, err error) {
	if err := s.w.refuseExposure(); err != nil {
		return "", "", err
	}
	c := s.w.config
	if err := CheckChoice(s.w, def); err != nil {
		return "", "", err
	}
	if name, command, err = s.resolveAgent(def.Name, role, override); err != nil {
		return "", "", err
	}
	if err := s.checkAllowed(def, role, name, command); err != nil {
		return "", "", err
	}
	s.tellHeld(def)
	own := s.w.usesOwnLogin(name)
	if s.asksModel(name) {
		m, err := c.ResolveModel(def.Name, role)
		if err != nil {
			return "", "", err
		}
		foreign, _ := findForeign(c, name)
		if err := foreign.CheckWindow(m.Alias, m.Model.Window); err != nil {
			return "", "", fmt.Errorf("agent %s: %w", name, err)
		}
		if _, told := s.w.noticed.LoadOrStore(m.Instead, true); m.Instead != "" && !told {
			s.w.logEvent(thread.Event{Kind: "notice", Role: role, Text: m.Instead})
		}
	}
	if err := s.w.checkAgent(command); err != nil {
		return "", "", err
	}
	if name == mock.Name && !s.w.o.Elsewhere {
		if err := checkScript(s.w, command); err != nil {
			return "", "", err
		}
	}
	if own && !s.w.o.Elsewhere {
		if err := s.w.settleLogin(name); err != nil {
			return "", "", err
		}
	}
	if name == builtin.Name {
		if err := s.w.offerShell(def.Roles[role]); err != nil {
			return "", "", err
		}
	}
	return name, command, s.w.settleChecks(def)
}

// maxScript is the largest script of the mock agent, in bytes.
const maxScript = 8 << 20

// checkScript refuses a script of the mock agent that can't be played, before anything is
// claimed. A command that names none says so itself.
func checkScript(w *Worker, command string) error {
	a, err := w.config.ParseAgent(command)
	if err != nil || len(a.Args) == 0 {
		return err
	}
	name := a.Args[len(a.Args)-1]
	if name == mock.Name || strings.HasPrefix(name, "-") {
		return nil
	}
	data, err := app.ReadRegular(w.f.Path(name), maxScript)
	if err == nil {
		_, err = mock.Parse(name, data)
	}
	if err != nil {
		return &app.UsageError{Err: fmt.Errorf("agent mock: %w", err)}
	}
	return nil
}

// CheckChoice refuses what the person chose for a role that a definition doesn't have.
func CheckChoice(w *Worker, def *workflow.Definition) error {
	if err := w.config.CheckChosenRoles(def.Name, def.RoleNames()); err != nil {
		return &app.UsageError{Err: err}
	}
	return nil
}

// asksModel says whether an agent asks a configured model in this process.
func (s settings) asksModel(name string) bool {
	return s.needsModel(name) && !s.w.usesOwnLogin(name) && s.w.player == nil && !s.w.o.Elsewhere
}

// needsModel says whether an agent can do nothing without a configured model.
func (s settings) needsModel(name string) bool { return name == builtin.Name || s.w.runsForeign(name) }

// AskedModels are the models that a workflow's roles ask in this run, each once. A replay asks
// none, and neither does a program with a login of its own.
func AskedModels(w *Worker, def *workflow.Definition) (out []config.ResolvedModel) {
	s := settings{w}
	for _, role := range def.RoleNames() {
		name, _, err := s.resolveAgent(def.Name, role, "")
		if err != nil || !s.needsModel(name) || w.usesOwnLogin(name) || w.player != nil || w.o.Elsewhere {
			continue
		}
		m, err := w.config.ResolveModel(def.Name, role)
		if err == nil && !slices.ContainsFunc(out, func(o config.ResolvedModel) bool { return o.Alias == m.Alias }) {
			out = append(out, m)
		}
	}
	return out
}

// runsForeign says whether an agent of this binary runs a coding agent of somebody else's.
func (w *Worker) runsForeign(name string) bool {
	_, foreign := findForeign(w.config, name)
	return foreign
}

// findForeign finds what coding agent of somebody else's an agent of this binary runs. A command
// of that name alone is the program itself.
func findForeign(c *config.Config, name string) (agents.Foreign, bool) {
	if alias := c.Agents[name].Command; alias != "" {
		if name = strings.TrimPrefix(alias, "uwf-"); name == alias {
			return agents.Foreign{}, false
		}
	}
	return agent.Foreign(name, nil)
}

// resolveAgent finds a role's agent, without asking whether it can work.
func (s settings) resolveAgent(workflow, role, override string) (name, command string, err error) {
	c := s.w.config
	if override = cmp.Or(override, s.w.o.Agent, c.ChosenAgent(role)); override != "" {
		a, err := c.ParseAgent(override)
		return a.Name, override, err
	}
	a := c.ResolveAgent(workflow, role)
	if _, alias := c.Agents[a.Name]; alias {
		return a.Name, a.Name, nil
	}
	return a.Name, a.Command, nil
}

// CheckPrices makes sure that a limit on cost can be kept. A replay pays nothing, nor
// does the mock agent ask a model for its work, and what another job did is paid.
func (s settings) CheckPrices(workflow, role, override string) error {
	name, _, err := s.resolveAgent(workflow, role, override)
	if err != nil || name == mock.Name || s.w.player != nil || s.w.o.Elsewhere {
		return err
	}
	if s.w.usesOwnLogin(name) {
		return fmt.Errorf("keep the limit on cost for agent %s: %w", name, errNoBound)
	}
	return s.w.config.CheckPrices(workflow, role)
}

// Model is what an agent may know of its model.
func (s settings) Model(workflow, role string) *task.Model {
	if s.w.player != nil {
		return s.replayedModel(role)
	}
	m, err := s.w.config.ResolveModel(workflow, role)
	if err != nil {
		return nil // an agent of another kind, with a model of its own
	}
	return DescribeModel(m)
}

// ExtractModel is the model that reads an answer without usable frontmatter. A
// replay has one always: whether it was asked is up to the cassette.
func (s settings) ExtractModel(string, string) *task.Model {
	if s.w.player != nil {
		return s.replayedModel("")
	}
	m, err := s.w.config.ResolveExtract()
	if err != nil {
		return nil // switched off, none configured, or its key is not set
	}
	return DescribeModel(m)
}

// replayedModel is the model of a replay. What is known of the one that was recorded,
// such as its window, is kept: prompts depend on it.
func (s settings) replayedModel(role string) *task.Model {
	out := &task.Model{Alias: replayedModel, Name: replayedModel, Provider: "cassette"}
	alias, d, ok := s.w.player.Asked(role)
	if !ok {
		return out
	}
	switch d {
	case dialect.Messages:
		out.API = string(config.Anthropic)
	case dialect.Gemini:
		out.API = string(config.Gemini)
	case dialect.Responses:
		out.API, out.Reasoning, out.Wires = string(config.OpenAI), true, []string{"responses"}
	default:
		out.API = string(config.OpenAI)
	}
	// Programs write their model's name into what they ask: another name would be another
	// request than the recorded one.
	out.Alias, out.Name = cmp.Or(alias, out.Alias), cmp.Or(alias, out.Name)
	if m, ok := s.w.config.Models[alias]; ok { // its key is not needed
		out.Name, out.Window, out.MaxOutput = m.Name, m.Window, m.MaxOutput
	}
	return out
}

// DescribeModel is what an agent may know of a model.
func DescribeModel(m config.ResolvedModel) *task.Model {
	return &task.Model{
		Alias: m.Alias, Name: m.Model.Name, Provider: m.Model.Provider, API: string(m.Provider.Kind),
		Window: m.Model.Window, MaxOutput: m.Model.MaxOutput, Reasoning: m.Model.Reasoning, Wires: m.Provider.Wires,
	}
}

// Limits of a thread that are configured.
func (s settings) Limits(string) moderator.Limits { return s.w.config.Limits.Limits }

// MonthLimits of all threads together that are configured.
func (s settings) MonthLimits() moderator.MonthLimits { return s.w.config.Limits.Month }

// Timeout of one agent run.
func (s settings) Timeout() time.Duration {
	if s.w.o.Timeout > 0 {
		return moderator.LowerLimit(s.w.o.Timeout, s.w.config.Policies.HighestLimits().StepTime)
	}
	return s.w.config.Limits.StepTime
}

// openGateway opens the model for one agent run; agents without one get none.
func (w *Worker) openGateway(ctx context.Context, t task.Task, m *task.Meter) ([]string, func(error) error, error) {
	var turns atomic.Int64
	o := gateway.Options{Meter: m, MaxRequest: w.config.Gateway.MaxBody, Now: w.f.Now, Proxy: http.ProxyFromEnvironment, OnCall: func(c gateway.Call) {
		w.logCall(t, c)
		if c.AtMost > 0 {
			w.logEvent(thread.Event{Kind: "notice", Thread: t.Thread, Step: t.Step, Role: t.Role,
				Text: fmt.Sprintf("an answer of model %s broke off, so that nobody knows what it cost: %d output tokens are counted for it, which is the most that it may have", c.Model, c.AtMost)})
		}
		if c.Err == nil && c.Answer.Text+c.Answer.Finish != "" { // else it was no question to a model
			tellTurn(w, t, int(turns.Add(1)), c)
		}
		w.logEvent(thread.Event{Kind: "tokens", Thread: t.Thread, Step: t.Step, Role: t.Role, Tokens: m.Tokens(), Usage: m.Usage()})
	}}
	if err := w.useCassette(&o, t); err != nil {
		return nil, nil, err
	}
	if o.Replay == nil {
		o.Models = w.gatewayModels()
	}
	sides := w.openSides(&o, t)
	if o.Replay == nil {
		if (len(o.Models) == 0 || t.Model == nil && t.Extract == nil) && len(o.Sides) == 0 {
			return nil, func(error) error { return nil }, nil
		}
	}
	o.Budget = gateway.Budget(t.Budget) // what the thread has left
	if t.Timeout > 0 {                  // an outage is told before the agent's time is over
		o.Outages.For = min(outage.Patience, t.Timeout/2)
	}
	g, err := gateway.Start(ctx, o)
	if err != nil {
		sides.close()
		return nil, nil, err
	}
	env := g.AccessEnv()
	if t.Model != nil {
		// By its alias: two aliases may stand for one name with different prices.
		env = g.Env(t.Model.Alias)
	}
	return append(env, sides.environ(g.URL())...), func(run error) error {
		err := g.Close()
		sides.close()
		if cause := g.Err(); run != nil || errors.As(cause, new(*cassette.MismatchError)) {
			err = errors.Join(err, cause)
			// Where only the month bounds it, nobody has set what is said to be spent.
			if errors.As(cause, new(*gateway.BudgetError)) && t.Budget == life.RemainingBudget(moderator.Limits{}, w.config.Limits.Month, moderator.Totals{}) {
				err = errors.Join(err, errors.New("that is a tenth of limits.month, as its thread has no limit of its own; set limits.costUsd or limits.tokens, so that a step may use more of it"))
			}
		}
		if unused := g.Unused(); run == nil && len(unused) > 0 {
			err = errors.Join(err, fmt.Errorf("replay: the agent asked for less than %s holds; left over: %s", w.player.File, strings.Join(unused, ", ")))
		}
		return err
	}, nil
}

func (w *Worker) useCassette(o *gateway.Options, t task.Task) error {
	clean := func(s string) (string, error) {
		v, _, err := w.redact.Value(s)
		out, _ := v.(string)
		return out, err
	}
	var err error
	switch {
	case w.player != nil:
		o.Replay, err = w.player.NewPlayer(cassette.PlayerOptions{Step: t.Step, Role: t.Role, AnyModel: replayedModel, Redact: clean}), nil
	case w.o.Record != "":
		o.Record, err = cassette.NewRecorder(w.f.Path(w.o.Record), cassette.RecorderOptions{Step: t.Step, Role: t.Role, Redact: clean})
	}
	return err
}

// gatewayModels are all configured models whose provider can be asked.
func (w *Worker) gatewayModels() []gateway.Model {
	var out []gateway.Model
	for alias := range w.config.Models {
		m, err := w.config.FindModel(alias)
		if err != nil {
			continue // its key is not set: it can't be used in this run
		}
		var wires []dialect.Dialect
		for _, name := range m.Provider.Wires {
			if d, ok := dialect.Named(name); ok {
				wires = append(wires, d)
			}
		}
		gm := gateway.Model{
			Alias: alias, Name: m.Model.Name, Window: m.Model.Window, MaxOutput: m.Model.MaxOutput,
			ReportsCost: w.config.ReportsCost(alias), SetPrice: w.config.BuildPriceCommand(alias),
			Provider: gateway.Provider{Name: m.Model.Provider, API: gateway.API(m.Provider.Kind), BaseURL: m.Provider.BaseURL, Wires: wires, Key: m.Provider.APIKey.Reveal(), KeyName: m.Provider.APIKeyEnv},
		}
		if p := m.Model.Price; p.Known() {
			gm.Price = &gateway.Price{Input: *p.Input, CachedInput: p.OfCachedInput(), CacheWrite: p.OfCacheWrite(), Output: *p.Output}
		}
		out = append(out, gm)
	}
	return out
}
