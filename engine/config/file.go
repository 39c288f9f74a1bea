package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/shlex"

	"github.com/united-workforce/uwf/engine/config/table"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

// readFile reads one file's settings into a Config of its own.
func readFile(name string, data []byte) (*Config, []Problem) {
	r, c := &table.Reader{File: name}, &Config{}
	r.Read(data, allSettings(c))
	c.Origins = r.Origins
	return c, r.Problems
}

// allSettings are every setting there is, bound to a Config.
func allSettings(c *Config) table.Setting {
	defaults := moderator.DefaultLimits()
	return table.Object("The settings of uwf: .uwf/config.yaml of a repository, and config.yaml below ~/.uwf.",
		table.Field{Name: "providers", Setting: table.Named("Services that run models, by name.", &c.Providers, providerSettings)},
		table.Field{Name: "models", Setting: table.Named("Models, by the alias that other settings and agents use. The aliases default and extract have a meaning of their own.", &c.Models, modelSettings)},
		table.Field{Name: "agents", Setting: table.Named("Programs that work on steps, by alias.", &c.Agents, agentSettings)},
		table.Field{Name: "defaultAgent", Setting: table.Text("The alias of the agent that works where no override names one.", &c.DefaultAgent).Default(DefaultAgent)},
		table.Field{Name: "agentOverrides", Setting: overrideSettings("Agents for workflows and roles: workflow: alias, or workflow: {role: alias}.", &c.AgentOverrides)},
		table.Field{Name: "defaultModel", Setting: table.Text("The alias of the model that is asked where no override names one.", &c.DefaultModel)},
		table.Field{Name: "modelOverrides", Setting: modelOverrides(c)},
		table.Field{Name: "limits", Setting: limitSettings(&c.Limits, defaults)},
		table.Field{Name: "workspace", Setting: table.Object("The folder that agents work in.",
			table.Field{Name: "prepare", Setting: table.List("Commands that make it ready, such as npm ci: run, confined, before an agent works in it, wherever the files that say what is to be installed changed. What they leave in HOME and in ignored files is kept on this machine, and agents and checks get copies. Where it is set, confine.network is gateway unless something else is said.", &c.Workspace.Prepare)},
			table.Field{Name: "submodules", Setting: table.Flag("Fetch the files of submodules. Their addresses (https or ssh) are those in .gitmodules of the commit that the thread began from. Changes that agents make in them are not kept.", &c.Workspace.Submodules).Default(false)},
		)},
		table.Field{Name: "checks", Setting: checkSettings(&c.Checks)},
		table.Field{Name: "gateway", Setting: table.Object("The way to the models, which agents have in the place of keys.",
			table.Field{Name: "maxBody", Setting: table.Whole("Bytes that one request to a model may have. It takes several times as much memory.", &c.Gateway.MaxBody, 1<<16, 1<<28).Default(int64(8 << 20))},
		)},
		table.Field{Name: "fetch", Setting: table.Object("What agents may get from the web through uwf (the builtin agent's fetch_url), whatever network they have themselves.",
			table.Field{Name: "hosts", Setting: fetchHosts(&c.Fetch.Hosts)},
		)},
		table.Field{Name: "mcp", Setting: table.Named("Servers of the Model Context Protocol whose tools agents get through uwf, by name.", &c.MCP, mcpSettings)},
		table.Field{Name: "sandbox", Setting: table.Text("How agents' processes are confined: off (they run as you), auto (as far as the machine can), require (refuse to run without). Without it: auto on Linux, off elsewhere, and auto in the action. Only the user's own file, or one that is trusted, switches it off.", &c.Sandbox,
			string(SandboxOff), string(SandboxAuto), string(SandboxRequire)).Default(string(SandboxAuto))},
		table.Field{Name: "confine", Setting: confineSettings(&c.Confine)},
		table.Field{Name: "redact", Setting: redactSettings(&c.Redact)},
		table.Field{Name: "state", Setting: table.Object("Where threads are kept.",
			table.Field{Name: "branch", Setting: table.Text("The branch that holds the threads.", &c.State.Branch).Default("uwf-state")},
			table.Field{Name: "remote", Setting: table.Text("The git remote (name or URL) that holds the branch; without it, this repository.", &c.State.Remote)},
			table.Field{Name: "credentialHelper", Setting: table.Text("Whose of git's credential helpers are asked: the user's (and the system's), or those that the repository's own .git/config names as well. An agent that is not confined may have written that file. Only in the user's own file.", &c.State.CredentialHelper,
				string(CredentialsOfUser), string(CredentialsOfRepository)).Default(string(CredentialsOfUser))},
		)},
		table.Field{Name: "allowShell", Setting: table.Flag("Whether the builtin agent may run commands. Every file that mentions it must allow it.", &c.AllowShell).Default(false)},
	).Instead(map[string]string{
		// Those of the TypeScript uwf from 0.5 on, whose file lies in the same place.
		"concurrency":   predecessors,
		"workflowPaths": predecessors,
	})
}

// takeOver is how settings of the TypeScript uwf become uwf's.
const (
	takeOver     = "see what can be taken over: uwf import"
	predecessors = "it is a setting of the TypeScript uwf; " + takeOver
)

func providerSettings(name string, p *Provider, keep func()) table.Setting {
	secret := table.Text("The key itself. Only in the user's own file; apiKeyEnv is better.", &p.APIKey)
	secret.Secret = true
	secret.Get = func() (any, bool) { return p.APIKey.String(), p.APIKey != "" }
	return table.Object("A service that runs models.",
		table.Field{Name: "baseUrl", Setting: table.Text("Its address, as its clients take it: https://api.example.com/v1. Known for "+strings.Join(PresetNames(), ", ")+".", &p.BaseURL)},
		table.Field{Name: "apiKeyEnv", Setting: table.Text("The variable that holds its key.", &p.APIKeyEnv)},
		table.Field{Name: "apiKey", Setting: secret},
		table.Field{Name: "kind", Setting: table.Text("The protocol it speaks.", &p.Kind, string(OpenAI), string(Anthropic), string(Gemini))},
		table.Field{Name: "wires", Setting: table.List("What it can be asked by: chat (chat completions), responses, messages, gemini (generateContent). Without it: messages and chat for kind anthropic, gemini and chat for kind gemini, chat and responses for OpenAI itself, else chat. A program that speaks another wire is answered by translation, where chat is among them.", &p.Wires)},
	).Then(func(r *table.Reader, n *strictyaml.Node, path string) {
		if p.APIKeyEnv != "" && p.APIKey != "" {
			r.NoteProblem(n, path, "keep apiKeyEnv", "has both apiKey and apiKeyEnv")
		}
		if p.APIKeyEnv != "" && !envName.MatchString(p.APIKeyEnv) {
			// The text may be a key that was put in the wrong place: it is not repeated.
			r.NoteProblem(valueOf(n, "apiKeyEnv"), path+".apiKeyEnv", "write the variable's name, not its value", "is no name of a variable")
			p.APIKeyEnv = ""
		}
		for i, wire := range p.Wires {
			if !slices.Contains(Wires(), wire) {
				r.NoteProblem(valueOf(n, "wires"), fmt.Sprintf("%s.wires[%d]", path, i), "", "must be one of %s, not %q", strings.Join(Wires(), ", "), wire)
			}
		}
		whole, problem := completeProvider(name, *p)
		if problem != "" {
			at := n
			if p.BaseURL != "" {
				at = valueOf(n, "baseUrl")
			}
			r.NoteProblem(at, path, "", "%s", problem)
			return
		}
		*p = whole
		keep()
	})
}

// valueOf is the node of a mapping's value, for messages; the mapping itself where
// there is none.
func valueOf(n *strictyaml.Node, key string) *strictyaml.Node {
	if e := n.Get(key); e != nil {
		return e.Val
	}
	return n
}

var envName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// completeProvider fills in what a provider's name or address says by itself, and says
// what is missing.
func completeProvider(name string, p Provider) (Provider, string) {
	v, known := vendorNamed(name)
	if p.BaseURL == "" {
		if !known {
			return p, fmt.Sprintf("baseUrl is missing (it is known for %s)", strings.Join(PresetNames(), ", "))
		}
		p.BaseURL = v.BaseURL
	}
	u, err := url.Parse(p.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return p, "baseUrl must be an address such as https://api.example.com/v1"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return p, "baseUrl can't hold a user, a password, a query or a fragment"
	}
	p.BaseURL = strings.TrimRight(p.BaseURL, "/")
	// Only the vendor's own address gets the vendor's key without being asked for.
	if at, ok := vendorAt(p.BaseURL); ok && p.APIKey == "" && p.APIKeyEnv == "" {
		p.APIKeyEnv = at.APIKeyEnv
	}
	if p.Kind == "" {
		p.Kind = OpenAI
		if known {
			p.Kind = v.Kind
		}
		if at, ok := vendorAt(p.BaseURL); ok {
			p.Kind = at.Kind
		}
	}
	if p.Kind == Gemini { // as clients of Google's OpenAI-compatible API take it
		p.BaseURL = strings.TrimSuffix(strings.TrimSuffix(p.BaseURL, "/openai"), "/v1beta")
	}
	if len(p.Wires) == 0 {
		p.Wires = p.usualWires()
	}
	return p, ""
}

// usualWires are those of a provider that does not say. Of the servers that are compatible
// with OpenAI's chat completions, few have its responses as well.
func (p Provider) usualWires() []string {
	v, _ := vendorAt(p.BaseURL)
	switch {
	case p.Kind == Anthropic:
		return []string{"messages", "chat"}
	case p.Kind == Gemini:
		return []string{"gemini", "chat"}
	case v.Name == "openai":
		return []string{"chat", "responses"}
	}
	return []string{"chat"}
}

func modelSettings(name string, m *Model, keep func()) table.Setting {
	return table.Object("A model of a provider.",
		table.Field{Name: "provider", Setting: table.Text("The name of its provider.", &m.Provider)},
		table.Field{Name: "name", Setting: table.Text("What the provider calls it; the alias, where it is left out.", &m.Name)},
		table.Field{Name: "window", Setting: table.Whole("Tokens that a request and its answer may have together; known for well-known models.", &m.Window, 1, 1<<31-1)},
		table.Field{Name: "maxOutput", Setting: table.Whole("Tokens that an answer may have.", &m.MaxOutput, 1, 1<<31-1)},
		table.Field{Name: "reasoning", Setting: table.Flag("It thinks before it answers: uwf's own agent asks it by OpenAI's responses where its provider has them, so that it goes on from its thoughts. Known for well-known models.", &m.Reasoning)},
		table.Field{Name: "price", Setting: table.Object("US dollars for a million tokens; 0 where it costs nothing. Those of input and output are needed for a limit on cost.",
			table.Field{Name: "input", Setting: table.Amount("Of input.", &m.Price.Input)},
			table.Field{Name: "cachedInput", Setting: table.Amount("Of input that the provider reads from its prompt cache; as other input, where it is left out.", &m.Price.CachedInput)},
			table.Field{Name: "cacheWrite", Setting: table.Amount("Of input that the provider writes to its prompt cache for minutes, 1.6 times as much for an hour; a quarter more than other input, where it is left out.", &m.Price.CacheWrite)},
			table.Field{Name: "output", Setting: table.Amount("Of output.", &m.Price.Output)},
			table.Field{Name: "asOf", Setting: table.Text("The day that these were looked up, for people: 2026-11-23.", &m.Price.AsOf).Then(func(r *table.Reader, n *strictyaml.Node, path string) {
				if _, err := time.Parse(time.DateOnly, m.Price.AsOf); err != nil {
					r.NoteProblem(n, path, "write it as 2026-11-23", "%.40q is no day", m.Price.AsOf)
				}
			})},
		)},
	).Then(func(r *table.Reader, n *strictyaml.Node, path string) {
		if m.Provider == "" {
			r.NoteProblem(n, path, "say which of providers runs it", "provider is missing")
		}
		if m.Name == "" {
			m.Name = name
		}
		*m = withKnownSize(*m)
		keep()
	})
}

func agentSettings(_ string, a *Agent, keep func()) table.Setting {
	env := table.Texts("Variables for this agent alone.", "Its value.", &a.Env)
	env.Secretly = redact.SecretName
	return table.Object("A program that works on steps.",
		table.Field{Name: "command", Setting: table.Text("The program, or a command line with shell-style quotes; without it, uwf-<alias>.", &a.Command)},
		table.Field{Name: "args", Setting: table.List("Its arguments; thread and role come after them.", &a.Args)},
		table.Field{Name: "env", Setting: env},
		table.Field{Name: "login", Setting: table.Text("own: a coding agent such as claude-code uses the login that it has on this machine, and no gateway: what it costs is neither counted nor bounded, and nothing is recorded or replayed. Only in the user's own file, and never in CI. job: copilot asks GitHub's servers with the job's own token, in the job of two that can write nothing (docs/agents.md); the same does not hold.", &a.Login, OwnLogin, JobLogin)},
	).Instead(map[string]string{
		"host":    "there is no broker here: write command and args, or " + takeOver,
		"gateway": "there is no broker here: write command and args, or " + takeOver,
	}).Then(func(r *table.Reader, n *strictyaml.Node, path string) {
		// A whole command line in command is taken apart as a shell would.
		if len(a.Args) == 0 && strings.ContainsAny(a.Command, " \t") {
			words, err := shlex.Split(a.Command)
			if err != nil || len(words) == 0 {
				r.NoteProblem(valueOf(n, "command"), path+".command", "close the quotes, or put the arguments into args", "is no command line")
				return
			}
			a.Command, a.Args = words[0], words[1:]
		}
		for _, k := range sortedKeys(a.Env) {
			if !envName.MatchString(k) {
				r.NoteProblem(valueOf(n, "env"), path+".env", "", "%q is no name of a variable", k)
			}
		}
		keep()
	})
}

// modelOverrides are overrides in which an alias under "extract" is the model that
// extracts; roles there are those of a workflow with that name.
func modelOverrides(c *Config) table.Setting {
	s := overrideSettings("Models for workflows and roles: workflow: alias, or workflow: {role: alias}. An alias under extract is the model that takes the fields out of unreadable answers (off: none).", &c.ModelOverrides)
	of, names := s.Entry, s.Names
	s.Entry = func(workflow string) table.Setting {
		e := of(workflow)
		if workflow != extractScenario {
			return e
		}
		read := e.Read
		e.Read = func(r *table.Reader, n *strictyaml.Node, path string) {
			if n.Kind == strictyaml.Scalar {
				c.ExtractModel = n.Text
				return
			}
			read(r, n, path)
		}
		e.Get = func() (any, bool) { return c.ExtractModel, c.ExtractModel != "" }
		return e
	}
	s.Names = func() []string {
		all := names()
		if c.ExtractModel != "" && !slices.Contains(all, extractScenario) {
			all = append(all, extractScenario)
		}
		return all
	}
	return s
}

func limitSettings(l *Limits, d moderator.Limits) table.Setting {
	return table.Object("Where a thread ends up waiting for a person. Of several limits the lowest counts: both files', the workflow's, the thread's own.",
		table.Field{Name: "maxSteps", Setting: table.Whole("Steps of a thread.", &l.MaxSteps, 1, 1_000_000).Default(int64(d.MaxSteps))},
		table.Field{Name: "maxStepsPerRole", Setting: table.Whole("Steps of one role.", &l.MaxStepsPerRole, 1, 1_000_000).Default(int64(d.MaxStepsPerRole))},
		table.Field{Name: "tokens", Setting: table.Whole("Input and output tokens of a thread.", &l.Tokens, 1, 1<<53)},
		table.Field{Name: "costUsd", Setting: table.Number("US dollars of a thread.", &l.CostUSD)},
		table.Field{Name: "wall", Setting: table.Span("The agents' running time in a thread, as 45m or 6h.", &l.Wall)},
		table.Field{Name: "stepTime", Setting: table.Span("Time of one agent run.", &l.StepTime)},
		table.Field{Name: "month", Setting: table.Object("What all threads of a store may use together in a calendar month, by UTC. A step reserves what its thread's limits leave it, or a tenth of the month's where they bound nothing.",
			table.Field{Name: "tokens", Setting: table.Whole("Input and output tokens of a month.", &l.Month.Tokens, 1, 1<<53)},
			table.Field{Name: "costUsd", Setting: table.Number("US dollars of a month.", &l.Month.CostUSD)},
		)},
	)
}

// checkName is how a check may be called, in definitions and here.
var checkName = lazyregexp.New(`^[a-z][a-z0-9-]{0,31}$`)

func checkSettings(k *Checks) table.Setting {
	return table.Texts("What the checks run that roles of workflows name: a command line for sh, by the check's name. Where none is set, the usual one of the toolchain is run (go test ./..., npm run test, …).", "A command line.", &k.Commands).Besides(
		table.Field{Name: "strict", Setting: table.Flag("Whether a check also keeps an answer from being taken that fails on the commit the thread began from.", &k.Strict).Default(false)},
		table.Field{Name: "time", Setting: table.Span("Time of each check.", &k.Time).Default("10m")},
		table.Field{Name: "protect", Setting: table.List("More files that decide what checks say, as patterns of .gitignore: where a role changes one, its results say so. Tests, their configuration and CI files always count.", &k.Protect)},
	).Then(func(r *table.Reader, n *strictyaml.Node, path string) {
		for _, name := range sortedKeys(k.Commands) {
			switch {
			case !checkName.MatchString(name):
				r.NoteProblem(valueOf(n, name), table.Join(path, name), "begin with a letter, and use a-z, 0-9 and -", "%.80q can't be the name of a check", name)
			case strings.TrimSpace(k.Commands[name]) == "":
				r.NoteProblem(valueOf(n, name), table.Join(path, name), "write a command line, or leave it out", "is empty")
			}
		}
	})
}

func confineSettings(x *Confine) table.Setting {
	absolute := func(s table.Setting, list *[]string) table.Setting {
		return s.Then(func(r *table.Reader, n *strictyaml.Node, path string) {
			for _, place := range *list {
				if !strings.HasPrefix(place, "/") {
					r.NoteProblem(n, path, "write where it begins: /opt/tool", "%q is no absolute path", place)
				}
			}
		})
	}
	return table.Object("What confined agents may use besides the workspace, a HOME of their own and the system. It counts where sandbox isn't off.",
		table.Field{Name: "network", Setting: table.Text("What they reach: open (everything) or gateway (the model, and nothing else: no packages, no servers of their own tests).", &x.Network,
			string(NetworkOpen), string(NetworkGateway)).Default(string(NetworkOpen))},
		table.Field{Name: "read", Setting: absolute(table.List("More folders and files that they may read, as absolute paths.", &x.Read), &x.Read)},
		table.Field{Name: "write", Setting: absolute(table.List("More folders and files that they may write, as absolute paths.", &x.Write), &x.Write)},
	)
}

// hostName is how a host is named in a list: a name of DNS, or *. and one.
var hostName = lazyregexp.New(`^(\*\.)?([a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

func fetchHosts(hosts *[]string) table.Setting {
	return table.List("Hosts that pages are got from, over https: docs.example.com, *.example.com for all below it, or * for every one. In CI and under network: gateway, * counts for nothing.", hosts).Then(func(r *table.Reader, n *strictyaml.Node, path string) {
		for _, host := range *hosts {
			if host != AnyHost && !hostName.MatchString(host) {
				r.NoteProblem(n, path, "write a name in small letters (docs.example.com), *.example.com for all below it, or * for every one", "%.80q is no host", host)
			}
		}
	})
}

func redactSettings(x *Redact) table.Setting {
	patterns := table.Texts("Regular expressions (RE2) of what is secret, by name.", "An expression; only its group named secret is replaced, where it has one.", &x.Patterns)
	return table.Object("What is redacted besides known keys and the usual shapes of secrets.",
		table.Field{Name: "env", Setting: table.List("Variables that hold secrets.", &x.Env)},
		table.Field{Name: "patterns", Setting: patterns.Then(func(r *table.Reader, n *strictyaml.Node, path string) {
			for _, name := range sortedKeys(x.Patterns) {
				if _, err := regexp.Compile(x.Patterns[name]); err != nil {
					r.NoteProblem(valueOf(n, name), table.Join(path, name), "RE2 has no look-around and no back-references", "is no regular expression: %v", err)
				}
			}
		})},
		table.Field{Name: "allow", Setting: table.List("What is no secret although it looks like one: a text, sha256: and its SHA-256, or path: and a pattern (as in .gitignore) of files that agents may write such texts into, and that may be large binary ones.", &x.Allow).Then(func(r *table.Reader, n *strictyaml.Node, path string) {
			for _, entry := range x.Allow {
				if err := redact.CheckAllow(entry); err != nil {
					r.NoteProblem(n, path, "write a text, sha256:DIGITS or path:PATTERN", "%v", err)
				}
			}
		})},
		// More than 12 would switch the search for values off.
		table.Field{Name: "minLength", Setting: table.Whole("Bytes from which a value is searched for.", &x.MinLength, 4, 12)},
	)
}

// overrideSettings is workflow → role → alias; an alias in place of the roles is for all
// of them, which the role "*" stands for.
func overrideSettings(doc string, into *map[string]map[string]string) table.Setting {
	return table.Named(doc, into, func(_ string, roles *map[string]string, keep func()) table.Setting {
		of := table.Texts("", "An alias.", roles)
		of.Kind, of.Doc = table.OverrideValue, "An alias for every role of this workflow, or role: alias."
		byRole := of.ReadInto
		of.Read = func(r *table.Reader, n *strictyaml.Node, path string) {
			if n.Kind == strictyaml.Scalar && !n.IsNull() {
				*roles = map[string]string{everyRole: n.Text}
			} else {
				byRole(r, n, path)
			}
			keep()
		}
		return of
	})
}

// everyRole stands for all roles of a workflow in overrides.
const everyRole = "*"
