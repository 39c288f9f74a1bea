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

	"golang.org/x/tools/txtar"

	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/examples"
	"github.com/united-workforce/uwf/internal/text"
)

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
		{".uwf/workflows/solve-issue.yaml", "solve-issue.yaml"}, {"../cassette.yaml", "demo/cassette.yaml"}, {"../issue.md", "demo/issue.md"},
	} {
		data, err := fs.ReadFile(examples.Files, at[1])
		if err != nil {
			return err
		}
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
func (s *stage) runSteps(ctx context.Context) ([]thread.Result, error) {
	s.printHeading("The thread " + s.thread)
	s.w.Printf("workflow solve-issue · one fresh clone and one fresh process a step · remote %s\n", s.remote)
	s.w.Faint("The model's words are replayed from examples/demo/cassette.yaml, written by hand; the tools are real.")
	s.w.Println()
	var all []thread.Result
	for range maxJobs {
		clone, err := s.cloneRepository(ctx, "main")
		if err != nil {
			return nil, err
		}
		began := s.Factory.Now()
		var r thread.Result
		err = s.runUwf(ctx, clone, &r, "thread", "step", s.thread, "--agent", "builtin",
			"--allow-shell", "--replay", filepath.Join(s.dir, "cassette.yaml"))
		if err != nil {
			return nil, err
		}
		all = append(all, r)
		s.stepLine(r, s.Factory.Now().Sub(began).Seconds())
		if r.Done {
			return all, nil
		}
	}
	return nil, fmt.Errorf("%w within %d jobs", errStopped, maxJobs)
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
func (s *stage) showResult(ctx context.Context, steps []thread.Result) error {
	last := steps[len(steps)-1]
	if last.Work == nil {
		return fmt.Errorf("%w: it has no work branch", errStopped)
	}
	clone, err := s.cloneRepository(ctx, last.Work.Branch)
	if err != nil {
		return err
	}
	for _, show := range [][]string{
		{"What changed: git diff main..." + last.Work.Branch, "git", "diff", "--stat", "--patch", "origin/main..." + "origin/" + last.Work.Branch},
		{"The state branch: git log uwf-state", "git", "log", "--format=%h  %s", "origin/uwf-state"},
		{"go test ./... after", "go", "test", "./..."},
	} {
		if err := s.showProgram(ctx, show[0], clone, show[1:]...); err != nil {
			return err
		}
	}
	return s.showFurther(ctx, clone, last)
}

// showProgram prints what a program says, under a heading.
func (s *stage) showProgram(ctx context.Context, heading, dir string, command ...string) error {
	s.printHeading(heading)
	out, err := s.runProgram(ctx, dir, command...)
	s.printQuoted(out)
	return err
}

// showFurther says how to look at what the demo leaves, if it leaves anything.
func (s *stage) showFurther(ctx context.Context, clone string, last thread.Result) error {
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
		{"git log -p origin/" + last.Work.Branch, "what the agents edited, step by step"},
		{"uwf thread read " + s.thread, "the whole conversation"},
		{"uwf thread steps " + s.thread, "the steps and what they cost"},
		{"uwf fsck --history", "every hash, schema and chain checked"},
	} {
		s.w.Printf("  %-70s ", line[0])
		s.w.Faint("# " + line[1])
		s.w.Println()
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
	words := slices.Concat(s.self, args)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = dir
	cmd.Env = append(s.processEnv(), "UWF_HOME="+filepath.Join(s.dir, fmt.Sprintf("home-%d", s.jobs)))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("uwf %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()+out.String()))
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		return fmt.Errorf("uwf %s printed no JSON: %w\n%s", strings.Join(args, " "), err, out.String())
	}
	return nil
}

// runGit runs git with nobody's configuration.
func (s *stage) runGit(ctx context.Context, dir string, args ...string) error {
	_, err := s.runProgram(ctx, dir, append([]string{"git"}, args...)...)
	return err
}

func (s *stage) runProgram(ctx context.Context, dir string, command ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = s.processEnv()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s in %s: %w\n%s", strings.Join(command, " "), dir, err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
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
	return append(env,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
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
