package commands

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas"
)

// A step that runs is left alone by a pause, and stops what would take the thread
// back under it.
func TestSteerWhileRunning(t *testing.T) {
	f := newFixture(t)(t)
	id := f.threads[stateRunning]
	f.claim(t, gitcas.ThreadID(id), "77", "runner-1")
	for _, tt := range []struct {
		args []string
		code int
		want string // in what is printed
	}{
		{[]string{"ps", "--jq", ".[].run"}, 0, "77"},
		{[]string{"thread", "show", id, "--format", "text"}, 0, "running: developer works on step 3"},
		{[]string{"thread", "step", id}, 4, "run 77 (attempt 1) on runner-1 is working on it"},
		{[]string{"thread", "step", id, "--dry-run"}, 4, "is working on it"},
		{[]string{"thread", "poke", id, "-p", "again"}, 4, "working on it"},
		{[]string{"thread", "retry", id}, 4, "can't retry"},
		{[]string{"thread", "pause", id, "-m", "lunch", "--format", "text"}, 0, "is running and waits after this step"},
		{[]string{"thread", "show", id, "--jq", ".status, .pause.reason"}, 0, "running\nlunch"},
		{[]string{"thread", "show", id, "--format", "text"}, 0, "before the next step: lunch"},
		{[]string{"thread", "rm", id, "--yes"}, 2, "is running: only ended and cancelled threads are removed"},
		{[]string{"thread", "fork", id, "--jq", ".forkedFrom.steps"}, 0, "2"},
		{[]string{"thread", "cancel", id, "--jq", ".reason"}, 0, "cancelled"},
		{[]string{"ps"}, 0, "[]"},
	} {
		code, out, errs := f.uwf(t, tt.args...)
		if code != tt.code || !strings.Contains(out+errs, tt.want) {
			t.Errorf("uwf %s: exit code %d, want %d and %q:\n%s%s", strings.Join(tt.args, " "), code, tt.code, tt.want, out, errs)
		}
	}
}
