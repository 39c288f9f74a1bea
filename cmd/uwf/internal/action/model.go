package action

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/runner/ci"
)

// settingsEnviron is the environment that the settings are read with: the job's own, with what
// the inputs say of the model. The key goes into the variable that the provider's
// settings name, so that it leads to the address that they name.
func (in inputs) settingsEnviron(before []string, peek func(environ []string) (*config.Config, error)) ([]string, error) {
	env := withoutInputs(before)
	env = append(env, "GITHUB_TOKEN="+in.Token)
	set := func(name, value string) {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	provider, err := in.providerKey(env, peek, set)
	if err != nil {
		return nil, err
	}
	set("UWF_PROVIDER", provider)
	set("UWF_BASE_URL", in.BaseURL)
	set("UWF_MODEL", in.Model)
	return env, nil
}

// withoutInputs leaves out the variables that inputs came in: some are secret under
// names that don't say so.
func withoutInputs(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		return strings.HasPrefix(v, "INPUT_") || strings.HasPrefix(v, "GITHUB_TOKEN=")
	})
}

// providerKey hands the key to the provider that it is for, and returns the provider's
// name; empty: the configured one.
func (in inputs) providerKey(env []string, peek func([]string) (*config.Config, error), set func(name, value string)) (string, error) {
	if in.BaseURL != "" {
		set("UWF_API_KEY", in.APIKey)
		return in.Provider, nil
	}
	if in.Provider == "" && in.APIKey == "" {
		return "", nil
	}
	c, err := peek(env)
	if errors.Is(err, config.ErrInvalid) {
		return "", &app.UsageError{Err: err}
	} else if err != nil {
		return "", err
	}
	name := cmp.Or(in.Provider, c.Models[c.DefaultModel].Provider)
	if name == "" {
		return "", app.Usagef("the input api-key is set, but nothing says whose key it is: set provider too (%s), or base-url", strings.Join(vendorNames(), ", "))
	}
	configured, inFile := c.Providers[name]
	switch {
	case !inFile && !slices.Contains(vendorNames(), name):
		known := slices.Sorted(maps.Keys(c.Providers))
		return "", &app.UnknownError{What: "provider", ID: name, Near: app.Near(name, append(known, vendorNames()...)),
			Hint: "the input provider takes " + strings.Join(vendorNames(), ", ") + ", or a provider of the configuration"}
	case in.APIKey == "" && ci.RunsAgents(in.Command) && keyMissing(name, configured, inFile):
		return "", app.Usagef("there is no key for %s: the input api-key is empty, as the secret that the workflow file hands on is not set. %s", name, in.howToSetSecret())
	case in.APIKey == "":
	case inFile && configured.APIKeyEnv != "" && configured.APIKeyEnv != "GITHUB_TOKEN":
		set(configured.APIKeyEnv, in.APIKey)
	case inFile && !slices.Contains(vendorNames(), name):
		return "", app.Usagef("the input api-key is set, but provider %s of the configuration takes no key: set its apiKeyEnv", name)
	default:
		set("UWF_API_KEY", in.APIKey)
	}
	if in.Provider == "" && inFile {
		return "", nil // it is the default already
	}
	return name, nil
}

// howToSetSecret says where the secret is set that the workflow file names.
func (in inputs) howToSetSecret() string {
	if in.Gitea {
		return "Add it in the repository's settings (Actions → Secrets), with the name that stands behind api-key. Jobs that a fork started get no secrets"
	}
	return "Add it in the repository's settings (Secrets and variables → Actions), or type gh secret set NAME, with the name that stands behind api-key. " +
		"Jobs that Dependabot or a fork started get no secrets"
}

// keyMissing reports whether a provider needs a key, and nothing gives it one.
func keyMissing(name string, p config.Provider, known bool) bool {
	if known {
		return p.APIKeyEnv != "" && p.APIKey.Reveal() == ""
	}
	return slices.ContainsFunc(config.Presets(), func(v config.Preset) bool {
		return v.Name == name && v.APIKeyEnv != "" && v.APIKeyEnv != "GITHUB_TOKEN" // that one every job has
	})
}

func vendorNames() []string {
	var names []string
	for _, p := range config.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// adjustConfig applies the inputs that stand beside the settings.
func (in inputs) adjustConfig(c *config.Config) {
	strict := []config.Sandbox{config.SandboxOff, config.SandboxAuto, config.SandboxRequire}
	_, set := c.Origins["sandbox"]
	if in.Sandbox != "" && (!set || slices.Index(strict, in.Sandbox) > slices.Index(strict, c.Sandbox)) {
		c.Sandbox = in.Sandbox
		c.Origins["sandbox"] = "the input sandbox"
	}
	if _, set := c.Origins["sandbox"]; !set {
		c.Sandbox = config.SandboxAuto // agents of CI jobs read what strangers wrote
	}
	if in.AllowShell != nil {
		c.AllowShell = *in.AllowShell
		c.Origins["allowShell"] = "the input allow-shell"
	}
}
