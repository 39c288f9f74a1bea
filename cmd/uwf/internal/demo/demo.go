// Package demo is `uwf demo`: a thread from a written issue to a green test, one
// step per fresh process and fresh clone, with nothing shared but a git remote.
// The model's words are replayed; everything else is real. It needs git and go
// on PATH, and touches nothing outside its own folder.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/gitcas/gitserver"
)

// Options are what `uwf demo` works with.
type Options struct {
	Factory *app.Factory
	Keep    string // folder to leave everything in; empty: a temporary one
}

// NewCmdDemo makes `uwf demo`. A runF that is not nil replaces the run.
func NewCmdDemo(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a team of agents solve an issue: no key, no network, no configuration",
		Long: `Watch a team of agents solve an issue: no key, no network, no configuration.

The demo makes a small Go repository with a failing test and an issue, serves it
from a git server on 127.0.0.1, and lets a planner, a developer and a reviewer
work on it. Each step runs in a fresh process in a fresh clone, as a CI job does;
only the git remote connects them. The tools really edit files and run go test.
The model's words are replayed from a cassette that was written by hand.`,
		Example: "  uwf demo\n  uwf demo --keep /tmp/uwf-demo",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, demoRun, func([]string) {}),
	}
	cmd.Flags().StringVar(&o.Keep, "keep", "", "leave everything in `DIR` to look at (must not exist, or be empty)")
	return cmd
}

// stage is a running demo.
type stage struct {
	*Options
	self   []string // this binary
	w      *output.Writer
	dir    string // everything lies below it
	remote string // URL of the bare repository
	thread string
	jobs   int
}

func demoRun(ctx context.Context, o *Options) error {
	self, err := o.Factory.Self()
	if err != nil {
		return err
	}
	s := &stage{Options: o, self: self, w: o.Factory.Printer().Text()}
	err = s.playDemo(ctx)
	if ferr := s.w.Flush(); err == nil {
		err = ferr
	}
	return err
}

func (s *stage) playDemo(ctx context.Context) error {
	for _, tool := range [][2]string{{"git", "https://git-scm.com/downloads"}, {"go", "https://go.dev/dl"}} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			return fmt.Errorf("the demo needs %s: %w; install it (%s), or put the folder that it lies in on PATH", tool[0], err, tool[1])
		}
	}
	remove, err := s.makeDir()
	if err != nil {
		return err
	}
	defer remove()
	stop, err := s.serveRepository(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if err := s.seedRepository(ctx); err != nil {
		return err
	}
	if err := s.startThread(ctx); err != nil {
		return err
	}
	steps, err := s.runSteps(ctx)
	if err != nil {
		return err
	}
	return s.showResult(ctx, steps)
}

// makeDir makes the demo's folder. What it returns removes it again, unless the
// folder is to be kept.
func (s *stage) makeDir() (remove func(), err error) {
	if s.Keep == "" {
		s.dir, err = os.MkdirTemp("", "uwf-demo-")
		return func() { _ = os.RemoveAll(s.dir) }, err
	}
	s.dir = s.Factory.Path(s.Keep)
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("--keep: %w", err)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("--keep: %w", err)
	}
	if len(entries) > 0 {
		return nil, app.Usagef("--keep %s: the folder is not empty; name one that is, or that does not exist", s.Keep)
	}
	return func() {}, nil
}

// serveRepository makes the bare repository and serves it over loopback HTTP; where git
// has no http-backend, over file://.
func (s *stage) serveRepository(ctx context.Context) (stop func(), err error) {
	root := filepath.Join(s.dir, "server")
	if err := s.runGit(ctx, s.dir, "init", "-q", "--bare", "-b", "main", filepath.Join(root, "blog.git")); err != nil {
		return nil, err
	}
	if served := gitserver.Available("git") == nil; !served {
		s.remote = s.bareURL()
		s.w.Printf("git http-backend is not installed here: the remote is %s instead of a server.\n", s.remote)
		return func() {}, nil
	}
	srv, err := gitserver.Serve(root, gitserver.Options{})
	if err != nil {
		return nil, fmt.Errorf("serve the demo's repository: %w", err)
	}
	s.remote = srv.URL + "/blog.git"
	return func() { _ = srv.Close() }, nil
}

// errStopped ends a demo whose thread did not come to its end.
var errStopped = errors.New("the demo's thread did not end")
