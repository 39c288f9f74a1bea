package commands

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
)

// opensStore are commands that go to the place of the threads once it counts, so that it is seen
// that the others were asked for something.
var opensStore = []string{
	"uwf run", "uwf thread start", "uwf thread step", "uwf thread show", "uwf thread list", "uwf thread fork", "uwf thread cancel",
	"uwf workflow put", "uwf workflow list", "uwf cas get", "uwf cas put", "uwf fsck", "uwf gc", "uwf log", "uwf ps", "uwf inbox", "uwf purge",
}

// TestForeignPlaceIsAskedFor: no command makes a request to another repository that this one's
// settings name, with the person's logins, before the person has consented to it.
func TestForeignPlaceIsAskedFor(t *testing.T) {
	fixture := newFixtureOf(t, func(_, text string) string { return text })
	for _, cmd := range allCommands(cli.NewRoot(app.NewAt(".", nil, app.IO{}))) {
		path := cmd.CommandPath()
		lines := exampleLines(cmd.Example)
		if notRun[path] != "" || len(lines) == 0 || cmd.HasSubCommands() {
			continue
		}
		t.Run(strings.ReplaceAll(path, " ", "_"), func(t *testing.T) {
			t.Parallel()
			args, plain := plainWords(strings.ReplaceAll(lines[0], exampleThread, fixtureThread(t, fixture, path)))
			if !plain {
				t.Skip("the example is no plain command")
			}
			f, asked := foreignPlace(t, fixture(t))
			opens := slices.Contains(opensStore, path)
			code, _, errs := f.uwf(t, args[1:]...)
			if n := asked.Load(); n > 0 {
				t.Errorf("%d requests without a consent", n)
			}
			if opens && (code != 2 || !strings.Contains(errs, "private.git") || !strings.Contains(errs, "with your logins")) {
				t.Errorf("exit code %d: %s", code, errs)
			}
			if !opens {
				return
			}
			f.consent(t)
			if code, out, errs := f.uwf(t, args[1:]...); asked.Load() == 0 {
				t.Errorf("no request with a consent: exit code %d\n%s%s", code, out, errs)
			}
		})
	}
}

func fixtureThread(t *testing.T, fixture func(*testing.T) *fixture, path string) string {
	t.Helper()
	state := exampleStates[path]
	if state == "" {
		state = stateActive
	}
	return fixture(t).threads[state]
}

// foreignPlace has the settings of a fixture's repository keep threads in another repository,
// which wants a password that the person's git knows. It counts what the server is asked.
func foreignPlace(t *testing.T, f *fixture) (*fixture, *atomic.Int64) {
	t.Helper()
	asked := &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("WWW-Authenticate", "Basic realm=private")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	helper := filepath.Join(f.dir, "home", "helper")
	f.write(t, "home/helper", "#!/bin/sh\necho asked >>"+helper+".log\necho username=u\necho password=canary\n")
	if err := os.Chmod(helper, 0o700); err != nil {
		t.Fatal(err)
	}
	f.git(t, "config", "--global", "credential.helper", helper)
	f.write(t, "repo/.uwf/config.yaml", "state: {remote: \""+server.URL+"/private.git\"}\n")
	t.Cleanup(func() {
		if _, err := os.Stat(helper + ".log"); err == nil && asked.Load() == 0 {
			t.Error("the login was looked up without a request")
		}
	})
	return f, asked
}

// consent has the person consent to what the fixture's repository wants.
func (f *fixture) consent(t *testing.T) {
	t.Helper()
	fa, _, _ := f.factory(t)
	c, err := fa.Config()
	if err == nil {
		err = app.KeepConsent(fa, c.Unconsented())
	}
	if err != nil {
		t.Fatal(err)
	}
}
