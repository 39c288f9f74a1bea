package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
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
		return fmt.Errorf("read the demo's repository: %w", err)
	}
	dir := filepath.Join(s.dir, "seed")
	for _, f := range txtar.Parse(raw).Files {
		if err := writeFile(filepath.Join(dir, f.Name), f.Data); err != nil {
			return err
		}
	}
	for name, from := range map[string]string{
		".uwf/workflows/solve-issue.yaml": "solve-issue.yaml",
		"../cassette.yaml":                "demo/cassette.yaml",
		"../issue.md":                     "demo/issue.md",
	} {
		data, err := fs.ReadFile(examples.Files, from)
		if err != nil {
			return fmt.Errorf("read the demo's %s: %w", from, err)
		}
		if err := writeFile(filepath.Join(dir, name), data); err != nil {
			return err
		}
	}
	if err := writeFile(filepath.Join(dir, ".uwf/config.yaml"), []byte("state:\n  remote: origin\n")); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "A small blog"},
		{"push", "-q", s.remote, "main"},
	} {
		if _, err := s.runGit(ctx, dir, args...); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("write the demo's files: %w", err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		return fmt.Errorf("write the demo's files: %w", err)
	}
	return nil
}

// startThread shows what is wrong, and starts the thread.
func (s *stage) startThread(ctx context.Context) error {
	issue, err := os.ReadFile(filepath.Join(s.dir, "issue.md"))
	if err != nil {
		return fmt.Errorf("read the issue: %w", err)
	}
	s.printHeading("The issue")
	s.printQuoted(string(issue))
	clone, err := s.cloneRepository(ctx, "main")
	if err != nil {
		return err
	}
	s.printHeading("go test ./... before")
	out, err := s.runProgram(ctx, clone, "go", "test", "./...")
	if err == nil {
		return fmt.Errorf("the demo's test should fail at the beginning, and passes:\n%s", out)
	}
	s.printQuoted(out)
	var started thread.Started
	if err := s.runUwf(ctx, clone, &started, "thread", "start", "solve-issue", "-p", "@"+filepath.Join(s.dir, "issue.md")); err != nil {
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
		began := s.Now()
		var r thread.Result
		err = s.runUwf(ctx, clone, &r, "thread", "step", s.thread, "--agent", "builtin",
			"--allow-shell", "--replay", filepath.Join(s.dir, "cassette.yaml"))
		if err != nil {
			return nil, err
		}
		all = append(all, r)
		s.stepLine(r, s.Now().Sub(began).Seconds())
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
	s.printHeading("What changed: git diff main..." + last.Work.Branch)
	diff, err := s.runGit(ctx, clone, "diff", "--stat", "--patch", "origin/main..."+"origin/"+last.Work.Branch)
	if err != nil {
		return err
	}
	s.printQuoted(diff)
	s.printHeading("The state branch: git log uwf-state")
	log, err := s.runGit(ctx, clone, "log", "--format=%h  %s", "origin/uwf-state")
	if err != nil {
		return err
	}
	s.printQuoted(log)
	s.printHeading("go test ./... after")
	out, err := s.runProgram(ctx, clone, "go", "test", "./...")
	if err != nil {
		return fmt.Errorf("the demo's test should pass at the end:\n%s", out)
	}
	s.printQuoted(out)
	return s.showFurther(ctx, clone, last)
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
		if _, err := s.runGit(ctx, s.cloneDir(n), "remote", "set-url", "origin", s.bareURL()); err != nil {
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
	_, err := s.runGit(ctx, s.dir, "clone", "-q", "-b", branch, s.remote, dir)
	return dir, err
}

// runUwf runs this binary in a folder, as a job does, and decodes what it prints.
func (s *stage) runUwf(ctx context.Context, dir string, into any, args ...string) error {
	words := append(append([]string{}, s.Self...), args...)
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
func (s *stage) runGit(ctx context.Context, dir string, args ...string) (string, error) {
	return s.runProgram(ctx, dir, "git", args...)
}

func (s *stage) runProgram(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = s.processEnv()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s in %s: %w\n%s", name, strings.Join(args, " "), dir, err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// processEnv is the environment of the demo's processes: no configuration of the
// machine's user, no provider's key.
func (s *stage) processEnv() []string {
	keep := map[string]bool{
		"PATH": true, "HOME": true, "TMPDIR": true, "LANG": true, "SSL_CERT_FILE": true, "SYSTEMROOT": true,
		"GOCACHE": true, "GOPATH": true, "GOMODCACHE": true, "GOROOT": true, "GOTOOLCHAIN": true, "GOPROXY": true,
	}
	var env []string
	for _, kv := range s.Environ {
		if name, _, ok := strings.Cut(kv, "="); ok && keep[name] {
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
