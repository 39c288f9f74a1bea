package app

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/consent"
)

// newRepo is a repository with settings, and a person on a terminal who types answers.
func newRepo(t *testing.T, settings, answers string) (f *Factory, screen *bytes.Buffer) {
	t.Helper()
	screen = &bytes.Buffer{}
	f = newFactory(t, "HOME="+t.TempDir())
	f.IO = IO{In: strings.NewReader(answers), Out: &bytes.Buffer{}, Err: screen, InTTY: true, ErrTTY: true}
	for _, dir := range []string{".git", ".uwf"} {
		if err := os.MkdirAll(filepath.Join(f.Dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".uwf/config.yaml": settings, "agent.sh": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(f.Dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return f, screen
}

// nextProcess is the next process of the same person there.
func nextProcess(t *testing.T, f *Factory, answers string) (*Factory, *bytes.Buffer) {
	t.Helper()
	screen := &bytes.Buffer{}
	next := newFactory(t, f.Environ...)
	next.Dir = f.Dir
	next.IO = IO{In: strings.NewReader(answers), Out: &bytes.Buffer{}, Err: screen, InTTY: true, ErrTTY: true}
	return next, screen
}

const wants = "allowShell: true\nagents: {a: {command: ./agent.sh}}\n"

// TestSettleTrust: what a person answers on a terminal, and what counts then.
func TestSettleTrust(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		shell        bool
		said         string
	}{
		{"yes", "y\n", true, ""},
		{"the word", "YES\n", true, ""},
		{"no", "n\n", false, "It goes without them."},
		{"nothing", "\n", false, "It goes without them."},
		{"anything else, and then no", "sure, why not\nno\n", false, "It goes without them."},
		{"anything else, and then yes", "sure, why not\nyes\n", true, "Please answer with one of the letters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, screen := newRepo(t, wants, c.answer)
			if err := SettleTrust(f); err != nil {
				t.Fatal(err)
			}
			settings, err := f.Config()
			if err != nil || settings.AllowShell != c.shell || (settings.Agents["a"].Command != "") != c.shell {
				t.Errorf("%t %+v %v", settings.AllowShell, settings.Agents, err)
			}
			for _, want := range []string{`agents.a: {"command":"./agent.sh","files":{"./agent.sh":"sha256:`, "allowShell: true", c.said} {
				if !strings.Contains(screen.String(), want) {
					t.Errorf("%q is not on the screen:\n%s", want, screen)
				}
			}
			// Only a consent is remembered.
			next, screen := nextProcess(t, f, "")
			if err := SettleTrust(next); (err == nil) != c.shell {
				t.Errorf("the next time: %v\n%s", err, screen)
			}
		})
	}
}

// TestSettleTrustAsksOfChanges: one byte more, and the person is asked again.
func TestSettleTrustAsksOfChanges(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"a setting": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".uwf/config.yaml"), []byte(strings.Replace(wants, "agent.sh}", "agent.sh, args: [x]}", 1)), 0o600)
		},
		"a program": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "agent.sh"), []byte("#!/bin/sh \n"), 0o600)
		},
		"a place": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".uwf/config.yaml"), []byte(wants+"confine: {read: [/opt]}\n"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newRepo(t, wants, "y\n")
			if err := SettleTrust(f); err != nil {
				t.Fatal(err)
			}
			if err := change(f.Dir); err != nil {
				t.Fatal(err)
			}
			next, screen := nextProcess(t, f, "n\n")
			if err := SettleTrust(next); err != nil {
				t.Fatal(err)
			}
			if c, err := next.Config(); err != nil || c.AllowShell || !strings.Contains(screen.String(), "\n+ ") || !strings.Contains(screen.String(), "  allowShell: true") {
				t.Errorf("%v\n%s", err, screen)
			}
		})
	}
}

// TestConsentIsApart: a consent that lies in the repository is none, and none is put there.
func TestConsentIsApart(t *testing.T) {
	f, _ := newRepo(t, wants, "y\n")
	f.Environ = append(f.Environ, "UWF_HOME="+filepath.Join(f.Dir, "home"))
	own := consent.Store{Dir: filepath.Join(f.Dir, "home", "trust")}
	c, err := f.Config()
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Keep(realPath(f.Dir), c.Unconsented(), f.Now()); err != nil {
		t.Fatal(err)
	}
	next, _ := nextProcess(t, f, "y\n")
	if err := SettleTrust(next); !errors.As(err, new(*UsageError)) || !strings.Contains(err.Error(), "let UWF_HOME name a folder elsewhere") {
		t.Errorf("%v", err)
	}
	if c, err := next.Config(); err != nil || c.AllowShell {
		t.Errorf("%v", err)
	}
}

// TestShellConsent: a person's own consent opens the shell where no file says no.
func TestShellConsent(t *testing.T) {
	for _, c := range []struct {
		repo, home string
		want       bool
	}{{"", "", true}, {"allowShell: false\n", "", false}, {"", "allowShell: false\n", false}} {
		f, _ := newRepo(t, c.repo, "")
		if err := KeepConsent(f, []consent.Demand{config.ShellDemand()}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(f.Getenv("HOME"), ".uwf", "config.yaml"), []byte(c.home), 0o600); err != nil {
			t.Fatal(err)
		}
		next, _ := nextProcess(t, f, "")
		if got, err := next.Config(); err != nil || got.AllowShell != c.want {
			t.Errorf("%q %q: %t %v", c.repo, c.home, got.AllowShell, err)
		}
	}
}
