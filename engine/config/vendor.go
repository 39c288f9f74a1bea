package config

import (
	"net/url"
	"strings"
)

// vendor is a provider that uwf knows without being told.
type vendor struct {
	name    string
	kind    Kind
	baseURL string
	keyEnv  string
	urlEnv  string // variable that holds another base URL; empty: none
	modEnv  string // variable that names the model
	model   string // without one
}

// vendors are asked in this order when the environment holds several keys.
func vendors() []vendor {
	return []vendor{
		{"openai", OpenAI, "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "gpt-4.1"},
		{"anthropic", Anthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "claude-sonnet-4-5"},
		{"openrouter", OpenAI, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "", "OPENROUTER_MODEL", "anthropic/claude-sonnet-4.5"},
	}
}

func vendorNames() []string {
	var out []string
	for _, v := range vendors() {
		out = append(out, v.name)
	}
	return out
}

func vendorNamed(name string) (vendor, bool) {
	for _, v := range vendors() {
		if v.name == name {
			return v, true
		}
	}
	return vendor{}, false
}

// vendorAt is the vendor whose own host an address has, reached over TLS.
func vendorAt(baseURL string) (vendor, bool) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "https" || u.Port() != "" && u.Port() != "443" {
		return vendor{}, false
	}
	for _, v := range vendors() {
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
		{"gpt-4.1", 1_047_576, 32_768},
		{"gpt-4o", 128_000, 16_384},
		{"gpt-5", 400_000, 128_000},
		{"o3", 200_000, 100_000},
		{"o4-mini", 200_000, 100_000},
		{"claude-3", 200_000, 4_096},
		{"claude-opus-4", 200_000, 32_000},
		{"claude-sonnet-4", 200_000, 64_000},
		{"claude-haiku-4", 200_000, 64_000},
	}
	name := m.Name[strings.LastIndexByte(m.Name, '/')+1:]
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
	}
	return m
}
