package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/config/table"
	"github.com/united-workforce/uwf/engine/moderator"
)

// mergeConfigs puts the two files together: what the repository says first, then what
// the home file says; but of what protects the user, the stricter.
func mergeConfigs(repo, home *Config) *Config {
	c := &Config{Origins: map[string]string{}, files: []*Config{repo, home}}
	maps.Copy(c.Origins, home.Origins)
	dropReplaced(c.Origins, repo)
	maps.Copy(c.Origins, repo.Origins)
	c.Providers = overlayMap(home.Providers, repo.Providers)
	c.Models = overlayMap(home.Models, repo.Models)
	c.Agents = overlayMap(home.Agents, repo.Agents)
	c.AgentOverrides = overlayRoles(home.AgentOverrides, repo.AgentOverrides)
	c.ModelOverrides = overlayRoles(home.ModelOverrides, repo.ModelOverrides)
	c.DefaultAgent = cmp.Or(home.DefaultAgent, repo.DefaultAgent)
	c.DefaultModel = cmp.Or(home.DefaultModel, repo.DefaultModel)
	c.takePersonal(home)
	c.ExtractModel = cmp.Or(repo.ExtractModel, home.ExtractModel)
	c.State.Branch = cmp.Or(repo.State.Branch, home.State.Branch)
	c.State.Remote = cmp.Or(repo.State.Remote, home.State.Remote)
	c.State.CredentialHelper = home.State.CredentialHelper // Load refuses it elsewhere
	c.Limits = repo.Limits.Tighten(home.Limits)
	c.Checks = Checks{
		Commands: overlayMap(home.Checks.Commands, repo.Checks.Commands), Strict: repo.Checks.Strict || home.Checks.Strict,
		Time: cmp.Or(repo.Checks.Time, home.Checks.Time), Protect: unionOf(repo.Checks.Protect, home.Checks.Protect),
	}
	if c.Workspace = repo.Workspace; c.Workspace.Prepare == nil {
		c.Workspace.Prepare = home.Workspace.Prepare
	}
	c.Workspace.Submodules = repo.Workspace.Submodules || home.Workspace.Submodules
	c.Gateway.MaxBody = moderator.LowerLimit(repo.Gateway.MaxBody, home.Gateway.MaxBody)
	c.MCP = overlayMap(home.MCP, repo.MCP)
	c.Fetch.Hosts = unionOf(repo.Fetch.Hosts, home.Fetch.Hosts)
	c.Confine = mergeConfine(repo.Confine, home.Confine)
	c.PrepareBy(c.Workspace.Prepare)
	c.AllowShell = bothAllowShell(repo, home)
	c.Redact = mergeRedact(repo.Redact, home.Redact)
	for _, p := range []Path{{"limits", "maxSteps"}, {"limits", "maxStepsPerRole"}, {"limits", "tokens"}, {"limits", "costUsd"},
		{"limits", "wall"}, {"limits", "stepTime"}, {"limits", "month", "tokens"}, {"limits", "month", "costUsd"}, {"gateway", "maxBody"}, {"confine", "network"}, {"allowShell"}, {"redact", "minLength"}} {
		noteWinner(c, repo, home, p)
	}
	return c
}

// PrepareBy has commands make workspaces ready.
func (c *Config) PrepareBy(lines []string) {
	c.Workspace.Prepare = lines
	if c.Confine.Network == "" && len(lines) > 0 {
		c.Confine.Network = NetworkGateway // what has to be installed is there already
	}
}

// takePersonal makes what the person's own file chooses theirs, whatever the repository's
// calls by the same names.
func (c *Config) takePersonal(home *Config) {
	for _, path := range []string{"defaultAgent", "defaultModel"} {
		keepOrigin(c, home, path)
	}
	c.personal = home.DefaultModel
	m, ok := home.Models[c.personal]
	if !ok {
		return
	}
	takeEntry(c, home, "models", c.personal)
	c.Models[c.personal] = m
	if p, ok := home.Providers[m.Provider]; ok {
		takeEntry(c, home, "providers", m.Provider)
		c.Providers[m.Provider] = p
	}
}

// takeEntry makes an entry of a map come from one file alone.
func takeEntry(c, from *Config, kind, name string) {
	entry := table.Join(kind, name)
	isPart := func(path string) bool { return path == entry || strings.HasPrefix(path, entry+".") }
	maps.DeleteFunc(c.Origins, func(path, _ string) bool { return isPart(path) })
	for path, at := range from.Origins {
		if isPart(path) {
			c.Origins[path] = at
		}
	}
}

// dropReplaced forgets where the parts of an entry came from that is replaced whole.
func dropReplaced(origins map[string]string, repo *Config) {
	for entry := range repo.Origins {
		kind, name, _ := strings.Cut(entry, ".")
		if name != "" && slices.Contains([]string{"providers", "models", "agents", "mcp"}, kind) {
			maps.DeleteFunc(origins, func(path, _ string) bool { return strings.HasPrefix(path, entry+".") })
		}
	}
}

// bothAllowShell says whether every file that mentions allowShell allows it, and one does.
func bothAllowShell(repo, home *Config) bool {
	_, r := repo.Origins["allowShell"]
	_, h := home.Origins["allowShell"]
	return (r || h) && (!r || repo.AllowShell) && (!h || home.AllowShell)
}

func keepOrigin(c, from *Config, path string) {
	if at, ok := from.Origins[path]; ok {
		c.Origins[path] = at
	}
}

// overlayMap is base with the entries of top put over it, each entry whole.
func overlayMap[V any](base, top map[string]V) map[string]V {
	out := make(map[string]V, len(base)+len(top))
	maps.Copy(out, base)
	maps.Copy(out, top)
	return out
}

func overlayRoles(base, top map[string]map[string]string) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, from := range []map[string]map[string]string{base, top} {
		for workflow, roles := range from {
			out[workflow] = overlayMap(out[workflow], roles)
		}
	}
	return out
}

// StricterSandbox is the stricter of two settings; an empty one says nothing.
func StricterSandbox(a, b Sandbox) Sandbox {
	return stricterOf([]Sandbox{SandboxOff, SandboxAuto, SandboxRequire}, a, b)
}

func stricterNetwork(a, b Network) Network {
	return stricterOf([]Network{NetworkOpen, NetworkGateway}, a, b)
}

// stricterOf is the later one of two settings in a list of all that there are.
func stricterOf[T comparable](strict []T, a, b T) T {
	if slices.Index(strict, b) > slices.Index(strict, a) { // -1: it says nothing
		return b
	}
	return a
}

// mergeSandbox takes the stricter of what both files say. A file of the repository that
// nobody trusts makes the default stricter, and never switches it off.
func (l *loader) mergeSandbox(c, repo, home *Config) {
	said, from := StricterSandbox(home.Sandbox, repo.Sandbox), home
	if said != home.Sandbox {
		from = repo
	}
	c.Sandbox = cmp.Or(said, l.s.DefaultSandbox, SandboxAuto)
	delete(c.Origins, "sandbox")
	if from == repo && said == SandboxOff && !l.isTrusted() {
		c.Sandbox = cmp.Or(l.s.DefaultSandbox, SandboxAuto)
		return
	}
	keepOrigin(c, from, "sandbox")
}

// SaysSandbox reports whether anybody said how agents are confined, so that it is no
// default.
func (c *Config) SaysSandbox() bool {
	_, said := c.Origins["sandbox"]
	return said
}

// mergeConfine takes the stricter network and all places. Load refuses places of
// a repository's file that nobody trusts.
func mergeConfine(repo, home Confine) Confine {
	return Confine{Network: stricterNetwork(repo.Network, home.Network), Read: unionOf(repo.Read, home.Read), Write: unionOf(repo.Write, home.Write)}
}

func unionOf(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

func mergeRedact(repo, home Redact) Redact {
	out := Redact{
		Env:       unionOf(repo.Env, home.Env),
		Allow:     unionOf(repo.Allow, home.Allow),
		Patterns:  overlayMap(home.Patterns, repo.Patterns),
		MinLength: moderator.LowerLimit(repo.MinLength, home.MinLength),
	}
	// A pattern of the home file is not replaced by one of the same name.
	for name, expr := range home.Patterns {
		if other, ok := repo.Patterns[name]; ok && other != expr {
			out.Patterns[name+"-home"] = expr
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
