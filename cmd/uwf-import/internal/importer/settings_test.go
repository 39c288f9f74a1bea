package importer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/redact"
)

// Settings as each generation of the TypeScript uwf had them: by its sources and its tests.
var generations = map[string]struct {
	file, builtin string
	loads         bool
	takes, leaves []string
}{
	"2026-05": {file: `
providers: {openrouter: {baseUrl: "https://openrouter.example/api/v1", apiKeyEnv: OPENROUTER_API_KEY}}
models: {sonnet: {provider: openrouter, name: anthropic/claude-sonnet-4}}
agents: {hermes: {command: uwf-hermes, args: []}}
defaultAgent: hermes
agentOverrides: {solve-issue: {developer: hermes}}
defaultModel: sonnet
modelOverrides: {extract: sonnet}
`, loads: true},
	"0.4": {file: `
agents: {builtin: {command: uwf-builtin, args: []}, mock: {command: uwf-mock, args: []}}
defaultAgent: builtin
agentOverrides: null
`, builtin: `{provider: {baseUrl: "https://llm.example/v1", apiKey: sk-keep-me-here}, model: big}`, loads: true},
	"0.5": {
		file: `
agents: {builtin: {command: uwf-builtin, args: []}}
defaultAgent: builtin
concurrency: {maxRunning: 2}
`, builtin: `{provider: {baseUrl: "https://llm.example/v1", apiKey: sk-keep-me-here}, model: big}`,
		takes:  []string{"agents.builtin", "defaultAgent", "defaultModel", "models.builtin", "providers.builtin"},
		leaves: []string{"concurrency", "providers.builtin.apiKey"},
	},
	"0.7": {
		file: `
agents: {hermes: {host: "http://127.0.0.1:7900", gateway: hermes}, mine: {command: uwf-mine, args: [a]}}
defaultAgent: hermes
agentOverrides: {solve: {developer: mine}}
concurrency: {maxRunning: 2}
workflowPaths: [/srv/workflows]
`,
		takes:  []string{"agentOverrides.solve", "agents.mine", "defaultAgent"}, // uwf has an agent of that name itself
		leaves: []string{"agents.hermes", "concurrency", "workflowPaths"},
	},
	"keys that nobody knows": {file: "engines: {a: 1}\nmodels: 7\nagents: {mine: {command: uwf-mine}}\n", takes: []string{"agents.mine"}, leaves: []string{"engines", "models"}},
	"no YAML":                {file: "a: [", leaves: []string{"config.yaml"}},
	"nothing":                {file: "", loads: true},
}

func TestSettings(t *testing.T) {
	for name, tc := range generations {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "config.yaml"), tc.file)
			if tc.builtin != "" {
				write(t, filepath.Join(dir, "agents", "builtin.yaml"), tc.builtin)
			}
			s, _ := findSettings([]string{filepath.Join(dir, "none"), dir})
			if s == nil {
				t.Fatal("no settings")
			}
			var leaves []string
			for _, l := range s.Leave {
				leaves = append(leaves, l.Key)
			}
			slices.Sort(leaves)
			if s.Loads != tc.loads || !slices.Equal(s.Takes, tc.takes) && len(tc.takes)+len(s.Takes) > 0 || !slices.Equal(leaves, tc.leaves) {
				t.Fatalf("loads %v, takes %q, leaves %q: %+v", s.Loads, s.Takes, leaves, s.Leave)
			}
			if strings.Contains(string(s.text), "sk-keep-me-here") {
				t.Errorf("the key was copied:\n%s", s.text)
			}
			if len(s.text) == 0 {
				return
			}
			// What is written is read by uwf.
			file := filepath.Join(dir, "taken.yaml")
			if err := s.saveText(file); err != nil {
				t.Fatal(err)
			}
			if err := s.saveText(file); err == nil || !strings.Contains(err.Error(), "the file is there already") {
				t.Errorf("written over: %v", err)
			}
			c, err := config.Load(config.Sources{HomeFile: file, ReadFile: os.ReadFile})
			if err != nil {
				t.Fatalf("%v\n%s", err, s.text)
			}
			if len(tc.takes) > 0 && len(c.Agents) == 0 {
				t.Errorf("no agents:\n%s", s.text)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
	if s, _ := findSettings([]string{t.TempDir()}); s != nil {
		t.Errorf("settings from nowhere: %+v", s)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestStoreSettings: whatever else stands in the files, which store is meant is read.
func TestStoreSettings(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		generations["0.7"].file + "state: {branch: mine}\n": "state:\n    branch: mine\n",
		"redact: {allow: [x]}\nproviders: 7\n":              "redact:\n    allow:\n        - x\n",
		"a: [":                                              "{}\n",
	} {
		file := filepath.Join(dir, "config.yaml")
		write(t, file, text)
		if b, err := readStoreSettings(file); err != nil || string(b) != want {
			t.Errorf("%q: %q, %v", text, b, err)
		}
	}
	write(t, filepath.Join(dir, ".env"), "A=b\n")
	if b, err := readStoreSettings(filepath.Join(dir, ".env")); err != nil || string(b) != "A=b\n" {
		t.Errorf("%q, %v", b, err)
	}
	write(t, filepath.Join(dir, ".env"), "no variable\n")
	for _, name := range []string{".env", "policy.yaml", "none/config.yaml"} {
		if _, err := readStoreSettings(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOldKeys: nodes that hold a key of the old settings are not moved, whichever of the
// folders has it, and in whatever file.
func TestOldKeys(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "bundle.tar")
	write(t, file, "")
	write(t, filepath.Join(dir, "one", "config.yaml"), "agents: {a: {command: x, env: {API_KEY: of-an-agent}}}\n")
	write(t, filepath.Join(dir, "two", "config.yaml"), "providers: {p: {baseUrl: x, apiKey: not-a-shape-of-keys}}\n")
	write(t, filepath.Join(dir, "two", "agents", "builtin.yaml"), "provider: {apiKey: of-the-builtin}\n")
	write(t, filepath.Join(dir, "three", "config.yaml"), "a: [")
	write(t, filepath.Join(dir, "three", ".env"), "# mine\nP_API_KEY=\"another value\"\r\nexport Q_API_KEY=a third value\nPLAIN=a plain value\n")
	s, secrets := findSettings([]string{file, filepath.Join(dir, "one"), filepath.Join(dir, "two"), filepath.Join(dir, "three")})
	if s == nil || s.File != filepath.Join(dir, "one", "config.yaml") {
		t.Errorf("%+v", s)
	}
	red, err := redact.New(redact.Options{Secrets: secrets, NoShapes: true})
	if err != nil {
		t.Fatal(err)
	}
	for text, found := range map[string]bool{
		"a not-a-shape-of-keys b": true, "of-the-builtin": true, "of-an-agent": true, "another value": true, "a third value": true, "a plain value": false,
	} {
		if _, n := red.String(text); (n > 0) != found {
			t.Errorf("%q: %d secrets", text, n)
		}
	}
}

// TestSettingsFile: --settings writes a file, or says why there is nothing to write.
func TestSettingsFile(t *testing.T) {
	for name, want := range map[string]string{"0.7": "", "2026-05": "as it is", "no YAML": "there is nothing to write", "": "there is nothing to write"} {
		w := newWorld(t)
		if name != "" {
			write(t, filepath.Join(w.dir, "root", "config.yaml"), generations[name].file)
		}
		w.settings = "taken.yaml"
		code, text := w.run(true, "nodes", "root")
		_, err := os.Stat(filepath.Join(w.dir, "taken.yaml"))
		if want == "" && (code != 0 || err != nil || w.got.Settings == nil || len(w.got.Settings.Leave) != 3) ||
			want != "" && (code != 2 || !strings.Contains(text, want) || err == nil) {
			t.Errorf("%s: %d, %s, %v", name, code, text, err)
		}
	}
}
