package worker

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
)

// TestOfferShell: a role that wants to run commands gets a shell as the person says, who is
// asked once; where nobody is there, the flag is named.
func TestOfferShell(t *testing.T) {
	tester := workflow.Role{Name: "tester", Capabilities: []string{"reading code and tests", "running the tests"}}
	for _, c := range []struct {
		name     string
		role     workflow.Role
		answer   string
		terminal bool
		ci       bool
		shell    bool // in this run
		always   bool // in the next
		asked    bool
		told     bool
		refused  bool // a file says no
		again    bool // the first answer was none
	}{
		{name: "yes", role: tester, answer: "y\n", terminal: true, shell: true, asked: true},
		{name: "always", role: tester, answer: "a\n", terminal: true, shell: true, always: true, asked: true},
		{name: "no answer at first", role: tester, answer: "uwf run\nalways\n", terminal: true, shell: true, always: true, asked: true, again: true},
		{name: "no", role: tester, answer: "\n", terminal: true, asked: true},
		{name: "a file says no", role: tester, answer: "y\n", terminal: true, refused: true, told: true},
		{name: "nobody there", role: tester, told: true},
		{name: "in a job", role: tester, ci: true},
		{name: "no such role", role: workflow.Role{Name: "reader", Capabilities: []string{"reading code and tests"}}, terminal: true},
		{name: "no capabilities", role: workflow.Role{Name: "any"}, terminal: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, screen := t.TempDir(), &bytes.Buffer{}
			if err := os.MkdirAll(filepath.Join(dir, "repo", ".git"), 0o700); err != nil {
				t.Fatal(err)
			}
			f := &app.Factory{
				IO:      app.IO{In: strings.NewReader(c.answer), Out: &bytes.Buffer{}, Err: screen, InTTY: c.terminal, ErrTTY: c.terminal},
				Environ: []string{"HOME=" + dir}, Dir: filepath.Join(dir, "repo"), Now: time.Now,
			}
			if c.ci {
				f.Job = &app.Job{Root: f.Dir}
			}
			var told []string
			w := &Worker{f: f, config: &config.Config{Origins: map[string]string{}}, o: Options{Observe: func(e thread.Event) { told = append(told, e.Text) }}}
			if c.refused {
				w.config.Origins["allowShell"] = "config.yaml:1:1"
			}
			for range 2 {
				if err := w.offerShell(c.role); err != nil {
					t.Fatal(err)
				}
			}
			if w.allowsShell() != c.shell || strings.Count(screen.String(), "[y: in this run") != map[bool]int{true: 1}[c.asked]+map[bool]int{true: 1}[c.again] {
				t.Errorf("shell %t, screen %s", w.allowsShell(), screen)
			}
			if (len(told) == 1) != c.told || c.told && !strings.Contains(told[0], "the role tester (running the tests) gets no shell, so its agent can run no commands: --allow-shell lets it") {
				t.Errorf("%q", told)
			}
			again := &app.Factory{IO: f.IO, Environ: f.Environ, Dir: f.Dir, Now: time.Now}
			if got, err := again.Config(); err != nil || got.AllowShell != c.always {
				t.Errorf("the next run: %t %v", got.AllowShell, err)
			}
		})
	}
}
