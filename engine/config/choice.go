package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/config/table"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// Choice is what a person chose for one run, before all settings, those for single roles among
// them. A model or an agent is for all roles; with ROLE= before it for that role, and *= is as
// if nothing were before it.
type Choice struct {
	Models   []string // each an alias, PROVIDER/NAME, or the name that the provider has for it
	Provider string
	Agents   []string // each an alias, or a command line
}

// perRole is what was chosen, by role; of everyRole for all others.
type perRole map[string]string

// of is what was chosen for a role.
func (p perRole) of(role string) string { return cmp.Or(p[role], p[everyRole]) }

// choosesRole is a choice for one role, or for all.
var choosesRole = lazyregexp.New(`^(\*|[A-Za-z][A-Za-z0-9_-]*)=(.*)$`)

// sortChoices sorts what was said by role; what was said last for a role counts.
func (l *loader) sortChoices(flag string, said []string) perRole {
	out := perRole{}
	for _, s := range said {
		role, value := everyRole, s
		if m := choosesRole.FindStringSubmatch(s); m != nil {
			role, value = m[1], m[2]
		}
		if value = strings.TrimSpace(value); value == "" {
			l.addProblem(flag, "", "write "+flag+" NAME, or "+flag+" ROLE=NAME", "%q names nothing", s)
		}
		out[role] = value
	}
	return out
}

// readChoice reads what was chosen for this run. It goes before the variables for the same.
func (l *loader) readChoice(c *Config) {
	c.chosenAgents, c.chosenModels = l.sortChoices("--agent", l.s.Choice.Agents), l.sortChoices("--model", l.s.Choice.Models)
	if v, ok := l.lookupVariable("UWF_AGENT"); ok {
		c.chosenAgents[everyRole] = cmp.Or(c.chosenAgents[everyRole], v.value)
	}
	for role, agent := range c.chosenAgents {
		if _, err := c.ParseAgent(agent); err != nil {
			l.addProblem("--agent", role, "", "%v", err)
		}
	}
	model, provider := c.chosenModels[everyRole], l.s.Choice.Provider
	if provider != "" {
		l.env["UWF_PROVIDER"] = variable{provider, "--provider"}
		l.env["UWF_MODEL"] = variable{model, "--model"}
	} else if model != "" {
		l.env["UWF_MODEL"] = variable{model, "--model"}
	}
}

// isFile tells the place of a setting in a file from a variable or a flag.
func isFile(origin string) bool {
	return !strings.HasPrefix(origin, "$") && !strings.HasPrefix(origin, "--")
}

// originOf says what to call a variable that a flag may stand for.
func (l *loader) originOf(name string) string {
	if source := l.env[name].source; strings.HasPrefix(source, "--") {
		return source
	}
	return "$" + name
}

// chooseForRoles finds the models that were chosen for single roles.
func (l *loader) chooseForRoles(c *Config) {
	for _, role := range sortedKeys(c.chosenModels) {
		if role == everyRole {
			continue // see chooseModel
		}
		c.chosenModels[role] = l.aliasOf(c, c.chosenModels[role], l.s.Choice.Provider, "--model")
	}
}

// aliasOf is the alias of a model that was named: by its alias, with its provider before it,
// or as its provider calls it. provider is empty where none is named. Empty: it can't be told
// which is meant, and the problem is noted.
func (l *loader) aliasOf(c *Config, model, provider, origin string) string {
	if m, ok := c.Models[model]; ok && (provider == "" || m.Provider == provider) {
		return model
	}
	if before, name, ok := strings.Cut(model, "/"); ok && provider == "" {
		if _, ok := c.Providers[before]; ok {
			provider, model = before, name
		}
	}
	if provider = cmp.Or(provider, c.Models[c.DefaultModel].Provider); provider == "" && len(c.Providers) == 1 {
		provider = sortedKeys(c.Providers)[0]
	}
	if provider == "" {
		fix := "set UWF_PROVIDER, or a provider's key"
		if origin == "--model" {
			fix = "say --provider, or set a provider's key (uwf setup)"
		}
		l.addProblem(origin, "", fix, "no provider is known for %q", model)
		return ""
	}
	alias := provider + "/" + model
	if m := c.Models[alias]; m.Provider != provider || m.Name != model { // else a file says more of it
		m = withKnownSize(Model{Provider: provider, Name: model})
		if v, known := vendorNamed(provider); known && v.Model.Name == model {
			m.Price = v.Model.Price
		}
		c.Models[alias], c.Origins[table.Join("models", alias)] = m, origin
	}
	return alias
}

// ChosenAgent is the agent that was chosen for a role in this run, as it was written: an alias
// or a command line. Empty: none was.
func (c *Config) ChosenAgent(role string) string {
	return c.chosenAgents.of(role)
}

// CheckChosenRoles refuses a choice for a role that a workflow doesn't have.
func (c *Config) CheckChosenRoles(workflow string, roles []string) error {
	for _, chosen := range []struct {
		flag string
		by   perRole
	}{{"--model", c.chosenModels}, {"--agent", c.chosenAgents}} {
		for _, role := range sortedKeys(chosen.by) {
			if role != everyRole && !slices.Contains(roles, role) {
				return fmt.Errorf("%s %s=…: the workflow %s has no role %q; %s", chosen.flag, role, workflow, role, text.DidYouMean(role, roles, "it has "+strings.Join(roles, ", ")))
			}
		}
	}
	return nil
}

// findUsable is the model of an alias; where the repository's settings name one that can't be
// used here, as its provider's key is not set, the person's own, with the reason beside it.
func (c *Config) findUsable(alias string) (ResolvedModel, error) {
	m, err := c.FindModel(alias)
	if err == nil || errors.As(err, new(*PolicyError)) || c.inCI || c.personal == "" || !c.isShared(alias) {
		return m, err
	}
	own, ownErr := c.FindModel(c.personal)
	if ownErr != nil {
		return m, err
	}
	own.Instead = fmt.Sprintf("the model %s of this repository's settings can't be used here; yours is, %s", alias, c.personal)
	return own, nil
}

// isShared says whether a model is one that the repository's file chose.
func (c *Config) isShared(alias string) bool {
	file, _, _ := splitOrigin(c.Origins[table.Join("models", alias)])
	return c.shared != "" && file == c.shared
}
