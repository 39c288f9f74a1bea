package command_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/command"
)

// Commands on a copy see what those before them did, a failing one keeps none from running,
// and the copy is removed.
func TestRunOnCopy(t *testing.T) {
	bothWays(t, func(b *bench) {
		var dir string
		fill := func(ctx context.Context, d string) error { dir = d; return fillCopy(ctx, d) }
		results, err := command.NewRunner(b.options).RunOnCopy(b.Context(), fill,
			command.Command{Line: "cat file; echo changed > file; mkdir -p a/b; echo x > a/b/c; chmod 0 a/b; exit 3", Dir: b.work},
			command.Command{Line: "cat ../file; pwd -P", Place: "sub"},
			command.Command{Argv: []string{"rm", "file"}})
		if err != nil || len(results) != 3 {
			b.Fatalf("%+v, %v", results, err)
		}
		if r := results[0]; r.Code != 3 || r.Output != "as committed\n" {
			b.Errorf("first: %+v", r)
		}
		if r := results[1]; r.Code != 0 || r.Output != "changed\n"+dir+"/sub\n" {
			b.Errorf("second: %+v", r)
		}
		if r := results[2]; r.Code != 0 {
			b.Errorf("third: %+v", r)
		}
		if got, err := os.ReadFile(filepath.Join(b.work, "file")); err != nil || string(got) != "as committed\n" {
			b.Errorf("the original is %q, %v", got, err)
		}
		b.checkNothingLeft()
	})
}

// A copy that can't be filled, a command that can't be run and the end of ctx end the rest.
func TestRunOnCopyEnds(t *testing.T) {
	b := newBench(t, false)
	r := command.NewRunner(b.options)
	full := errors.New("no space left")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	over := errors.New("it is over")
	ran := command.Command{Line: "cat file"}
	for name, tt := range map[string]struct {
		ctx      context.Context
		fill     func(context.Context, string) error
		commands []command.Command
		results  int
		want     string
	}{
		"no copy":    {t.Context(), func(context.Context, string) error { return full }, []command.Command{ran}, 0, "fill the copy"},
		"no command": {t.Context(), fillCopy, []command.Command{ran, {Line: "true", Place: ".."}, ran}, 1, "not within"},
		"no time":    {ctx, func(ctx context.Context, dir string) error { cancel(over); return fillCopy(ctx, dir) }, []command.Command{ran}, 0, over.Error()},
	} {
		results, err := r.RunOnCopy(tt.ctx, tt.fill, tt.commands...)
		if err == nil || !strings.Contains(err.Error(), tt.want) || len(results) != tt.results {
			t.Errorf("%s: %+v, %v", name, results, err)
		}
	}
	if err := r.RemoveLeftovers(t.Context()); err != nil {
		t.Error(err)
	}
	b.checkNothingLeft()
}
