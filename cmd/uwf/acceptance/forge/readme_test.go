package forge

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// The README's files of the quick start stand between two markers, each in a code
// block whose first line is a comment with the file's path.
const (
	actionFiles    = "<!-- ci:action-files -->"
	actionFilesEnd = "<!-- ci:action-files-end -->"
)

// readmeFiles are the files that the README tells to copy, by their paths.
func readmeFiles(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(raw), actionFiles)
	text, _, closed := strings.Cut(text, actionFilesEnd)
	if !ok || !closed {
		t.Fatalf("README.md has no files between %s and %s", actionFiles, actionFilesEnd)
	}
	files := map[string]string{}
	for _, block := range regexp.MustCompile("(?s)\n```ya?ml\n(# ([^\n ]+)\n.*?)```").FindAllStringSubmatch(text, -1) {
		if _, twice := files[block[2]]; twice || path.Clean(block[2]) != block[2] {
			t.Errorf("README.md: %s is no path of one file", block[2])
		}
		files[block[2]] = block[1]
	}
	if fences := strings.Count(text, "\n```") / 2; fences != len(files) {
		t.Errorf("README.md: %d code blocks, but %d begin with a comment that is a path", fences, len(files))
	}
	return files
}

// TestReadmeQuickStart copies the README's files into a new repository and puts the
// label on an issue: nothing else, but a model that answers.
func TestReadmeQuickStart(t *testing.T) {
	t.Parallel()
	files := readmeFiles(t)
	var flow string
	for name, text := range files {
		if strings.HasPrefix(name, ".uwf/workflows/") {
			flow = text
		}
	}
	if len(files) != 3 || flow == "" || files[ciWorkflow] == "" || files[ciConfig] == "" {
		t.Fatalf("the quick start's files: %v", len(files))
	}
	c := newCI(t, ciOptions{bare: true, files: files})
	c.with = map[string]string{} // nothing but what the workflow file says
	m := newChatModel(t, flow, "developer", map[string]string{"slug/slug.go": fixed})
	c.provide(m)
	n := c.issue()
	c.green(c.start(c.forge.Label("alice", n, "uwf")))
	c.green(c.settle()...)
	p := c.pull(n)
	if out, err := c.goTest(p.Pull.Head); err != nil {
		t.Errorf("the tests of the pull request fail: %s", out)
	}
	c.sticky(n)
	if len(m.calls) == 0 || m.calls[""] != 0 {
		t.Errorf("what the model was asked, by role: %v", m.calls)
	}
}

// TestWorkflowFilesFit checks the workflow files that we ship, and the README's, with
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
	shipped["README.md"] = readmeFiles(t)[ciWorkflow]
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

// TestReadmeWorkflowFile: the file that the README tells to copy is the one that uwf
// init writes for OpenAI, without what that says at its top.
func TestReadmeWorkflowFile(t *testing.T) {
	written, err := os.ReadFile("../../internal/initialize/testdata/openai.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, want, ok := strings.Cut(string(written), "\nname: uwf\n")
	if _, got, _ := strings.Cut(readmeFiles(t)[ciWorkflow], "\nname: uwf\n"); !ok || got != want {
		t.Error("the README's uwf.yml is not what uwf init writes: copy internal/initialize/testdata/openai.yml from `name: uwf` on")
	}
}
