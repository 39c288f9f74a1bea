// Package config is `uwf config`: the settings, where each comes from, and the
// files that hold them. It also changes those files, for itself and for
// `uwf setup`. It never prints a key, not even a part of one.
package config

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	engine "github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/internal/lists"
)

// NewCmdConfig makes `uwf config`.
func NewCmdConfig(f *app.Factory) *cobra.Command {
	return app.Group(&cobra.Command{
		Use:   "config",
		Short: "Show and change settings",
		Long: `Show and change settings: providers, models, agents, limits and the like.

They come from .uwf/config.yaml of the repository, then from config.yaml below the storage
root (~/.uwf), then from the environment and from .env beside the latter. Of limits, the
sandbox and allowShell the strictest counts, whoever says it. What an organisation allows is
said by policy.yaml below the storage root: nothing is looser than that.

A setting is named by its path: limits.maxSteps, providers.openai.baseUrl. A name with a dot
in it stands in quotes: 'models."gpt-4.1".window'.`,
		Example: "  uwf config show\n  uwf config set limits.maxSteps 20\n  uwf config validate",
	}, NewCmdShow(f, nil), NewCmdGet(f, nil), NewCmdSet(f, nil), NewCmdUnset(f, nil), NewCmdValidate(f, nil), NewCmdPath(f, nil), NewCmdSchema(f, nil))
}

// parsePath reads the path of a setting that exists.
func parsePath(text string) (engine.Path, engine.Info, error) {
	p, err := engine.ParsePath(text)
	if err != nil {
		return nil, engine.Info{}, &app.UsageError{Err: err}
	}
	info, err := engine.Describe(p)
	if err != nil {
		return nil, engine.Info{}, &app.UsageError{Err: err}
	}
	return p, info, nil
}

// allWarnings are those of all settings, what a policy holds and refuses, and which providers get no
// key here.
func allWarnings(f *app.Factory, c *engine.Config) []string {
	out := slices.Concat(c.Warnings, c.Policies.Held())
	for _, p := range c.Policies.Refusals() {
		out = append(out, p.String()+"; what would use it is refused")
	}
	for _, p := range c.WithheldProviders() {
		out = append(out, p.String()+"; until then its models can't be used here, only in jobs")
	}
	return lists.Map(out, f.CleanMessage)
}

func writeWarnings(w *output.Writer, warnings []string) {
	for _, text := range warnings {
		w.Warn("warning: " + strings.TrimRight(text, "\n") + "\n")
	}
}

// fileExists says whether a file is there; what can't be asked is there.
func fileExists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, os.ErrNotExist)
}
