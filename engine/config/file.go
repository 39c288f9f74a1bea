package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/shlex"
	"gopkg.in/yaml.v3"
)

// readFile reads one file's settings into a Config of its own.
func readFile(name string, data []byte) (*Config, []Problem) {
	r := &reader{file: name, origins: map[string]string{}}
	c := &Config{Origins: r.origins}
	root := r.document(data)
	if root == nil {
		return c, r.problems
	}
	var sandbox string
	r.object(root, "", fields{
		"providers":      func(n *yaml.Node, path string) { c.Providers = r.providers(n, path) },
		"models":         func(n *yaml.Node, path string) { c.Models = r.models(n, path) },
		"agents":         func(n *yaml.Node, path string) { c.Agents = r.agents(n, path) },
		"defaultAgent":   r.text(&c.DefaultAgent),
		"agentOverrides": func(n *yaml.Node, path string) { c.AgentOverrides = r.overrides(n, path) },
		"defaultModel":   r.text(&c.DefaultModel),
		"modelOverrides": func(n *yaml.Node, path string) {
			c.ModelOverrides = r.overrides(n, path)
			c.ExtractModel = takeExtract(c.ModelOverrides, n)
		},
		"limits":  func(n *yaml.Node, path string) { c.Limits = r.limits(n, path) },
		"sandbox": r.oneOf(&sandbox, string(SandboxOff), string(SandboxAuto), string(SandboxRequire)),
		"redact":  func(n *yaml.Node, path string) { c.Redact = r.redact(n, path) },
		"state": func(n *yaml.Node, path string) {
			r.object(n, path, fields{"branch": r.text(&c.State.Branch), "remote": r.text(&c.State.Remote)})
		},
		"allowShell": r.boolean(&c.AllowShell),
	})
	c.Sandbox = Sandbox(sandbox)
	return c, r.problems
}

func (r *reader) providers(n *yaml.Node, path string) map[string]Provider {
	out := map[string]Provider{}
	r.named(n, path, func(name string, v *yaml.Node, path string) {
		var p Provider
		var key, kind string
		r.object(v, path, fields{
			"baseUrl":   r.text(&p.BaseURL),
			"apiKeyEnv": r.text(&p.APIKeyEnv),
			"apiKey":    r.text(&key),
			"kind":      r.oneOf(&kind, string(OpenAI), string(Anthropic)),
		})
		p.APIKey, p.Kind = Key(key), Kind(kind)
		if p.APIKeyEnv != "" && key != "" {
			r.problem(v, path, "keep apiKeyEnv", "has both apiKey and apiKeyEnv")
		}
		if p.APIKeyEnv != "" && !envName.MatchString(p.APIKeyEnv) {
			// The text may be a key that was put in the wrong place: it is not repeated.
			r.problem(v, path+".apiKeyEnv", "write the variable's name, not its value", "is no name of a variable")
			p.APIKeyEnv = ""
		}
		p, problem := complete(name, p)
		if problem != "" {
			r.problem(v, path, "", "%s", problem)
			return
		}
		out[name] = p
	})
	return out
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

func (r *reader) models(n *yaml.Node, path string) map[string]Model {
	out := map[string]Model{}
	r.named(n, path, func(name string, v *yaml.Node, path string) {
		var m Model
		var window, output int64
		r.object(v, path, fields{
			"provider":  r.text(&m.Provider),
			"name":      r.text(&m.Name),
			"window":    r.integer(&window, 1, 1<<31-1),
			"maxOutput": r.integer(&output, 1, 1<<31-1),
			"price": func(n *yaml.Node, path string) {
				r.object(n, path, fields{"input": r.number(&m.Price.Input), "output": r.number(&m.Price.Output)})
			},
		})
		if m.Provider == "" {
			r.problem(v, path, "", "provider is missing")
		}
		if m.Name == "" {
			m.Name = name
		}
		m.Window, m.MaxOutput = int(window), int(output)
		out[name] = withKnownSize(m)
	})
	return out
}

func (r *reader) agents(n *yaml.Node, path string) map[string]Agent {
	out := map[string]Agent{}
	r.named(n, path, func(name string, v *yaml.Node, path string) {
		var a Agent
		r.object(v, path, fields{
			"command": r.text(&a.Command),
			"args":    r.texts(&a.Args),
			"env":     r.textMap(&a.Env),
		})
		// A whole command line in command is taken apart as a shell would.
		if len(a.Args) == 0 && strings.ContainsAny(a.Command, " \t") {
			words, err := shlex.Split(a.Command)
			if err != nil || len(words) == 0 {
				r.problem(v, path+".command", "close the quotes, or put the arguments into args", "is no command line")
				return
			}
			a.Command, a.Args = words[0], words[1:]
		}
		for _, k := range sortedKeys(a.Env) {
			if !envName.MatchString(k) {
				r.problem(v, path+".env", "", "%q is no name of a variable", k)
			}
		}
		out[name] = a
	})
	return out
}

// overrides reads workflow → role → alias; an alias in place of the roles is for
// all of them.
func (r *reader) overrides(n *yaml.Node, path string) map[string]map[string]string {
	out := map[string]map[string]string{}
	r.named(n, path, func(workflow string, v *yaml.Node, path string) {
		if v.Kind == yaml.ScalarNode && !nothing(v) {
			out[workflow] = map[string]string{"*": v.Value}
			return
		}
		roles := map[string]string{}
		r.textMap(&roles)(v, path)
		out[workflow] = roles
	})
	return out
}

// takeExtract takes modelOverrides.extract out of the overrides: an alias there is
// the model that extracts, roles there are those of a workflow called "extract".
func takeExtract(overrides map[string]map[string]string, n *yaml.Node) string {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == extractScenario && n.Content[i+1].Kind == yaml.ScalarNode {
			alias := overrides[extractScenario]["*"]
			delete(overrides, extractScenario)
			return alias
		}
	}
	return ""
}

func (r *reader) limits(n *yaml.Node, path string) Limits {
	var l Limits
	var steps, perRole int64
	r.object(n, path, fields{
		"steps":    r.integer(&steps, 1, 1_000_000),
		"perRole":  r.integer(&perRole, 1, 1_000_000),
		"tokens":   r.integer(&l.Tokens, 1, 1<<53),
		"costUsd":  r.number(&l.CostUSD),
		"wallTime": r.duration(&l.WallTime),
		"stepTime": r.duration(&l.StepTime),
	})
	l.Steps, l.PerRole = int(steps), int(perRole)
	return l
}

func (r *reader) redact(n *yaml.Node, path string) Redact {
	var out Redact
	var length int64
	r.object(n, path, fields{
		"env": r.texts(&out.Env),
		"patterns": func(n *yaml.Node, path string) {
			r.textMap(&out.Patterns)(n, path)
			for _, name := range sortedKeys(out.Patterns) {
				if _, err := regexp.Compile(out.Patterns[name]); err != nil {
					r.problem(n, join(path, name), "RE2 has no look-around and no back-references", "is no regular expression: %v", err)
				}
			}
		},
		"allow": r.texts(&out.Allow),
		// More than 12 would switch the search for values off.
		"minLength": r.integer(&length, 4, 12),
	})
	out.MinLength = int(length)
	return out
}
