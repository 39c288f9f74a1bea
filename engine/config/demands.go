package config

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/shlex"

	"github.com/united-workforce/uwf/engine/config/table"
	"github.com/united-workforce/uwf/engine/consent"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// ownAgents are the agents of this binary: who names one brings no program.
var ownAgents = [...]string{DefaultAgent, "mock"}

func isForeign(agent string) bool { return agent != "" && !slices.Contains(ownAgents[:], agent) }

// ShellDemand is the demand for a shell. A person may consent to it for a repository that
// does not ask for it itself.
func ShellDemand() consent.Demand {
	return consent.Demand{Path: "allowShell", Says: "true", Means: "the builtin agent may run commands"}
}

// Unconsented are the demands of the repository's file that count for nothing, since nobody
// on this machine has consented to them as they are now.
func (c *Config) Unconsented() []consent.Demand { return slices.Clone(c.unconsented) }

// Demands are all that the repository's file wants of this machine.
func (c *Config) Demands() []consent.Demand { return slices.Clone(c.demands) }

// demand is one of a file, and how to take it out of the settings that were read.
type demand struct {
	consent.Demand
	drop func()
}

// WithoutPlace says whether the repository's file keeps threads in a place that counts for
// nothing, since nobody has consented to it.
func (c *Config) WithoutPlace() bool { return c.withoutPlace }

// placePath is the setting that says where threads are kept.
const placePath = "state.remote"

// IsRemoteName tells the name of a git remote from a URL or path.
func IsRemoteName(s string) bool { return !strings.ContainsAny(s, `:/\`) && s != "." && s != ".." }

// settleDemands takes what nobody consented to out of a repository's settings: it counts as
// unsaid. A consent to the place of the threads stays when other demands change, so that
// nobody is asked about agents who only looks at threads.
func (l *loader) settleDemands(repo, home *Config) (all, left []consent.Demand, withoutPlace bool) {
	found := l.findDemands(repo, home)
	all = lists.Map(found, func(d demand) consent.Demand { return d.Demand })
	if len(all) == 0 || l.s.RepoTrusted || l.s.Consented != nil && l.s.Consented(all) {
		return all, nil, false
	}
	var names []string
	for _, d := range found {
		if d.Path == placePath && l.s.Allowed != nil && l.s.Allowed(d.Demand) {
			continue
		}
		withoutPlace = withoutPlace || d.Path == placePath

		d.drop()
		maps.DeleteFunc(repo.Origins, func(path, _ string) bool { return path == d.Path || strings.HasPrefix(path, d.Path+".") })
		names = append(names, d.Path)
	}
	if len(names) == 0 {
		return all, nil, false
	}
	l.addWarning("%s: what it says of %s counts once you consent to it: see uwf trust show", l.s.RepoFile, text.Cut(strings.Join(names, ", "), 200))
	return all, all, withoutPlace
}

// place is where a repository's file keeps threads.
type place struct {
	Remote string `json:"remote"`
	Branch string `json:"branch,omitempty"`
}

// findPlace finds a place for threads of a repository's choice that is neither a remote of the
// checkout nor the user's own choice: git would use the user's logins there.
func (l *loader) findPlace(repo, home *Config) (out []demand) {
	remote := cmp.Or(repo.State.Remote, home.State.Remote)
	chosen := remote != home.State.Remote || !slices.Contains([]string{"", home.State.Branch}, repo.State.Branch)
	if !chosen || remote == "" || IsRemoteName(remote) || l.s.OwnRemote != nil && l.s.OwnRemote(remote) {
		return nil
	}

	d := NewDemand(placePath, place{remote, repo.State.Branch}, "threads are kept there, with your logins")
	return []demand{{d, func() {
		repo.State.Remote, repo.State.Branch = "", ""
		delete(repo.Origins, "state.branch")
	}}}
}

// findDemands are a file's, in the order of their paths.
func (l *loader) findDemands(repo, home *Config) (out []demand) {
	for _, name := range sortedKeys(repo.Agents) {
		if a := repo.Agents[name]; a.Command != "" || len(a.Args)+len(a.Env) > 0 {
			out = append(out, demand{NewDemand(table.Join("agents", name), l.describeAgent(a), "a program that runs as an agent"), func() { delete(repo.Agents, name) }})
		}
	}
	for _, workflow := range sortedKeys(repo.AgentOverrides) {
		for _, role := range sortedKeys(repo.AgentOverrides[workflow]) {
			if name := repo.AgentOverrides[workflow][role]; isForeign(name) {
				path := table.Join(table.Join("agentOverrides", workflow), role)
				out = append(out, demand{NewDemand(path, name, "chooses the agent of a role"), func() { delete(repo.AgentOverrides[workflow], role) }})
			}
		}
	}
	for _, name := range sortedKeys(repo.MCP) {
		out = append(out, demand{NewDemand(table.Join("mcp", name), repo.MCP[name], "agents may use these tools of a server, which gets these variables"), func() { delete(repo.MCP, name) }})
	}
	for _, name := range sortedKeys(repo.Checks.Commands) {
		out = append(out, demand{NewDemand(table.Join("checks", name), repo.Checks.Commands[name], "runs as a check on what agents made"), func() { delete(repo.Checks.Commands, name) }})
	}
	if repo.AllowShell {
		out = append(out, demand{ShellDemand(), func() { repo.AllowShell = false }})
	}
	for _, x := range []struct {
		wanted bool
		path   string
		says   any
		means  string
		drop   func()
	}{
		{repo.Confine.Network == NetworkOpen, "confine.network", repo.Confine.Network, "agents reach every host", func() { repo.Confine.Network = "" }},
		{len(repo.Confine.Read) > 0, "confine.read", repo.Confine.Read, "agents may read these places", func() { repo.Confine.Read = nil }},
		{len(repo.Confine.Write) > 0, "confine.write", repo.Confine.Write, "agents may change these places", func() { repo.Confine.Write = nil }},
		{isForeign(repo.DefaultAgent), "defaultAgent", repo.DefaultAgent, "chooses the agent", func() { repo.DefaultAgent = "" }},
		{len(repo.Fetch.Hosts) > 0, "fetch.hosts", repo.Fetch.Hosts, "agents may get pages from there through uwf", func() { repo.Fetch.Hosts = nil }},
		{len(repo.Workspace.Prepare) > 0, "workspace.prepare", repo.Workspace.Prepare, "runs before agents work", func() { repo.Workspace.Prepare = nil }},
		{repo.Workspace.Submodules, "workspace.submodules", true, "fetches from the addresses in .gitmodules, with your credentials for them", func() { repo.Workspace.Submodules = false }},
	} {
		if x.wanted {
			out = append(out, demand{NewDemand(x.path, x.says, x.means), x.drop})
		}
	}
	return append(out, l.findPlace(repo, home)...)
}

// NewDemand is a demand that says something which can be written as JSON.
func NewDemand(path string, says any, means string) consent.Demand {
	b, err := text.EncodeJSON(says)
	if err != nil { // what was read from YAML can be written
		b = []byte(fmt.Sprint(says))
	}
	return consent.Demand{Path: path, Says: string(b), Means: means}
}

// describeAgent is what consent is given to: the command line, its variables (of those whose
// name says that they are secret the SHA-256 alone), and the content of the repository's
// files that it names.
func (l *loader) describeAgent(a Agent) any {
	type agent struct {
		Command string            `json:"command,omitempty"`
		Args    []string          `json:"args,omitempty"`
		Env     map[string]string `json:"env,omitempty"`
		Files   map[string]string `json:"files,omitempty"`
	}
	out := agent{Command: a.Command, Args: a.Args, Env: maps.Clone(a.Env), Files: map[string]string{}}
	for name, value := range out.Env {
		if redact.SecretName(name) {
			out.Env[name] = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(value)))
		}
	}
	words, err := shlex.Split(a.Command)
	if err != nil {
		words = []string{a.Command}
	}
	for _, word := range append(words, a.Args...) {
		if l.s.Fingerprint == nil {
			break
		}
		if sum := l.s.Fingerprint(word); sum != "" {
			out.Files[word] = "sha256:" + sum
		}
	}
	return out
}

// applyShellConsent opens the shell where the person allowed it for this repository, and no
// file says no.
func (l *loader) applyShellConsent(c, repo, home *Config) {
	_, r := repo.Origins["allowShell"]
	_, h := home.Origins["allowShell"]
	if r || h || l.s.RepoTrusted || l.s.Consented == nil || !l.s.Consented([]consent.Demand{ShellDemand()}) {
		return
	}
	c.AllowShell = true
	c.Origins["allowShell"] = l.s.ConsentDir
}
