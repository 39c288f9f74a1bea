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

// TestHomes: HOME begins with what it is filled with, and what is there after the command can be
// kept; whose filling or keeping fails says so, and is not run or not taken.
func TestHomes(t *testing.T) {
	b := newBench(t, true)
	put := func(name string) func(context.Context, string) error {
		return func(_ context.Context, home string) error {
			return errors.Join(os.MkdirAll(filepath.Join(home, "deep"), 0o700), os.WriteFile(filepath.Join(home, "deep", name), []byte("seed"), 0o600))
		}
	}
	var kept string
	keep := func(_ context.Context, home string) error {
		seed, err := os.ReadFile(filepath.Join(home, "deep", "a"))
		made, merr := os.ReadFile(filepath.Join(home, "made"))
		kept = string(seed) + string(made)
		return errors.Join(err, merr)
	}
	res := b.run(t.Context(), command.Command{Line: "cat ~/deep/a && printf more >> ~/deep/a && echo made > ~/made", FillHome: put("a"), KeepHome: keep})
	if res.Code != 0 || res.Output != "seed\n" || kept != "seedmoremade\n" {
		t.Errorf("%+v, kept %q", res, kept)
	}
	if res := b.run(t.Context(), command.Command{Line: "ls ~"}); res.Output != "" {
		t.Errorf("the next one finds %q", res.Output)
	}
	away := errors.New("away")
	fail := func(context.Context, string) error { return away }
	for name, c := range map[string]command.Command{"fill": {Line: "echo ran > ran", FillHome: fail}, "keep": {Line: "true", KeepHome: fail}} {
		c.Dir = b.work
		if _, err := command.NewRunner(b.options).Run(t.Context(), c); !errors.Is(err, away) {
			t.Errorf("%s: %v", name, err)
		}
		b.checkNothingLeft()
	}
	if _, err := os.Stat(filepath.Join(b.work, "ran")); err == nil {
		t.Error("it ran with a HOME that could not be filled")
	}
}
