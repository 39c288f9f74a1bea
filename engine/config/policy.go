package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/shlex"

	"github.com/united-workforce/uwf/engine/config/table"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/internal/strictyaml"
	"github.com/united-workforce/uwf/internal/text"
)

// MaxPolicy is how long a policy may be, in bytes.
const MaxPolicy = 64 << 10

// policy is what an organisation allows: all other sources may be stricter, and none looser.
type policy struct {
	file      string
	agents    []string          // names, and absolute paths of programs; nil: any may work
	models    []string          // PROVIDER/NAME or PROVIDER/*; nil: any may be asked
	providers map[string]string // addresses, by the names that models begin with
	// least is the loosest sandbox and network, and the highest limits; it has all Origins.
	least Config
}

// Policies are what organisations allow: that of this machine, and the one that a job was given.
// Without any, nothing is bounded.
type Policies struct {
	all      []*policy
	held     []string
	refusals []Problem
}

// PolicyError says what a policy does not allow, what it does, and where it is from.
type PolicyError struct{ Message string }

func (e *PolicyError) Error() string { return e.Message }

// policySettings are what a policy may say, bound to one. Its bounds have the paths that
// they have in config.yaml.
func policySettings(p *policy) table.Setting {
	bounds := allSettings(&p.least)
	at := func(name string) table.Field {
		i := slices.IndexFunc(bounds.Fields, func(f table.Field) bool { return f.Name == name })
		return bounds.Fields[i]
	}
	network, _ := bounds.At(Path{"confine", "network"}) // it is there
	return table.Object("What an organisation allows. Settings may be stricter, and never looser.",
		table.Field{Name: "agents", Setting: table.List("Agents that may work, by name (builtin, claude-code), and programs by their absolute paths. Without it: any.", &p.agents)},
		table.Field{Name: "models", Setting: table.List("Models that may be asked: PROVIDER/NAME as the provider calls it, or PROVIDER/*. Without it: any.", &p.models)},
		table.Field{Name: "providers", Setting: table.Texts("Addresses of providers that models name, where uwf does not know them.", "Its address.", &p.providers)},
		at("sandbox"),
		table.Field{Name: "confine", Setting: table.Object("What confined agents may use at most.", table.Field{Name: "network", Setting: network})},
		at("limits"),
	).Instead(map[string]string{
		"network": "write confine: {network: gateway}",
		"costUsd": "write limits: {costUsd: 5}",
	}).Then(p.checkLists)
}

// checkLists finds entries that would allow nothing, or something else than they seem to.
func (p *policy) checkLists(r *table.Reader, n *strictyaml.Node, _ string) {
	for _, list := range []struct {
		name    string
		entries []string
		wrong   func(entry string) (problem, fix string)
	}{{"agents", p.agents, wrongAgent}, {"models", p.models, p.wrongModel}} {
		if n.Get(list.name) != nil && len(list.entries) == 0 {
			r.NoteProblem(valueOf(n, list.name), list.name, "leave it out to allow all", "allows none, so that nothing could work")
		}
		for i, entry := range list.entries {
			if problem, fix := list.wrong(entry); problem != "" {
				r.NoteProblem(valueOf(n, list.name), fmt.Sprintf("%s[%d]", list.name, i), fix, "%s", problem)
			}
		}
	}
	for _, name := range sortedKeys(p.providers) {
		whole, problem := completeProvider(name, Provider{BaseURL: p.providers[name]})
		if problem != "" || strings.Contains(name, "/") {
			r.NoteProblem(valueOf(n, "providers"), table.Join("providers", name), "write NAME: https://models.example.com/v1", "is no address of a provider")
		}
		p.providers[name] = whole.BaseURL
	}
	// Who is not confined has every network: a machine that can't confine has to say no.
	if p.least.Confine.Network == NetworkGateway && p.least.Sandbox != SandboxRequire {
		r.NoteProblem(valueOf(n, "confine"), "confine.network", "write sandbox: require beside it", "can't be held where agents are not confined")
	}
}

func wrongAgent(entry string) (problem, fix string) {
	if strings.TrimPrefix(entry, "uwf-") == "acp" {
		return fmt.Sprintf("%s runs any program, which stands behind its --", entry), "name that program by its absolute path: /opt/acme/agent"
	}
	if strings.ContainsAny(entry, " \t\n*") || strings.Contains(entry, "/") && !strings.HasPrefix(entry, "/") || entry == "" {
		return fmt.Sprintf("%.80q is neither the name of an agent nor the absolute path of a program", entry), "write builtin, claude-code or /opt/acme/agent, without arguments"
	}
	return "", ""
}

func (p *policy) wrongModel(entry string) (problem, fix string) {
	provider, name, _ := strings.Cut(entry, "/")
	known := slices.Sorted(slices.Values(append(sortedKeys(p.providers), PresetNames()...)))
	switch {
	case provider == "" || name == "":
		return fmt.Sprintf("%.80q is no model", entry), "write PROVIDER/NAME, such as openai/gpt-5.1, or PROVIDER/* for all of a provider's"
	case strings.Contains(name, "*") && name != "*":
		return fmt.Sprintf("%.80q has a * in a name", entry), "* stands for all models of a provider, alone"
	case !slices.Contains(known, provider):
		return fmt.Sprintf("there is no provider %.80q", provider), text.DidYouMean(provider, known, "say its address below providers")
	}
	return "", ""
}

// loadPolicies reads the policies that there are: this machine's, and the one that the caller was
// given. One that can't be read is a problem: nothing goes on without it.
func loadPolicies(l *loader) {
	read := func(name string, data []byte) {
		p := &policy{file: name}
		r := &table.Reader{File: name}
		if len(data) > MaxPolicy {
			l.addProblem(name, "", "", "a policy may have at most %d bytes", MaxPolicy)
			return
		}
		r.Read(data, policySettings(p))
		p.least.Origins = r.Origins
		l.problems = append(l.problems, r.Problems...)
		l.bounds.all = append(l.bounds.all, p)
	}
	if data, ok := l.readIfThere(l.s.PolicyFile); ok {
		read(l.s.PolicyFile, data)
	}
	if l.s.Policy != nil {
		read(l.s.PolicyName, l.s.Policy)
	}
}

// loosening is a setting that a policy made stricter.
type loosening struct {
	path         string
	asked, holds any
	said         bool // somebody asked for it
}

// holdSettings makes settings as strict as the policy is, and says which were not.
func (p *policy) holdSettings(c *Config) (out []loosening) {
	for _, path := range sortedKeys(p.least.Origins) {
		if at, err := ParsePath(path); err == nil && (path == "sandbox" || path == "confine.network" || strings.HasPrefix(path, "limits.")) {
			was := loosening{path: path}
			was.asked, was.said = valueAt(c, at)
			out = append(out, was)
		}
	}
	c.Sandbox = StricterSandbox(c.Sandbox, p.least.Sandbox)
	c.Confine.Network = stricterNetwork(c.Confine.Network, p.least.Confine.Network)
	c.Limits = c.Limits.Tighten(p.least.Limits)
	for i := range out {
		at, _ := ParsePath(out[i].path) // it was read before
		out[i].holds, _ = valueAt(c, at)
	}
	return slices.DeleteFunc(out, func(x loosening) bool { return x.asked == x.holds })
}

// nameOrigin names a policy by the place where it says something.
func (p *policy) nameOrigin(path string) string {
	file, line, col := splitOrigin(p.least.Origins[path])
	return "the policy (" + Origin{File: file, Line: line, Col: col}.String() + ")"
}

// tellLoosened notes what a file asks for that a policy does not allow.
func tellLoosened(l *loader, p *policy, file *Config) {
	probe := *file
	for _, x := range p.holdSettings(&probe) {
		if at, said := file.Origins[x.path]; said {
			l.bounds.held = append(l.bounds.held, problemAt(at, x.path, fmt.Sprintf("it asks for %s; %s allows nothing looser than %s, which holds", Plain(x.asked), p.nameOrigin(x.path), Plain(x.holds)), "").String())
		}
	}
	if p.least.Confine.Network == NetworkGateway && file.Confine.Network == NetworkOpen { // nobody is asked to consent to it
		file.Confine.Network = ""
		delete(file.Origins, "confine.network")
	}
}

// applyPolicy makes all settings together as strict as a policy is, and finds what it refuses.
func applyPolicy(l *loader, p *policy, c *Config) {
	for _, x := range p.holdSettings(c) {
		c.Origins[x.path] = p.least.Origins[x.path]
	}
	// A default as strict as the policy would give way to inputs and flags; off holds nothing.
	if c.Origins["sandbox"] == "" && c.Sandbox == p.least.Sandbox && c.Sandbox != SandboxOff {
		c.Origins["sandbox"] = p.least.Origins["sandbox"]
	}
	if p.least.Limits.CostUSD+p.least.Limits.Month.CostUSD > 0 {
		l.holdPrices(c, nil, "the limit on cost of the policy ("+p.file+")", func(string) bool { return true })
	}
	refuse := func(origin, path string, err error) {
		if err != nil {
			l.bounds.refusals = append(l.bounds.refusals, problemAt(cmp.Or(origin, "uwf's default"), path, err.Error(), ""))
		}
	}
	refuse(c.Origins["defaultModel"], "defaultModel", p.checkModel(c, c.DefaultModel))
	if extract := c.extractModel(); extract != c.DefaultModel {
		refuse(c.Origins["modelOverrides."+extractScenario], "modelOverrides."+extractScenario, p.checkModel(c, extract))
	}
	refuse(c.Origins["defaultAgent"], "defaultAgent", p.checkAgent(c.ResolveAgent("", "")))
	for _, of := range []struct {
		kind  string
		names map[string]map[string]string
		check func(name string) error
	}{
		{"modelOverrides", c.ModelOverrides, func(alias string) error { return p.checkModel(c, alias) }},
		{"agentOverrides", c.AgentOverrides, func(name string) error { return p.checkAgent(c.resolveAgent(name)) }},
	} {
		for _, workflow := range sortedKeys(of.names) {
			for _, role := range sortedKeys(of.names[workflow]) {
				path := table.Join(of.kind, workflow)
				origin := c.Origins[path]
				if role != everyRole {
					path = table.Join(path, role)
					origin = c.Origins[path]
				}
				refuse(origin, path, of.check(of.names[workflow][role]))
			}
		}
	}
}

// checkModel refuses a model that is not allowed. Its provider counts by its address, whatever
// the settings call it. One that is not configured is refused elsewhere.
func (p *policy) checkModel(c *Config, alias string) error {
	m, known := c.Models[alias]
	provider, there := c.Providers[m.Provider]
	if p.models == nil || !known || !there {
		return nil
	}
	for _, entry := range p.models {
		of, name, _ := strings.Cut(entry, "/")
		address, own := p.providers[of]
		preset, _ := vendorNamed(of)
		at, isVendor := vendorAt(provider.BaseURL)
		isProvider := own && sameURL(address, provider.BaseURL) || !own && (sameURL(preset.BaseURL, provider.BaseURL) || isVendor && at.Name == of)
		if isProvider && (name == "*" || name == m.Name) {
			return nil
		}
	}
	return &PolicyError{fmt.Sprintf("the model %s (%s of %s) is not allowed by %s, which allows %s", alias, m.Name, provider.BaseURL, p.nameOrigin("models"), strings.Join(p.models, ", "))}
}

// programOf is what an agent runs, in the words of a policy: uwf-NAME for an agent of uwf itself,
// the program behind the -- of acp, else the program as it is written.
func programOf(a ResolvedAgent) string {
	words, err := shlex.Split(a.Command)
	if err != nil || len(words) == 0 {
		return a.Command
	}
	if words = append(words, a.Args...); len(words) > 2 && words[0] == "uwf" && words[1] == "agent" {
		words = append([]string{"uwf-" + words[2]}, words[3:]...)
	}
	// One that is looked up on PATH may be any.
	if at := slices.Index(words, "--") + 1; words[0] == "uwf-acp" && at > 0 && at < len(words) && strings.HasPrefix(words[at], "/") {
		return words[at]
	}
	return words[0]
}

// checkAgent refuses an agent that is not allowed, by the program that it runs, whatever the
// settings call it; and one that has a login of its own, where models or what they use are bounded.
func (p *policy) checkAgent(a ResolvedAgent) error {
	isMeant := func(entry string) bool {
		return programOf(a) == entry || !strings.Contains(entry, "/") && programOf(a) == "uwf-"+strings.TrimPrefix(entry, "uwf-")
	}
	switch {
	case p.agents != nil && !slices.ContainsFunc(p.agents, isMeant):
		return &PolicyError{fmt.Sprintf("the agent %s (%s) is not allowed by %s, which allows %s", a.Name, programOf(a), p.nameOrigin("agents"), strings.Join(p.agents, ", "))}
	case a.Login != "" && (p.models != nil || p.least.Limits.Tokens > 0 || p.least.Limits.CostUSD > 0 || p.least.Limits.Month != (moderator.MonthLimits{})):
		return &PolicyError{fmt.Sprintf("the agent %s has a login of its own (login: %s), so that nobody can hold it to the models, tokens and costs of the policy (%s); remove the login", a.Name, a.Login, p.file)}
	}
	return nil
}

// CheckAgent refuses an agent that a policy does not allow. The error is a *PolicyError.
func (x Policies) CheckAgent(a ResolvedAgent) error {
	for _, p := range x.all {
		if err := p.checkAgent(a); err != nil {
			return err
		}
	}
	return nil
}

// checkModel is the same for a model, by its alias.
func (x Policies) checkModel(c *Config, alias string) error {
	for _, p := range x.all {
		if err := p.checkModel(c, alias); err != nil {
			return err
		}
	}
	return nil
}

// CheckChosen refuses what was chosen for one run or one thread where a policy allows less: the
// sandbox and limits of chosen; what is zero was not chosen. The error is a *PolicyError.
func (x Policies) CheckChosen(chosen Config) error {
	var looser []string
	for _, p := range x.all {
		probe := chosen
		for _, l := range p.holdSettings(&probe) {
			if l.said {
				looser = append(looser, fmt.Sprintf("%s %s, and %s allows nothing looser than %s", l.path, Plain(l.asked), p.nameOrigin(l.path), Plain(l.holds)))
			}
		}
	}
	if len(looser) == 0 {
		return nil
	}
	return &PolicyError{strings.Join(looser, "; ")}
}

// HighestLimits are those that policies allow; what is 0 has no bound.
func (x Policies) HighestLimits() (out Limits) {
	for _, p := range x.all {
		out = out.Tighten(p.least.Limits)
	}
	return out
}

// Held are what files ask for that a policy, or a known price, does not allow, and what holds instead, a line each.
func (x Policies) Held() []string { return slices.Clone(x.held) }

// Refusals are the models and agents that settings name and a policy does not allow.
func (x Policies) Refusals() []Problem { return slices.Clone(x.refusals) }

// ListBounds says what each policy allows, a line each.
func (x Policies) ListBounds() (out []string) {
	for _, p := range x.all {
		var says []string
		for _, path := range sortedKeys(p.least.Origins) {
			at, err := ParsePath(path)
			if s, serr := policySettings(p).At(at); err == nil && serr == nil && s.Get != nil {
				v, _ := s.Get()
				says = append(says, path+" "+Plain(v))
			}
		}
		out = append(out, "the policy ("+p.file+") allows at most: "+strings.Join(says, "; "))
	}
	return out
}
