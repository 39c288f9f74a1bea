package config_test

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/config"
)

const (
	choiceRepo = `
providers: {corp: {baseUrl: "https://corp.example/v1", apiKeyEnv: CORP_KEY}, openai: {apiKeyEnv: OPENAI_API_KEY}}
models: {big: {provider: corp, name: big-1}, openai: {provider: openai, name: gpt-4.1}}
defaultModel: openai
defaultAgent: codex
modelOverrides: {w: {planner: big}}
agentOverrides: {w: {planner: claude-code}}
`
	choiceHome = `
providers: {mine: {baseUrl: "https://mine.example/v1", apiKeyEnv: MINE_KEY}}
models: {mine: {provider: mine, name: mine-1}}
defaultModel: mine
defaultAgent: builtin
`
)

func TestChoice(t *testing.T) {
	keys := []string{"MINE_KEY=" + fakeKey, "CORP_KEY=" + fakeKey, "UWF_TRUST_REPO=1"}
	for _, c := range []struct {
		name           string
		home           string
		env            []string
		choice         config.Choice
		planner, other string // models as provider/name
		agents         string // the planner's and the other's
	}{
		{name: "the person's default before the repository's; the repository's roles stay", home: choiceHome, env: keys,
			planner: "corp/big-1", other: "mine/mine-1", agents: "claude-code builtin"},
		{name: "the repository's where the person says nothing", env: append([]string{"OPENAI_API_KEY=" + fakeKey}, keys...),
			planner: "corp/big-1", other: "openai/gpt-4.1", agents: "claude-code codex"},
		{name: "a variable before all settings", home: choiceHome, env: append([]string{"UWF_MODEL=mine/mine-2", "UWF_AGENT=gemini-cli"}, keys...),
			planner: "mine/mine-2", other: "mine/mine-2", agents: "gemini-cli gemini-cli"},
		{name: "a flag before a variable", home: choiceHome, env: append([]string{"UWF_MODEL=mine-2", "UWF_PROVIDER=corp", "UWF_AGENT=gemini-cli"}, keys...),
			choice: config.Choice{Models: []string{"mine/mine-3"}, Agents: []string{"hermes"}}, planner: "mine/mine-3", other: "mine/mine-3", agents: "hermes hermes"},
		{name: "a flag before the person's own overrides", home: choiceHome + "modelOverrides: {w: {other: mine}}\nagentOverrides: {w: {other: mock}}\n", env: keys,
			choice: config.Choice{Models: []string{"big"}, Agents: []string{"hermes"}}, planner: "corp/big-1", other: "corp/big-1", agents: "hermes hermes"},
		{name: "a flag before an override of a whole workflow", home: choiceHome + "modelOverrides: {w: mine}\nagentOverrides: {w: mock}\n", env: keys,
			choice: config.Choice{Models: []string{"big"}, Agents: []string{"hermes"}}, planner: "corp/big-1", other: "corp/big-1", agents: "hermes hermes"},
		{name: "a flag's provider leaves a variable's model out", home: choiceHome, env: append([]string{"UWF_MODEL=mine-2", "GEMINI_API_KEY=" + fakeKey}, keys...),
			choice: config.Choice{Provider: "gemini"}, planner: "gemini/gemini-3.5-flash", other: "gemini/gemini-3.5-flash", agents: "claude-code builtin"},
		{name: "a variable's provider, which jobs have, leaves roles as they are", env: append([]string{"UWF_PROVIDER=openai", "OPENAI_API_KEY=" + fakeKey}, keys...),
			planner: "corp/big-1", other: "openai/gpt-4.1", agents: "claude-code codex"},
		{name: "a provider without a key", home: choiceHome, env: keys,
			choice: config.Choice{Provider: "ollama", Models: []string{"llama"}}, planner: "ollama/llama", other: "ollama/llama", agents: "claude-code builtin"},
		{name: "a flag for a role", home: choiceHome, env: keys,
			choice: config.Choice{Models: []string{"planner=mine", "other=big"}, Agents: []string{"planner=uwf agent mock x.yaml"}}, planner: "mine/mine-1", other: "corp/big-1", agents: "uwf agent mock x.yaml builtin"},
		{name: "a flag for a role before one for all", home: choiceHome, env: append([]string{"UWF_AGENT=hermes"}, keys...),
			choice: config.Choice{Models: []string{"planner=mine", "big"}, Agents: []string{"planner=mock"}}, planner: "mine/mine-1", other: "corp/big-1", agents: "mock hermes"},
		{name: "the last one counts", home: choiceHome, env: keys,
			choice: config.Choice{Models: []string{"big", "mine-8", "other=big", "other=mine-9"}}, planner: "mine/mine-8", other: "mine/mine-9", agents: "claude-code builtin"},
		{name: "all roles by their sign", home: choiceHome, env: keys,
			choice: config.Choice{Models: []string{"*=mine-9"}, Agents: []string{"*=mock"}}, planner: "mine/mine-9", other: "mine/mine-9", agents: "mock mock"},
		{name: "the person's model in place of one that has no key here", home: choiceHome, env: []string{"MINE_KEY=" + fakeKey, "UWF_TRUST_REPO=1"},
			planner: "mine/mine-1", other: "mine/mine-1", agents: "claude-code builtin"},
		{name: "the same by a key of the environment", env: []string{"ANTHROPIC_API_KEY=" + fakeKey},
			planner: "anthropic/claude-sonnet-5-5", other: "anthropic/claude-sonnet-5-5", agents: "claude-code codex"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := mustLoad(t, sources{repo: choiceRepo, home: c.home, env: c.env, choice: c.choice})
			var agents []string
			for role, want := range map[string]string{"planner": c.planner, "other": c.other} {
				m, err := cfg.ResolveModel("w", role)
				if got := m.Model.Provider + "/" + m.Model.Name; err != nil || got != want {
					t.Errorf("%s: model %s, %v; want %s", role, got, err, want)
				}
				if lacks := strings.Contains(c.name, "no key") || strings.Contains(c.name, "by a key"); role == "planner" && lacks != (m.Instead != "") {
					t.Errorf("said %q", m.Instead)
				}
			}
			for _, role := range []string{"planner", "other"} {
				agent := cfg.ChosenAgent(role)
				if agent == "" {
					agent = cfg.ResolveAgent("w", role).Name
				}
				agents = append(agents, agent)
			}
			if got := strings.Join(agents, " "); got != c.agents {
				t.Errorf("agents %s, want %s", got, c.agents)
			}
		})
	}
}

// A home file's choice is its own entry, whatever the repository calls by that name: and no key
// of the person's goes to the repository's address.
func TestChoiceOwnEntries(t *testing.T) {
	c := mustLoad(t, sources{
		repo: "providers: {p: {baseUrl: 'https://repo.example/v1'}}\nmodels: {m: {provider: p, name: theirs, price: {input: 0, output: 0}}}\n",
		home: "providers: {p: {baseUrl: 'https://home.example/v1', apiKeyEnv: K}}\nmodels: {m: {provider: p, name: mine}}\ndefaultModel: m\n",
		env:  []string{"K=" + fakeKey},
	})
	m, err := c.ResolveModel("w", "r")
	if err != nil || m.Model.Name != "mine" || m.Provider.BaseURL != "https://home.example/v1" || m.Provider.APIKey.Reveal() != fakeKey || m.Model.Price.Known() {
		t.Errorf("%+v, %v", m, err)
	}
	if origin := c.Origins["models.m.price"]; origin != "" {
		t.Errorf("the price of the repository's is said to be from %s", origin)
	}
}

func TestChoiceRefused(t *testing.T) {
	for _, c := range []struct {
		choice config.Choice
		want   string
	}{
		{config.Choice{Models: []string{""}}, "--model: \"\" names nothing"},
		{config.Choice{Models: []string{"planner="}}, "names nothing"},
		{config.Choice{Agents: []string{"'unclosed"}}, "close the quotes"},
		{config.Choice{Provider: "opanai"}, `--provider: there is no provider "opanai"`},
		{config.Choice{Provider: "gemini"}, `--provider: the provider "gemini" has no key here; set GEMINI_API_KEY`},
	} {
		_, err := sources{repo: choiceRepo, home: choiceHome, env: []string{"MINE_KEY=" + fakeKey}, choice: c.choice}.load()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.choice, err, c.want)
		}
	}
	c := mustLoad(t, sources{home: choiceHome, env: []string{"MINE_KEY=" + fakeKey}, choice: config.Choice{Models: []string{"planer=mine"}}})
	if err := c.CheckChosenRoles("w", []string{"planner", "developer"}); err == nil || !strings.Contains(err.Error(), "did you mean planner?") && !strings.Contains(err.Error(), `did you mean "planner"?`) {
		t.Error(err)
	}
}
