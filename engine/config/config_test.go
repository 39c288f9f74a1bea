package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/consent"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/redact"
)

const (
	repoFile = ".uwf/config.yaml"
	homeFile = "~/.uwf/config.yaml"
	envFile  = "~/.uwf/.env"
	fakeKey  = "not-a-real-key-4711"
)

// sources are the three files by content (empty: absent) and the environment.
type sources struct {
	repo, home, dotenv string
	env                []string
	trusted            bool
	refused            bool           // nobody consented to what the repository wants
	sandbox            config.Sandbox // the default
	choice             config.Choice
}

func (s sources) load() (*config.Config, error) { return config.Load(s.build()) }

func (s sources) build() config.Sources {
	files := map[string]string{repoFile: s.repo, homeFile: s.home, envFile: s.dotenv}
	return config.Sources{
		RepoFile: repoFile, HomeFile: homeFile, EnvFile: envFile, Env: s.env, RepoTrusted: s.trusted, DefaultSandbox: s.sandbox, Choice: s.choice,
		Consented: func(d []consent.Demand) bool {
			return !s.refused && (d[0] != config.ShellDemand() || strings.Contains(s.repo, "allowShell"))
		},
		Fingerprint: func(word string) string { return map[string]string{"./agent.sh": "f00d"}[word] },
		ReadFile: func(path string) ([]byte, error) {
			if files[path] == "" {
				return nil, fs.ErrNotExist
			}
			return []byte(files[path]), nil
		},
	}
}

func mustLoad(t *testing.T, s sources) *config.Config {
	t.Helper()
	c, err := s.load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const full = `
providers:
  local: {baseUrl: "http://127.0.0.1:11434/v1/"}
  claude: {baseUrl: https://api.anthropic.com, apiKeyEnv: CLAUDE_KEY}
models:
  small: {provider: local, name: qwen3, window: 32000, maxOutput: 4_000}
  big:
    provider: claude
    name: claude-sonnet-4-5
    price: {input: 3, output: 15}
agents:
  mock: {command: uwf agent mock "my script.yaml"}
  own: {command: ./agent, args: [-v], env: {MODE: fast}}
defaultAgent: builtin
agentOverrides:
  solve: {developer: own}
  review: mock
defaultModel: big
modelOverrides: {solve: {planner: small}, extract: small}
limits: {maxSteps: 50, maxStepsPerRole: 8, tokens: 1_000_000, costUsd: 2.5, wall: 2h, stepTime: 20m}
sandbox: off
redact: {env: [SPECIAL], patterns: {ticket: 'T-[0-9]{6}'}, allow: [T-000000], minLength: 8}
state: {branch: uwf-state, remote: origin}
allowShell: true
`

func TestEverySetting(t *testing.T) {
	c := mustLoad(t, sources{home: full, env: []string{"CLAUDE_KEY=" + fakeKey, "SPECIAL=quite-special"}})
	big, err := c.ResolveModel("solve", "developer")
	if err != nil {
		t.Fatal(err)
	}
	want := config.ResolvedModel{Alias: "big",
		Model: config.Model{Provider: "claude", Name: "claude-sonnet-4-5", Window: 200_000, MaxOutput: 64_000, Price: price(3, 15)},
		Provider: config.Provider{BaseURL: "https://api.anthropic.com", APIKeyEnv: "CLAUDE_KEY", APIKey: fakeKey,
			Kind: config.Anthropic, Wires: []string{"messages", "chat"}}}
	if !reflect.DeepEqual(big, want) {
		t.Errorf("big model\n%#v\nwant\n%#v", big, want)
	}
	small, err := c.ResolveModel("solve", "planner")
	if err != nil || small.Provider.BaseURL != "http://127.0.0.1:11434/v1" || small.Model.MaxOutput != 4000 || small.Provider.Kind != config.OpenAI {
		t.Errorf("small model %#v, %v", small, err)
	}
	if a := c.ResolveAgent("review", "anyone"); a.Name != "mock" || a.Command != "uwf" || !reflect.DeepEqual(a.Args, []string{"agent", "mock", "my script.yaml"}) {
		t.Errorf("agent %#v", a)
	}
	if a := c.ResolveAgent("solve", "developer"); a.Command != "./agent" || a.Env["MODE"] != "fast" {
		t.Errorf("agent %#v", a)
	}
	if a := c.ResolveAgent("solve", "planner"); a.Name != "builtin" || a.Command != "uwf-builtin" {
		t.Errorf("agent %#v", a)
	}
	limits := config.Limits{Limits: moderator.Limits{MaxSteps: 50, MaxStepsPerRole: 8, Tokens: 1_000_000, CostUSD: 2.5, Wall: 2 * time.Hour}, StepTime: 20 * time.Minute}
	if c.Limits != limits || c.Sandbox != config.SandboxOff || !c.AllowShell || c.State != (config.State{Branch: "uwf-state", Remote: "origin"}) {
		t.Errorf("%#v %v %v %v", c.Limits, c.Sandbox, c.AllowShell, c.State)
	}
	if at := c.Origins["defaultModel"]; at != homeFile+":18:15" {
		t.Errorf("origin of defaultModel %q", at)
	}
	secrets := config.SecretsOf(c)
	for _, want := range []redact.Secret{{Name: "CLAUDE_KEY", Value: fakeKey}, {Name: "SPECIAL", Value: "quite-special"}} {
		found := false
		for _, s := range secrets {
			found = found || s == want
		}
		if !found {
			t.Errorf("%s is no secret", want.Name)
		}
	}
	r, err := redact.New(c.RedactOptions())
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := r.String(fakeKey + " T-123456 T-000000"); got != "[redacted:CLAUDE_KEY] [redacted:ticket] T-000000" {
		t.Error(got)
	}
}

func TestPrecedence(t *testing.T) {
	const repo = `
providers: {a: {baseUrl: "https://repo.example/v1"}}
models: {x: {provider: a, name: from-repo}}
defaultModel: x
agentOverrides: {w: {one: fromrepo}}
limits: {maxSteps: 10, tokens: 500, month: {costUsd: 50, tokens: 900}}
allowShell: true
sandbox: off
state: {branch: repo-state}
redact: {minLength: 12, allow: [r], patterns: {p: a1}}
`
	const home = `
providers: {a: {baseUrl: "https://home.example/v1", apiKeyEnv: HOME_KEY}, b: {baseUrl: "https://b.example"}}
models: {x: {provider: b, name: from-home}, y: {provider: b}}
defaultModel: y
agentOverrides: {w: {one: fromhome, two: fromhome}}
limits: {maxSteps: 20, tokens: 100, maxStepsPerRole: 3, month: {costUsd: 20}}
allowShell: false
sandbox: require
state: {branch: home-state, remote: origin}
redact: {minLength: 5, allow: [h], patterns: {p: a2}}
`
	c := mustLoad(t, sources{repo: repo, home: home, env: []string{"HOME_KEY=" + fakeKey, "OPENAI_API_KEY=other"}})
	m, err := c.ResolveModel("w", "one")
	if err != nil || m.Alias != "y" || m.Provider.BaseURL != "https://b.example" {
		t.Errorf("the default model is the person's before the repository's: %+v, %v", m, err)
	}
	m, err = c.FindModel("x")
	if err != nil || m.Model.Name != "from-repo" {
		t.Errorf("model %+v, %v", m, err)
	}
	if m.Provider.APIKey != "" || m.Provider.BaseURL != "https://repo.example/v1" {
		t.Errorf("the home file's key went to the repository's address: %+v", m.Provider)
	}
	if y, err := c.FindModel("y"); err != nil || y.Model.Name != "y" {
		t.Errorf("home's own model %+v, %v", y, err)
	}
	if c.ResolveAgent("w", "one").Name != "fromrepo" || c.ResolveAgent("w", "two").Name != "fromhome" {
		t.Error("overrides don't merge by role")
	}
	if c.Limits.MaxSteps != 10 || c.Limits.Tokens != 100 || c.Limits.MaxStepsPerRole != 3 || c.Limits.Month != (moderator.MonthLimits{Tokens: 900, CostUSD: 20}) {
		t.Errorf("limits %+v", c.Limits)
	}
	if c.AllowShell || c.Sandbox != config.SandboxRequire {
		t.Errorf("the repository loosened allowShell %v, sandbox %v", c.AllowShell, c.Sandbox)
	}
	if c.State != (config.State{Branch: "repo-state", Remote: "origin"}) {
		t.Errorf("state %+v", c.State)
	}
	if c.Redact.MinLength != 5 || len(c.Redact.Allow) != 2 || len(c.Redact.Patterns) != 2 {
		t.Errorf("redact %+v", c.Redact)
	}
	if _, stale := c.Origins["providers.a.apiKeyEnv"]; stale {
		t.Error("the origin of a replaced key is still there")
	}
}

// A checkout must not get a key of this machine sent to its own address.
func TestUntrustedRepo(t *testing.T) {
	evil := "providers: {openai: {baseUrl: https://evil.example/v1, apiKeyEnv: OPENAI_API_KEY}}\nmodels: {m: {provider: openai}}\n"
	env := []string{"OPENAI_API_KEY=" + fakeKey}
	cases := []struct {
		name string
		s    sources
		ok   bool
	}{
		{"another address", sources{repo: evil, env: env}, false},
		{"key of the home folder", sources{repo: evil, dotenv: env[0]}, false},
		{"any other variable", sources{repo: strings.ReplaceAll(evil, "OPENAI_API_KEY", "CI_TOKEN"), env: []string{"CI_TOKEN=x"}}, false},
		{"vendor's host over plain http", sources{repo: strings.Replace(evil, "https://evil.example", "http://api.openai.com", 1), env: env}, false},
		{"vendor's host with another port", sources{repo: strings.Replace(evil, "evil.example", "api.openai.com:8443", 1), env: env}, false},
		{"host that begins like the vendor's", sources{repo: strings.Replace(evil, "evil.example", "api.openai.com.evil.example", 1), env: env}, false},
		{"another vendor's key to the vendor", sources{repo: "providers: {x: {baseUrl: https://api.openai.com/v1, apiKeyEnv: ANTHROPIC_API_KEY}}", env: env}, false},
		{"vendor's own address", sources{repo: "providers: {x: {baseUrl: https://api.openai.com/v1, apiKeyEnv: OPENAI_API_KEY}}", env: env}, true},
		{"trusted by the caller", sources{repo: evil, env: env, trusted: true}, true},
		{"trusted by the user", sources{repo: evil, env: append(env, "UWF_TRUST_REPO=1")}, true},
		{"home file says the same", sources{repo: evil, home: "providers: {mine: {baseUrl: https://evil.example/v1/, apiKeyEnv: OPENAI_API_KEY}}", env: env}, true},
		{"environment says the same", sources{repo: evil, env: append(env, "OPENAI_BASE_URL=https://evil.example/v1")}, true},
		{"a job's token to the forge's models", sources{repo: "providers: {github-models: {apiKeyEnv: GITHUB_TOKEN}}", env: []string{"GITHUB_TOKEN=x"}}, true},
		{"a job's token to elsewhere", sources{repo: "providers: {github-models: {baseUrl: https://evil.example, apiKeyEnv: GITHUB_TOKEN}}", env: []string{"GITHUB_TOKEN=x"}}, false},
		{"no key at all", sources{repo: "providers: {openai: {baseUrl: https://evil.example/v1}}\nmodels: {m: {provider: openai}}\n", env: env}, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := mustLoad(t, c.s)
			if list := got.WithheldProviders(); (len(list) == 0) != c.ok {
				t.Fatalf("withheld %v", list)
			}
			if c.ok {
				if c.name == "no key at all" && got.Providers["openai"].APIKey != "" {
					t.Error("the key went along")
				}
				return
			}
			for name, p := range got.Providers {
				if p.APIKey != "" && got.Origins["providers."+name][0] != '$' {
					t.Errorf("%s has the key", name)
				}
			}
			if fix := got.WithheldProviders()[0].Fix; !strings.Contains(fix, "~/.uwf/config.yaml if you trust that address with the key: uwf config set providers.") || !strings.Contains(fix, "UWF_TRUST_REPO=1") {
				t.Errorf("nothing says what to do: %s", fix)
			}
		})
	}
}

// What an untrusted checkout says of a provider holds up only who uses its models, and not
// whom the environment gives another provider of that name; the key is a secret all the same.
func TestWithheldKey(t *testing.T) {
	const repo = "providers:\n  openai: {baseUrl: https://evil.example/v1, apiKeyEnv: MINE}\n  free: {baseUrl: 'http://127.0.0.1:1/v1'}\n" +
		"models: {m: {provider: openai}, own: {provider: free}}\ndefaultModel: m\nmodelOverrides: {w: {r: own}}\n"
	env := []string{"MINE=" + fakeKey, "OPENAI_API_KEY=other"}
	c := mustLoad(t, sources{repo: repo, env: env})
	var withheld *config.WithheldError
	_, err := c.ResolveModel("w", "other")
	const says = `use model "m": its provider gets no key here: ` + repoFile + `:2:3: providers.openai: a file of the repository may not send the key in MINE to `
	if !errors.As(err, &withheld) || !strings.HasPrefix(err.Error(), says) || strings.Contains(err.Error(), fakeKey) {
		t.Errorf("%v", err)
	}
	// What the user's own file has under that name stays there.
	for home, want := range map[string]string{"": "openai", "providers: {openai: {}, openai-2: {baseUrl: 'https://x'}}": "openai-3"} {
		c := mustLoad(t, sources{repo: repo, home: home, env: env})
		if got := c.WithheldProviders()[0].Command; got != "uwf config set providers."+want+".baseUrl https://evil.example/v1 providers."+want+".apiKeyEnv MINE" {
			t.Errorf("the command: %s", got)
		}
	}
	if m, err := c.ResolveModel("w", "r"); err != nil || m.Alias != "own" {
		t.Errorf("another model: %+v, %v", m, err)
	}
	if !slices.ContainsFunc(config.SecretsOf(c), func(s redact.Secret) bool { return s.Value == fakeKey }) {
		t.Error("the key is no secret")
	}
	c = mustLoad(t, sources{repo: repo, env: append(env, "UWF_PROVIDER=openai", "UWF_BASE_URL=https://mine.example/v1", "UWF_API_KEY=third")})
	if m, err := c.FindModel("m"); err != nil || m.Provider.BaseURL != "https://mine.example/v1" || m.Provider.APIKey.Reveal() != "third" {
		t.Errorf("the environment's: %+v, %v", m, err)
	}
}

func TestEnvironment(t *testing.T) {
	cases := []struct {
		name            string
		s               sources
		provider, model string
		url             string
		key             config.Key
	}{
		{"openai", sources{env: []string{"OPENAI_API_KEY=k1"}}, "openai", "gpt-5.1", "https://api.openai.com/v1", "k1"},
		{"openai elsewhere", sources{env: []string{"OPENAI_API_KEY=k1", "OPENAI_BASE_URL=https://gw.example/v1/", "OPENAI_MODEL=m"}}, "openai", "m", "https://gw.example/v1", "k1"},
		{"anthropic", sources{env: []string{"ANTHROPIC_API_KEY=k2"}}, "anthropic", "claude-sonnet-5-5", "https://api.anthropic.com", "k2"},
		{"openrouter", sources{env: []string{"OPENROUTER_API_KEY=k3"}}, "openrouter", "anthropic/claude-sonnet-5.5", "https://openrouter.ai/api/v1", "k3"},
		{"first of several", sources{env: []string{"ANTHROPIC_API_KEY=k2", "OPENAI_API_KEY=k1"}}, "openai", "gpt-5.1", "https://api.openai.com/v1", "k1"},
		{"provider chosen", sources{env: []string{"ANTHROPIC_API_KEY=k2", "OPENAI_API_KEY=k1", "UWF_PROVIDER=anthropic"}}, "anthropic", "claude-sonnet-5-5", "https://api.anthropic.com", "k2"},
		{"model chosen", sources{env: []string{"OPENAI_API_KEY=k1", "UWF_MODEL=gpt-5"}}, "openai", "gpt-5", "https://api.openai.com/v1", "k1"},
		{"model with its provider", sources{env: []string{"OPENAI_API_KEY=k1", "ANTHROPIC_API_KEY=k2", "UWF_MODEL=anthropic/claude-opus-4-1"}}, "anthropic", "claude-opus-4-1", "https://api.anthropic.com", "k2"},
		{"own server", sources{env: []string{"UWF_BASE_URL=http://127.0.0.1:1/v1", "UWF_MODEL=q", "OPENAI_API_KEY=k1"}}, "env", "q", "http://127.0.0.1:1/v1", ""},
		{"own server with a key", sources{env: []string{"UWF_BASE_URL=https://x.example", "UWF_API_KEY=k4", "UWF_PROVIDER=mine", "UWF_MODEL=q"}}, "mine", "q", "https://x.example", "k4"},
		{"own key for a vendor", sources{env: []string{"UWF_API_KEY=k4", "UWF_PROVIDER=anthropic"}}, "anthropic", "claude-sonnet-5-5", "https://api.anthropic.com", "k4"},
		{"keyless server", sources{env: []string{"OPENAI_BASE_URL=http://127.0.0.1:1/v1", "OPENAI_MODEL=q"}}, "openai", "q", "http://127.0.0.1:1/v1", ""},
		{"from .env", sources{dotenv: "OPENAI_API_KEY=k5\n"}, "openai", "gpt-5.1", "https://api.openai.com/v1", "k5"},
		{".env never wins", sources{dotenv: "OPENAI_API_KEY=k5\nOPENAI_MODEL=late", env: []string{"OPENAI_API_KEY=k1"}}, "openai", "late", "https://api.openai.com/v1", "k1"},
		{"set but empty", sources{dotenv: "OPENAI_API_KEY=k5\nANTHROPIC_API_KEY=k2", env: []string{"OPENAI_API_KEY="}}, "anthropic", "claude-sonnet-5-5", "https://api.anthropic.com", "k2"},
		{"files before the environment", sources{home: "providers: {a: {baseUrl: https://a.example}}\nmodels: {m: {provider: a}}", env: []string{"OPENAI_API_KEY=k1"}}, "a", "m", "https://a.example", ""},
		{"a job's token, when it is asked for", sources{env: []string{"GITHUB_TOKEN=k7", "UWF_PROVIDER=github-models"}}, "github-models", "openai/gpt-4.1", "https://models.github.ai/inference", "k7"},
		{"ollama, when it is asked for", sources{env: []string{"OPENAI_API_KEY=k1", "UWF_PROVIDER=ollama", "UWF_MODEL=gemma3"}}, "ollama", "gemma3", "http://127.0.0.1:11434/v1", ""},
		{"a job's token alone is not used", sources{env: []string{"GITHUB_TOKEN=k7", "ANTHROPIC_API_KEY=k2"}}, "anthropic", "claude-sonnet-5-5", "https://api.anthropic.com", "k2"},
		{"UWF_MODEL before files", sources{repo: full, env: []string{"CLAUDE_KEY=k6", "UWF_MODEL=small"}, trusted: true}, "local", "qwen3", "http://127.0.0.1:11434/v1", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cfg := mustLoad(t, c.s)
			m, err := cfg.ResolveModel("w", "r")
			if err != nil {
				t.Fatal(err)
			}
			if m.Model.Provider != c.provider || m.Model.Name != c.model || m.Provider.BaseURL != c.url || m.Provider.APIKey != c.key {
				t.Errorf("got %s %s %s %q", m.Model.Provider, m.Model.Name, m.Provider.BaseURL, m.Provider.APIKey.Reveal())
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	cases := []struct {
		name string
		s    sources
		want []string
	}{
		{"unknown key", sources{home: "defaultModle: x\n"}, []string{homeFile + ":1:1", "unknown key", `"defaultModel"`}},
		{"unknown key inside", sources{home: "providers:\n  openai:\n    base_url: x\n"}, []string{":3:5", "providers.openai.base_url", `"baseUrl"`}},
		{"nothing near", sources{home: "zzzzzzzzzz: x\n"}, []string{"known are"}},
		{"all at once", sources{home: "a1: x\nb1: y\n", repo: "c1: z\n"}, []string{homeFile + ":1:1", homeFile + ":2:1", repoFile + ":1:1"}},
		{"duplicate", sources{home: "sandbox: auto\nsandbox: off\n"}, []string{":2:1", "duplicate key"}},
		{"anchor", sources{home: "state: &a {branch: x}\n"}, []string{"the anchor &a is not read"}},
		{"not YAML", sources{home: "a: [\n"}, []string{homeFile, "not valid YAML"}},
		{"relative place", sources{home: "confine: {read: [opt]}\n"}, []string{"confine.read", "absolute"}},
		{"helper of a repository", sources{repo: "state:\n  credentialHelper: repository\n"}, []string{":2:", "state.credentialHelper", "put this into ~/.uwf/config.yaml"}},
		{"login of a repository", sources{repo: "agents:\n  claude-code: {login: own}\n"}, []string{":2:", "agents.claude-code.login", "may not lend a login", "put this into ~/.uwf/config.yaml"}},
		{"login of a trusted repository", sources{repo: "agents: {x: {command: uwf-codex, login: own}}\n", trusted: true}, []string{":1:", "agents.x.login", "put this into"}},
		{"login of another kind", sources{home: "agents: {x: {login: mine}}\n"}, []string{"agents.x.login", "own"}},
		{"helper of a trusted repository", sources{repo: "state: {credentialHelper: user}\n", trusted: true}, []string{":1:27: state.credentialHelper", "put this into"}},
		{"two documents", sources{home: "sandbox: auto\n---\nsandbox: off\n"}, []string{"more than one YAML document"}},
		{"list at the top", sources{home: "- a\n"}, []string{"must be a map"}},
		{"wrong type", sources{home: "allowShell: 1\nlimits: {maxSteps: many, wall: 5}\nsandbox: no\n"}, []string{"allowShell", "limits.maxSteps", "90s, 30m", "off, auto, require"}},
		{"no base URL", sources{home: "providers: {mine: {apiKeyEnv: A}}\n"}, []string{"baseUrl is missing"}},
		{"bad base URL", sources{home: "providers: {mine: {baseUrl: 'ftp://x'}}\n"}, []string{"https://"}},
		{"password in the base URL", sources{home: "providers: {mine: {baseUrl: 'https://u:p@x'}}\n"}, []string{"password"}},
		{"a value for a name", sources{home: "providers: {mine: {baseUrl: 'https://x', apiKeyEnv: a-b}}\n"}, []string{":1:53: providers.mine.apiKeyEnv: is no name of a variable"}},
		{"a model of no provider", sources{home: "models: {m: {name: x}}\n"}, []string{"models.m: provider is missing"}},
		{"a command with an open quote", sources{home: "agents: {a: {command: 'x \"y'}}\n"}, []string{":1:23: agents.a.command: is no command line"}},
		{"a command of nothing", sources{home: "agents: {a: {command: '  '}}\n"}, []string{":1:23: agents.a.command: is no command line"}},
		{"a variable of no name", sources{home: "agents: {a: {env: {A-B: x}}}\n"}, []string{`agents.a.env: "A-B" is no name of a variable`}},
		{"a check of a bad name", sources{home: "checks: {Test: x}\n"}, []string{":1:16: checks.Test", `"Test" can't be the name of a check`, "a-z"}},
		{"a check of nothing", sources{home: "checks: {test: ' '}\n"}, []string{":1:16: checks.test: is empty"}},
		{"a check that is a list", sources{home: "checks: {test: [go, test]}\n"}, []string{"checks.test: must be text"}},
		{"a time of checks that is none", sources{home: "checks: {time: soon}\n"}, []string{"checks.time: must be a time"}},
		{"two keys", sources{home: "providers: {mine: {baseUrl: 'https://x', apiKey: a, apiKeyEnv: A}}\n"}, []string{"both"}},
		{"unknown model", sources{home: "defaultModel: m\n"}, []string{homeFile + ":1:15", "no model"}},
		{"unknown model in overrides", sources{home: "modelOverrides: {w: {r: m}}\n"}, []string{"no model"}},
		{"bad expression", sources{home: "redact: {patterns: {x: '(?=a)'}}\n"}, []string{"redact.patterns.x"}},
		{"an allowed sum that is none", sources{repo: "redact:\n  allow: [x, 'sha256:12']\n"}, []string{repoFile + ":2:10", "redact.allow", `"sha256:12"`, "64 digits"}},
		{"an allowed file that is none", sources{home: "redact: {allow: ['path:']}\n"}, []string{homeFile + ":1:17", "redact.allow", `"path:" names no file`}},
		{"key and address apart", sources{dotenv: "OPENAI_API_KEY=" + fakeKey, env: []string{"OPENAI_BASE_URL=https://x.example"}}, []string{"OPENAI_BASE_URL", "one place"}},
		{"own key and address apart", sources{dotenv: "UWF_API_KEY=" + fakeKey, env: []string{"UWF_BASE_URL=https://x.example"}}, []string{"UWF_BASE_URL", "one place"}},
		{"own key for a provider of a file", sources{home: full, env: []string{"UWF_API_KEY=k", "UWF_PROVIDER=claude"}}, []string{"$UWF_API_KEY", "gets no key of the environment", "UWF_BASE_URL"}},
		{"own address that is none", sources{env: []string{"UWF_BASE_URL=ftp://x.example", "UWF_API_KEY=k"}}, []string{"$UWF_BASE_URL: baseUrl must be an address"}},
		{"a vendor's address that is none", sources{env: []string{"OPENAI_BASE_URL=ftp://x.example", "OPENAI_API_KEY=k"}}, []string{"$OPENAI_BASE_URL: baseUrl must be an address"}},
		{"provider of several models", sources{home: "providers: {p: {baseUrl: https://p.example}}\nmodels: {a: {provider: p}, b: {provider: p}}", env: []string{"UWF_PROVIDER=p"}}, []string{"$UWF_PROVIDER", "has 2 models to choose from", "UWF_MODEL"}},
		{"provider of no model", sources{home: "providers: {p: {baseUrl: https://p.example}}", env: []string{"UWF_PROVIDER=p"}}, []string{`provider "p" has no model`, "--model NAME"}},
		{"provider that isn't there", sources{env: []string{"OPENAI_API_KEY=k", "UWF_PROVIDER=opnai"}}, []string{`"openai"`}},
		{"model without provider", sources{env: []string{"UWF_MODEL=x"}}, []string{"UWF_PROVIDER"}},
		{"no .env", sources{dotenv: "{" + fakeKey + "} is no line\n"}, []string{envFile}},
		{"huge", sources{home: "# " + strings.Repeat("x", 1<<20)}, []string{"limit"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.s.load()
			var invalid *config.InvalidError
			if !errors.As(err, &invalid) || !errors.Is(err, config.ErrInvalid) {
				t.Fatalf("error %v", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("doesn't say %q:\n%v", w, err)
				}
			}
		})
	}
}

func TestNothingConfigured(t *testing.T) {
	for _, s := range []sources{{}, {home: "\n# nothing\n"}, {home: "providers:\n"}} {
		_, err := mustLoad(t, s).ResolveModel("w", "r")
		if !errors.Is(err, config.ErrNoModel) || err.Error() != config.ErrNoModel.Error() {
			t.Errorf("error %v", err)
		}
	}
	const models = "providers: {p: {baseUrl: https://p.example}}\nmodels: {a: {provider: p}, b: {provider: p}}"
	_, err := mustLoad(t, sources{home: models}).ResolveModel("w", "r")
	if !errors.Is(err, config.ErrNoModel) || !strings.Contains(err.Error(), `choose a model for role "r" of "w"`) || !strings.Contains(err.Error(), "one of a, b") {
		t.Errorf("no default: %v", err)
	}
	c := mustLoad(t, sources{home: full})
	if _, err := c.ResolveModel("w", "r"); !errors.Is(err, config.ErrNoKey) || !strings.Contains(err.Error(), "CLAUDE_KEY") {
		t.Errorf("key not set: %v", err)
	}
}

// A model whose provider is defined nowhere is warned of, and fails where it is used.
func TestModelOfUndefinedProvider(t *testing.T) {
	const file = "providers: {mine: {baseUrl: 'https://x'}}\nmodels:\n  good: {provider: mine}\n  lost: {provider: mien}\ndefaultModel: good\nmodelOverrides: {w: {r: lost}, extract: lost}\n"
	c := mustLoad(t, sources{home: file})
	const says = homeFile + `:4:20: models.lost.provider: there is no provider "mien"; did you mean "mine"?`
	if len(c.Warnings) != 1 || !strings.HasPrefix(c.Warnings[0], says) {
		t.Errorf("warnings %q", c.Warnings)
	}
	if m, err := c.ResolveModel("w", "other"); err != nil || m.Alias != "good" {
		t.Errorf("another model: %+v, %v", m, err)
	}
	_, err := c.ResolveModel("w", "r")
	_, extract := c.ResolveExtract()
	for _, err := range []error{err, extract} {
		if !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), `use model "lost": `) || !strings.Contains(err.Error(), says) {
			t.Errorf("the model is used: %v", err)
		}
	}
	// Somewhere else it is defined, and all is well.
	if c = mustLoad(t, sources{home: file, repo: "providers: {mien: {baseUrl: 'https://y'}}"}); len(c.Warnings) != 0 {
		t.Errorf("warnings %q", c.Warnings)
	}
	if m, err := c.ResolveModel("w", "r"); err != nil || m.Provider.BaseURL != "https://y" {
		t.Errorf("%+v, %v", m, err)
	}
}

// A model that can't be used says what is missing.
func TestModelIsMissing(t *testing.T) {
	c := &config.Config{
		Models:    map[string]config.Model{"lost": {Provider: "gone"}, "locked": {Provider: "p"}, "free": {Provider: "q"}},
		Providers: map[string]config.Provider{"p": {APIKeyEnv: "P_KEY"}, "q": {}},
	}
	for alias, want := range map[string]struct {
		kind error
		says string
	}{
		"other":  {config.ErrNoModel, `use model "other": no model is configured`},
		"lost":   {config.ErrNoModel, `its provider "gone" is not configured`},
		"locked": {config.ErrNoKey, "set P_KEY in the environment or in ~/.uwf/.env (uwf setup asks for it)"},
		"free":   {},
	} {
		m, err := c.FindModel(alias)
		switch {
		case want.kind == nil && (err != nil || m.Alias != alias):
			t.Errorf("%s: %+v, %v", alias, m, err)
		case want.kind != nil && (!errors.Is(err, want.kind) || !strings.Contains(err.Error(), want.says)):
			t.Errorf("%s: %v", alias, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	info, err := config.Describe(config.Path{"providers", "x", "apiKey"})
	if err != nil || info.Kind != "text" || !info.Secret || info.Doc == "" {
		t.Errorf("%+v, %v", info, err)
	}
	var unknown *config.UnknownPathError
	if info, err := config.Describe(config.Path{"providers", "x", "key"}); !errors.As(err, &unknown) || info.Kind != "" {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestParseEnv(t *testing.T) {
	if vars, err := config.ParseEnv([]byte("# x\nA=b\n")); err != nil || vars["A"] != "b" {
		t.Errorf("%v, %v", vars, err)
	}
	if _, err := config.ParseEnv([]byte("#" + strings.Repeat("x", 1<<20))); !errors.Is(err, config.ErrInvalid) {
		t.Errorf("too large: %v", err)
	}
}

func TestResolveExtract(t *testing.T) {
	const models = "providers: {p: {baseUrl: https://p.example}}\nmodels: {one: {provider: p}, two: {provider: p}%s}\n"
	cases := []struct{ name, models, rest, want string }{ // want: an alias, else what is said
		{"override", ", extract: {provider: p}, default: {provider: p}", "modelOverrides: {extract: two}\ndefaultModel: one", "two"},
		{"alias extract", ", extract: {provider: p}, default: {provider: p}", "defaultModel: one", "extract"},
		{"alias default", ", default: {provider: p}", "defaultModel: one", "default"},
		{"default model", "", "defaultModel: one", "one"},
		{"none", "", "", config.ErrNoModel.Error()},
		{"off", "", "modelOverrides: {extract: off}\ndefaultModel: one", `modelOverrides.extract is "off": ` + config.ErrNoModel.Error()},
		{"a workflow of that name", "", "modelOverrides: {extract: {dev: two}}\ndefaultModel: one", "one"},
	}
	for _, x := range cases {
		t.Run(x.name, func(t *testing.T) {
			c := mustLoad(t, sources{home: fmt.Sprintf(models, x.models) + x.rest})
			m, err := c.ResolveExtract()
			if err == nil && m.Alias != x.want || err != nil && (!errors.Is(err, config.ErrNoModel) || err.Error() != x.want) {
				t.Errorf("got %q, %v", m.Alias, err)
			}
		})
	}
	c := mustLoad(t, sources{home: "modelOverrides: {extract: {dev: m}}\nproviders: {p: {baseUrl: https://p.example, apiKeyEnv: K}}\nmodels: {m: {provider: p}}\ndefaultModel: m"})
	if c.ModelOverrides["extract"]["dev"] != "m" {
		t.Error("the roles of a workflow called extract are lost")
	}
	if _, err := c.ResolveExtract(); !errors.Is(err, config.ErrNoKey) {
		t.Errorf("key not set: %v", err)
	}
	if _, err := (sources{home: "modelOverrides: {extract: m}"}).load(); err == nil || !strings.Contains(err.Error(), `no model "m"`) {
		t.Errorf("unknown model: %v", err)
	}
}

// What the TypeScript uwf wrote is read, or refused with what to write.
func TestPredecessor(t *testing.T) {
	c := mustLoad(t, sources{home: `
providers:
  dashscope:
    baseUrl: https://dashscope.aliyuncs.com/compatible-mode/v1
    apiKeyEnv: DASHSCOPE_API_KEY
  own: {baseUrl: "http://localhost:1/v1", apiKey: ` + fakeKey + `}
models:
  default: {provider: dashscope, name: qwen-plus}
  small: {provider: own, name: q}
agents:
  hermes: {command: uwf-hermes, args: []}
defaultAgent: hermes
defaultModel: default
agentOverrides: null
modelOverrides:
  extract: small
`, dotenv: "DASHSCOPE_API_KEY=k9\n"})
	if m, err := c.ResolveModel("w", "r"); err != nil || m.Model.Name != "qwen-plus" || m.Provider.APIKey != "k9" {
		t.Errorf("%+v %v", m, err)
	}
	if m, err := c.ResolveExtract(); err != nil || m.Model.Name != "q" || m.Provider.APIKey != fakeKey {
		t.Errorf("%+v %v", m, err)
	}
	if a := c.ResolveAgent("w", "r"); a.Name != "hermes" || a.Command != "uwf-hermes" {
		t.Errorf("%+v", a)
	}
	for file, want := range map[string]string{
		"agents: {hermes: {host: 'http://127.0.0.1:7900', gateway: hermes}}": "there is no broker here: write command and args",
		"concurrency: {maxRunning: 2}":                                       "concurrency: unknown key; it is a setting of the TypeScript uwf; see what can be taken over: uwf import",
		"workflowPaths: [/srv]":                                              "workflowPaths: unknown key; it is a setting of the TypeScript uwf",
		"limits: {maxSteps: many}":                                           "limits.maxSteps: must be a whole number",
		"limits: {month: 50}":                                                "limits.month",
		"limits: {month: {costUsd: -1}}":                                     "limits.month.costUsd",
		"limits: {month: {tokens: -1}}":                                      "limits.month.tokens",
		"limits: {month: {maxSteps: 5}}":                                     "limits.month.maxSteps",
	} {
		if _, err := (sources{home: file}).load(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Of the sandboxes the stricter one counts, the default among them where the file that
// says off is one that nobody trusts.
func TestSandboxDefault(t *testing.T) {
	for _, tt := range []struct {
		name       string
		repo, home string
		trusted    bool
		byDefault  config.Sandbox
		want       config.Sandbox
		says       bool
	}{
		{"nobody", "", "", false, "", config.SandboxAuto, false},
		{"nobody, elsewhere", "", "", false, config.SandboxOff, config.SandboxOff, false},
		{"a repository", "off", "", false, "", config.SandboxAuto, false},
		{"a repository, elsewhere", "off", "", false, config.SandboxOff, config.SandboxOff, false},
		{"a repository that is trusted", "off", "", true, "", config.SandboxOff, true},
		{"the user", "", "off", false, "", config.SandboxOff, true},
		{"both", "off", "off", false, "", config.SandboxOff, true},
		{"the user, and stricter a repository", "auto", "off", false, "", config.SandboxAuto, true},
		{"the user, and looser a repository", "off", "auto", false, "", config.SandboxAuto, true},
		{"the user, and looser one that is trusted", "auto", "require", true, "", config.SandboxRequire, true},
		{"a stricter repository", "require", "", false, "", config.SandboxRequire, true},
	} {
		file := func(mode string) string {
			if mode == "" {
				return ""
			}
			return "sandbox: " + mode + "\n"
		}
		s := sources{repo: file(tt.repo), home: file(tt.home), trusted: tt.trusted, sandbox: tt.byDefault}
		if c := mustLoad(t, s); c.Sandbox != tt.want || c.SaysSandbox() != tt.says {
			t.Errorf("%s: %s, said %t", tt.name, c.Sandbox, c.SaysSandbox())
		}
	}
}

// Of the networks the stricter one counts, and places add up; but a checkout that
// nobody trusts opens none.
func TestConfine(t *testing.T) {
	repo, home := "confine: {network: gateway, read: [/opt/a]}\n", "confine: {network: open, read: [/opt/b], write: [/opt/c]}\n"
	c := mustLoad(t, sources{repo: repo, home: home, trusted: true})
	want := config.Confine{Network: config.NetworkGateway, Read: []string{"/opt/a", "/opt/b"}, Write: []string{"/opt/c"}}
	if !reflect.DeepEqual(c.Confine, want) {
		t.Errorf("confine %+v, want %+v", c.Confine, want)
	}
	c = mustLoad(t, sources{repo: home, home: repo, trusted: true})
	want.Read, want.Write = []string{"/opt/a", "/opt/b"}, []string{"/opt/c"}
	if !reflect.DeepEqual(c.Confine, want) {
		t.Errorf("the other way round: %+v", c.Confine)
	}
	c = mustLoad(t, sources{repo: "confine: {network: gateway}\n"})
	if c.Confine.Network != config.NetworkGateway {
		t.Errorf("an untrusted file may be stricter: %+v", c.Confine)
	}
}

// Hosts add up. That every host is meant counts neither in a job nor under network: gateway.
func TestFetchHosts(t *testing.T) {
	const repo, home = "fetch: {hosts: [a.example.com]}\n", "fetch: {hosts: ['*', '*.example.org']}\n"
	for name, x := range map[string]struct {
		s    sources
		want []string
	}{
		"nothing said":     {sources{}, nil},
		"own file":         {sources{home: home}, []string{"*", "*.example.org"}},
		"both":             {sources{home: home, repo: repo}, []string{"*", "*.example.org", "a.example.com"}},
		"not consented to": {sources{home: home, repo: repo, refused: true}, []string{"*", "*.example.org"}},
		"in a job":         {sources{repo: home, trusted: true}, []string{"*.example.org"}},
		"network gateway":  {sources{home: home + "confine: {network: gateway}\n"}, []string{"*.example.org"}},
		"gateway, prepare": {sources{home: home + "workspace: {prepare: [make]}\n"}, []string{"*.example.org"}},
	} {
		if got := mustLoad(t, x.s).FetchHosts(); !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
	for _, host := range []string{"Example.com", "localhost", "127.0.0.1", "*.com.", "a.*.com", "https://a.com", "a.com/x", "**", "*."} {
		if _, err := (sources{home: "fetch: {hosts: ['" + host + "']}\n"}).load(); err == nil || !strings.Contains(err.Error(), "is no host") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// Headers are made of variables; their values are secrets, and never stand in a file.
func TestMCP(t *testing.T) {
	const file = "mcp: {docs: {url: https://mcp.example.com/mcp, headers: {Authorization: 'Bearer ${DOCS}', X-Key: '${KEY}'}, tools: [a.b], pins: {}}}\n"
	s := sources{repo: file, env: []string{"DOCS=" + fakeKey, "KEY= k1 "}}
	c := mustLoad(t, s)
	if got, err := c.MCPHeaders("docs"); err != nil || !reflect.DeepEqual(got, map[string]string{"Authorization": "Bearer " + fakeKey, "X-Key": "k1"}) {
		t.Errorf("%v %v", got, err)
	}
	if !slices.ContainsFunc(config.SecretsOf(c), func(x redact.Secret) bool { return x.Value == fakeKey }) || strings.Contains(fmt.Sprint(c.Values()), fakeKey) {
		t.Error("the value is no secret")
	}
	if got := c.PinCommand("docs", "a.b", `{"a":"b c"}`); got != `uwf config set --repo 'mcp.docs.pins."a.b"' '{"a":"b c"}'` {
		t.Error(got)
	}
	s.home, s.repo = s.repo, ""
	if got := mustLoad(t, s).PinCommand("docs", "a", "{}"); got != `uwf config set mcp.docs.pins.a '{}'` {
		t.Error(got)
	}
	for value, want := range map[string]string{"": "the variable KEY is not set, which its header X-Key is made of", "a\nX: y": "holds what no header can"} {
		s.env[1] = "KEY=" + value
		if _, err := mustLoad(t, s).MCPHeaders("docs"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "y") && value != "" && strings.Contains(err.Error(), value) {
			t.Errorf("%q: %v", value, err)
		}
	}
	for text, want := range map[string]string{
		"Docs: {url: https://a.com/, tools: [a]}": `"Docs" can't be the name of a server`,
		"a: {tools: [a]}":                         "url must be an address",
		"a: {url: 'ftp://a.com'}":                 "url must be an address",
		"a: {url: http://a.com/}":                 "must begin with https://",
		"a: {url: https://u:p@a.com/}":            "can't hold a user",
		"a: {url: https://a.com/, headers: {Authorization: " + fakeKey + "}}":         "the header \"Authorization\" is not made of a variable",
		"a: {url: https://a.com/, headers: {'X: y': '${A}'}}":                         "is not made of a variable",
		"a: {url: https://a.com/, headers: {A: 'Bearer ${A} b'}}":                     "is not made of a variable",
		"a: {url: https://a.com/, tools: ['a b']}":                                    `"a b" can't be the name of a tool`,
		"abcdefghij: {url: https://a.com/, tools: [" + strings.Repeat("a", 48) + "]}": "at most 57 together",
		"a: {url: https://a.com/, tools: [a], pins: {a: sha256:1}}":                   "is no definition of a tool as JSON",
		"a: {url: https://a.com/, tool: [a]}":                                         `did you mean "tools"`,
	} {
		if _, err := (sources{home: "mcp: {" + text + "}\n"}).load(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), fakeKey) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Each value says where it comes from, and what else was said.
func TestValues(t *testing.T) {
	c := mustLoad(t, sources{
		repo:   "limits: {maxSteps: 50, tokens: 10, month: {costUsd: 9}}\nsandbox: off\nallowShell: true\nstate: {remote: origin}\nproviders: {openai: {}}\nmodels: {a.b: {provider: openai}}\nredact: {allow: [x]}\n",
		home:   "limits: {maxSteps: 20, tokens: 30, month: {costUsd: 8, tokens: 7}}\nsandbox: require\nallowShell: false\nstate: {remote: upstream}\nredact: {allow: [y]}\nagents: {own: {env: {API_TOKEN: " + fakeKey + ", MODE: x}}}\n",
		dotenv: "OPENAI_API_KEY=" + fakeKey,
		env:    []string{"UWF_MODEL=a.b", "ANTHROPIC_API_KEY=k2"},
	})
	got := map[string]string{}
	for _, v := range c.Values() {
		said := fmt.Sprintf("%v from %s", v.Value, v.Origin)
		if v.Secret {
			said = fmt.Sprintf("set %v from %s", v.Set, v.Origin)
		}
		for _, o := range v.Others {
			said += fmt.Sprintf("; %s %v from %s", v.Note, o.Value, o.Origin)
		}
		got[v.Path.String()] = said
	}
	for path, want := range map[string]string{
		"limits.maxSteps":          "20 from ~/.uwf/config.yaml:1; the lowest counts 50 from .uwf/config.yaml:1",
		"limits.tokens":            "10 from .uwf/config.yaml:1; the lowest counts 30 from ~/.uwf/config.yaml:1",
		"limits.maxStepsPerRole":   "10 from default",
		"limits.month.costUsd":     "8 from ~/.uwf/config.yaml:1; the lowest counts 9 from .uwf/config.yaml:1",
		"limits.month.tokens":      "7 from ~/.uwf/config.yaml:1",
		"sandbox":                  "require from ~/.uwf/config.yaml:2; the strictest counts off from .uwf/config.yaml:2",
		"allowShell":               "false from ~/.uwf/config.yaml:3; every file that mentions it must allow it true from .uwf/config.yaml:3",
		"state.remote":             "origin from .uwf/config.yaml:4; overrides upstream from ~/.uwf/config.yaml:4",
		"state.branch":             "uwf-state from default",
		"redact.allow":             "[x y] from .uwf/config.yaml:7; all of them count [y] from ~/.uwf/config.yaml:5",
		"providers.openai.apiKey":  "set true from variable OPENAI_API_KEY in ~/.uwf/.env",
		"providers.openai.baseUrl": "https://api.openai.com/v1 from default",
		"providers.anthropic.kind": "anthropic from variable ANTHROPIC_API_KEY",
		"agents.own.env.API_TOKEN": "set true from ~/.uwf/config.yaml:6",
		"agents.own.env.MODE":      "x from ~/.uwf/config.yaml:6",
		`models."a.b".name`:        "a.b from default",
		"defaultModel":             "a.b from variable UWF_MODEL",
	} {
		if got[path] != want {
			t.Errorf("%s\n got  %s\n want %s", path, got[path], want)
		}
	}
	for _, v := range mustLoad(t, sources{repo: "sandbox: off\n"}).Values() {
		if v.Path.String() == "sandbox" && (v.Value != "auto" || v.Origin != config.Origin{} || !strings.HasPrefix(v.Note, "only ~/.uwf/config.yaml") || len(v.Others) != 1 || v.Others[0].Value != "off") {
			t.Errorf("%+v", v)
		}
	}
	if all := fmt.Sprint(c.Values()); strings.Contains(all, fakeKey) {
		t.Errorf("a key shows: %s", all)
	}
}

func TestUnreadableFile(t *testing.T) {
	denied := errors.New("permission denied")
	_, err := config.Load(config.Sources{HomeFile: homeFile, ReadFile: func(string) ([]byte, error) { return nil, denied }})
	if !errors.Is(err, denied) || !strings.Contains(err.Error(), homeFile) {
		t.Errorf("error %v", err)
	}
}

// No way of printing a configuration shows a key.
func TestKeysDoNotPrint(t *testing.T) {
	c := mustLoad(t, sources{home: strings.Replace(full, "apiKeyEnv: CLAUDE_KEY", "apiKey: "+fakeKey, 1)})
	j, err := json.Marshal(c.Providers)
	if err != nil {
		t.Fatal(err)
	}
	y, err := yaml.Marshal(c.Providers)
	if err != nil {
		t.Fatal(err)
	}
	key := c.Providers["claude"].APIKey
	for _, text := range []string{string(j), string(y), fmt.Sprintf("%v %+v %#v %s %q", c.Providers, c.Providers, c.Providers, key, key), fmt.Sprint(key)} {
		if strings.Contains(text, fakeKey) {
			t.Errorf("the key shows in %s", text)
		}
	}
	if key.Reveal() != fakeKey {
		t.Error("the key is lost")
	}
	bad := sources{home: "providers: {x: {baseUrl: https://x.example, apiKeyEnv: " + fakeKey + "}}\n", dotenv: fakeKey + "\x00{{"}
	if _, err := bad.load(); err == nil || strings.Contains(err.Error(), fakeKey) {
		t.Errorf("a message repeats what may be a key: %v", err)
	}
}

func TestWarnings(t *testing.T) {
	c := mustLoad(t, sources{repo: "providers: {x: {baseUrl: http://x.example, apiKey: " + fakeKey + "}}\n"})
	if len(c.Warnings) != 2 || strings.Contains(strings.Join(c.Warnings, ""), fakeKey) {
		t.Errorf("warnings %q", c.Warnings)
	}
}

func TestParseAgent(t *testing.T) {
	c := mustLoad(t, sources{home: full})
	cases := []struct{ text, name, command, args string }{
		{"mock", "mock", "uwf", "agent|mock|my script.yaml"},
		{"claude-code", "claude-code", "uwf-claude-code", ""},
		{"uwf-hermes", "uwf-hermes", "uwf-hermes", ""},
		{`uwf agent mock "a b.yaml"`, "mock", "uwf", "agent|mock|a b.yaml"},
		{"/opt/bin/tool --x 'y z'", "tool", "/opt/bin/tool", "--x|y z"},
		{"./run", "run", "./run", ""},
	}
	for _, x := range cases {
		a, err := c.ParseAgent(x.text)
		if err != nil || a.Name != x.name || a.Command != x.command || strings.Join(a.Args, "|") != x.args {
			t.Errorf("%s: %+v, %v", x.text, a, err)
		}
	}
	for bad, want := range map[string]string{"": "it is empty", "  ": "it is empty", `"open`: "close the quotes"} {
		if _, err := c.ParseAgent(bad); !errors.Is(err, config.ErrNoAgent) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(full, full, "OPENAI_API_KEY=a\nB=c")
	f.Add(full, strings.ReplaceAll(full, "api.anthropic.com", "api.elsewhere.example"), "OPENAI_API_KEY=a\nB=c") // a key that is withheld
	f.Add("providers: {openai: {}}\nmodels: {m: {provider: openai}}", "a: &b [*b]", "export A='b")
	f.Fuzz(func(t *testing.T, repo, home, dotenv string) {
		c, err := sources{repo: repo, home: home, dotenv: dotenv, env: []string{"OPENAI_API_KEY=" + fakeKey}}.load()
		if err != nil {
			if !errors.Is(err, config.ErrInvalid) || strings.Contains(err.Error(), fakeKey) {
				t.Fatalf("error %v", err)
			}
			return
		}
		for name, p := range c.Providers {
			if p.APIKey.Reveal() == fakeKey && strings.HasPrefix(c.Origins["providers."+name], repoFile) &&
				!strings.HasPrefix(p.BaseURL, "https://api.openai.com") && !strings.Contains(repo, fakeKey) && !strings.Contains(home, p.BaseURL) {
				t.Fatalf("the key goes to %s", p.BaseURL)
			}
		}
		if _, err := c.ResolveModel("w", "r"); err != nil && !errors.As(err, new(*config.WithheldError)) && !errors.Is(err, config.ErrNoModel) && !errors.Is(err, config.ErrNoKey) && !errors.Is(err, config.ErrInvalid) {
			t.Fatal(err)
		}
	})
}

// TestDemands: what a repository wants of the machine is found, each thing by itself, and is
// as if it were not said where nobody consented.
func TestDemands(t *testing.T) {
	for _, c := range []struct{ name, repo, path, says string }{
		{"a program", "agents: {a: {command: x, args: [y]}}", "agents.a", `{"command":"x","args":["y"]}`},
		{"a program in a command line", "agents: {a: {command: './agent.sh -v'}}", "agents.a", `{"command":"./agent.sh","args":["-v"],"files":{"./agent.sh":"sha256:f00d"}}`},
		{"a file among arguments", "agents: {a: {command: sh, args: [./agent.sh]}}", "agents.a", `{"command":"sh","args":["./agent.sh"],"files":{"./agent.sh":"sha256:f00d"}}`},
		{"arguments of a program of uwf", "agents: {mock: {args: [y]}}", "agents.mock", `{"args":["y"]}`},
		{"variables", "agents: {mock: {env: {LD_PRELOAD: /x.so}}}", "agents.mock", `{"env":{"LD_PRELOAD":"/x.so"}}`},
		{"a secret variable", "agents: {mock: {env: {API_TOKEN: x}}}", "agents.mock", `{"env":{"API_TOKEN":"sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"}}`},
		{"the agent of all", "defaultAgent: a", "defaultAgent", `"a"`},
		{"the agent of a workflow", "agentOverrides: {w: a}", "agentOverrides.w.*", `"a"`},
		{"the agent of a role", "agentOverrides: {w: {r: ../../a}}", "agentOverrides.w.r", `"../../a"`},
		{"a check", "checks: {test: ./agent.sh}", "checks.test", `"./agent.sh"`},
		{"what prepares a workspace", "workspace: {prepare: [npm ci]}", "workspace.prepare", `["npm ci"]`},
		{"submodules", "workspace: {submodules: true}", "workspace.submodules", "true"},
		{"a shell", "allowShell: true", "allowShell", "true"},
		{"the network", "confine: {network: open}", "confine.network", `"open"`},
		{"hosts", "fetch: {hosts: [docs.example.com]}", "fetch.hosts", `["docs.example.com"]`},
		{"a server", "mcp: {docs: {url: https://mcp.example.com/, headers: {Authorization: 'Bearer ${T}'}, tools: [a]}}", "mcp.docs", `{"url":"https://mcp.example.com/","headers":{"Authorization":"Bearer ${T}"},"tools":["a"]}`},
		{"a place for threads", "state: {remote: 'https://forge.example/x.git'}", "state.remote", `{"remote":"https://forge.example/x.git"}`},
		{"places to read", "confine: {read: [/opt]}", "confine.read", `["/opt"]`},
		{"places to write", "confine: {write: [/opt]}", "confine.write", `["/opt"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sources{repo: c.repo, refused: true}
			got, want := mustLoad(t, s), mustLoad(t, sources{})
			if d := got.Unconsented(); len(d) != 1 || d[0].Path != c.path || d[0].Says != c.says || d[0].Means == "" || !reflect.DeepEqual(d, got.Demands()) {
				t.Errorf("%+v", d)
			}
			if got.AllowShell || len(got.MCP)+len(got.FetchHosts())+len(got.Agents)+len(got.Checks.Commands)+len(got.Workspace.Prepare) > 0 || got.DefaultAgent != "" || got.ResolveAgent("w", "r").Name != config.DefaultAgent || !reflect.DeepEqual(got.Confine, want.Confine) {
				t.Errorf("it counts: %+v", got)
			}
			if v := got.Values(); len(v) != len(want.Values()) || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], c.path+" counts once you consent") {
				t.Errorf("%v %v", v, got.Warnings)
			}
			s.refused = false
			if got := mustLoad(t, s); len(got.Unconsented()) > 0 || len(got.Demands()) != 1 || len(got.Warnings) > 0 {
				t.Errorf("with a consent: %v", got.Warnings)
			}
			if got := mustLoad(t, sources{repo: c.repo, refused: true, trusted: true}); len(got.Unconsented()) > 0 {
				t.Error("in a job")
			}
			if got := mustLoad(t, sources{home: c.repo, refused: true}); len(got.Demands()) > 0 {
				t.Error("in the user's own file")
			}
		})
	}
	for _, repo := range []string{"defaultAgent: builtin", "agentOverrides: {w: {r: mock}}", "allowShell: false", "confine: {network: gateway}", "agents: {a: {}}", "checks: {strict: true, time: 1m, protect: [x]}"} {
		if d := mustLoad(t, sources{repo: repo, refused: true}).Demands(); len(d) > 0 {
			t.Errorf("%s: %+v", repo, d)
		}
	}
	// What UWF_TRUST_REPO says is about keys.
	if c := mustLoad(t, sources{repo: "allowShell: true", refused: true, env: []string{"UWF_TRUST_REPO=1"}}); c.AllowShell {
		t.Error("UWF_TRUST_REPO opens the shell")
	}
}

// TestForeignPlace: a place of the repository's choice for threads needs a consent unless it is a
// remote of the checkout, or the user's own choice.
func TestForeignPlace(t *testing.T) {
	const url = "https://forge.example/private.git"
	for _, c := range []struct{ name, repo, home, says string }{
		{"a URL", "state: {remote: " + url + "}", "", `{"remote":"` + url + `"}`},
		{"a file", "state: {remote: 'file:///srv/private.git'}", "", `{"remote":"file:///srv/private.git"}`},
		{"a path", "state: {remote: ../private.git}", "", `{"remote":"../private.git"}`},
		{"a parent", "state: {remote: ..}", "", `{"remote":".."}`},
		{"ssh's short form", "state: {remote: 'git@forge.example:private.git'}", "", `{"remote":"git@forge.example:private.git"}`},
		{"with a branch", "state: {remote: " + url + ", branch: x}", "", `{"remote":"` + url + `","branch":"x"}`},
		{"a branch of the user's remote", "state: {branch: x}", "state: {remote: " + url + "}", `{"remote":"` + url + `","branch":"x"}`},
		{"another than the user's", "state: {remote: " + url + "}", "state: {remote: 'https://forge.example/mine.git'}", `{"remote":"` + url + `"}`},
		{"a remote's name", "state: {remote: upstream, branch: x}", "", ""},
		{"a remote's URL", "state: {remote: 'https://forge.example/own.git', branch: x}", "", ""},
		{"a branch here", "state: {branch: x}", "", ""},
		{"the user's choice", "state: {remote: " + url + ", branch: x}", "state: {remote: " + url + ", branch: x}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var place consent.Demand
			load := func(allowed bool) *config.Config {
				s := sources{repo: c.repo + "\nallowShell: true\n", home: c.home, refused: true}.build()
				s.OwnRemote = func(address string) bool { return address == "https://forge.example/own.git" }
				s.Allowed = func(d consent.Demand) bool { place = d; return allowed && d.Path == "state.remote" }
				got, err := config.Load(s)
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			got := load(false)
			if place.Says != c.says || got.WithoutPlace() != (c.says != "") {
				t.Errorf("%+v %t", place, got.WithoutPlace())
			}
			own := mustLoad(t, sources{home: c.home}).State
			if c.says != "" && got.State != own {
				t.Errorf("it counts: %+v", got.State)
			}
			// A consent to the place stays when other demands change.
			if got := load(true); c.says != "" && (got.WithoutPlace() || got.State == own || got.AllowShell) {
				t.Errorf("with a consent: %+v %t", got.State, got.AllowShell)
			}
		})
	}
}

// TestDemandsLeaveOwn: the user's own setting of the same name counts in the place of one
// that nobody consented to.
func TestDemandsLeaveOwn(t *testing.T) {
	c := mustLoad(t, sources{
		repo: "agents: {a: {command: theirs}}\ndefaultAgent: b\n", refused: true,
		home: "agents: {a: {command: mine}}\ndefaultAgent: a\n",
	})
	if a := c.ResolveAgent("w", "r"); a.Name != "a" || a.Command != "mine" {
		t.Errorf("%+v", a)
	}
}
