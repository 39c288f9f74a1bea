package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/toolsettings"
)

// Prepare makes HOME ready for a CLI that is run by other means than its own command line for
// one answer, such as a protocol that it speaks, and returns all of its environment.
func (c CLI) Prepare(s *agents.Session) (environ []string, err error) {
	a := &Agent{CLI: c, call: newCall(s, os.Geteuid() == 0)}
	if err := a.checkSession(s); err != nil {
		return nil, err
	}
	return a.environ(s), a.writeFiles()
}

// HideSettings takes what was written for such tools into the workspace out of their way, and
// files that have a name in also, until restore is called.
func HideSettings(ctx context.Context, s *agents.Session, also ...string) (restore func() error, err error) {
	aside := toolsettings.Aside{Workspace: s.Workspace, Dir: filepath.Join(s.Getenv("TMPDIR"), "uwf-aside"), Also: also}
	return func() error {
		_, err := aside.Restore(context.WithoutCancel(ctx))
		return err
	}, aside.Hide(ctx)
}

// clientVariables are what the gateway gives to agents of whom it knows nothing.
var clientVariables = [...]string{"OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_KEY", "OPENAI_MODEL", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_MODEL"}

// Environ is what every such program finds in its environment: what the agent has, but for what
// leads to the step's folders and, where its own variables do, to models.
func Environ(s *agents.Session, models bool) []string {
	env := slices.DeleteFunc(slices.Clone(s.Environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "UWF_") || !models && slices.Contains(clientVariables[:], name)
	})
	return append(env, "CI=1", "TERM=dumb", "NO_COLOR=1")
}

// WriteHome writes files into HOME, by their names below it, with slashes.
func WriteHome(home string, files map[string]string) error {
	for name, content := range files {
		file := filepath.Join(home, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			return err
		}
	}
	return nil
}
