package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/google/shlex"
	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/redact"
)

// readFile reads one file's settings into a Config of its own.
func readFile(name string, data []byte) (*Config, []Problem) {
	r := &reader{file: name, origins: map[string]string{}}
	c := &Config{Origins: r.origins}
	if root := r.document(data); root != nil {
		table(c).read(r, root, "")
	}
	return c, r.problems
}

// table is every setting there is, bound to a Config.
func table(c *Config) setting {
	defaults := moderator.DefaultLimits()
	return object("The settings of uwf: .uwf/config.yaml of a repository, and config.yaml below ~/.uwf.",
		field{"providers", named("Services that run models, by name.", &c.Providers, provider)},
		field{"models", named("Models, by the alias that other settings and agents use. The aliases default and extract have a meaning of their own.", &c.Models, model)},
		field{"agents", named("Programs that work on steps, by alias.", &c.Agents, agent)},
		field{"defaultAgent", text("The alias of the agent that works where no override names one.", &c.DefaultAgent).def(DefaultAgent)},
		field{"agentOverrides", overrides("Agents for workflows and roles: workflow: alias, or workflow: {role: alias}.", &c.AgentOverrides)},
		field{"defaultModel", text("The alias of the model that is asked where no override names one.", &c.DefaultModel)},
		field{"modelOverrides", modelOverrides(c)},
		field{"limits", limits(&c.Limits, defaults)},
		field{"sandbox", text("How agents' processes are confined: off, auto (as far as the machine can), require (refuse to run without).", &c.Sandbox,
			string(SandboxOff), string(SandboxAuto), string(SandboxRequire)).def(string(SandboxAuto))},
		field{"redact", redaction(&c.Redact)},
		field{"state", object("Where threads are kept.",
			field{"branch", text("The branch that holds the threads.", &c.State.Branch).def("uwf-state")},
			field{"remote", text("The git remote (name or URL) that holds the branch; without it, this repository.", &c.State.Remote)},
		)},
		field{"allowShell", flag("Whether the builtin agent may run commands. Every file that mentions it must allow it.", &c.AllowShell).def(false)},
	).instead(map[string]string{
		"extractModel": "write modelOverrides: {extract: ALIAS}, or give a model the alias extract",
	})
}

func provider(name string, p *Provider, keep func()) setting {
	secret := text("The key itself. Only in the user's own file; apiKeyEnv is better.", &p.APIKey)
	secret.secret = true
	secret.get = func() (any, bool) { return p.APIKey.String(), p.APIKey != "" }
	return object("A service that runs models.",
		field{"baseUrl", text("Its address, as its clients take it: https://api.example.com/v1. Known for "+strings.Join(vendorNames(), ", ")+".", &p.BaseURL)},
		field{"apiKeyEnv", text("The variable that holds its key.", &p.APIKeyEnv)},
		field{"apiKey", secret},
		field{"kind", text("The protocol it speaks.", &p.Kind, string(OpenAI), string(Anthropic))},
	).then(func(r *reader, n *yaml.Node, path string) {
		if p.APIKeyEnv != "" && p.APIKey != "" {
			r.problem(n, path, "keep apiKeyEnv", "has both apiKey and apiKeyEnv")
		}
		if p.APIKeyEnv != "" && !envName.MatchString(p.APIKeyEnv) {
			// The text may be a key that was put in the wrong place: it is not repeated.
			r.problem(valueOf(n, "apiKeyEnv"), path+".apiKeyEnv", "write the variable's name, not its value", "is no name of a variable")
			p.APIKeyEnv = ""
		}
		whole, problem := complete(name, *p)
		if problem != "" {
			at := n
			if p.BaseURL != "" {
				at = valueOf(n, "baseUrl")
			}
			r.problem(at, path, "", "%s", problem)
			return
		}
		*p = whole
		keep()
	})
}

// valueOf is the node of a mapping's value, for messages; the mapping itself where
// there is none.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return n
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// complete fills in what a provider's name or address says by itself, and says
// what is missing.
func complete(name string, p Provider) (Provider, string) {
	v, known := vendorNamed(name)
	if p.BaseURL == "" {
		if !known {
			return p, fmt.Sprintf("baseUrl is missing (it is known for %s)", strings.Join(vendorNames(), ", "))
		}
		p.BaseURL = v.baseURL
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
		p.APIKeyEnv = at.keyEnv
	}
	if p.Kind == "" {
		p.Kind = OpenAI
		if known {
			p.Kind = v.kind
		}
		if at, ok := vendorAt(p.BaseURL); ok {
			p.Kind = at.kind
		}
	}
	return p, ""
}

func model(name string, m *Model, keep func()) setting {
	return object("A model of a provider.",
		field{"provider", text("The name of its provider.", &m.Provider)},
		field{"name", text("What the provider calls it; the alias, where it is left out.", &m.Name)},
		field{"window", whole("Tokens that a request and its answer may have together; known for well-known models.", &m.Window, 1, 1<<31-1)},
		field{"maxOutput", whole("Tokens that an answer may have.", &m.MaxOutput, 1, 1<<31-1)},
		field{"price", object("US dollars for a million tokens.",
			field{"input", number("Of input.", &m.Price.Input)},
			field{"output", number("Of output.", &m.Price.Output)},
		)},
	).then(func(r *reader, n *yaml.Node, path string) {
		if m.Provider == "" {
			r.problem(n, path, "say which of providers runs it", "provider is missing")
		}
		if m.Name == "" {
			m.Name = name
		}
		*m = withKnownSize(*m)
		keep()
	})
}

func agent(_ string, a *Agent, keep func()) setting {
	env := texts("Variables for this agent alone.", "Its value.", &a.Env)
	env.secretly = redact.SecretName
	return object("A program that works on steps.",
		field{"command", text("The program, or a command line with shell-style quotes; without it, uwf-<alias>.", &a.Command)},
		field{"args", list("Its arguments; thread and role come after them.", &a.Args)},
		field{"env", env},
	).instead(map[string]string{
		"host":    "there is no broker here: write command and args",
		"gateway": "there is no broker here: write command and args",
	}).then(func(r *reader, n *yaml.Node, path string) {
		// A whole command line in command is taken apart as a shell would.
		if len(a.Args) == 0 && strings.ContainsAny(a.Command, " \t") {
			words, err := shlex.Split(a.Command)
			if err != nil || len(words) == 0 {
				r.problem(valueOf(n, "command"), path+".command", "close the quotes, or put the arguments into args", "is no command line")
				return
			}
			a.Command, a.Args = words[0], words[1:]
		}
		for _, k := range sortedKeys(a.Env) {
			if !envName.MatchString(k) {
				r.problem(valueOf(n, "env"), path+".env", "", "%q is no name of a variable", k)
			}
		}
		keep()
	})
}

// modelOverrides are overrides in which an alias under "extract" is the model that
// extracts; roles there are those of a workflow with that name.
func modelOverrides(c *Config) setting {
	s := overrides("Models for workflows and roles: workflow: alias, or workflow: {role: alias}. An alias under extract is the model that takes the fields out of unreadable answers (off: none).", &c.ModelOverrides)
	of, names := s.entry, s.names
	s.entry = func(workflow string) setting {
		e := of(workflow)
		if workflow != extractScenario {
			return e
		}
		read := e.read
		e.read = func(r *reader, n *yaml.Node, path string) {
			if n.Kind == yaml.ScalarNode {
				c.ExtractModel = n.Value
				return
			}
			read(r, n, path)
		}
		e.get = func() (any, bool) { return c.ExtractModel, c.ExtractModel != "" }
		return e
	}
	s.read = func(r *reader, n *yaml.Node, path string) {
		c.ModelOverrides = map[string]map[string]string{}
		r.named(n, path, func(name string, v *yaml.Node, path string) { s.entry(name).read(r, v, path) })
	}
	s.names = func() []string {
		all := names()
		if c.ExtractModel != "" && !slices.Contains(all, extractScenario) {
			all = append(all, extractScenario)
		}
		return all
	}
	return s
}

func limits(l *Limits, d moderator.Limits) setting {
	return object("Where a thread ends up waiting for a person. Of several limits the lowest counts: both files', the workflow's, the thread's own.",
		field{"maxSteps", whole("Steps of a thread.", &l.Steps, 1, 1_000_000).def(int64(d.MaxSteps))},
		field{"maxStepsPerRole", whole("Steps of one role.", &l.PerRole, 1, 1_000_000).def(int64(d.MaxStepsPerRole))},
		field{"tokens", whole("Input and output tokens of a thread.", &l.Tokens, 1, 1<<53)},
		field{"costUsd", number("US dollars of a thread.", &l.CostUSD)},
		field{"wall", span("Time since the thread's start, as 45m or 6h.", &l.WallTime)},
		field{"stepTime", span("Time of one agent run.", &l.StepTime)},
	).instead(map[string]string{
		"steps":    "write maxSteps",
		"perRole":  "write maxStepsPerRole",
		"wallTime": "write wall",
	})
}

func redaction(x *Redact) setting {
	patterns := texts("Regular expressions (RE2) of what is secret, by name.", "An expression; only its group named secret is replaced, where it has one.", &x.Patterns)
	return object("What is redacted besides known keys and the usual shapes of secrets.",
		field{"env", list("Variables that hold secrets.", &x.Env)},
		field{"patterns", patterns.then(func(r *reader, n *yaml.Node, path string) {
			for _, name := range sortedKeys(x.Patterns) {
				if _, err := regexp.Compile(x.Patterns[name]); err != nil {
					r.problem(valueOf(n, name), join(path, name), "RE2 has no look-around and no back-references", "is no regular expression: %v", err)
				}
			}
		})},
		field{"allow", list("Texts that are no secrets although they look like one.", &x.Allow)},
		// More than 12 would switch the search for values off.
		field{"minLength", whole("Bytes from which a value is searched for.", &x.MinLength, 4, 12)},
	)
}
