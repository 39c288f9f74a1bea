package config_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/consent"
	"github.com/united-workforce/uwf/engine/moderator"
)

const policyFile = "~/.uwf/policy.yaml"

// loadBound loads settings of which nobody consented to anything, under this machine's policy
// and the one of a caller; empty: there is none.
func loadBound(s sources, machine, given string) (*config.Config, error) {
	files := map[string]string{repoFile: s.repo, homeFile: s.home, policyFile: machine}
	src := config.Sources{
		RepoFile: repoFile, HomeFile: homeFile, PolicyFile: policyFile, Env: s.env, RepoTrusted: s.trusted, Choice: s.choice,
		Consented: func([]consent.Demand) bool { return false },
		ReadFile: func(path string) ([]byte, error) {
			if files[path] == "" {
				return nil, fs.ErrNotExist
			}
			return []byte(files[path]), nil
		},
	}
	if given != "" {
		src.Policy, src.PolicyName = []byte(given), "the input policy"
	}
	return config.Load(src)
}

func mustBind(t *testing.T, s sources, machine, given string) *config.Config {
	t.Helper()
	c, err := loadBound(s, machine, given)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A policy that does not say what it seems to is refused, each mistake where it stands.
func TestPolicyMistakes(t *testing.T) {
	for _, c := range []struct{ name, policy, want string }{
		{"an unknown key", "sandbx: require\n", `:1:1: sandbx: unknown key; did you mean "sandbox"?`},
		{"a setting that is no bound", "allowShell: false\n", ":1:1: allowShell: unknown key; known are: agents, confine, limits, models, providers, sandbox"},
		{"a place below confine", "confine: {write: [/srv]}\n", ":1:11: confine.write: unknown key; known are: network"},
		{"the network without its place", "network: gateway\n", ":1:1: network: unknown key; write confine: {network: gateway}"},
		{"the cost without its place", "costUsd: 5\n", ":1:1: costUsd: unknown key; write limits: {costUsd: 5}"},
		{"a limit that is none", "limits:\n  maxSteps: many\n", ":2:13: limits.maxSteps: must be a whole number"},
		{"an unknown limit", "limits: {cost: 5}\n", `:1:10: limits.cost: unknown key`},
		{"a sandbox that is none", "sandbox: on\n", ":1:10: sandbox: must be one of off, auto, require"},
		{"a network that nothing holds", "confine:\n  network: gateway\n", ":2:3: confine.network: can't be held where agents are not confined; write sandbox: require beside it"},
		{"a network that a loose sandbox does not hold", "sandbox: auto\nconfine: {network: gateway}\n", "confine.network: can't be held"},
		{"no agents", "agents: []\n", ":1:9: agents: allows none, so that nothing could work; leave it out to allow all"},
		{"no models", "models: []\n", "models: allows none"},
		{"an agent that is no list", "agents: builtin\n", ":1:9: agents: must be a list"},
		{"a command line", "agents: [uwf agent mock]\n", `agents[0]: "uwf agent mock" is neither the name of an agent nor the absolute path`},
		{"a relative program", "agents: [builtin, ./agent.sh]\n", `agents[1]: "./agent.sh" is neither`},
		{"any agent", "agents: ['*']\n", `agents[0]: "*" is neither`},
		{"an agent that runs any program", "agents: [builtin, acp]\n", "agents[1]: acp runs any program, which stands behind its --; name that program by its absolute path"},
		{"the same by its whole name", "agents: [uwf-acp]\n", "agents[0]: uwf-acp runs any program"},
		{"an empty agent", "agents: ['']\n", `agents[0]: "" is neither`},
		{"a model without its provider", "models: [gpt-5.1]\n", `models[0]: "gpt-5.1" is no model; write PROVIDER/NAME`},
		{"a provider alone", "models: [openai/]\n", `"openai/" is no model`},
		{"a name alone", "models: [/gpt-5.1]\n", `"/gpt-5.1" is no model`},
		{"a part of a name", "models: [openai/gpt-*]\n", `"openai/gpt-*" has a * in a name; * stands for all models of a provider, alone`},
		{"a provider that nobody knows", "models: [opnai/gpt-5.1]\n", `there is no provider "opnai"; did you mean "openai"?`},
		{"a provider far from all", "models: [acme/x]\n", `there is no provider "acme"; say its address below providers`},
		{"an address that is none", "providers: {acme: models.example}\nmodels: [acme/x]\n", "providers.acme: is no address of a provider"},
		{"an address with a password", "providers: {acme: 'https://u:p@models.example'}\n", "providers.acme: is no address"},
		{"a name with a slash", "providers: {a/b: 'https://models.example'}\n", `providers."a/b": is no address`},
		{"a list", "- sandbox\n", "must be a map"},
		{"no YAML", "sandbox: [\n", "not valid YAML"},
		{"twice the same", "sandbox: require\nsandbox: off\n", "duplicate key"},
		{"an anchor", "sandbox: &a require\n", "the anchor &a is not read"},
		{"too long", "# " + strings.Repeat("x", config.MaxPolicy) + "\n", "a policy may have at most 65536 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := loadBound(sources{}, c.policy, "")
			if !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), policyFile) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("on the machine: %v, want %s", err, c.want)
			}
			_, err = loadBound(sources{}, "", c.policy)
			if !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "the input policy") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("given: %v, want %s", err, c.want)
			}
		})
	}
}

// A policy that can't be read is an error, never no policy.
func TestUnreadablePolicy(t *testing.T) {
	_, err := config.Load(config.Sources{PolicyFile: policyFile, ReadFile: func(string) ([]byte, error) { return nil, fs.ErrPermission }})
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), policyFile) {
		t.Error(err)
	}
}

// Each thing that a file asks for beyond the policy is told once, where it stands, and what holds.
func TestPolicyHolds(t *testing.T) {
	const policy = "sandbox: require\nconfine: {network: gateway}\nlimits: {maxSteps: 12, maxStepsPerRole: 4, tokens: 1000, costUsd: 5, wall: 1h, stepTime: 20m, month: {costUsd: 100}}\n"
	for _, c := range []struct {
		name string
		s    sources
		held []string
	}{
		{"nothing is said", sources{}, nil},
		{"stricter than the policy", sources{repo: "limits: {maxSteps: 3}\nsandbox: require\n"}, nil},
		{"no sandbox", sources{repo: "sandbox: off\n"}, []string{repoFile + ":1:10: sandbox: it asks for off; the policy (" + policyFile + ":1) allows nothing looser than require, which holds"}},
		{"a looser sandbox of one's own", sources{home: "sandbox: auto\n"}, []string{homeFile + ":1:10: sandbox: it asks for auto;"}},
		{"in a job", sources{repo: "sandbox: off\n", trusted: true}, []string{repoFile + ":1:10: sandbox: it asks for off;"}},
		{"where the repository is trusted", sources{repo: "sandbox: off\n", env: []string{"UWF_TRUST_REPO=1"}}, []string{repoFile + ":1:10: sandbox: it asks for off;"}},
		{"the open network", sources{repo: "confine: {network: open}\n"}, []string{repoFile + ":1:20: confine.network: it asks for open; the policy (" + policyFile + ":2) allows nothing looser than gateway, which holds"}},
		{"the open network in a job", sources{repo: "confine: {network: open}\n", trusted: true}, []string{repoFile + ":1:20: confine.network: it asks for open;"}},
		{"cost", sources{repo: "limits: {costUsd: 50}\n"}, []string{repoFile + ":1:19: limits.costUsd: it asks for 50; the policy (" + policyFile + ":3) allows nothing looser than 5, which holds"}},
		{"cost of a month", sources{repo: "limits: {month: {costUsd: 500, tokens: 9}}\n"}, []string{repoFile + ":1:27: limits.month.costUsd: it asks for 500; the policy (" + policyFile + ":3) allows nothing looser than 100, which holds"}},
		{"time", sources{home: "limits: {stepTime: 2h, wall: 90m}\n"}, []string{homeFile + ":1:20: limits.stepTime: it asks for 2h;", homeFile + ":1:30: limits.wall: it asks for 1h30m;"}},
		{"steps of both files", sources{repo: "limits: {maxSteps: 50}\n", home: "limits: {maxSteps: 60, tokens: 5}\n"}, []string{repoFile + ":1:20: limits.maxSteps: it asks for 50;", homeFile + ":1:20: limits.maxSteps: it asks for 60;"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mustBind(t, c.s, policy, "")
			most := config.Limits{Limits: moderator.Limits{MaxSteps: 12, MaxStepsPerRole: 4, Tokens: 1000, CostUSD: 5, Wall: time.Hour}, StepTime: 20 * time.Minute, Month: moderator.MonthLimits{CostUSD: 100}}
			if l := got.Limits; got.Sandbox != config.SandboxRequire || !got.SaysSandbox() || got.Confine.Network != config.NetworkGateway ||
				l.MaxSteps == 0 || l.MaxSteps > 12 || l.MaxStepsPerRole != 4 || l.Tokens == 0 || l.Tokens > 1000 || l.CostUSD != 5 || l.Month.CostUSD != 100 || l.Wall != time.Hour || l.StepTime != most.StepTime {
				t.Errorf("it holds sandbox %s, network %s, limits %+v", got.Sandbox, got.Confine.Network, l)
			}
			if got.Policies.HighestLimits() != most {
				t.Errorf("the highest limits are %+v", got.Policies.HighestLimits())
			}
			held := got.Policies.Held()
			if len(held) != len(c.held) {
				t.Fatalf("told: %q", held)
			}
			for i, want := range c.held {
				if !strings.HasPrefix(held[i], want) {
					t.Errorf("told: %s\nwant: %s", held[i], want)
				}
			}
			if len(got.Unconsented()) > 0 {
				t.Errorf("asks for consent to what the policy does not allow: %v", got.Unconsented())
			}
		})
	}
}

// Where nobody says anything a policy's maximum is the limit, and a sandbox that is as strict as the
// policy's counts as said by it.
func TestPolicyAndDefaults(t *testing.T) {
	for _, row := range []struct {
		name, policy, home string
		steps, perRole     int
		sandbox            config.Sandbox
		said               bool
	}{
		{"higher than the defaults", "limits: {maxSteps: 40, maxStepsPerRole: 40}\n", "", 40, 40, config.SandboxAuto, false},
		{"one of them", "limits: {maxSteps: 40}\n", "", 40, 0, config.SandboxAuto, false},
		{"lower than the defaults", "limits: {maxSteps: 12, maxStepsPerRole: 4}\n", "", 12, 4, config.SandboxAuto, false},
		{"between what is set and the defaults", "limits: {maxSteps: 40, maxStepsPerRole: 40}\n", "limits: {maxSteps: 35, maxStepsPerRole: 50}\n", 35, 40, config.SandboxAuto, false},
		{"no limit on steps", "limits: {costUsd: 5}\n", "", 0, 0, config.SandboxAuto, false},
		{"the sandbox of the default", "sandbox: auto\n", "", 0, 0, config.SandboxAuto, true},
		{"a stricter one", "sandbox: require\n", "", 0, 0, config.SandboxRequire, true},
		{"one that bounds nothing", "sandbox: off\n", "", 0, 0, config.SandboxAuto, false},
	} {
		for _, second := range []string{"", "limits: {maxSteps: 45}\nsandbox: off\n"} {
			c := mustBind(t, sources{home: row.home}, row.policy, second)
			if second != "" && row.steps == 0 {
				row.steps = 45
			}
			if c.Limits.MaxSteps != row.steps || c.Limits.MaxStepsPerRole != row.perRole || c.Sandbox != row.sandbox || c.SaysSandbox() != row.said {
				t.Errorf("%s, %q: %d steps, %d of a role, sandbox %s, said %t", row.name, second, c.Limits.MaxSteps, c.Limits.MaxStepsPerRole, c.Sandbox, c.SaysSandbox())
			}
		}
	}
	// Where a machine can't confine and the default is off, a policy of the same says nothing either.
	c, err := config.Load(config.Sources{Policy: []byte("sandbox: off\n"), DefaultSandbox: config.SandboxOff})
	if err != nil || c.SaysSandbox() {
		t.Errorf("off: %v", err)
	}
}

// Who says what a model costs does not say how far the policy's limit on cost goes: no part of a price
// that uwf knows is lowered.
func TestPolicyOfPrices(t *testing.T) {
	const cost = "limits: {costUsd: 5}\n"
	for _, row := range []struct {
		name, policy, provider, model, price string
		want                                 [4]float64 // input, cachedInput, cacheWrite, output
		held                                 bool
	}{
		{"nothing at all", cost, "openai", "gpt-5.1", "input: 0, output: 0", [4]float64{1.25, 0.125, 1.25, 10}, true},
		{"for a month", "limits: {month: {costUsd: 50}}\n", "openai", "gpt-5.1", "input: 0, output: 0", [4]float64{1.25, 0.125, 1.25, 10}, true},
		{"under another name", cost, "sly", "gpt-5.1", "input: 0, output: 0", [4]float64{1.25, 0.125, 1.25, 10}, true},
		{"at another path", cost, "path", "gpt-5.1", "input: 0, output: 0", [4]float64{1.25, 0.125, 1.25, 10}, true},
		{"a part of it", cost, "openai", "gpt-5.1", "input: 3, output: 0.1", [4]float64{3, 3, 3.75, 10}, true},
		{"of cached input", cost, "openai", "gpt-5.1", "input: 1.25, cachedInput: 0, output: 10", [4]float64{1.25, 0.125, 1.5625, 10}, true},
		{"of what is cached", cost, "openai", "gpt-5.1", "input: 1.25, cacheWrite: 0, output: 10", [4]float64{1.25, 1.25, 1.25, 10}, true},
		{"as it is known", cost, "openai", "gpt-5.1", "input: 1.25, cachedInput: 0.125, cacheWrite: 1.25, output: 10", [4]float64{1.25, 0.125, 1.25, 10}, false},
		{"more", cost, "openai", "gpt-5.1", "input: 2, output: 20", [4]float64{2, 2, 2.5, 20}, false},
		{"of a model that uwf does not know", cost, "openai", "gpt-5.2", "input: 0, output: 0", [4]float64{}, false},
		{"of the same name elsewhere", cost, "house", "gpt-5.1", "input: 0, output: 0", [4]float64{}, false},
		{"without a limit on cost", "limits: {tokens: 1000}\n", "openai", "gpt-5.1", "input: 0, output: 0", [4]float64{}, false},
		{"without a policy", "", "openai", "gpt-5.1", "input: 0, output: 0", [4]float64{}, false},
	} {
		file := "providers: {openai: {}, sly: {baseUrl: 'https://api.openai.com/v1'}, path: {baseUrl: 'https://API.openai.com/v2'}, house: {baseUrl: 'https://llm.acme.example/v1'}}\n" +
			"models:\n  m: {provider: " + row.provider + ", name: " + row.model + ", price: {" + row.price + "}}\ndefaultModel: m\n"
		for at, s := range map[string]sources{repoFile: {repo: file, trusted: true}, homeFile: {home: file}} {
			s.env = []string{"OPENAI_API_KEY=" + fakeKey}
			c := mustBind(t, s, row.policy, row.policy)
			m, err := c.ResolveModel("w", "r")
			if err != nil {
				t.Fatal(err)
			}
			p := m.Model.Price
			if got := [4]float64{*p.Input, p.OfCachedInput(), p.OfCacheWrite(), *p.Output}; got != row.want {
				t.Errorf("%s, in %s: %v", row.name, at, got)
			}
			held := c.Policies.Held()
			if len(held) > 1 || row.held != (len(held) == 1) || row.held && (!strings.HasPrefix(held[0], at+":3:") || !strings.Contains(held[0], ": models.m.price: it is lower than what uwf knows of gpt-5.1, which holds under the limit on cost of the policy ("+policyFile+"): ")) {
				t.Errorf("%s, in %s: told %q", row.name, at, held)
			}
		}
	}
}

// What a run or a thread is told to do is refused where it is looser.
func TestPolicyRefusesChoices(t *testing.T) {
	c := mustBind(t, sources{}, "sandbox: auto\nlimits: {costUsd: 5, stepTime: 20m}\n", "limits: {costUsd: 3}\n")
	for _, row := range []struct {
		name   string
		chosen config.Config
		want   string
	}{
		{"nothing", config.Config{}, ""},
		{"as strict", config.Config{Sandbox: config.SandboxAuto, Limits: config.Limits{StepTime: 20 * time.Minute}}, ""},
		{"stricter", config.Config{Sandbox: config.SandboxRequire, Limits: config.Limits{Limits: moderator.Limits{CostUSD: 1, MaxSteps: 500}}}, ""},
		{"sandbox", config.Config{Sandbox: config.SandboxOff}, "sandbox off, and the policy (" + policyFile + ":1) allows nothing looser than auto"},
		{"time", config.Config{Limits: config.Limits{StepTime: time.Hour}}, "limits.stepTime 1h, and the policy (" + policyFile + ":2) allows nothing looser than 20m"},
		{"cost beyond the lower of two", config.Config{Limits: config.Limits{Limits: moderator.Limits{CostUSD: 4}}}, "limits.costUsd 4, and the policy (the input policy:1) allows nothing looser than 3"},
	} {
		err := c.Policies.CheckChosen(row.chosen)
		if row.want == "" && err != nil || row.want != "" && (!errors.As(err, new(*config.PolicyError)) || err.Error() != row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}

// A model counts by its provider's address, and an agent by what it runs: what a repository calls
// them is its own affair.
func TestPolicyOfModels(t *testing.T) {
	const policy = "providers: {acme: 'https://llm.acme.example/v1/'}\nmodels: [openai/gpt-5.1, acme/*, openrouter/z/small]\n"
	const at = "providers: {openai: {}, sly: {baseUrl: 'https://api.openai.com/v1'}, fake: {baseUrl: 'https://evil.example/v1'}, house: {baseUrl: 'https://llm.acme.example/v1'}, plain: {baseUrl: 'http://api.openai.com/v1'}, near: {baseUrl: 'https://llm.acme.example/v2'}, path: {baseUrl: 'https://api.openai.com/v2'}, openrouter: {apiKeyEnv: R}}\nmodels: {"
	for _, c := range []struct {
		name, model, env string
		ok               bool
	}{
		{"the one that is listed", "provider: openai, name: gpt-5.1", "", true},
		{"another one of that provider", "provider: openai, name: gpt-5.2", "", false},
		{"that provider by another name", "provider: sly, name: gpt-5.1", "", true},
		{"another address", "provider: fake, name: gpt-5.1", "", false},
		{"that host without TLS", "provider: plain, name: gpt-5.1", "", false},
		{"another path of a vendor's own host", "provider: path, name: gpt-5.1", "", true},
		{"any of a provider's", "provider: house, name: whatever/it-is", "", true},
		{"another path of the host", "provider: near, name: x", "", false},
		{"a name with a slash", "provider: openrouter, name: z/small", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sources{repo: at + "m: {" + c.model + "}}\ndefaultModel: m\n", trusted: true, env: []string{"OPENAI_API_KEY=" + fakeKey, "R=" + fakeKey}}
			for _, given := range []bool{true, false} {
				machine, input := "", policy
				if !given {
					machine, input = policy, ""
				}
				got := mustBind(t, s, machine, input)
				_, err := got.ResolveModel("w", "r")
				if refused := errors.As(err, new(*config.PolicyError)); refused == c.ok || c.ok && err != nil || c.ok != (len(got.Policies.Refusals()) == 0) {
					t.Errorf("%v, %v", err, got.Policies.Refusals())
				}
				if err != nil && (!strings.Contains(err.Error(), "is not allowed by the policy ("+map[bool]string{true: "the input policy:2", false: policyFile + ":2"}[given]+")") || !strings.Contains(err.Error(), "which allows openai/gpt-5.1, acme/*, openrouter/z/small")) {
					t.Errorf("it says %v", err)
				}
			}
		})
	}
	// A preset's name in the policy may stand for another address, and then for that alone.
	c := mustBind(t, sources{env: []string{"OPENAI_API_KEY=" + fakeKey}}, "providers: {openai: 'https://llm.acme.example/v1'}\nmodels: [openai/*]\n", "")
	if _, err := c.ResolveModel("w", "r"); !errors.As(err, new(*config.PolicyError)) {
		t.Errorf("the vendor's own address: %v", err)
	}
	// Neither a flag, nor a variable, nor the person's own file goes around it; a repository's
	// model does not quietly become the person's.
	own := "providers: {openai: {}}\nmodels: {big: {provider: openai, name: gpt-5.2}, small: {provider: openai, name: gpt-5.1}}\ndefaultModel: small\n"
	for name, s := range map[string]sources{
		"flag": {home: own, choice: config.Choice{Models: []string{"big"}}}, "variable": {home: own, env: []string{"UWF_MODEL=gpt-5.2"}},
		"own file": {home: strings.Replace(own, "defaultModel: small", "defaultModel: big", 1)},
		"override": {home: own, repo: "models: {theirs: {provider: openai, name: gpt-5.2}}\nproviders: {openai: {}}\nmodelOverrides: {w: {r: theirs}}\n"},
	} {
		s.env = append(s.env, "OPENAI_API_KEY="+fakeKey)
		c := mustBind(t, s, policy, "")
		if _, err := c.ResolveModel("w", "r"); !errors.As(err, new(*config.PolicyError)) {
			t.Errorf("%s: %v", name, err)
		}
		if got := c.Policies.Refusals(); len(got) != 1 || got[0].File == "" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestPolicyOfAgents(t *testing.T) {
	const policy = "agents: [builtin, claude-code, /opt/acme/agent]\n"
	const agents = "agents: {mine: {command: uwf-claude-code, args: [--x]}, claude-code: {}, long: {command: uwf agent builtin}, good: {command: /opt/acme/agent -v}, " +
		"served: {command: uwf agent acp, args: [--, /opt/acme/agent]}, sly: {command: uwf agent acp, args: [--, /bin/sh, /opt/acme/agent]}, bad: {command: /opt/acme/agent2}, codex: {command: uwf-codex}, builtin: {command: ./evil.sh}, uwf-builtin: {command: uwf, args: [demo]}}\n"
	c := mustBind(t, sources{home: agents}, policy, "")
	for said, ok := range map[string]bool{
		"mine": true, "claude-code": true, "long": true, "good": true, "uwf-claude-code": true, "uwf agent builtin": true, "/opt/acme/agent --fast": true,
		"uwf agent acp --mode yolo -- /opt/acme/agent --fast": true, "uwf-acp -- /opt/acme/agent": true, "served": true,
		"uwf agent acp -- /tmp/evil": false, "uwf agent acp -- builtin": false, "uwf agent acp -- ./agent": false, "uwf agent acp --": false, "uwf agent acp": false, "uwf-acp": false, "sly": false,
		"uwf agent acp --mode -- -- /opt/acme/agent": false, "/tmp/uwf-acp -- /opt/acme/agent": false,
		"bad": false, "codex": false, "builtin": false, "uwf-builtin": false, "uwf agent mock s.yaml": false, "./builtin": false, "/tmp/uwf agent builtin": false, "uwf demo": false, "other": false,
	} {
		a, err := c.ParseAgent(said)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Policies.CheckAgent(a); ok != (err == nil) || err != nil && !strings.Contains(err.Error(), "is not allowed by the policy ("+policyFile+":1), which allows builtin, claude-code, /opt/acme/agent") {
			t.Errorf("%s: %v", said, err)
		}
	}
	// What the settings name is found before anything runs, with its place.
	c = mustBind(t, sources{repo: "defaultAgent: codex\nagentOverrides:\n  w: {r: gemini-cli, s: claude-code}\n  v: codex\n", trusted: true}, "", policy)
	var places []string
	for _, p := range c.Policies.Refusals() {
		places = append(places, strings.SplitN(p.String(), ": the agent", 2)[0])
	}
	if got := strings.Join(places, " "); got != repoFile+":1:15: defaultAgent "+repoFile+":4:3: agentOverrides.v "+repoFile+":3:7: agentOverrides.w.r" {
		t.Errorf("refused: %s", got)
	}
	// A login goes around the gateway, where models, tokens and costs are held to the policy.
	for bound, refused := range map[string]bool{
		"models: [openai/*]": true, "limits: {tokens: 9}": true, "limits: {costUsd: 9}": true, "limits: {month: {tokens: 9}}": true, "limits: {month: {costUsd: 9}}": true,
		"limits: {maxSteps: 9, wall: 1h}": false, "agents: [claude-code, builtin]": false,
	} {
		for _, login := range []string{"own", "job"} {
			c = mustBind(t, sources{home: "agents: {claude-code: {login: " + login + "}}\n"}, bound+"\n", "")
			if err := c.Policies.CheckAgent(c.ResolveAgent("w", "r")); err != nil {
				t.Error(err)
			}
			a, _ := c.ParseAgent("claude-code")
			if err := c.Policies.CheckAgent(a); refused != (err != nil) || err != nil && !strings.Contains(err.Error(), "login of its own (login: "+login+"), so that nobody can hold it to the models, tokens and costs of the policy ("+policyFile+")") {
				t.Errorf("%s: %v", bound, err)
			}
		}
	}
	// Variables may lead a program around what is bounded: a repository sets none, where that is.
	for bound, refused := range map[string]bool{"agents: [claude-code, builtin]": true, "models: [openai/*]": true, "limits: {costUsd: 5}": false} {
		const file = "agents:\n  mine: {command: uwf-claude-code, env: {CLAUDE_CODE_USE_BEDROCK: '1'}}\n"
		_, err := loadBound(sources{repo: file, trusted: true}, "", bound+"\n")
		if refused != errors.Is(err, config.ErrInvalid) || err != nil && !strings.Contains(err.Error(), repoFile+":2:41: agents.mine.env: a file of the repository may not set variables of agents, which may lead around the policy") {
			t.Errorf("%s: %v", bound, err)
		}
		mustBind(t, sources{home: file, repo: "agents: {mine: {command: uwf-claude-code}}\n", trusted: true}, "", bound+"\n")
	}
}

// Two policies hold together; without any nothing is bounded.
func TestPoliciesAddUp(t *testing.T) {
	c := mustBind(t, sources{}, "sandbox: require\nagents: [builtin, codex]\n", "limits: {costUsd: 2}\nagents: [codex, gemini-cli]\n")
	for said, ok := range map[string]bool{"builtin": false, "codex": true, "gemini-cli": false} {
		a, _ := c.ParseAgent(said)
		if err := c.Policies.CheckAgent(a); ok != (err == nil) {
			t.Errorf("%s: %v", said, err)
		}
	}
	if c.Sandbox != config.SandboxRequire || c.Limits.CostUSD != 2 {
		t.Errorf("%s %v", c.Sandbox, c.Limits)
	}
	want := []string{"the policy (" + policyFile + `) allows at most: agents ["builtin","codex"]; sandbox require`, `the policy (the input policy) allows at most: agents ["codex","gemini-cli"]; limits.costUsd 2`}
	if got := c.Policies.ListBounds(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
	for _, empty := range []string{"", "# nothing\n"} {
		c = mustBind(t, sources{repo: "sandbox: off\nlimits: {costUsd: 50}\n", trusted: true}, empty, "")
		if c.Sandbox != config.SandboxOff || c.Limits.CostUSD != 50 || len(c.Policies.Held()) > 0 || c.Policies.CheckChosen(config.Config{Sandbox: config.SandboxOff}) != nil {
			t.Errorf("%+v", c)
		}
	}
}

// config show names the policy where it counts.
func TestPolicyInValues(t *testing.T) {
	c := mustBind(t, sources{repo: "sandbox: off\nlimits: {maxSteps: 3}\n", trusted: true}, "", "sandbox: require\nlimits: {maxSteps: 12}\n")
	for _, v := range c.Values() {
		switch v.Path.String() {
		case "sandbox":
			if v.Value != "require" || v.Origin.String() != "the input policy:1" || v.Note != "the policy counts" || len(v.Others) != 1 || v.Others[0].Value != "off" {
				t.Errorf("%+v", v)
			}
		case "limits.maxSteps":
			if v.Value != int64(3) || v.Origin.String() != repoFile+":2" {
				t.Errorf("%+v", v)
			}
		}
	}
}
