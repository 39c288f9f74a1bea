package config

import (
	"net/url"
	"strings"
)

// vendor is a provider that uwf knows without being told.
type vendor struct {
	name    string
	label   string
	kind    Kind
	baseURL string
	keyEnv  string // empty: it needs no key
	// ambient: the key in the environment is enough to use it. A key that every CI
	// job has is no such sign.
	ambient bool
	urlEnv  string // variable that holds another base URL; empty: none
	modEnv  string // variable that names the model
	model   Model  // without one
	free    bool   // its models cost nothing
	reports bool   // it says with each answer what it cost
	note    string // what people should know before they choose it
}

// knownVendors are asked in this order when the environment holds several keys.
func knownVendors() []vendor {
	return []vendor{
		{name: "openai", label: "OpenAI", kind: OpenAI, baseURL: "https://api.openai.com/v1", keyEnv: "OPENAI_API_KEY", ambient: true,
			urlEnv: "OPENAI_BASE_URL", modEnv: "OPENAI_MODEL", model: Model{Name: "gpt-5.1", Price: newPrice(1.25, 0.125, 10)},
			note: "gpt-5.1 calls tools over chat completions, which uwf's own agent speaks; OpenAI ends it on 1 April 2027"},
		{name: "anthropic", label: "Anthropic", kind: Anthropic, baseURL: "https://api.anthropic.com", keyEnv: "ANTHROPIC_API_KEY", ambient: true,
			urlEnv: "ANTHROPIC_BASE_URL", modEnv: "ANTHROPIC_MODEL", model: Model{Name: "claude-sonnet-5-5", Price: newPrice(2, 0.2, 10)},
			note: "claude-code speaks its own protocol; uwf's own agent uses its OpenAI-compatible address, which Anthropic offers without promises"},
		{name: "openrouter", label: "OpenRouter", kind: OpenAI, baseURL: "https://openrouter.ai/api/v1", keyEnv: "OPENROUTER_API_KEY", ambient: true,
			modEnv: "OPENROUTER_MODEL", reports: true, model: Model{Name: "anthropic/claude-sonnet-5.5"},
			note: "one key for models of many providers; it reports the price of each answer"},
		{name: "github-models", label: "GitHub Models", kind: OpenAI, baseURL: "https://models.github.ai/inference", keyEnv: "GITHUB_TOKEN", free: true,
			model: Model{Name: "openai/gpt-4.1", Window: 12_000, MaxOutput: 4_000},
			note:  "needs a token that may read models (permissions: models: read in a job); free of charge, but a request takes about 8,000 tokens in and 4,000 out, and there are few a day: enough for small steps, not for large repositories"},
		{name: "ollama", label: "Ollama (on this machine)", kind: OpenAI, baseURL: "http://127.0.0.1:11434/v1", free: true,
			model: Model{Name: "qwen3", Window: 32_768, MaxOutput: 4_096},
			note:  "no key; pull the model first (ollama pull qwen3), and start the server with a window as large as the one configured here (OLLAMA_CONTEXT_LENGTH=32768 ollama serve): it drops what is too much without a word"},
	}
}

// Preset is a provider that uwf knows, for people to choose.
type Preset struct {
	Name, Label string
	Kind        Kind
	BaseURL     string
	APIKeyEnv   string // empty: no key
	Model       Model  // with what is known of its size and price
	Note        string
}

// Presets are the providers that uwf knows.
func Presets() []Preset {
	var out []Preset
	for _, v := range knownVendors() {
		m := withKnownSize(v.model)
		m.Provider = v.name
		out = append(out, Preset{Name: v.name, Label: v.label, Kind: v.kind, BaseURL: v.baseURL, APIKeyEnv: v.keyEnv, Model: m, Note: v.note})
	}
	return out
}

// KnownSize is a model with the window and output limit that uwf knows for its
// name, where it has none of its own.
func KnownSize(m Model) Model { return withKnownSize(m) }

func vendorNames() []string {
	var out []string
	for _, v := range knownVendors() {
		out = append(out, v.name)
	}
	return out
}

func vendorNamed(name string) (vendor, bool) {
	for _, v := range knownVendors() {
		if v.name == name {
			return v, true
		}
	}
	return vendor{}, false
}

// vendorOf is the vendor whose own address a provider has.
func vendorOf(p Provider) (vendor, bool) {
	for _, v := range knownVendors() {
		if sameURL(v.baseURL, p.BaseURL) {
			return v, true
		}
	}
	return vendor{}, false
}

func newPrice(input, cachedInput, output float64) Price {
	return Price{Input: &input, CachedInput: &cachedInput, Output: &output}
}

// vendorAt is the vendor whose own host an address has, reached over TLS.
func vendorAt(baseURL string) (vendor, bool) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "https" || u.Port() != "" && u.Port() != "443" {
		return vendor{}, false
	}
	for _, v := range knownVendors() {
		if own, err := url.Parse(v.baseURL); err == nil && strings.EqualFold(own.Hostname(), u.Hostname()) {
			return v, true
		}
	}
	return vendor{}, false
}

// withKnownSize fills in the window and the output limit of well-known models, in
// tokens, where the configuration has none.
func withKnownSize(m Model) Model {
	sizes := []struct {
		prefix         string
		window, output int
	}{
		{"gpt-4-1", 1_047_576, 32_768},
		{"gpt-4o", 128_000, 16_384},
		{"gpt-5", 400_000, 128_000},
		{"gpt-6", 1_050_000, 128_000},
		{"o3", 200_000, 100_000},
		{"o4-mini", 200_000, 100_000},
		{"claude-3", 200_000, 4_096},
		{"claude-opus-4-6", 1_000_000, 128_000},
		{"claude-opus-4", 200_000, 32_000},
		{"claude-opus-5", 1_000_000, 128_000},
		{"claude-sonnet-4-6", 1_000_000, 128_000},
		{"claude-sonnet-4", 200_000, 64_000},
		{"claude-sonnet-5", 1_000_000, 128_000},
		{"claude-haiku-4", 200_000, 64_000},
	}
	// One vendor writes a version with a dot, another with a dash.
	name := strings.ReplaceAll(m.Name[strings.LastIndexByte(m.Name, '/')+1:], ".", "-")
	for _, s := range sizes {
		if !strings.HasPrefix(name, s.prefix) {
			continue
		}
		if m.Window == 0 {
			m.Window = s.window
		}
		if m.MaxOutput == 0 {
			m.MaxOutput = min(s.output, m.Window)
		}
		break
	}
	return m
}
