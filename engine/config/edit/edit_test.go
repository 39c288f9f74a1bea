package edit_test

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/engine/config/edit"
)

func str(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
func num(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: s} }
func list(items ...string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, s := range items {
		n.Content = append(n.Content, str(s))
	}
	return n
}

const file = `# Settings of this team.

providers: # who runs models
  local: {baseUrl: "http://127.0.0.1:1/v1", kind: 'openai'} # here
  # the big one
  far:
    baseUrl: https://far.example/v1 # far away
    apiKeyEnv: FAR_KEY
# what a thread may cost
limits:
  tokens: 1_000 # a few
  wall: "2h"
agents:
  own:
    args:
      - -v
      - "two words"
    command: ./agent
redact: ~
`

// Everything but the change stays as it is, to the byte, in a file as the library writes it.
func TestApply(t *testing.T) {
	for _, x := range []struct {
		name     string
		path     string
		value    *yaml.Node
		old, new string // what of the file is replaced by what
	}{
		{"number", "limits/tokens", num("2000"), "tokens: 1_000 # a few", "tokens: 2000 # a few"},
		{"quoted", "limits/wall", str("3h"), `wall: "2h"`, "wall: 3h"},
		{"plain", "providers/far/apiKeyEnv", str("OTHER"), "apiKeyEnv: FAR_KEY", "apiKeyEnv: OTHER"},
		{"text that looks like a number", "providers/far/apiKeyEnv", str("5"), "apiKeyEnv: FAR_KEY", `apiKeyEnv: "5"`},
		{"text that needs quotes", "providers/far/apiKeyEnv", str("a: b, #c"), "apiKeyEnv: FAR_KEY", `apiKeyEnv: 'a: b, #c'`},
		{"in braces", "providers/local/kind", str("anthropic"), "kind: 'openai'}", "kind: anthropic}"},
		{"in quotes, in braces", "providers/local/baseUrl", str("http://h"), `"http://127.0.0.1:1/v1"`, "'http://h'"},
		{"new in braces", "providers/local/apiKeyEnv", str("K, L"), "kind: 'openai'}", "kind: 'openai', apiKeyEnv: 'K, L'}"},
		{"new in a block", "limits/costUsd", num("5"), "wall: \"2h\"\n", "wall: \"2h\"\n  costUsd: 5\n"},
		{"new in the middle", "providers/far/kind", str("openai"), "apiKeyEnv: FAR_KEY\n", "apiKeyEnv: FAR_KEY\n    kind: openai\n"},
		{"new with what is above", "providers/new/baseUrl", str("https://n"), "apiKeyEnv: FAR_KEY\n", "apiKeyEnv: FAR_KEY\n  new:\n    baseUrl: https://n\n"},
		{"new at the end", "state/remote", str("origin"), "redact: ~\n", "redact: ~\nstate:\n  remote: origin\n"},
		{"below nothing", "redact/allow", list("a"), "redact: ~\n", "redact:\n  allow:\n    - a\n"},
		{"a block list", "agents/own/args", list("-x", "y z"), "      - -v\n      - \"two words\"\n", "      - -x\n      - y z\n"},
		{"a block mapping", "limits", str("none"), "limits:\n  tokens: 1_000 # a few\n  wall: \"2h\"\n", "limits: none\n"},
		{"key with a dot", "models/gpt-4.1/window", num("8"), "redact: ~\n", "redact: ~\nmodels:\n  gpt-4.1:\n    window: 8\n"},
		{"key that looks like a number", "models/4.1/window", num("8"), "redact: ~\n", "redact: ~\nmodels:\n  \"4.1\":\n    window: 8\n"},
		{"the same again", "limits/wall", str("2h"), "", ""},
		{"remove", "limits/tokens", nil, "  tokens: 1_000 # a few\n", ""},
		{"remove first in braces", "providers/local/baseUrl", nil, `baseUrl: "http://127.0.0.1:1/v1", `, ""},
		{"remove last in braces", "providers/local/kind", nil, `, kind: 'openai'`, ""},
		{"remove a list", "agents/own/args", nil, "    args:\n      - -v\n      - \"two words\"\n", ""},
		{"remove what isn't there", "agents/own/env/A", nil, "", ""},
		{"remove below nothing", "redact/allow", nil, "", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			for _, eol := range []string{"\n", "\r\n"} {
				in, want := strings.ReplaceAll(file, "\n", eol), strings.ReplaceAll(strings.Replace(file, x.old, x.new, 1), "\n", eol)
				got, err := edit.Apply([]byte(in), edit.Change{Path: strings.Split(x.path, "/"), Value: x.value})
				if err != nil || string(got) != want {
					t.Errorf("%q %v:\n%s", eol, err, got)
				}
			}
		})
	}
}

// Comments, order, quotes and the indentation of a file that people wrote stay; blank lines
// and the columns of comments don't.
func TestApplyToOwnStyle(t *testing.T) {
	const in = "# top\n\nproviders:   # who\n    local: {kind: 'openai'}   # here\n\n    # the big one\n    far:\n        kind: \"x\"\n\n# cost\nlimits:\n    tokens: 1_000\n"
	const want = "# top\n\nproviders: # who\n    local: {kind: 'openai'} # here\n    # the big one\n    far:\n        kind: \"x\"\n# cost\nlimits:\n    tokens: 5\n"
	got, err := edit.Apply([]byte(in), edit.Change{Path: []string{"limits", "tokens"}, Value: num("5")})
	if err != nil || string(got) != want {
		t.Errorf("%v:\n%s", err, got)
	}
}

// A value that is to be kept is one that is there; one that is missing is set.
func TestKeep(t *testing.T) {
	const old = "price:\n  input: 3 # as billed\n  output:\n"
	got, err := edit.Apply([]byte(old),
		edit.Change{Path: []string{"price", "input"}, Value: num("5"), Keep: true},
		edit.Change{Path: []string{"price", "output"}, Value: num("6"), Keep: true},
		edit.Change{Path: []string{"window"}, Value: num("7"), Keep: true})
	if want := "price:\n  input: 3 # as billed\n  output: 6\nwindow: 7\n"; err != nil || string(got) != want {
		t.Errorf("%v:\n%s", err, got)
	}
}

func TestSmallFiles(t *testing.T) {
	for _, x := range []struct{ name, in, path, want string }{
		{"empty", "", "a/b", "a:\n  b: v\n"},
		{"comments alone", "# c", "a/b", "# c\na:\n  b: v\n"},
		{"no line end", "x: 1", "a", "x: 1\na: v\n"},
		{"blank end", "x: 1\n\n\n", "a", "x: 1\na: v\n"},
		{"comment at the end", "x:\n  y: 1\n  # more\n# end\n", "x/z", "x:\n  y: 1\n  # more\n\n  z: v\n# end\n"},
		{"braces", "{}", "a", "a: v\n"},
		{"braces in lines", "{\n  x: 1,\n}\n", "a", "{x: 1, a: v}\n"},
		{"BOM", "\ufeffx: 1\n", "a", "\ufeffx: 1\na: v\n"},
		{"document marks", "---\nx: 1\n...\n", "a", "x: 1\na: v\n"},
		{"a key without value", "a:\nb: 1\n", "a", "a: v\nb: 1\n"},
		{"below a key without value", "a: # c\nb: 1\n", "a/c", "a: # c\n  c: v\nb: 1\n"},
		{"literal text", "a: |\n  # no comment\n  x\nb: 1\n", "a", "a: v\nb: 1\n"},
		{"after a literal text", "x:\n  a: |\n    # no comment\n\n", "x/b", "x:\n  a: |\n    # no comment\n  b: v\n"},
		{"folded plain text", "a: one\n  two\nb: 1\n", "a", "a: v\nb: 1\n"},
		{"other letters", "ключ: {ä: \"ö\", ü: 1}\n", "ключ/ü", "ключ: {ä: \"ö\", ü: v}\n"},
		{"comment in between", "x:\n  y: 1\n# c\n  z: 2\n", "x/a", "x:\n  y: 1\n  # c\n  z: 2\n  a: v\n"},
		{"brackets in quotes", "a: {b: \"}\", c: '{'} # }\n", "a/d", "a: {b: \"}\", c: '{', d: v} # }\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			got, err := edit.Apply([]byte(x.in), edit.Change{Path: strings.Split(x.path, "/"), Value: str("v")})
			if err != nil || string(got) != x.want {
				t.Errorf("%v\n%s", err, got)
			}
		})
	}
	got, err := edit.Apply([]byte("# top\n\na:\n  b:\n    c: 1\n# end\n"), edit.Change{Path: []string{"a", "b", "c"}})
	if err != nil || string(got) != "# top\n\n{}\n" {
		t.Errorf("mappings that became empty stay: %v\n%s", err, got)
	}
}

func TestRefused(t *testing.T) {
	odd := func(change func(*yaml.Node)) *yaml.Node {
		n := str("v")
		change(n)
		return n
	}
	for _, x := range []struct {
		name, in, path string
		value          *yaml.Node // nil: the entry is removed
		want           error
		says           string
	}{
		{"no mapping", "- a\n", "a", str("v"), edit.ErrNotYAML, ""},
		{"text", "a\n", "a", str("v"), edit.ErrNotYAML, ""},
		{"not YAML", "a: [\n", "a", str("v"), edit.ErrNotYAML, "did not find expected node content"},
		{"documents", "a: 1\n---\nb: 1\n", "a", str("v"), edit.ErrNotYAML, "more than one YAML document"},
		{"UTF-16", "\xff\xfe#\x00\n\x00", "a", str("v"), edit.ErrNotYAML, "not UTF-8"},
		{"huge", "# " + strings.Repeat("x", 1<<20), "a", str("v"), edit.ErrNotYAML, ""},
		{"no path", "a: 1\n", "", str("v"), edit.ErrNotYAML, ""},
		{"below a text", "a: 1\n", "a/b", str("v"), edit.ErrNoMapping, ""},
		{"below a list", "a: [1]\n", "a/b/c", str("v"), edit.ErrNoMapping, ""},
		{"twice", "a: 1\na: 2\n", "a", str("v"), edit.ErrTwice, ""},
		{"alias", "a: &x 1\nb: *x\n", "b", str("v"), edit.ErrSpecial, ""},
		{"anchor", "a: &x 1\n", "a", str("v"), edit.ErrSpecial, ""},
		{"anchor at the key", "&x a: 1\n", "a", str("v"), edit.ErrSpecial, ""},
		{"tag at the key", "!!str a: 1\n", "a", str("v"), edit.ErrSpecial, ""},
		{"a key of keys", "{a: 1}: 2\nb: 1\n", "b", str("v"), edit.ErrSpecial, ""},
		{"merge", "a: {<<: {b: 1}}\n", "a/b", str("v"), edit.ErrSpecial, ""},
		{"remove below a text", "a: 1\n", "a/b", nil, edit.ErrNoMapping, ""},
		{"remove one of two", "a: 1\na: 2\n", "a", nil, edit.ErrTwice, ""},
		{"remove one of two below", "a: {b: 1, b: 2}\n", "a/b", nil, edit.ErrTwice, ""},
		{"a value that is no node", "a: 1\n", "a", odd(func(n *yaml.Node) { n.Kind = 99 }), edit.ErrNotYAML, "unknown kind 99"},
		{"a value that is no text", "a: 1\n", "a", odd(func(n *yaml.Node) { n.Tag, n.Value = "", "a\xff" }), edit.ErrNotYAML, "edit the file by hand"},
	} {
		var path []string
		if x.path != "" {
			path = strings.Split(x.path, "/")
		}
		got, err := edit.Apply([]byte(x.in), edit.Change{Path: path, Value: x.value})
		if !errors.Is(err, x.want) || !strings.Contains(err.Error(), x.says) || got != nil {
			t.Errorf("%s: %v\n%s", x.name, err, got)
		}
	}
}

// What was set is there, and nothing else means anything new; comments stay.
func FuzzApply(f *testing.F) {
	f.Add(file, "limits/tokens", "5")
	f.Add(file, "agents/own/args", "")
	f.Add("a: {b: [1, 'x'], \"c\": |\n", "a/b", "#")
	f.Add("a:\n- b\n-  c\nd: >-\n  x\n\n  y\n", "d", "\u2028")
	f.Add("? a\n: b\n", "a", ": ")
	f.Add("{a: {b: , c}}", "a/b", "- x")
	f.Add("{a: {?: , c}}", "a/b", " -x")
	f.Add("\xff\xfe", " ", "!")
	f.Fuzz(func(t *testing.T, in, path, value string) {
		keys := strings.Split(path, "/")
		if slices.Contains(keys, "") || len(keys) > 4 {
			return
		}
		c := edit.Change{Path: keys, Value: str(value)}
		if value == "" {
			c.Value = nil
		}
		out, err := edit.Apply([]byte(in), c)
		if err != nil {
			return
		}
		var before, after map[string]any
		if yaml.Unmarshal([]byte(in), &before) != nil || hasOtherKeys(before) {
			return // duplicate keys elsewhere; keys that are no text, which lookup doesn't know
		}
		if err := yaml.Unmarshal(out, &after); err != nil {
			t.Fatalf("%v\n%q", err, out)
		}
		got, there := lookup(after, keys)
		if there != (value != "") || there && got != value && yamlText(value) != got {
			t.Fatalf("%q is %q (%v)\n%s", path, got, there, out)
		}
		if a, b := without(before, keys), without(after, keys); len(a)+len(b) > 0 && !reflect.DeepEqual(a, b) {
			t.Fatalf("something else changed: %v is %v\n%q\n%q", a, b, in, out)
		}
		again, err := edit.Apply(out, c)
		if err != nil || string(again) != string(out) {
			t.Fatalf("the second time is not the first: %v\n%q\n%q", err, out, again)
		}
	})
}

// hasOtherKeys reports a mapping with a key that is no text.
func hasOtherKeys(v any) bool {
	switch v := v.(type) {
	case map[any]any:
		return true
	case map[string]any:
		for _, below := range v {
			if hasOtherKeys(below) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasOtherKeys)
	}
	return false
}

// without is a mapping without one value, nor what is empty on the way to it.
func without(m map[string]any, keys []string) map[string]any {
	out := maps.Clone(m)
	if below, ok := m[keys[0]].(map[string]any); ok && len(keys) > 1 {
		if rest := without(below, keys[1:]); len(rest) > 0 {
			out[keys[0]] = rest
			return out
		}
	}
	if len(keys) == 1 || out[keys[0]] == nil || reflect.ValueOf(out[keys[0]]).Kind() == reflect.Map {
		delete(out, keys[0])
	}
	return out
}

// yamlText is what the library makes of a text: invalid UTF-8 and the like change.
func yamlText(s string) string {
	b, err := yaml.Marshal(s)
	if err != nil {
		return s
	}
	var out string
	if yaml.Unmarshal(b, &out) != nil {
		return s
	}
	return out
}

func lookup(m map[string]any, keys []string) (any, bool) {
	v, ok := m[keys[0]]
	if len(keys) == 1 || !ok {
		return v, ok
	}
	below, isMap := v.(map[string]any)
	if !isMap {
		return nil, false
	}
	return lookup(below, keys[1:])
}
