package setup

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/cmd/internal/app"
	engine "github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/config/edit"
	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// Answers are what has to be known.
type Answers struct {
	Provider  string // a preset's name, or custom
	BaseURL   string
	Model     string
	APIKeyEnv string // variable that holds the key; empty: no key
	Key       string // given now; empty: the variable is set already
	Agent     string // default agent; empty: unchanged
	Price     string // of a million tokens in and out, see parsePrice; empty: what is known
	Repo      bool   // into the repository's file
}

// ProviderNamed is what is known of a provider.
func ProviderNamed(name string) (engine.Preset, bool) {
	all := engine.Presets()
	if i := slices.IndexFunc(all, func(p engine.Preset) bool { return p.Name == name }); i >= 0 {
		return all[i], true
	}
	return engine.Preset{Name: custom, Label: "Any other, by its address", Kind: engine.OpenAI}, name == custom
}

// ProviderNames are the names of those that people can choose.
func ProviderNames() []string { return append(engine.PresetNames(), custom) }

// Complete fills in what the preset knows.
func (a *Answers) Complete() {
	p, _ := ProviderNamed(a.Provider)
	if a.BaseURL == "" {
		a.BaseURL = p.BaseURL
	}
	a.BaseURL = strings.TrimRight(a.BaseURL, "/")
	if a.Model == "" {
		a.Model = p.Model.Name
	}
	if a.APIKeyEnv == "" && (a.Provider != custom || a.Key != "") {
		a.APIKeyEnv = p.APIKeyEnv
	}
	if a.APIKeyEnv == "" && a.Key != "" {
		a.APIKeyEnv = "UWF_" + strings.ToUpper(a.Provider) + "_API_KEY"
	}
}

// modelSettings is the chosen model with what is known of it.
func (a Answers) modelSettings() engine.Model {
	p, _ := ProviderNamed(a.Provider)
	m := p.Model
	if a.Model != m.Name {
		m = engine.KnownSize(engine.Model{Provider: a.Provider, Name: a.Model})
	}
	if price, err := parsePrice(a.Price); err == nil && a.Price != "" {
		m.Price = price
	} else if !m.Price.Known() && engine.IsLocal(a.BaseURL) {
		m.Price, _ = parsePrice("0")
	}
	return m
}

// tellsCost says whether what the model costs is known.
func (a Answers) tellsCost() bool {
	p, _ := ProviderNamed(a.Provider)
	return p.TellsCost() || a.modelSettings().Price.Known()
}

// parsePrice reads what a million tokens cost in US dollars: of input and of output, or 0.
func parsePrice(s string) (p engine.Price, err error) {
	in, out, both := strings.Cut(s, ",")
	if s = strings.TrimSpace(s); s == "0" {
		in, out, both = "0", "0", true
	}
	var price [2]float64
	for i, word := range []string{in, out} {
		price[i], err = strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(word), "$"), 64)
		if err != nil || !both || !(price[i] >= 0 && price[i] < 1e6) {
			return p, errors.New("write the price of a million tokens in and out, in US dollars, such as 2,10; or 0 where they cost nothing")
		}
	}
	return engine.Price{Input: &price[0], Output: &price[1]}, nil
}

// Apply is the text of a settings file with the answers in it. What it says of
// another model of the same alias, or of one at another address, goes; of the same model it stays: a price that
// somebody set is more than a preset knows. A key in it goes once the variable has
// one.
func (a Answers) Apply(old []byte, hasKey bool) ([]byte, error) {
	provider, model := []string{"providers", a.Provider}, []string{"models", a.Provider}
	chosen := []edit.Change{
		setPath(settingNode(a.Provider), model, "provider"),
		setPath(settingNode(a.Model), model, "name"),
	}
	was, err := edit.Apply(old, chosen...)
	if err != nil {
		return nil, err
	}
	changes := []edit.Change{
		setPath(settingNode(a.BaseURL), provider, "baseUrl"),
		setPath(settingNode(a.APIKeyEnv), provider, "apiKeyEnv"),
	}
	if string(was) != string(old) || a.moves(old) {
		changes = append(changes, setPath(nil, model, "window"), setPath(nil, model, "maxOutput"), setPath(nil, model, "price"))
	}
	changes = append(append(changes, chosen...), a.knownValues(model)...)
	changes = append(changes, setPath(settingNode(a.Provider), []string{"defaultModel"}))
	if hasKey {
		changes = append(changes, setPath(nil, provider, "apiKey"))
	}
	if a.Agent != "" {
		changes = append(changes, setPath(settingNode(a.Agent), []string{"defaultAgent"}))
	}
	return edit.Apply(old, changes...)
}

// moves says whether a settings file has the provider at another address: what its model costs
// there says nothing of what it costs here.
func (a Answers) moves(old []byte) bool {
	var file struct {
		Providers map[string]struct {
			BaseURL string `yaml:"baseUrl"`
		} `yaml:"providers"`
	}
	if yaml.Unmarshal(old, &file) != nil {
		return false // edit.Apply says what is wrong
	}
	was := strings.TrimRight(file.Providers[a.Provider].BaseURL, "/")
	return was != "" && was != a.BaseURL
}

// knownValues are what is known of the model, for where the file says nothing of it.
func (a Answers) knownValues(model []string) []edit.Change {
	m := a.modelSettings()
	var price struct {
		Input       *float64 `yaml:"input"`
		CachedInput *float64 `yaml:"cachedInput,omitempty"`
		CacheWrite  *float64 `yaml:"cacheWrite,omitempty"`
		Output      *float64 `yaml:"output"`
		AsOf        string   `yaml:"asOf,omitempty"`
	}
	if p := m.Price; p.Known() {
		price.Input, price.CachedInput, price.CacheWrite, price.Output, price.AsOf = p.Input, p.CachedInput, p.CacheWrite, p.Output, p.AsOf
	}
	var out []edit.Change
	for _, c := range []edit.Change{
		setPath(settingNode(m.Window), model, "window"),
		setPath(settingNode(m.MaxOutput), model, "maxOutput"),
		setPath(settingNode(price), model, "price"),
	} {
		if c.Keep = a.Price == "" || c.Path[2] != "price"; c.Value != nil {
			out = append(out, c)
		}
	}
	return out
}

func setPath(v *yaml.Node, path []string, more ...string) edit.Change {
	return edit.Change{Path: append(append([]string{}, path...), more...), Value: v}
}

// settingNode is a value as it stands in a file, on one line; nil, which takes the setting
// out, where there is none.
func settingNode(v any) *yaml.Node {
	n := &yaml.Node{}
	if reflect.ValueOf(v).IsZero() || n.Encode(v) != nil {
		return nil
	}
	if n.Kind == yaml.MappingNode {
		n.Style = yaml.FlowStyle
	}
	return n
}

var (
	envName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	// keyText is what keys look like: nothing that has a meaning in a file of
	// variables or in a header.
	keyText = lazyregexp.New(`^[A-Za-z0-9_.~+/=:|@%^*,!?-]+$`)
)

// checkKey says what is wrong with a key, without repeating it.
func checkKey(key string) error {
	if len(key) > maxKey || !keyText.MatchString(key) {
		return app.Usagef("this is no key: it is empty, or has spaces, quotes or other letters than keys have")
	}
	return nil
}

func checkEnvName(name string) error {
	if !envName.MatchString(name) {
		return app.Usagef("--api-key-env: this is no name of a variable: give the name, not the key itself")
	}
	return nil
}

// withVariable is the text of a file of variables with one of them set.
func withVariable(old []byte, name, value string) ([]byte, error) {
	before, err := engine.ParseEnv(old)
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is no file of NAME=value lines; repair it first")
	case before[name] == value:
		return old, nil
	}
	eol := "\n"
	if strings.Contains(string(old), "\r\n") {
		eol = "\r\n"
	}
	line := name + "=" + value
	is := regexp.MustCompile(`^\s*(export\s+)?` + regexp.QuoteMeta(name) + `\s*[=:]`)
	var out strings.Builder
	done := false
	for l := range strings.Lines(string(old)) {
		if !is.MatchString(l) {
			out.WriteString(l)
			continue
		}
		if !done { // a second one would win over the first
			out.WriteString(line + eol)
		}
		done = true
	}
	if !done {
		if s := out.String(); s != "" && !strings.HasSuffix(s, "\n") {
			out.WriteString(eol)
		}
		out.WriteString(line + eol)
	}
	text := []byte(out.String())
	after, err := engine.ParseEnv(text)
	if err != nil || after[name] != value {
		return nil, fmt.Errorf("the key can't be written into it so that it is read again; set %s there by hand", name)
	}
	for other, was := range before {
		if other != name && after[other] != was {
			return nil, fmt.Errorf("the key can't be written into it so that %q stays as it is; set %s there by hand", other, name)
		}
	}
	return text, nil
}
