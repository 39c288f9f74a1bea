package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/config/table"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// ownProvider is the name of the provider that UWF_BASE_URL and UWF_API_KEY
// describe, where UWF_PROVIDER doesn't name it.
const ownProvider = "env"

// fromEnvironment adds what only the environment says, and puts in front what it
// says for this run.
func (l *loader) fromEnvironment(c *Config) {
	fallback := l.addAmbient(c)
	own := l.ownProvider(c)
	if c.personal = cmp.Or(c.personal, fallback); c.DefaultModel == "" {
		c.DefaultModel = l.onlyModel(c, fallback)
	}
	l.chooseModel(c, own)
	l.chooseForRoles(c)
	if v, ok := l.lookupVariable("UWF_BUILTIN_ALLOW_SHELL"); ok {
		c.AllowShell = isOn(v.value)
		c.Origins["allowShell"] = "$UWF_BUILTIN_ALLOW_SHELL"
	}
}

// onlyModel is the default where no file names one: the only model of the files,
// else that of the first key in the environment.
func (l *loader) onlyModel(c *Config, fallback string) string {
	configured := lists.Filter(sortedKeys(c.Models), func(alias string) bool {
		return isFile(c.Origins[table.Join("models", alias)])
	})
	if len(configured) == 1 {
		return configured[0]
	}
	if fallback != "" {
		c.Origins["defaultModel"] = c.Origins[table.Join("models", fallback)]
	}
	return fallback
}

// addAmbient adds the vendors whose keys are in the environment and that no file
// configures; it returns the alias of the first one's model.
func (l *loader) addAmbient(c *Config) (first string) {
	for _, v := range knownVendors() {
		if _, taken := c.Providers[v.Name]; taken || !v.ambient && l.valueInEnv("UWF_PROVIDER") != v.Name {
			continue
		}
		p, origin, ok := l.vendorProvider(v)
		if !ok {
			continue
		}
		c.Providers[v.Name] = p
		c.Origins[table.Join("providers", v.Name)] = origin
		if _, taken := c.Models[v.Name]; taken {
			continue
		}
		c.Models[v.Name] = l.vendorModel(v)
		c.Origins[table.Join("models", v.Name)] = origin
		first = cmp.Or(first, v.Name)
	}
	return first
}

// vendorModel is the model of a vendor that the environment names, or the usual one.
func (l *loader) vendorModel(v Preset) Model {
	m := v.Model
	if name := l.valueInEnv(v.modEnv); name != "" {
		m = Model{Name: name}
	}
	m.Provider = v.Name
	return withKnownSize(m)
}

// vendorProvider is what the environment says about one vendor.
func (l *loader) vendorProvider(v Preset) (p Provider, origin string, ok bool) {
	key, hasKey := l.lookupVariable(v.APIKeyEnv)
	base, hasBase := l.lookupVariable(v.urlEnv)
	switch {
	case hasKey && hasBase && !l.isOneSource(base, v.urlEnv, key, v.APIKeyEnv):
		return p, "", false
	case hasKey:
		p = Provider{BaseURL: base.value, APIKeyEnv: v.APIKeyEnv, Kind: v.Kind}
		origin = "$" + v.APIKeyEnv
	case v.APIKeyEnv == "":
		p = Provider{Kind: v.Kind}
		origin = l.originOf("UWF_PROVIDER")
	case hasBase && v.Kind == OpenAI: // a server of one's own, which needs no key
		p = Provider{BaseURL: base.value, Kind: v.Kind}
		origin = "$" + v.urlEnv
	default:
		return p, "", false
	}
	p, wrong := completeProvider(v.Name, p)
	if wrong != "" {
		l.addProblem("$"+v.urlEnv, "", "", "%s", wrong)
		return p, "", false
	}
	return p, origin, true
}

// isOneSource reports whether an address and a key were set in one place; another is a
// problem.
func (l *loader) isOneSource(base variable, urlEnv string, key variable, keyEnv string) bool {
	if base.source != key.source {
		l.addProblem("$"+urlEnv, "", "set both in one place",
			"the address is from %s and the key, %s, from %s: a key is only sent where its own source says", base.source, keyEnv, key.source)
	}
	return base.source == key.source
}

// ownProvider adds the provider of UWF_BASE_URL and UWF_API_KEY and returns its
// name; empty: there is none.
func (l *loader) ownProvider(c *Config) string {
	base, hasBase := l.lookupVariable("UWF_BASE_URL")
	key, hasKey := l.lookupVariable("UWF_API_KEY")
	if !hasBase && !hasKey {
		return ""
	}
	name := cmp.Or(l.valueInEnv("UWF_PROVIDER"), ownProvider)
	v, known := vendorNamed(name)
	switch {
	case hasBase && hasKey && !l.isOneSource(base, "UWF_BASE_URL", key, "UWF_API_KEY"):
		return ""
	case !hasBase && name == ownProvider:
		base.value = knownVendors()[0].BaseURL
	case !hasBase && !known:
		l.addProblem("$UWF_API_KEY", "", "set UWF_BASE_URL too",
			"the address of provider %q comes from another source, which gets no key of the environment", name)
		return ""
	}
	p := Provider{BaseURL: base.value, Kind: v.Kind}
	if hasKey {
		p.APIKeyEnv = "UWF_API_KEY"
		p.APIKey = Key(strings.TrimSpace(key.value))
	}
	p, wrong := completeProvider(name, p)
	if wrong != "" {
		l.addProblem("$UWF_BASE_URL", "", "", "%s", wrong)
		return ""
	}
	if !hasKey { // no other key goes to an address that came without one
		p.APIKeyEnv = ""
	}
	c.Providers[name] = p
	c.Origins[table.Join("providers", name)] = "$UWF_BASE_URL"
	return name
}

// chooseModel applies UWF_MODEL and UWF_PROVIDER, or the flags that stand for them, to the
// default model. A model that was named, or a provider by its flag, goes before the models of
// single roles; the variable UWF_PROVIDER, which jobs have for their key, does not.
func (l *loader) chooseModel(c *Config, own string) {
	l.chooseDefault(c, own)
	delete(c.chosenModels, everyRole)
	if l.valueInEnv("UWF_MODEL") != "" || l.s.Choice.Provider != "" {
		c.chosenModels[everyRole] = c.DefaultModel
	}
}

func (l *loader) chooseDefault(c *Config, own string) {
	model, provider := l.valueInEnv("UWF_MODEL"), cmp.Or(own, l.valueInEnv("UWF_PROVIDER"))
	if model == "" && provider == "" {
		return
	}
	if _, ok := c.Providers[provider]; provider != "" && !ok {
		if len(l.problems) == 0 { // else that is why it is missing
			l.refuseProvider(c, provider)
		}
		return
	}
	if model == "" {
		l.modelOf(c, provider)
		return
	}
	origin := l.originOf("UWF_MODEL")
	if origin == "--model" && l.s.Choice.Provider == "" && own == "" {
		provider = "" // a variable doesn't say whose model a flag means, unless nothing else does
		if _, ok := c.Models[model]; !ok && !strings.Contains(model, "/") {
			provider = l.valueInEnv("UWF_PROVIDER")
		}
	}
	if alias := l.aliasOf(c, model, provider, origin); alias != "" {
		l.setDefault(c, alias, origin)
	}
}

// refuseProvider says why a provider that was chosen can't be used.
func (l *loader) refuseProvider(c *Config, provider string) {
	origin := l.originOf("UWF_PROVIDER")
	if v, ok := vendorNamed(provider); ok {
		l.addProblem(origin, "", "set "+v.APIKeyEnv+" in the environment or in ~/.uwf/.env (uwf setup --provider "+provider+")", "the provider %q has no key here", provider)
		return
	}
	names := slices.Concat(sortedKeys(c.Providers), PresetNames())
	slices.Sort(names)
	l.addProblem(origin, "", text.DidYouMean(provider, names, "there are "+strings.Join(slices.Compact(names), ", ")+"; any other one has an address: uwf setup --provider custom --base-url ADDRESS --model NAME, or UWF_BASE_URL"), "there is no provider %q", provider)
}

func (l *loader) setDefault(c *Config, alias, origin string) {
	c.DefaultModel = alias
	c.Origins["defaultModel"] = origin
}

// modelOf makes the only model of a provider the default.
func (l *loader) modelOf(c *Config, provider string) {
	if c.Models[c.DefaultModel].Provider == provider {
		return
	}
	of := lists.Filter(sortedKeys(c.Models), func(alias string) bool { return c.Models[alias].Provider == provider })
	if v, ok := vendorNamed(provider); ok && len(of) == 0 {
		m := l.vendorModel(v)
		alias := provider + "/" + m.Name
		c.Models[alias] = m
		of = []string{alias}
	}
	switch {
	case len(of) == 0 && provider == ownProvider:
		l.addProblem("$UWF_BASE_URL", "", "name it: --model NAME, or UWF_MODEL", "there is no model for this address")
		return
	case len(of) == 0:
		l.addProblem(l.originOf("UWF_PROVIDER"), "", "name it: --model NAME, or UWF_MODEL", "provider %q has no model", provider)
		return
	case len(of) > 1:
		l.addProblem(l.originOf("UWF_PROVIDER"), "", "say which: --model or UWF_MODEL", "provider %q has %d models to choose from", provider, len(of))
		return
	}
	l.setDefault(c, of[0], l.originOf("UWF_PROVIDER"))
}
