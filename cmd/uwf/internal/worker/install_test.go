package worker

import (
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/thread"
)

// TestOfferInstall: what a lock file names is installed as the person says, who is asked once per
// repository; if nobody is there, the setting is named.
func TestOfferInstall(t *testing.T) {
	const (
		asks    = "package-lock.json is here: install what it names before agents work? [y: without install scripts, a: with them, N]"
		advises = "nothing installs what package-lock.json names before agents work, so that tests may not run: uwf config set --repo workspace.prepare 'npm ci --ignore-scripts'"
	)
	for _, c := range []struct {
		name    string
		files   map[string]string
		config  config.Config
		answer  string
		ci      bool
		runs    string
		asked   int
		told    bool
		network config.Network
	}{
		{name: "yes", answer: "y\n", runs: "npm ci --ignore-scripts", asked: 1, network: config.NetworkGateway},
		{name: "with scripts", answer: "a\n", runs: "npm ci", asked: 1, network: config.NetworkGateway},
		{name: "no", answer: "\n", asked: 1},
		{name: "no answer at first", answer: "npm ci\nyes\n", runs: "npm ci --ignore-scripts", asked: 2, network: config.NetworkGateway},
		{name: "the network is chosen", answer: "y\n", config: config.Config{Confine: config.Confine{Network: config.NetworkOpen}}, runs: "npm ci --ignore-scripts", asked: 1, network: config.NetworkOpen},
		{name: "settings say how", answer: "y\n", config: config.Config{Workspace: config.Workspace{Prepare: []string{"make"}}}, runs: "make"},
		{name: "settings say nothing is needed", answer: "y\n", config: config.Config{Workspace: config.Workspace{Prepare: []string{}}}},
		{name: "nobody there", told: true},
		{name: "in a job", answer: "y\n", ci: true, told: true},
		{name: "no lock file", files: map[string]string{"go.sum": ""}, answer: "y\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newCheckedRepo(t)
			if c.files == nil {
				c.files = map[string]string{"package-lock.json": "{}", "package.json": script}
			}
			r.commit(c.files)
			var told []string
			offer := func(answer string) *Worker {
				w := r.worker(c.config, answer)
				w.o.Observe = func(e thread.Event) { told = append(told, e.Text) }
				if c.ci {
					w.f.Job = &app.Job{Root: r.dir}
				}
				if err := w.offerInstall(); err != nil {
					t.Fatal(err)
				}
				return w
			}
			w := offer(c.answer)
			if got := strings.Join(w.config.Workspace.Prepare, " && "); got != c.runs || strings.Count(r.screen.String(), asks) != c.asked || c.network != "" && w.config.Confine.Network != c.network {
				t.Errorf("%q, network %s, on the screen:\n%s", got, w.config.Confine.Network, r.screen)
			}
			if slices.Contains(told, advises) != c.told {
				t.Errorf("%q", told)
			}
			if c.told {
				return
			}
			w = offer("a\n") // the next process
			if got := strings.Join(w.config.Workspace.Prepare, " && "); got != c.runs || strings.Contains(r.screen.String(), asks) {
				t.Errorf("asked again: %q, on the screen:\n%s", got, r.screen)
			}
		})
	}
}

// TestInstallNeedsTheLock: a commit without the lock file, such as an older thread's, is not prepared.
func TestInstallNeedsTheLock(t *testing.T) {
	r := newCheckedRepo(t)
	before := r.commit(map[string]string{"a": "1", "sub/package-lock.json": "{}"})
	after := r.commit(map[string]string{"package-lock.json": "{}"})
	p := r.preparer("echo installed")
	p.w.locks = []string{"package-lock.json"}
	if out, err := r.prepare(p, before, before); err != nil || out != "" || p.image != "" {
		t.Errorf("%q %v", out, err)
	}
	if out, err := r.prepare(p, after, after); err != nil || !strings.Contains(out, "installed") {
		t.Errorf("%q %v", out, err)
	}
}
