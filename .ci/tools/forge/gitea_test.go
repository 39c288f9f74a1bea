package forge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
)

// TestGitea tries everything on one real Gitea, each part in a repository of its own.
func TestGitea(t *testing.T) {
	cleanEnvironment(t)
	logrus.SetLevel(logrus.ErrorLevel) // act tells there how it plans a job
	s := startGitea(t)
	for _, login := range []string{"octo", "alice", "bob"} {
		s.addUser(login)
	}
	s.serveAction()
	t.Run("loop", func(t *testing.T) { s.on(t).loop() })
	t.Run("init", func(t *testing.T) { s.on(t).init() })
	t.Run("waiting", func(t *testing.T) { s.on(t).waiting() })
	t.Run("rescue", func(t *testing.T) { s.on(t).rescue() })
	t.Run("burst", func(t *testing.T) { s.on(t).burst() })
	t.Run("outage", func(t *testing.T) { s.on(t).outage() })
	t.Run("compare", func(t *testing.T) { s.on(t).compare() })
	t.Run("events", func(t *testing.T) { s.on(t).events() })
}

// cleanEnvironment leaves the variables that are needed: jobs inherit those of their
// runner, and are to find nothing by chance.
func cleanEnvironment(t *testing.T) {
	t.Helper()
	uwf, err := filepath.Abs(setting(t, envUwf))
	mustDo(t, err)
	kept := map[string]string{
		"PATH": filepath.Dir(uwf) + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME": t.TempDir(), "USER": os.Getenv("USER"), "LC_ALL": "C",
		"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull, envUwf: uwf, envGitea: setting(t, envGitea), envStatic: setting(t, envStatic),
		envIssues: os.Getenv(envIssues),
	}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		t.Setenv(name, "") // so that it is put back
		mustDo(t, os.Unsetenv(name))
	}
	for name, value := range kept {
		t.Setenv(name, value)
	}
}
