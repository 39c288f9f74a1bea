// Package demo is `uwf demo`: a thread from a written issue to a green test, one
// step per fresh process and fresh clone, with nothing shared but a git remote.
// The model's words are replayed; everything else is real. It needs git and go
// on PATH, and touches nothing outside its own folder.
package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/examples"
	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/internal/text"
	"golang.org/x/tools/txtar"
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
	last   thread.Result // of the last step
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
	for _, act := range []func(context.Context) error{s.seedRepository, s.startThread, s.runSteps, s.showResult} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return nil
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

// maxJobs stops a demo that goes in circles.
const maxJobs = 12

// seedRepository puts the repository, with workflow and configuration, on the remote.
func (s *stage) seedRepository(ctx context.Context) error {
	raw, err := fs.ReadFile(examples.Files, "demo/repo.txtar")
	if err != nil {
		return err
	}
	files := txtar.Parse(raw).Files
	for _, at := range [][2]string{
		{".uwf/workflows/solve-issue.yaml", "solve-issue.yaml"}, {"../cassette.jsonl", "demo/cassette.jsonl"}, {"../issue.md", "demo/issue.md"},
	} {
		data, err := fs.ReadFile(examples.Files, at[1])
		if err != nil {
			return err
		}
		// The demo shows the recorded answers, and runs its repository's tests itself.
		data = bytes.Replace(data, []byte("    checks: [test]\n"), nil, 1)
		files = append(files, txtar.File{Name: at[0], Data: data})
	}
	files = append(files, txtar.File{Name: ".uwf/config.yaml", Data: []byte("state:\n  remote: origin\n")})
	dir := filepath.Join(s.dir, "seed")
	for _, f := range files {
		name := filepath.Join(dir, f.Name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, f.Data, 0o644)); err != nil {
			return fmt.Errorf("write the demo's files: %w", err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "A small blog"},
		{"push", "-q", s.remote, "main"},
	} {
		if err := s.runGit(ctx, dir, args...); err != nil {
			return err
		}
	}
	return nil
}

// startThread shows what is wrong, and starts the thread.
func (s *stage) startThread(ctx context.Context) error {
	issue := filepath.Join(s.dir, "issue.md")
	text, err := os.ReadFile(issue)
	if err != nil {
		return fmt.Errorf("read the issue: %w", err)
	}
	s.printHeading("The issue")
	s.printQuoted(string(text))
	clone, err := s.cloneRepository(ctx, "main")
	if err != nil {
		return err
	}
	if err := s.showProgram(ctx, "go test ./... before", clone, "go", "test", "./..."); err == nil {
		return errors.New("the demo's test should fail at the beginning, and passes")
	}
	var started thread.Started
	if err := s.runUwf(ctx, clone, &started, "thread", "start", "solve-issue", "-p", "@"+issue); err != nil {
		return err
	}
	s.thread = string(started.Thread)
	return nil
}

// runSteps runs jobs until the thread has ended: each a fresh clone and a fresh
// process that does one step.
func (s *stage) runSteps(ctx context.Context) error {
	s.printHeading("The thread " + s.thread)
	s.w.Printf("workflow solve-issue · one fresh clone and one fresh process a step · remote %s\n", s.remote)
	s.w.FaintLine("The model's words are replayed from examples/demo/cassette.jsonl, written by hand; the tools are real.")
	for range maxJobs {
		clone, err := s.cloneRepository(ctx, "main")
		if err != nil {
			return err
		}
		began := s.Factory.Now()
		s.last = thread.Result{}
		// What the agents do is known. Confined, each would compile Go's own packages anew.
		err = s.runUwf(ctx, clone, &s.last, "thread", "step", s.thread, "--agent", "builtin",
			"--allow-shell", "--sandbox", "off", "--replay", filepath.Join(s.dir, "cassette.jsonl"))
		if err != nil {
			return err
		}
		s.stepLine(s.last, s.Factory.Now().Sub(began).Seconds())
		if s.last.Done {
			return nil
		}
	}
	return fmt.Errorf("the demo's thread did not end within %d jobs", maxJobs)
}

func (s *stage) stepLine(r thread.Result, seconds float64) {
	s.w.Printf("job %d  ", s.jobs-1)
	s.w.Bold(fmt.Sprintf("%-9s", r.Role))
	s.w.Printf(" → ")
	verdict := fmt.Sprintf("%-8s", r.Result)
	if r.Result == "rejected" {
		s.w.Warn(verdict)
	} else {
		s.w.Good(verdict)
	}
	if u := r.Usage; u != nil {
		s.w.Printf("  %d turns, %5d tokens in, %4d out, %s, %.1f s", u.Turns, u.InputTokens, u.OutputTokens, text.Dollars(u.CostUSD, u.Unpriced), seconds)
	}
	next := "next: " + r.NextRole
	if r.Done {
		next = "the thread ends"
	}
	s.w.Printf("  %s\n", next)
	_ = s.w.Flush()
}

// showResult prints what the thread left behind.
func (s *stage) showResult(ctx context.Context) error {
	if s.last.Work == nil {
		return errors.New("the demo's thread has no work branch")
	}
	branch := s.last.Work.Branch
	clone, err := s.cloneRepository(ctx, branch)
	if err != nil {
		return err
	}
	for _, show := range [][]string{
		{"What changed: git diff main..." + branch, "git", "diff", "--stat", "--patch", "origin/main...origin/" + branch},
		{"The state branch: git log uwf-state", "git", "log", "--format=%h  %s", "origin/uwf-state"},
		{"go test ./... after", "go", "test", "./..."},
	} {
		if err := s.showProgram(ctx, show[0], clone, show[1:]...); err != nil {
			return err
		}
	}
	return s.showFurther(ctx, clone, branch)
}

// showProgram prints what a program says, under a heading.
func (s *stage) showProgram(ctx context.Context, heading, dir string, command ...string) error {
	s.printHeading(heading)
	out, err := s.runProgram(ctx, dir, command...)
	s.printQuoted(out)
	return err
}

// showFurther says how to look at what the demo leaves, if it leaves anything.
func (s *stage) showFurther(ctx context.Context, clone, branch string) error {
	s.printHeading("Look further")
	if s.Keep == "" {
		s.w.Println("All of it is gone now. With --keep DIR it stays, to be looked at with git and uwf.")
		return nil
	}
	if err := s.settleClones(ctx); err != nil {
		return err
	}
	for _, line := range [][2]string{
		{"cd " + text.ShellWord(clone), "the last clone"},
		{"git log origin/uwf-state -- threads/" + s.thread, "what happened, with each output"},
		{"git log -p origin/" + branch, "what the agents edited, step by step"},
		{"uwf thread read " + s.thread, "the whole conversation"},
		{"uwf thread steps " + s.thread, "the steps and what they cost"},
		{"uwf fsck --history", "every hash, schema and chain checked"},
	} {
		s.w.Printf("  %-70s ", line[0])
		s.w.FaintLine("# " + line[1])
	}
	if _, err := exec.LookPath("uwf"); err != nil {
		s.w.Println("uwf is not on your PATH yet: go install github.com/united-workforce/uwf/cmd/uwf@latest")
	}
	return nil
}

// settleClones points the clones to the repository itself: its server ends with the demo.
func (s *stage) settleClones(ctx context.Context) error {
	for n := range s.jobs {
		if err := s.runGit(ctx, s.cloneDir(n), "remote", "set-url", "origin", s.bareURL()); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) cloneDir(n int) string { return filepath.Join(s.dir, fmt.Sprintf("job-%d", n)) }

// bareURL is the repository that is served.
func (s *stage) bareURL() string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(s.dir, "server", "blog.git"))}).String()
}

// cloneRepository makes a fresh clone, as a CI job's checkout does.
func (s *stage) cloneRepository(ctx context.Context, branch string) (string, error) {
	dir := s.cloneDir(s.jobs)
	s.jobs++
	return dir, s.runGit(ctx, s.dir, "clone", "-q", "-b", branch, s.remote, dir)
}

// runUwf runs this binary in a folder, as a job does, and decodes what it prints.
func (s *stage) runUwf(ctx context.Context, dir string, into any, args ...string) error {
	out, err := s.runProgram(ctx, dir, slices.Concat(s.self, args)...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		return fmt.Errorf("uwf %s printed no JSON: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// runGit runs git with nobody's configuration.
func (s *stage) runGit(ctx context.Context, dir string, args ...string) error {
	_, err := s.runProgram(ctx, dir, append([]string{"git"}, args...)...)
	return err
}

func (s *stage) runProgram(ctx context.Context, dir string, command ...string) (string, error) {
	var errs strings.Builder
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, s.processEnv(), &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s in %s: %w\n%s", strings.Join(command, " "), dir, err, strings.TrimSpace(errs.String()+string(out)))
	}
	return string(out), err
}

// processEnv is the environment of the demo's processes: no configuration of the
// machine's user, no provider's key.
func (s *stage) processEnv() []string {
	keep := []string{"PATH", "HOME", "TMPDIR", "LANG", "SSL_CERT_FILE", "SYSTEMROOT", "GOCACHE", "GOPATH", "GOMODCACHE", "GOROOT", "GOTOOLCHAIN", "GOPROXY"}
	var env []string
	for _, kv := range s.Factory.Environ {
		if name, _, ok := strings.Cut(kv, "="); ok && slices.Contains(keep, name) {
			env = append(env, kv)
		}
	}
	return append(env, "UWF_HOME="+filepath.Join(s.dir, fmt.Sprintf("home-%d", s.jobs)),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0", "GIT_DEFAULT_HASH=sha1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=uwf demo", "GIT_AUTHOR_EMAIL=demo@localhost",
		"GIT_COMMITTER_NAME=uwf demo", "GIT_COMMITTER_EMAIL=demo@localhost",
		"GOFLAGS=-mod=mod", "GOWORK=off")
}

func (s *stage) printHeading(text string) {
	s.w.Println()
	s.w.Bold("── " + text)
	s.w.Println()
}

// printQuoted prints text of files and programs, indented.
func (s *stage) printQuoted(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		s.w.Printf("  %s\n", strings.TrimRight(line, "\n"))
	}
	_ = s.w.Flush()
}
