package config

import (
	"net/url"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lists"
)

// Preset is a provider that uwf knows without being told, for people to choose.
type Preset struct {
	Name, Label string
	Kind        Kind
	BaseURL     string
	APIKeyEnv   string // empty: it needs no key
	Model       Model  // without one
	Note        string // what people should know before they choose it

	// ambient: the key in the environment is enough to use it. A key that every CI
	// job has is no such sign.
	ambient bool
	urlEnv  string // variable that holds another base URL; empty: none
	modEnv  string // variable that names the model
	free    bool   // its models cost nothing
	reports bool   // it says with each answer what it cost
}

// knownVendors are asked in this order when the environment holds several keys.
func knownVendors() []Preset {
	return []Preset{
		{Name: "openai", Label: "OpenAI", Kind: OpenAI, BaseURL: "https://api.openai.com/v1", APIKeyEnv: "OPENAI_API_KEY", ambient: true,
			urlEnv: "OPENAI_BASE_URL", modEnv: "OPENAI_MODEL", Model: Model{Name: "gpt-5.1", Price: newPrice(1.25, 0.125, 1.25, 10, "2026-11-23")},
			Note: "uwf's own agent asks models that reason by OpenAI's responses; OpenAI ends gpt-5.1 on 1 April 2027"},
		{Name: "anthropic", Label: "Anthropic", Kind: Anthropic, BaseURL: "https://api.anthropic.com", APIKeyEnv: "ANTHROPIC_API_KEY", ambient: true,
			urlEnv: "ANTHROPIC_BASE_URL", modEnv: "ANTHROPIC_MODEL", Model: Model{Name: "claude-sonnet-5-5", Price: newPrice(2, 0.2, 2.5, 10, "2026-11-23")},
			Note: "uwf's own agent and claude-code speak its own protocol, which keeps a prompt for five minutes"},
		{Name: "openrouter", Label: "OpenRouter", Kind: OpenAI, BaseURL: "https://openrouter.ai/api/v1", APIKeyEnv: "OPENROUTER_API_KEY", ambient: true,
			modEnv: "OPENROUTER_MODEL", reports: true, Model: Model{Name: "anthropic/claude-sonnet-5.5"},
			Note: "one key for models of many providers; it reports the price of each answer"},
		{Name: "gemini", Label: "Google Gemini", Kind: Gemini, BaseURL: "https://generativelanguage.googleapis.com", APIKeyEnv: "GEMINI_API_KEY", ambient: true,
			modEnv: "GEMINI_MODEL", Model: Model{Name: "gemini-3.5-flash", Price: newPrice(1.5, 0.15, 1.5, 9, "2026-11-26")},
			Note: "gemini speaks its own protocol; uwf's own agent uses its OpenAI-compatible address"},
		{Name: "github-models", Label: "GitHub Models", Kind: OpenAI, BaseURL: "https://models.github.ai/inference", APIKeyEnv: "GITHUB_TOKEN", free: true,
			Model: Model{Name: "openai/gpt-4.1", Window: 12_000, MaxOutput: 4_000},
			Note:  "needs a token that may read models (permissions: models: read in a job); free of charge, but a request takes about 8,000 tokens in and 4,000 out, and there are few a day: enough for small steps, not for large repositories"},
		{Name: "ollama", Label: "Ollama (on this machine)", Kind: OpenAI, BaseURL: "http://127.0.0.1:11434/v1", free: true,
			Model: Model{Name: "qwen3", Window: 32_768, MaxOutput: 4_096},
			Note:  "no key; pull the model first (ollama pull qwen3), and start the server with a window as large as the one configured here (OLLAMA_CONTEXT_LENGTH=32768 ollama serve): it drops what is too much without a word"},
	}
}

// Presets are the providers that uwf knows, with what is known of their models.
func Presets() []Preset {
	out := knownVendors()
	for i, v := range out {
		out[i].Model = withKnownSize(v.Model)
		out[i].Model.Provider = v.Name
	}
	return out
}

// KnownSize is a model with the window and output limit that uwf knows for its
// name, where it has none of its own.
func KnownSize(m Model) Model { return withKnownSize(m) }

// TellsCost says whether nobody has to say what its models cost: they cost nothing, or it tells.
func (p Preset) TellsCost() bool { return p.free || p.reports }

// IsLocal says whether an address is one of this machine.
func IsLocal(baseURL string) bool {
	u, err := url.Parse(baseURL)
	return err == nil && isLoopback(u.Hostname())
}

// PresetNames are their names.
func PresetNames() []string {
	return lists.Map(knownVendors(), func(v Preset) string { return v.Name })
}

// findVendor is the first vendor that is meant.
func findVendor(isMeant func(v Preset) bool) (Preset, bool) {
	all := knownVendors()
	if i := slices.IndexFunc(all, isMeant); i >= 0 {
		return all[i], true
	}
	return Preset{}, false
}

func vendorNamed(name string) (Preset, bool) {
	return findVendor(func(v Preset) bool { return v.Name == name })
}

// vendorOf is the vendor whose own address a provider has.
func vendorOf(p Provider) (Preset, bool) {
	return findVendor(func(v Preset) bool { return sameURL(v.BaseURL, p.BaseURL) })
}

func newPrice(input, cachedInput, cacheWrite, output float64, asOf string) Price {
	return Price{Input: &input, CachedInput: &cachedInput, CacheWrite: &cacheWrite, Output: &output, AsOf: asOf}
}

// vendorAt is the vendor whose own host an address has, reached over TLS.
func vendorAt(baseURL string) (Preset, bool) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "https" || u.Port() != "" && u.Port() != "443" {
		return Preset{}, false
	}
	return findVendor(func(v Preset) bool {
		own, err := url.Parse(v.BaseURL)
		return err == nil && strings.EqualFold(own.Hostname(), u.Hostname())
	})
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
		{"gemini-2-5", 1_048_576, 65_536},
		{"gemini-3", 1_048_576, 65_536},
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
		m.Reasoning = m.Reasoning || s.prefix[0] == 'o' || s.prefix == "gpt-5" || s.prefix == "gpt-6"
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
