package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/shlex"

	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/config/edit"
)

func price(input, output float64) config.Price { return config.Price{Input: &input, Output: &output} }

// TestPriceOfRepository: a repository can't make a model cheaper than the person, or uwf, knows it to
// be: a limit of the person's own would end nothing.
func TestPriceOfRepository(t *testing.T) {
	const home = "providers: {acme: {baseUrl: 'https://llm.acme.example/v1'}}\n" +
		"models: {big: {provider: acme, name: big-1, price: {input: 10, output: 50}}, twin: {provider: acme, name: big-1, price: {input: 12, output: 40}}}\nlimits: {costUsd: 1}\n"
	for _, c := range []struct {
		name, model, price string
		trusted            bool
		want               [4]float64 // input, cachedInput, cacheWrite, output
		held               bool
	}{
		{"nothing", "{provider: acme, name: big-1", "{input: 0, output: 0}", false, [4]float64{12, 12, 15, 50}, true},
		{"of cached input", "{provider: acme, name: big-1", "{input: 12, cachedInput: 0, cacheWrite: 0, output: 50}", false, [4]float64{12, 12, 15, 50}, true},
		{"more", "{provider: acme, name: big-1", "{input: 20, output: 60}", false, [4]float64{20, 20, 25, 60}, false},
		{"by another provider of that server", "{provider: sly, name: big-1", "{input: 0, output: 0}", false, [4]float64{12, 12, 15, 50}, true},
		{"of a model that uwf knows", "{provider: openai, name: gpt-5.1", "{input: 0, output: 0}", false, [4]float64{1.25, 0.125, 1.25, 10}, true},
		{"of another model", "{provider: acme, name: small-1", "{input: 0, output: 0}", false, [4]float64{}, false},
		{"of another server", "{provider: house, name: big-1", "{input: 0, output: 0}", false, [4]float64{}, false},
		{"in a job", "{provider: acme, name: big-1", "{input: 0, output: 0}", true, [4]float64{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mustLoad(t, sources{home: home, trusted: c.trusted, repo: "providers: {openai: {}, sly: {baseUrl: 'https://LLM.acme.example:443/v2/'}, house: {baseUrl: 'https://house.example/v1'}}\n" +
				"models: {m: " + c.model + ", price: " + c.price + "}}\n"})
			p := got.Models["m"].Price
			if is := [4]float64{*p.Input, p.OfCachedInput(), p.OfCacheWrite(), *p.Output}; is != c.want {
				t.Errorf("it costs %v", is)
			}
			held := got.Policies.Held()
			if (len(held) == 1) != c.held || c.held && (!strings.HasPrefix(held[0], repoFile+":2:") || !strings.Contains(held[0], "models.m.price: it is lower than what uwf knows of ")) {
				t.Errorf("told %q", held)
			}
			if own := got.Models["twin"].Price; *own.Output != 40 {
				t.Errorf("the person's own price is %g", *own.Output)
			}
		})
	}
}

// A price of 0 is a price, one that is not there is unknown, and half a price is none.
func TestPriceOfCachedInput(t *testing.T) {
	const file = "models:\n  a: {provider: openai, price: {input: 3, output: 4}}\n  b: {provider: openai, price: {input: 3, cachedInput: 0, cacheWrite: 0, output: 4, asOf: 2026-11-23}}\n"
	c := mustLoad(t, sources{home: file})
	for alias, want := range map[string][2]float64{"a": {3, 3.75}, "b": {0, 0}} {
		if p := c.Models[alias].Price; p.OfCachedInput() != want[0] || p.OfCacheWrite() != want[1] {
			t.Errorf("%s: %v and %v, not %v", alias, p.OfCachedInput(), p.OfCacheWrite(), want)
		}
	}
	if got := c.Models["b"].Price.AsOf; got != "2026-11-23" {
		t.Errorf("as of %q", got)
	}
	for _, bad := range []string{"yesterday", "2026-13-01", "[1]"} {
		_, err := sources{home: strings.Replace(file, "asOf: 2026-11-23", "asOf: "+bad, 1)}.load()
		if !errors.As(err, new(*config.InvalidError)) {
			t.Errorf("as of %s: %v", bad, err)
		}
	}
}

// The prices of presets say of which day they are, and what all input costs.
func TestPresetsAreDated(t *testing.T) {
	for _, p := range config.Presets() {
		if price := p.Model.Price; price.Known() && (price.AsOf == "" || price.CachedInput == nil || price.CacheWrite == nil) {
			t.Errorf("%s: %+v", p.Name, price)
		}
	}
}

func TestPrices(t *testing.T) {
	const file = `
providers:
  local: {baseUrl: "http://127.0.0.1:9000/v1"}
  claude: {baseUrl: https://api.anthropic.com, apiKeyEnv: CLAUDE_KEY}
models:
  paid: {provider: claude, name: a, price: {input: 3, output: 15}}
  free: {provider: local, name: b, price: {input: 0, output: 0}}
  free-input: {provider: local, name: b, price: {input: 0, output: 2}}
  none: {provider: local, name: b}
  empty: {provider: local, name: b, price: {}}
  half: {provider: local, name: b, price: {input: 0}}
  other-half: {provider: local, name: b, price: {output: 0}}
`
	c := mustLoad(t, sources{home: file})
	for alias, known := range map[string]bool{"paid": true, "free": true, "free-input": true, "none": false, "empty": false, "half": false, "other-half": false} {
		if c.Models[alias].Price.Known() != known {
			t.Errorf("%s: known %v", alias, !known)
		}
	}
	values := map[string]any{}
	for _, v := range c.Values() {
		values[v.Path.String()] = v.Value
	}
	if values["models.free.price.input"] != 0.0 || values["models.paid.price.output"] != 15.0 {
		t.Errorf("shown are %v and %v", values["models.free.price.input"], values["models.paid.price.output"])
	}
	if v, shown := values["models.half.price.output"]; shown {
		t.Errorf("what nobody set is shown as %v", v)
	}
	for _, bad := range []string{"-1", "cheap", ".nan", "[1]"} {
		_, err := sources{home: strings.Replace(file, "input: 3", "input: "+bad, 1)}.load()
		var invalid *config.InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("a price of %s: %v", bad, err)
		}
	}
}

// Vendors that take no money need no price, and one that tells the cost of each
// answer doesn't either; at another address they are like any other provider.
func TestPricesOfVendors(t *testing.T) {
	const file = `
providers:
  ollama: {}
  github-models: {}
  openrouter: {}
  elsewhere: {baseUrl: "http://gpu.example:11434/v1"}
models:
  local: {provider: ollama, name: llama3}
  hub: {provider: github-models, name: openai/gpt-4.1}
  router: {provider: openrouter, name: x/y}
  remote: {provider: elsewhere, name: llama3}
  dear: {provider: ollama, name: llama3, price: {input: 1, output: 1}}
defaultModel: remote
modelOverrides: {w: {a: local, b: hub, c: router, d: dear}, extract: local}
`
	c := mustLoad(t, sources{home: file})
	for role, ok := range map[string]bool{"a": true, "b": true, "c": true, "d": true, "e": false} {
		var missing *config.NoPriceError
		if err := c.CheckPrices("w", role); (err == nil) != ok || !ok && (!errors.As(err, &missing) || missing.Alias != "remote") {
			t.Errorf("role %s: %v", role, err)
		}
	}
	if !c.ReportsCost("router") || c.ReportsCost("local") || c.ReportsCost("nobody") {
		t.Error("who reports the cost is not known")
	}
	if *c.Models["dear"].Price.Input != 1 || *c.Models["local"].Price.Input != 0 {
		t.Error("a price that was set is not kept, or that of nothing is not known")
	}
}

// The model that reads unreadable answers costs money, too.
func TestPriceOfExtraction(t *testing.T) {
	const file = `
providers: {p: {baseUrl: "https://p.example/v1"}}
models:
  main: {provider: p, name: a, price: {input: 1, output: 2}}
  reader: {provider: p, name: b}
defaultModel: main
modelOverrides: {extract: reader}
`
	var missing *config.NoPriceError
	if err := mustLoad(t, sources{home: file}).CheckPrices("w", "r"); !errors.As(err, &missing) || missing.Alias != "reader" || !strings.Contains(err.Error(), "reads unreadable answers (modelOverrides.extract: off does without)") {
		t.Errorf("%v", err)
	}
	if err := mustLoad(t, sources{home: strings.Replace(file, "extract: reader", "extract: off", 1)}).CheckPrices("w", "r"); err != nil {
		t.Error(err)
	}
	if err := mustLoad(t, sources{}).CheckPrices("w", "r"); err != nil {
		t.Errorf("without any model: %v", err)
	}
}

// The command that is named sets the price: it is run here, on the files, and then
// nothing is missing.
func TestSetPriceDoesWhatItSays(t *testing.T) {
	const provider = "providers: {p: {baseUrl: \"https://p.example/v1\"}}\n"
	for name, c := range map[string]struct {
		s    sources
		says string
	}{
		"home":          {sources{home: provider + "models: {m: {provider: p}}\ndefaultModel: m\n"}, "uwf config set models.m.price.input DOLLARS models.m.price.output DOLLARS"},
		"repository":    {sources{repo: provider + "models: {m: {provider: p}}\ndefaultModel: m\n"}, "uwf config set --repo models.m.price.input DOLLARS models.m.price.output DOLLARS"},
		"dots":          {sources{home: provider + "models: {gpt-4.9: {provider: p}}\ndefaultModel: gpt-4.9\n"}, `uwf config set 'models."gpt-4.9".price.input' DOLLARS 'models."gpt-4.9".price.output' DOLLARS`},
		"environment":   {sources{env: []string{"OPENAI_API_KEY=" + fakeKey, "OPENAI_MODEL=gpt-9"}}, "uwf config set defaultModel openai models.openai.provider openai models.openai.name gpt-9 models.openai.price.input DOLLARS models.openai.price.output DOLLARS"},
		"for one run":   {sources{env: []string{"OPENAI_API_KEY=" + fakeKey, "UWF_PROVIDER=openai", "UWF_MODEL=gpt-9"}}, `'models."openai/gpt-9".price.input' DOLLARS`},
		"in a job":      {sources{trusted: true, env: []string{"OPENAI_API_KEY=" + fakeKey, "UWF_PROVIDER=openai", "UWF_MODEL=gpt-9"}}, `uwf config set --repo defaultModel openai/gpt-9 `},
		"in both files": {sources{repo: provider + "models: {m: {provider: p}}\ndefaultModel: m\n", home: "limits: {costUsd: 5}\n"}, "uwf config set --repo models.m"},
	} {
		t.Run(name, func(t *testing.T) {
			var missing *config.NoPriceError
			if err := mustLoad(t, c.s).CheckPrices("w", "r"); !errors.As(err, &missing) || !strings.Contains(missing.Set, c.says) {
				t.Fatalf("%v\nwant %s", err, c.says)
			}
			words, err := shlex.Split(missing.Set[strings.Index(missing.Set, "uwf config set"):])
			if err != nil {
				t.Fatal(err)
			}
			words, file := words[3:], &c.s.home
			if words[0] == "--repo" {
				words, file = words[1:], &c.s.repo
			}
			for i := 0; i < len(words); i += 2 {
				path, err := config.ParsePath(words[i])
				if err != nil {
					t.Fatal(err)
				}
				value, err := config.ParseValue(path, strings.Replace(words[i+1], "DOLLARS", "2.5", 1))
				if err != nil {
					t.Fatal(err)
				}
				text, err := edit.Apply([]byte(*file), edit.Change{Path: path, Value: value})
				if err != nil {
					t.Fatal(err)
				}
				*file = string(text)
			}
			again := mustLoad(t, c.s)
			if err := again.CheckPrices("w", "r"); err != nil {
				t.Errorf("%v, after that the file is\n%s", err, *file)
			}
			if m, err := again.ResolveModel("w", "r"); err != nil || *m.Model.Price.Input != 2.5 || name != "environment" && strings.Contains(c.says, "gpt-9") && m.Model.Name != "gpt-9" {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
}

// The body's bound is a setting, of which the lower one counts.
func TestMaxBody(t *testing.T) {
	for name, c := range map[string]struct {
		s    sources
		want int64
	}{
		"nobody":    {sources{}, 0},
		"home":      {sources{home: "gateway: {maxBody: 33554432}"}, 32 << 20},
		"the lower": {sources{repo: "gateway: {maxBody: 33554432}", home: "gateway: {maxBody: 1_000_000}"}, 1_000_000},
	} {
		if got := mustLoad(t, c.s).Gateway.MaxBody; got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
	for _, bad := range []string{"0", "100", "1e6", "8MiB", "1000000000"} {
		if _, err := (sources{home: "gateway: {maxBody: " + bad + "}"}).load(); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
