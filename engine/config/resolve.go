package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/shlex"
)

// ErrNoKey is wrapped when a model's provider needs a key that is not set.
var ErrNoKey = errors.New("the provider's key is not set")

// ErrNoAgent is wrapped when a name or command line is no agent.
var ErrNoAgent = errors.New("no such agent")

// DefaultAgent works where no source names an agent.
const DefaultAgent = "builtin"

// ResolvedModel is a model with all that is needed to ask it.
type ResolvedModel struct {
	Alias    string
	Model    Model
	Provider Provider
	// Instead says why it is not the one that the settings name; empty: it is.
	Instead string
}

// ResolvedAgent is an agent with its command.
type ResolvedAgent struct {
	Name string // as it is recorded in a step: the alias, or the program's name
	Agent
}

// ResolveModel is the model for a role: the one chosen for it, modelOverrides for the workflow
// and role, then for the workflow, then defaultModel. One of the repository's that can't be
// used here gives way to the person's own. Without any it is ErrNoModel; with one
// whose provider's key is not set, ErrNoKey; with one whose provider is defined
// nowhere, ErrInvalid; with one whose provider may not have its key here, a *WithheldError; with
// one that a policy does not allow, a *PolicyError.
func (c *Config) ResolveModel(workflow, role string) (ResolvedModel, error) {
	alias := c.modelOf(workflow, role)
	if alias == "" {
		if len(c.Models) > 0 {
			return ResolvedModel{}, fmt.Errorf("choose a model for role %q of %q: %w\n(models without a default: set defaultModel to one of %s)",
				role, workflow, ErrNoModel, strings.Join(sortedKeys(c.Models), ", "))
		}
		return ResolvedModel{}, ErrNoModel
	}
	return c.findUsable(alias)
}

const (
	// NoExtract in modelOverrides.extract switches extraction by a model off.
	NoExtract = "off"

	extractScenario = "extract"
	defaultScenario = "default"
)

// ResolveExtract is the model that takes the fields out of an answer which can't
// be read: modelOverrides.extract, then the model with the alias "extract", then
// that with the alias "default", then defaultModel. ErrNoModel: there is none, or
// it is switched off; ErrNoKey: its provider's key is not set.
func (c *Config) ResolveExtract() (ResolvedModel, error) {
	if c.ExtractModel == NoExtract {
		return ResolvedModel{}, fmt.Errorf("modelOverrides.extract is %q: %w", NoExtract, ErrNoModel)
	}
	alias := c.extractModel()
	if alias == "" {
		return ResolvedModel{}, ErrNoModel
	}
	return c.findUsable(alias)
}

// FindModel is a configured model by its alias. What is known of one that has no key here is
// returned beside the error.
func (c *Config) FindModel(alias string) (ResolvedModel, error) {
	m, ok := c.Models[alias]
	if !ok {
		return ResolvedModel{}, fmt.Errorf("use model %q: %w", alias, ErrNoModel)
	}
	p, ok := c.Providers[m.Provider]
	if lost, told := c.lost[alias]; told && !ok {
		return ResolvedModel{}, fmt.Errorf("use model %q: %w: %s", alias, ErrInvalid, lost)
	}
	if !ok {
		return ResolvedModel{}, fmt.Errorf("use model %q: its provider %q is not configured: %w", alias, m.Provider, ErrNoModel)
	}
	found := ResolvedModel{Alias: alias, Model: m, Provider: p}
	if err := c.Policies.checkModel(c, alias); err != nil {
		return found, err
	}
	if withheld, ok := c.withheld[m.Provider]; ok {
		return found, &WithheldError{Alias: alias, Withheld: withheld}
	}
	if p.APIKeyEnv != "" && p.APIKey == "" {
		return found, fmt.Errorf("use model %q of provider %q: %w: set %s in the environment or in ~/.uwf/.env (uwf setup asks for it)",
			alias, m.Provider, ErrNoKey, p.APIKeyEnv)
	}
	return found, nil
}

// WithheldProviders are the providers of the repository's file that get no key here, by name;
// also where the person has another one of that name.
func (c *Config) WithheldProviders() []Withheld { return c.refused }

// ResolveAgent is the agent for a role: agentOverrides for the workflow and role,
// then for the workflow, then defaultAgent, then builtin. A name without an entry
// is an agent of uwf itself, or the program uwf-<name>.
func (c *Config) ResolveAgent(workflow, role string) ResolvedAgent {
	name := cmp.Or(c.AgentOverrides[workflow][role], c.AgentOverrides[workflow]["*"], c.DefaultAgent, DefaultAgent)
	return c.resolveAgent(name)
}

// AgentsInUse are the names of the agents that the settings give to roles, the default first.
func (c *Config) AgentsInUse() []string {
	out := []string{cmp.Or(c.DefaultAgent, DefaultAgent)}
	for _, workflow := range sortedKeys(c.AgentOverrides) {
		for _, role := range sortedKeys(c.AgentOverrides[workflow]) {
			if name := c.AgentOverrides[workflow][role]; !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// Place is where an agent is used; both empty: wherever nothing else is said.
type Place struct{ Workflow, Role string }

// PlacesOf are the places where the settings use an agent; one that is used nowhere would be
// used everywhere.
func (c *Config) PlacesOf(name string) (out []Place) {
	for _, workflow := range sortedKeys(c.AgentOverrides) {
		for _, role := range sortedKeys(c.AgentOverrides[workflow]) {
			if c.AgentOverrides[workflow][role] == name {
				out = append(out, Place{workflow, role})
			}
		}
	}
	if c.ResolveAgent("", "").Name == name || len(out) == 0 {
		out = append([]Place{{}}, out...)
	}
	return out
}

func (c *Config) resolveAgent(name string) ResolvedAgent {
	a := c.Agents[name]
	if a.Command == "" {
		a.Command = "uwf-" + strings.TrimPrefix(name, "uwf-")
	}
	return ResolvedAgent{Name: name, Agent: a}
}

// ParseAgent reads what people type after --agent: an alias, or a command line
// with shell-style quotes, whose program's name is then the agent's.
func (c *Config) ParseAgent(text string) (ResolvedAgent, error) {
	text = strings.TrimSpace(text)
	if _, ok := c.Agents[text]; ok {
		return c.resolveAgent(text), nil
	}
	words, err := shlex.Split(text)
	if err != nil {
		return ResolvedAgent{}, fmt.Errorf("read the agent %q: %w: %w; close the quotes", text, ErrNoAgent, err)
	}
	if len(words) == 0 {
		return ResolvedAgent{}, fmt.Errorf("read the agent: %w: it is empty; name an agent (%s) or a command", ErrNoAgent, DefaultAgent)
	}
	if len(words) == 1 && !strings.ContainsAny(words[0], `/\`) {
		return c.resolveAgent(words[0]), nil
	}
	return ResolvedAgent{Name: agentName(words), Agent: Agent{Command: words[0], Args: words[1:]}}, nil
}

// agentName is the program's base name; `uwf agent NAME …` is NAME.
func agentName(words []string) string {
	base := words[0][strings.LastIndexAny(words[0], `/\`)+1:]
	if base == "uwf" && len(words) > 2 && words[1] == "agent" {
		return words[2]
	}
	return base
}
