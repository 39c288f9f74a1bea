package importer

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/joho/godotenv"
	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/internal/text"
)

// maxSettings is the largest file of settings that is read, in bytes.
const maxSettings = 1 << 20

// readStoreSettings reads of a file with settings what says which store is meant, and what
// is secret: in ~/.uwf there may be one of the TypeScript uwf, which uwf can't read.
func readStoreSettings(path string) ([]byte, error) {
	name := filepath.Base(path)
	if name == "policy.yaml" {
		return nil, fs.ErrNotExist // it says nothing of that
	}
	b, err := app.ReadRegular(path, maxSettings)
	if err != nil {
		return nil, err
	}
	if name == ".env" {
		if _, err := godotenv.UnmarshalBytes(b); err != nil {
			return nil, fs.ErrNotExist // as it was written for another reader
		}
		return b, nil
	}
	all, kept := map[string]any{}, map[string]any{}
	_ = yaml.Unmarshal(b, &all) // else it holds nothing for us
	for _, key := range []string{"state", "redact"} {
		if v, ok := all[key]; ok {
			kept[key] = v
		}
	}
	return yaml.Marshal(kept)
}

// readSettings reads a YAML file.
func readSettings(path string) (map[string]any, error) {
	b, err := app.ReadRegular(path, maxSettings)
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	return all, yaml.Unmarshal(b, &all)
}

// settings are those of the TypeScript uwf.
type settings struct {
	File  string   `json:"file"`
	Loads bool     `json:"loads"` // uwf reads the file as it is
	Takes []string `json:"takes"` // what can be taken over
	Leave []left   `json:"leave"`

	secrets []redact.Secret
	text    []byte // a file for uwf, with what can be taken over
}

// left is a setting that has no counterpart here.
type left struct {
	Key string `json:"key"`
	Why string `json:"why"`
}

// findSettings reads the settings in folders: those of the first that has some count; without
// any it is nil. The secrets are those of all.
func findSettings(dirs []string) (*settings, []redact.Secret) {
	var found *settings
	var secrets []redact.Secret
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		s := &settings{File: filepath.Join(dir, "config.yaml"), Takes: []string{}, Leave: []left{}}
		all, err := readSettings(s.File)
		s.noteSecrets(all)
		s.noteVariables(filepath.Join(dir, ".env"))
		builtin, noBuiltin := readSettings(filepath.Join(dir, "agents", "builtin.yaml"))
		s.noteSecrets(builtin)
		secrets = append(secrets, s.secrets...)
		switch {
		case found != nil || errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			s.leaveOut("config.yaml", err.Error())
		default:
			if s.Loads = whyNotLoaded(all) == nil; !s.Loads {
				if noBuiltin == nil {
					addBuiltin(all, builtin)
				}
				s.takeOver(all)
			}
		}
		found = s
	}
	return found, secrets
}

// noteSecrets keeps the keys that a file has in the open: nodes that hold one are not moved.
func (s *settings) noteSecrets(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if key, ok := x.(string); ok && (k == "apiKey" || redact.SecretName(k)) {
				s.secrets = append(s.secrets, redact.Secret{Name: k, Value: key})
			}
			s.noteSecrets(x)
		}
	case []any:
		for _, x := range v {
			s.noteSecrets(x)
		}
	}
}

// noteVariables keeps the secret ones of a .env file: K=V, in quotes for other readers.
func (s *settings) noteVariables(file string) {
	b, err := app.ReadRegular(file, maxSettings)
	if err != nil {
		return
	}
	var env []string
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		value = strings.TrimSpace(value)
		env = append(env, strings.TrimSpace(name)+"="+strings.Trim(value, `"'`))
	}
	s.secrets = append(s.secrets, redact.FromEnv(env)...)
}

// addBuiltin puts the settings of its builtin agent, from 0.4 on in a file of their own, to
// the others.
func addBuiltin(all, builtin map[string]any) {
	provider, _ := builtin["provider"].(map[string]any)
	model, _ := builtin["model"].(string)
	if all["providers"] != nil || all["models"] != nil || provider == nil || model == "" {
		return
	}
	all["providers"] = map[string]any{"builtin": provider}
	all["models"] = map[string]any{"builtin": map[string]any{"provider": "builtin", "name": model}}
	all["defaultModel"] = "builtin"
}

// takeOver writes what uwf knows into s.text, and notes what it doesn't.
func (s *settings) takeOver(all map[string]any) {
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		switch v := all[key]; {
		case v == nil:
		case key == "concurrency":
			s.leaveOut(key, "uwf has no queue of its own: how many threads run at once is up to who starts them")
		case key == "workflowPaths":
			s.leaveOut(key, "uwf looks in .uwf/workflows, .workflow and .workflows of a repository; a workflow from elsewhere is named by its path, or registered: uwf workflow put FILE")
		case key == "agents":
			out[key] = s.takeAgents(v)
		case key == "providers":
			out[key] = s.takeProviders(v)
		default:
			out[key] = v
		}
	}
	// What uwf refuses is left out, until it refuses nothing.
	for range 1000 {
		err := whyNotLoaded(out)
		if invalid, ok := errors.AsType[*config.InvalidError](err); !ok || !s.dropRefused(out, invalid.Problems[0]) {
			break
		}
	}
	if whyNotLoaded(out) != nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(out)) {
		inner, isMap := out[key].(map[string]any)
		if !isMap {
			s.Takes = append(s.Takes, key)
		}
		for _, name := range slices.Sorted(maps.Keys(inner)) {
			s.Takes = append(s.Takes, key+"."+name)
		}
	}
	s.writeFile(out)
}

func (s *settings) leaveOut(key, why string) { s.Leave = append(s.Leave, left{key, why}) }

// takeAgents leaves out the agents of 0.7 and later: routes to a broker.
func (s *settings) takeAgents(v any) map[string]any {
	out := map[string]any{}
	all, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		agent, _ := all[name].(map[string]any)
		if gateway, ok := agent["gateway"].(string); ok {
			s.leaveOut("agents."+name, fmt.Sprintf("it was called through a broker, as %q there; uwf runs agents itself: where uwf agent list has none of this name, write another one wherever these settings name it", gateway))
			continue
		}
		out[name] = all[name]
	}
	return out
}

// takeProviders names a variable for a key that stood in the file: it stays where it is.
func (s *settings) takeProviders(v any) map[string]any {
	out := map[string]any{}
	all, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		provider, _ := all[name].(map[string]any)
		provider = maps.Clone(provider)
		if _, ok := provider["apiKey"]; ok {
			delete(provider, "apiKey")
			variable := variableOf(name)
			provider["apiKeyEnv"] = variable
			s.leaveOut("providers."+name+".apiKey", "a key is not copied: put "+variable+"=… into ~/.uwf/.env, or run uwf setup")
		}
		out[name] = provider
	}
	return out
}

// variableOf is the variable that the TypeScript uwf's setup gave to a provider's key.
func variableOf(provider string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(provider)) + "_API_KEY"
}

// dropRefused leaves out what a problem is about; false: that is not known.
func (s *settings) dropRefused(out map[string]any, p config.Problem) bool {
	path, err := config.ParsePath(p.Path)
	if err != nil || len(path) == 0 {
		return false
	}
	inner, isMap := out[path[0]].(map[string]any)
	if _, there := out[path[0]]; !there {
		return false
	}
	if !isMap || len(path) == 1 || inner[path[1]] == nil {
		delete(out, path[0])
		s.leaveOut(path[0], p.Message)
		return true
	}
	delete(inner, path[1])
	s.leaveOut(path[0]+"."+path[1], p.Message)
	return true
}

// whyNotLoaded is what uwf says of settings.
func whyNotLoaded(all map[string]any) error {
	b, err := yaml.Marshal(all)
	if err != nil {
		return err
	}
	_, err = config.Load(config.Sources{HomeFile: "config.yaml", ReadFile: func(string) ([]byte, error) { return b, nil }})
	return err
}

func (s *settings) writeFile(out map[string]any) {
	var b strings.Builder
	b.WriteString("# Settings of the TypeScript uwf that uwf can take over: look at them, then put them\n# into ~/.uwf/config.yaml.\n")
	if len(s.Leave) > 0 {
		b.WriteString("#\n# Left out:\n")
	}
	for _, l := range s.Leave {
		fmt.Fprintf(&b, "#   %s: %s\n", text.Line(l.Key), text.Line(l.Why))
	}
	body, err := yaml.Marshal(out)
	if err != nil || len(out) == 0 {
		body = nil
	}
	s.text = append([]byte(b.String()), body...)
}

// saveText writes the file; one that is there is not written over.
func (s *settings) saveText(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return app.Usagef("--settings %s: the file is there already", path)
	}
	if err != nil {
		return app.Usagef("--settings %s: %w", path, err)
	}
	_, err = f.Write(s.text)
	return errors.Join(err, f.Close())
}

func (s *settings) writeText(w *output.Writer) {
	switch {
	case s.Loads:
		w.Printf("%s: uwf reads these settings as they are\n", s.File)
		return
	case len(s.Takes) > 0:
		w.Printf("%s: uwf could take over %s; to look at them, add --settings FILE\n", s.File, strings.Join(s.Takes, ", "))
	default:
		w.Printf("%s: uwf can take over none of these settings; run uwf setup\n", s.File)
	}
	for _, l := range s.Leave {
		w.Printf("  %s: %s\n", l.Key, l.Why)
	}
}
