package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/united-workforce/uwf/engine/config/table"
	"github.com/united-workforce/uwf/internal/text"
)

// setZeroPrices gives the models of vendors that take no money their price, where no
// file gives them one.
func setZeroPrices(c *Config) {
	for alias, m := range c.Models {
		if v, known := vendorOf(c.Providers[m.Provider]); known && v.free && m.Price == (Price{}) {
			m.Price = newPrice(0, 0, 0, 0, "")
			c.Models[alias] = m
		}
	}
}

// knownPrice is what a model of a server costs.
type knownPrice struct {
	address, model string
	Price
}

// pricesOf are the prices of the models of the user's own file.
func pricesOf(home, c *Config) (out []knownPrice) {
	for _, m := range home.Models {
		preset, _ := vendorNamed(m.Provider)
		address := cmp.Or(home.Providers[m.Provider].BaseURL, preset.BaseURL, c.Providers[m.Provider].BaseURL)
		out = append(out, knownPrice{address, m.Name, m.Price})
	}
	return out
}

// holdPrices makes models cost no less than what uwf or the user's own file knows of them:
// otherwise whoever says what they cost says how far a limit on cost goes. A price that nobody
// says is refused elsewhere.
func (l *loader) holdPrices(c *Config, known []knownPrice, limit string, isHeld func(alias string) bool) {
	for _, v := range knownVendors() {
		known = append(known, knownPrice{v.BaseURL, v.Model.Name, v.Model.Price})
	}
	for _, alias := range sortedKeys(c.Models) {
		m, at := c.Models[alias], table.Join("models", alias)+".price"
		if !isHeld(alias) || !m.Price.Known() {
			continue
		}

		said := newPrice(*m.Price.Input, m.Price.OfCachedInput(), m.Price.OfCacheWrite(), *m.Price.Output, m.Price.AsOf)
		holds := said
		for _, k := range known {
			if k.Known() && k.model == m.Name && sameHost(k.address, c.Providers[m.Provider].BaseURL) {
				holds = newPrice(max(*holds.Input, *k.Input), max(*holds.CachedInput, k.OfCachedInput()),
					max(*holds.CacheWrite, k.OfCacheWrite()), max(*holds.Output, *k.Output), said.AsOf)
			}
		}
		if reflect.DeepEqual(said, holds) {
			continue
		}

		m.Price = holds
		c.Models[alias] = m
		told := fmt.Sprintf("it is lower than what uwf knows of %s, which holds under %s: %g in and %g out", m.Name, limit, *holds.Input, *holds.Output)
		l.bounds.held = append(l.bounds.held, problemAt(c.Origins[at], at, told, "").String())
	}
}

// ReportsCost says whether a model's provider tells with each answer what it cost.
func (c *Config) ReportsCost(alias string) bool {
	v, known := vendorOf(c.Providers[c.Models[alias].Provider])
	return known && v.reports
}

// NoPriceError says that nobody can tell what a model's answers cost.
type NoPriceError struct {
	Alias    string
	Extracts bool   // it is there for unreadable answers
	Set      string // what to do, see BuildPriceCommand
}

func (e *NoPriceError) Error() string {
	what := "what the model " + e.Alias + " costs is unknown"
	if e.Extracts {
		what = "what the model " + e.Alias + " costs, which reads unreadable answers (modelOverrides.extract: off does without), is unknown"
	}
	return what + ": " + e.Set
}

// CheckPrices makes sure that what a role's answers cost can be told: those of its
// model, and of the one that reads unreadable answers. Models that are not
// configured are an agent's own. The error is a *NoPriceError.
func (c *Config) CheckPrices(workflow, role string) error {
	for i, alias := range []string{c.modelOf(workflow, role), c.extractModel()} {
		if own, err := c.findUsable(alias); err == nil {
			alias = own.Alias
		}
		if m, ok := c.Models[alias]; ok && !m.Price.Known() && !c.ReportsCost(alias) {
			return &NoPriceError{Alias: alias, Extracts: i > 0, Set: c.BuildPriceCommand(alias)}
		}
	}
	return nil
}

// BuildPriceCommand says how a model's price is set: by which command, for the file that has the
// model. One that only the environment knows is written down with it.
func (c *Config) BuildPriceCommand(alias string) string {
	origin := c.Origins[table.Join("models", alias)]
	file, _, _ := splitOrigin(origin)
	fromEnv := origin != "" && !isFile(origin)
	words := []string{"uwf", "config", "set"}
	if file == c.shared && file != "" || fromEnv && c.inCI {
		words = append(words, "--repo")
	}
	add := func(value string, path ...string) {
		words = append(words, text.ShellWord(Path(path).String()), text.ShellWord(value))
	}
	if m := c.Models[alias]; fromEnv {
		if c.DefaultModel == alias {
			add(alias, "defaultModel")
		}
		add(m.Provider, "models", alias, "provider")
		add(m.Name, "models", alias, "name")
	}
	add("DOLLARS", "models", alias, "price", "input")
	add("DOLLARS", "models", alias, "price", "output")
	return "set its price for a million tokens, 0 where it costs nothing: " + strings.Join(words, " ")
}

// modelOf is the alias of a role's model; empty: it has none.
func (c *Config) modelOf(workflow, role string) string {
	overrides := c.ModelOverrides[workflow]
	return cmp.Or(c.chosenModels.of(role), overrides[role], overrides[everyRole], c.DefaultModel)
}

// extractModel is the alias of the model that reads unreadable answers; empty:
// there is none.
func (c *Config) extractModel() string {
	if c.ExtractModel == NoExtract {
		return ""
	}
	for _, name := range []string{c.ExtractModel, extractScenario, defaultScenario} {
		if _, ok := c.Models[name]; ok || name == c.ExtractModel && name != "" {
			return name
		}
	}
	return c.DefaultModel
}
