package commands

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
)

// TestThreadLines: on a terminal of any width a thread is a line that fits, with the end of its
// id, which every command takes.
func TestThreadLines(t *testing.T) {
	t.Parallel()
	fixture := newFixture(t)
	for _, width := range []int{40, 80, 120} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			f := fixture(t)
			fa, out, errs := f.factory(t)
			fa.IO.OutTTY, fa.IO.Width = true, func() int { return width }
			if code := cli.Execute(t.Context(), fa, []string{"thread", "list", "--all"}); code != 0 {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			text := ansi.Strip(out.String())
			for line := range strings.Lines(text) {
				if n := ansi.StringWidth(strings.TrimRight(line, "\n")); n >= width {
					t.Errorf("%d columns: %q", n, line)
				}
			}
			for _, state := range []string{stateActive, stateSuspended, stateFailed, stateEnded, stateCancelled} {
				id := f.threads[state]
				short := id[len(id)-6:]
				if !regexp.MustCompile(`(?m)^` + short + `  ` + state + ` `).MatchString(text) {
					t.Errorf("%s is not listed as %s:\n%s", short, state, text)
				}
				var shown struct{ Thread string }
				if f.must(t, &shown, "thread", "show", strings.ToLower(short)); shown.Thread != id {
					t.Errorf("%s shows %s", short, shown.Thread)
				}
			}
			if want := "The parser panics on an empty file"; width > 80 && !strings.Contains(text, want) {
				t.Errorf("no title:\n%s", text)
			}
		})
	}
}
