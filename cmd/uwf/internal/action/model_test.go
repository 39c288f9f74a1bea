package action

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/config"
)

// The key of the input api-key, in parts so that nobody takes it for a real one.
const key = "sk-" + "0123456789abcdefghij"

const (
	noSettings  = ""
	ownProvider = "providers: {corp: {baseUrl: \"https://llm.corp.example/v1\", apiKeyEnv: CORP_KEY}}\nmodels: {big: {provider: corp, name: big-1}}\ndefaultModel: big\n"
	ownOpenAI   = "providers: {openai: {baseUrl: \"https://proxy.corp.example/v1\", apiKeyEnv: OPENAI_API_KEY}}\nmodels: {m: {provider: openai, name: gpt-5.1}}\ndefaultModel: m\n"
	withoutAKey = "providers: {local: {baseUrl: \"http://127.0.0.1:1/v1\"}}\nmodels: {m: {provider: local, name: m}}\ndefaultModel: m\n"
	modelsTrial = "providers: {github-models: {apiKeyEnv: GITHUB_TOKEN}}\nmodels: {m: {provider: github-models, name: openai/gpt-4.1}}\ndefaultModel: m\n"
)

// TestModel: which model a job asks, where, and with which key.
func TestModel(t *testing.T) {
	const token = "ghs_" + "0123456789abcdefghijklmnopqrstuvwxyz"
	for name, tt := range map[string]struct {
		settings string
		environ  []string
		in       inputs
		provider string
		url      string
		key      string
		model    string // "": any
		wrong    string // what the error says
	}{
		"one secret":                 {in: inputs{Provider: "openai", APIKey: key}, provider: "openai", url: "https://api.openai.com/v1", key: key},
		"another vendor":             {in: inputs{Provider: "anthropic", APIKey: key}, provider: "anthropic", url: "https://api.anthropic.com", key: key},
		"and a model":                {in: inputs{Provider: "openrouter", APIKey: key, Model: "x/y"}, provider: "openrouter", url: "https://openrouter.ai/api/v1", key: key, model: "x/y"},
		"a server of one's own":      {in: inputs{BaseURL: "https://llm.example/v1", APIKey: key, Model: "m"}, provider: "env", url: "https://llm.example/v1", key: key, model: "m"},
		"without a key":              {in: inputs{BaseURL: "http://127.0.0.1:9/v1", Model: "m"}, provider: "env", url: "http://127.0.0.1:9/v1", key: "", model: "m"},
		"GitHub Models":              {in: inputs{Provider: "github-models"}, provider: "github-models", url: "https://models.github.ai/inference", key: token},
		"GitHub Models with a key":   {in: inputs{Provider: "github-models", APIKey: key}, provider: "github-models", url: "https://models.github.ai/inference", key: key},
		"GitHub Models by settings":  {settings: modelsTrial, provider: "github-models", url: "https://models.github.ai/inference", key: token},
		"the settings' provider":     {settings: ownProvider, in: inputs{APIKey: key}, provider: "corp", url: "https://llm.corp.example/v1", key: key, model: "big-1"},
		"named":                      {settings: ownProvider, in: inputs{Provider: "corp", APIKey: key}, provider: "corp", url: "https://llm.corp.example/v1", key: key, model: "big-1"},
		"the settings' address":      {settings: ownOpenAI, in: inputs{Provider: "openai", APIKey: key}, provider: "openai", url: "https://proxy.corp.example/v1", key: key},
		"the key in the environment": {settings: ownProvider, environ: []string{"CORP_KEY=" + key}, provider: "corp", url: "https://llm.corp.example/v1", key: key},
		"a vendor beside settings":   {settings: ownProvider, in: inputs{Provider: "openai", APIKey: key}, provider: "openai", url: "https://api.openai.com/v1", key: key},
		"no secret":                  {in: inputs{Provider: "openai"}, wrong: "api-key is empty"},
		"no secret for the settings": {settings: ownProvider, in: inputs{Provider: "corp"}, wrong: "api-key is empty"},
		"whose key":                  {in: inputs{APIKey: key}, wrong: "set provider too"},
		"unknown provider":           {in: inputs{Provider: "opanai", APIKey: key}, wrong: "did you mean openai"},
		"no key needed":              {settings: withoutAKey, in: inputs{APIKey: key}, wrong: "takes no key"},
		"wrong settings":             {settings: "nonsense: 1\n", in: inputs{APIKey: key}, wrong: "nonsense"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.in.Token = token
			load := func(env []string) (*config.Config, error) {
				return config.Load(config.Sources{RepoFile: "config.yaml", RepoTrusted: true, Env: env, ReadFile: func(string) ([]byte, error) {
					if tt.settings == noSettings {
						return nil, fs.ErrNotExist
					}
					return []byte(tt.settings), nil
				}})
			}
			before := append([]string{"INPUT_API-KEY=" + key, "INPUT_TOKEN=x", "GITHUB_TOKEN=another", "PATH=/bin"}, tt.environ...)
			env, err := tt.in.settingsEnviron(before, load)
			if tt.wrong != "" {
				if app.ExitCodeOf(err) != 2 || !strings.Contains(err.Error(), tt.wrong) || strings.Contains(err.Error(), key) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s := strings.Join(env, "\n"); strings.Contains(s, "INPUT_") || strings.Contains(s, "another") || !strings.Contains(s, "PATH=/bin") {
				t.Errorf("environment:\n%s", s)
			}
			c, err := load(env)
			if err != nil {
				t.Fatal(err)
			}
			m, err := c.ResolveModel("w", "r")
			if err != nil {
				t.Fatal(err)
			}
			if m.Model.Provider != tt.provider || m.Provider.BaseURL != tt.url || m.Provider.APIKey.Reveal() != tt.key || tt.model != "" && m.Model.Name != tt.model {
				t.Errorf("%s at %s, model %s, the right key: %t", m.Model.Provider, m.Provider.BaseURL, m.Model.Name, m.Provider.APIKey.Reveal() == tt.key)
			}
		})
	}
	_, err := (inputs{APIKey: key}).settingsEnviron(nil, func([]string) (*config.Config, error) { return nil, errors.New("no disk") })
	if err == nil || app.ExitCodeOf(err) != 1 {
		t.Errorf("%v", err)
	}
}

// An input does not loosen what the policy holds, be it as strict as the default alone.
func TestAdjustUnderPolicy(t *testing.T) {
	for policy, want := range map[string]config.Sandbox{"sandbox: auto\n": config.SandboxAuto, "sandbox: require\n": config.SandboxRequire, "sandbox: off\n": config.SandboxOff, "": config.SandboxOff} {
		for _, file := range []string{"", "sandbox: off\n"} {
			c, err := config.Load(config.Sources{RepoFile: "config.yaml", RepoTrusted: true, Policy: []byte(policy), PolicyName: "the input policy",
				ReadFile: func(string) ([]byte, error) { return []byte(file), nil }})
			if err != nil {
				t.Fatal(err)
			}
			inputs{Sandbox: config.SandboxOff}.adjustConfig(c)
			if c.Sandbox != want {
				t.Errorf("%q, %q: sandbox %s", policy, file, c.Sandbox)
			}
		}
	}
}

// Of two settings that protect, the stricter one counts.
func TestAdjust(t *testing.T) {
	yes, no := true, false
	for _, tt := range []struct {
		file      config.Sandbox
		in        config.Sandbox
		want      config.Sandbox
		shell     bool
		allow     *bool
		wantShell bool
	}{
		{"", "", config.SandboxAuto, false, nil, false},
		{"", config.SandboxOff, config.SandboxOff, false, &yes, true},
		{config.SandboxRequire, config.SandboxOff, config.SandboxRequire, true, nil, true},
		{config.SandboxOff, config.SandboxRequire, config.SandboxRequire, true, &no, false},
		{config.SandboxOff, "", config.SandboxOff, true, &yes, true},
	} {
		c := &config.Config{Sandbox: tt.file, AllowShell: tt.shell, Origins: map[string]string{"sandbox": "config.yaml:1"}}
		if tt.file == "" {
			c.Sandbox, c.Origins = config.SandboxAuto, map[string]string{}
		}
		inputs{Sandbox: tt.in, AllowShell: tt.allow}.adjustConfig(c)
		if c.Sandbox != tt.want || c.AllowShell != tt.wantShell {
			t.Errorf("%+v: %s, shell %t", tt, c.Sandbox, c.AllowShell)
		}
	}
}
