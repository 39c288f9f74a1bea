package commands

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
)

// On a terminal a person is asked before threads are removed, and only a yes is one.
func TestConfirm(t *testing.T) {
	newCopy := newFixture(t)
	for _, tt := range []struct {
		typed string
		code  int
	}{
		{"y\n", 0}, {"YES\n", 0}, {"yes", 0}, {"n\n", 2}, {"\n", 2}, {"yesterday\n", 1}, {"yesterday\ny\n", 0}, {"yesterday\n\n", 2}, {"", 1}, {strings.Repeat("y", 4<<10), 1},
	} {
		f := newCopy(t)
		fa, _, errs := f.factory(t)
		fa.IO.In, fa.IO.InTTY, fa.IO.ErrTTY = strings.NewReader(tt.typed), true, true
		code := cli.Execute(t.Context(), fa, []string{"thread", "rm", f.threads[stateEnded]})
		if code != tt.code || !strings.Contains(errs.String(), "Remove thread "+f.threads[stateEnded]+"? [y/N] ") {
			t.Errorf("%.20q: exit code %d, want %d: %s", tt.typed, code, tt.code, errs)
		}
		_, out, _ := f.uwf(t, "thread", "show", f.threads[stateEnded], "--jq", ".status")
		if want := map[bool]string{true: "removed\n", false: "ended\n"}[tt.code == 0]; out != want {
			t.Errorf("%.20q: the thread is %q, want %q", tt.typed, out, want)
		}
	}
}
