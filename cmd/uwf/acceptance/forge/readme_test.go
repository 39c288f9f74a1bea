package forge

import (
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/forgetest"
	"gopkg.in/yaml.v3"
)

// The files of the quick start stand between two markers, each in a code
// block whose first line is a comment with the file's path.
const (
	actionFiles    = "<!-- ci:action-files -->"
	actionFilesEnd = "<!-- ci:action-files-end -->"
)

// copiedFiles are the files that docs/action.md tells to copy, by their paths.
func copiedFiles(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("../../../../docs/action.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(raw), actionFiles)
	text, _, closed := strings.Cut(text, actionFilesEnd)
	if !ok || !closed {
		t.Fatalf("docs/action.md has no files between %s and %s", actionFiles, actionFilesEnd)
	}
	files := map[string]string{}
	for _, block := range regexp.MustCompile("(?s)\n```ya?ml\n(# ([^\n ]+)\n.*?)```").FindAllStringSubmatch(text, -1) {
		if _, twice := files[block[2]]; twice || path.Clean(block[2]) != block[2] {
			t.Errorf("docs/action.md: %s is no path of one file", block[2])
		}
		files[block[2]] = block[1]
	}
	if fences := strings.Count(text, "\n```") / 2; fences != len(files) {
		t.Errorf("docs/action.md: %d code blocks, but %d begin with a comment that is a path", fences, len(files))
	}
	return files
}

// everyForge runs a test against the fake of each flavour: github.com, a GitHub Enterprise
// Server that refuses what github.com takes in a dispatch, and Gitea.
func everyForge(t *testing.T, test func(t *testing.T, o ciOptions)) {
	t.Helper()
	for name, o := range map[string]ciOptions{
		"github": {}, "ghes": {forge: forgetest.Options{RunDetails: forgetest.DetailsRefused}}, "gitea": {gitea: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, o)
		})
	}
}

// TestCopiedFiles copies the files of docs/action.md into a new repository, and the owner puts
// the label on an issue, on each forge: nothing else, but a model that answers.
func TestCopiedFiles(t *testing.T) {
	t.Parallel()
	files := copiedFiles(t)
	var flow string
	for name, text := range files {
		if strings.HasPrefix(name, ".uwf/workflows/") {
			flow = text
		}
	}
	if len(files) != 3 || flow == "" || files[ciWorkflow] == "" || files[ciConfig] == "" {
		t.Fatalf("the quick start's files: %v", len(files))
	}
	everyForge(t, func(t *testing.T, o ciOptions) {
		o.bare, o.files = true, files
		if o.gitea || o.forge.RunDetails != forgetest.DetailsGiven {
			o.files = maps.Clone(files)
			o.files[ciConfig] += quickCheck
		}
		c := newCI(t, o)
		c.with = map[string]string{} // nothing but what the workflow file says
		m := newChatModel(t, flow, "developer", map[string]string{"slug/slug.go": fixed})
		c.provide(m)
		n := c.issue()
		c.green(c.start(c.forge.PutLabel("octo", n, "uwf")))
		c.green(c.settle()...)
		p := c.pull(n)
		if out, err := c.goTest(p.Pull.Head); err != nil {
			t.Errorf("the tests of the pull request fail: %s", out)
		}
		c.sticky(n)
		if len(m.calls) == 0 || m.calls[""] != 0 {
			t.Errorf("what the model was asked, by role: %v", m.calls)
		}
	})
}

// shell is a person's machine: a clone of the repository, in which commands are typed.
type shell struct {
	*ci
	dir, home string
	path      string
}

// checkQuickly commits settings with quickCheck.
func (s *shell) checkQuickly() {
	s.runLine("uwf config set --repo checks.test 'test -s slug/slug.go' && git commit -qam 'Check quickly' && git push -q")
}

// newShell clones the repository with the owner's rights.
func (c *ci) newShell() *shell {
	c.Helper()
	s := &shell{ci: c, home: c.TempDir(), path: os.Getenv("PATH")}
	s.runLine("git clone -q " + c.owned() + " clone")
	s.dir = filepath.Join(s.home, "clone")
	return s
}

// owned is the repository's address with the owner's password in it.
func (c *ci) owned() string {
	return strings.Replace(c.forge.CloneURL(), "://", "://octo:"+c.forge.UserToken("octo")+"@", 1)
}

// runLine runs a line by sh, which has to succeed.
func (s *shell) runLine(line string) string {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), "sh", "-euc", line)
	cmd.Dir = or(s.dir, s.home)
	cmd.Env = []string{
		"PATH=" + s.path, "HOME=" + s.home, "TMPDIR=" + s.home, "UWF_LOG=off", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Octo", "GIT_AUTHOR_EMAIL=octo@example.com", "GIT_COMMITTER_NAME=Octo", "GIT_COMMITTER_EMAIL=octo@example.com",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// readmeCommands are the lines of the README's block behind a marker, without comments.
func readmeCommands(t *testing.T, marker string) []string {
	t.Helper()
	raw, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(raw), "<!-- "+marker+" -->\n```sh\n")
	block, _, closed := strings.Cut(rest, "\n```\n")
	if !found || !closed {
		t.Fatalf("README.md has no code block after <!-- %s -->", marker)
	}
	var lines []string
	for line := range strings.SplitSeq(block, "\n") {
		line, _, _ = strings.Cut(line, "  #")
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestReadmeInit types the README's commands in a clone and puts the label on an issue, on
// each forge: nothing else, but a model that answers. What the README says to leave out on
// Gitea is left out there; nothing is added.
func TestReadmeInit(t *testing.T) {
	t.Parallel()
	lines := readmeCommands(t, "test:init")
	if len(lines) != 5 || !strings.HasPrefix(lines[0], "go install ") || lines[1] != "cd your-repository" {
		t.Fatalf("the README's commands: %q", lines)
	}
	everyForge(t, func(t *testing.T, o ciOptions) {
		gitea := o.gitea
		o.bare = true
		c := newCI(t, o)
		c.with = map[string]string{} // nothing but what the workflow file says
		s := c.newShell()
		bin, secrets := t.TempDir(), filepath.Join(t.TempDir(), "secrets")
		c.check(os.WriteFile(filepath.Join(bin, "gh"), []byte("#!/bin/sh\necho \"$@\" >>'"+secrets+"'\n"), 0o700)) //nolint:gosec // a program
		s.path = bin + string(os.PathListSeparator) + s.path
		for _, line := range lines[2:] {
			if gitea && strings.HasPrefix(line, "gh ") {
				continue
			}
			s.runLine(line)
		}
		// What gh has is looked for, to tick what is done.
		if got := regexp.MustCompile(`(?m)^auth token .*\n`).ReplaceAllString(c.read(secrets), ""); !gitea && got != "secret set OPENAI_API_KEY\n" || gitea && got != "" {
			t.Errorf("gh was asked for %q", got)
		}
		s.checkQuickly()
		m := newChatModel(t, c.example("solve-issue.yaml"), "developer", map[string]string{"slug/slug.go": fixed})
		c.provide(m)
		n := c.issue()
		c.green(c.start(c.forge.PutLabel("octo", n, "uwf")))
		c.green(c.settle()...)
		c.solved(n, 3)
		if !gitea {
			return
		}
		// Others are told what the next steps of init said: once, on the issue.
		other := c.issue()
		for range 2 {
			c.untouched(c.start(c.forge.PutLabel("alice", other, "uwf")), "alice")
		}
		if got := c.own(other); len(got) != 1 || !strings.Contains(got[0], "allow: alice") {
			t.Fatalf("alice was told %q", got)
		}
		s.runLine("uwf init --provider openai --allow alice --force && git commit -qam 'Let alice in' && git push -q")
		c.green(c.start(c.forge.PutLabel("alice", other, "uwf")))
		c.green(c.settle()...)
		if p := c.pull(other); !p.Open {
			t.Errorf("pull request: %+v", p)
		}
	})
}

// TestCustomProvider runs what uwf init writes for a provider of one's own, with nothing
// edited and no input added: jobs send the key to the address that the settings name. On a
// person's machine, which gets no key until that person says so, what asks no model works.
func TestCustomProvider(t *testing.T) {
	t.Parallel()
	bothForges(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea, bare: true})
		c.with = map[string]string{}
		m := newChatModel(t, c.example("solve-issue.yaml"), "developer", map[string]string{"slug/slug.go": fixed})
		s := c.newShell()
		s.runLine("uwf init --provider custom --base-url " + m.url + " --model own && git add .github .uwf && git commit -qm 'Let uwf work' && git push -q")
		s.checkQuickly()
		n := c.issue()
		c.green(c.start(c.forge.PutLabel("octo", n, "uwf")))
		c.green(c.settle()...)
		c.solved(n, 3)
		for _, line := range []string{"uwf thread list --all", "uwf fsck", "uwf config validate"} {
			s.runLine(line)
		}
	})
}

// TestWorkflowFilesFit checks the workflow files that we ship, and that of docs/action.md, with
// the action: what they give to it are inputs that it has, and the inputs that a job
// gives to the next are declared.
func TestWorkflowFilesFit(t *testing.T) {
	known := actionDefaults(t)
	hop := []string{"thread", "head", "store", "comment", "pull-request"}
	shipped := map[string]string{}
	for _, name := range []string{"uwf.yml", "two-jobs.yml"} {
		raw, err := os.ReadFile("../../../../examples/github/" + name)
		if err != nil {
			t.Fatal(err)
		}
		shipped[name] = string(raw)
	}
	shipped["docs/action.md"] = copiedFiles(t)[ciWorkflow]
	for name, text := range shipped {
		var w struct {
			On struct {
				Dispatch struct{ Inputs map[string]any } `yaml:"workflow_dispatch"`
			}
			Jobs map[string]struct {
				Steps []struct {
					Uses string
					With map[string]string
				}
			}
		}
		if err := yaml.Unmarshal([]byte(text), &w); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, in := range hop {
			if _, ok := w.On.Dispatch.Inputs[in]; !ok {
				t.Errorf("%s: workflow_dispatch declares no %s", name, in)
			}
		}
		uses := 0
		for _, job := range w.Jobs {
			for _, step := range job.Steps {
				if !strings.HasPrefix(step.Uses, "united-workforce/uwf") {
					continue
				}
				uses++
				for in := range step.With {
					if _, ok := known[in]; !ok {
						t.Errorf("%s: the action has no input %s", name, in)
					}
				}
			}
		}
		if uses == 0 {
			t.Errorf("%s: no step uses uwf", name)
		}
	}
}

// TestCopiedWorkflowFile: the file that docs/action.md tells to copy is the one that uwf
// init writes for OpenAI, without what that says at its top.
func TestCopiedWorkflowFile(t *testing.T) {
	written, err := os.ReadFile("../../internal/initialize/testdata/openai.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, want, ok := strings.Cut(string(written), "\nname: uwf\n")
	if _, got, _ := strings.Cut(copiedFiles(t)[ciWorkflow], "\nname: uwf\n"); !ok || got != want {
		t.Error("docs/action.md's uwf.yml is not what uwf init writes: copy internal/initialize/testdata/openai.yml from `name: uwf` on")
	}
}
