package config

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/xeipuuv/gojsonschema"
	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/engine/config/table"
)

// every is a file that sets every setting of the table.
const every = `
providers:
  mine: {baseUrl: "https://mine.example/v1", apiKey: not-a-real-key-4711, kind: openai}
  other: {baseUrl: "https://other.example/v1", apiKeyEnv: OTHER_KEY}
models:
  "gpt-4.1": {provider: mine, name: gpt-4.1, window: 1000, maxOutput: 100, reasoning: true, price: {input: 1.5, cachedInput: 0.25, cacheWrite: 3, output: 2, asOf: 2026-11-23}}
agents:
  own: {command: ./agent, args: [-v, two words], env: {MODE: fast, API_TOKEN: not-a-real-token-12}, login: own}
defaultAgent: own
agentOverrides: {solve: {dev: own}, review: own}
defaultModel: gpt-4.1
modelOverrides: {solve: {dev: gpt-4.1}, extract: gpt-4.1}
limits: {maxSteps: 5, maxStepsPerRole: 4, tokens: 300, costUsd: 1.25, wall: 2h, stepTime: 20m, month: {tokens: 9000, costUsd: 50}}
gateway: {maxBody: 1000000}
workspace: {prepare: [npm ci], submodules: true}
checks: {test: go test ./..., strict: true, time: 15m, protect: [e2e/**]}
sandbox: require
mcp: {docs: {url: "https://mcp.example.com/", headers: {X-Key: "${DOCS_KEY}"}, tools: [search], pins: {search: '{"description":"Finds pages.","inputSchema":{"type":"object"}}'}}}
fetch: {hosts: [docs.example.com, "*.example.org"]}
confine: {network: gateway, read: [/opt/tool], write: [/var/cache/tool]}
redact: {env: [A_NAME], patterns: {p: 'a+'}, allow: [text], minLength: 7}
state: {branch: b, remote: origin, credentialHelper: repository}
allowShell: true
`

func leaves(s table.Setting, p Path, visit func(Path, table.Setting)) {
	if s.Get != nil && len(s.Fields) == 0 && s.Entry == nil {
		visit(p, s)
	}
	for _, f := range s.Fields {
		leaves(f.Setting, pathBelow(p, f.Name), visit)
	}
	if s.Entry != nil {
		for _, name := range s.Names() {
			leaves(s.Entry(name), pathBelow(p, name), visit)
		}
	}
}

// What is in the table is read, shown again with the same value and its place, and
// described by the schema; nothing else is.
func TestTableIsWhole(t *testing.T) {
	c, problems := readFile("f", []byte(every))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	leaves(allSettings(c), nil, func(p Path, s table.Setting) {
		if _, set := s.Get(); !set && s.Kind != table.FlagValue && p.String() != "providers.mine.apiKeyEnv" && p.String() != "providers.other.apiKey" {
			t.Errorf("%s: is in the table, and the test file doesn't set it or the reader loses it", p)
		}
		if c.Origins[p.String()] == "" && !strings.HasPrefix(p.String(), "agentOverrides.review") && p[0] != "providers" {
			t.Errorf("%s: its place is not known", p)
		}
	})
	got := reflect.ValueOf(*c)
	for i := range got.NumField() {
		f := got.Type().Field(i)
		if f.IsExported() && f.Name != "Warnings" && f.Name != "Policies" && got.Field(i).IsZero() {
			t.Errorf("Config.%s: no setting leads to it", f.Name)
		}
	}
}

// The schema takes what the reader takes, and refuses what it refuses.
func TestSchema(t *testing.T) {
	schema, err := gojsonschema.NewSchema(gojsonschema.NewGoLoader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		file string
		ok   bool
	}{
		{every, true},
		{"providers:\nlimits: {tokens: }\n", true},
		{"agentOverrides: ~\nagents: {hermes: {command: uwf-hermes, args: []}}\n", true},
		{"sandbox: off", true},
		{"defaultModle: x", false},
		{"limits: {maxSteps: 0}", false},
		{"limits: {maxSteps: many}", false},
		{"limits: {wall: soon}", false},
		{"limits: {stride: 5}", false},
		{"providers: {a: {url: b}}", false},
		{"agents: {a: {args: b}}", false},
		{"sandbox: maybe", false},
		{"confine: {network: some}", false},
		{"redact: {minLength: 13}", false},
		{"checks: {test: go test, lint: 'a b', protect: [x], strict: true, time: 5m}", true},
		{"checks: {test: [a]}", false},
		{"checks: {time: soon}", false},
		{"checks: {protect: x}", false},
	} {
		var v any
		if err := yaml.Unmarshal([]byte(x.file), &v); err != nil {
			t.Fatal(err)
		}
		if v == nil {
			v = map[string]any{}
		}
		res, err := schema.Validate(gojsonschema.NewGoLoader(v))
		if err != nil {
			t.Fatal(err)
		}
		if res.Valid() != x.ok {
			t.Errorf("schema on %q: %v %v", x.file, res.Valid(), res.Errors())
		}
		_, problems := readFile("f", []byte(x.file))
		problems = slices.DeleteFunc(problems, func(p Problem) bool { return strings.Contains(p.Message, "baseUrl is missing") })
		if (len(problems) == 0) != x.ok {
			t.Errorf("reader on %q: %v", x.file, problems)
		}
	}
}

// The schema that is shipped for editors is the one of the table.
func TestShippedSchema(t *testing.T) {
	var want bytes.Buffer // as the command prints it
	e := json.NewEncoder(&want)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(Schema()); err != nil {
		t.Fatal(err)
	}
	const file = "../../examples/config.schema.json"
	got, err := os.ReadFile(file)
	if err != nil || string(got) != want.String() {
		t.Errorf("%s is not the schema of the table (%v): write it with go run ./cmd/uwf config schema > examples/config.schema.json", file, err)
	}
}
