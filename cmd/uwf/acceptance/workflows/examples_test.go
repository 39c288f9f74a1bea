package workflows

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/examples"
)

// TestExampleWorkflows runs each workflow of examples/ to its end with the mock agent, as
// TestGoldenWorkflows does: what it is played with lies in testdata/examples, and
// want.golden has the path, the prompts, what was asked and answered, what came out
// last, and the files that are left.
func TestExampleWorkflows(t *testing.T) {
	names := examples.Workflows()
	if len(names) < 4 {
		t.Fatal(names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join("testdata/examples", name)
			g := newGoldenRun(t, exampleFolder(t, name, folder))
			got := g.run() + g.lastOutput()
			file := filepath.Join(folder, "want.golden")
			if *updateGolden {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || got != string(want) {
				t.Errorf("%v; got:\n%s\nwant:\n%s", err, got, want)
			}
		})
	}
}

// exampleFolder is a folder as newGoldenRun wants it, with an example as its workflow.
func exampleFolder(t *testing.T, name, from string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), name)
	data, err := examples.Files.ReadFile(name + ".yaml")
	err = errors.Join(err, os.CopyFS(folder, os.DirFS(from)))
	if err = errors.Join(err, os.WriteFile(filepath.Join(folder, "workflow.yaml"), data, 0o600)); err != nil {
		t.Fatal(err)
	}
	return folder
}

// lastOutput is what the last step put out.
func (g *goldenRun) lastOutput() string {
	g.Helper()
	return "output  " + g.console.Run(g.Context(), "thread", "steps", g.thread, "--jq", ".steps[-1].output").Stdout
}

// A workflow file whose scheduled runs only look after threads gives them no prompt: it
// would start a thread, and cost money, each time.
func TestExampleSchedules(t *testing.T) {
	names, err := fs.Glob(examples.Files, "github/*.yml")
	if err != nil || len(names) < 4 {
		t.Fatal(names, err)
	}
	// What there is of an event decides whether there is a prompt.
	wanted := regexp.MustCompile(`^\$\{\{ github\.event\.(issue|pull_request) && .*\|\| '' \}\}$`)
	for _, name := range names {
		data, err := examples.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var w struct {
			On struct {
				Schedule []any
				Dispatch struct{ Inputs map[string]any } `yaml:"workflow_dispatch"`
			}
			Jobs map[string]struct {
				Steps []struct{ With map[string]string }
			}
		}
		if err := yaml.Unmarshal(data, &w); err != nil {
			t.Fatal(name, err)
		}
		if len(w.On.Schedule) == 0 || w.On.Dispatch.Inputs["thread"] == nil {
			continue // it starts a thread by the clock, or has none
		}
		for _, j := range w.Jobs {
			for _, s := range j.Steps {
				p := strings.Join(strings.Fields(s.With["prompt"]), " ")
				if p != "" && (!wanted.MatchString(p) || strings.Count(p, " || ") != strings.Count(p, " && ")) {
					t.Errorf("%s: a scheduled run starts a thread with the prompt %s", name, p)
				}
			}
		}
	}
}

// The example of a script plays solve-issue as docs/mock.md says: the developer is corrected
// once, and sent back once.
func TestExampleScript(t *testing.T) {
	data, err := examples.Files.ReadFile("mock.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir, home := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mock.yaml"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	c := &clitest.Console{Dir: dir, Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}}
	if out := c.Run(t.Context(), "run", "solve-issue", "-p", "Try it", "--agent", "uwf agent mock mock.yaml", "--trust", "none"); out.Code != 0 || !strings.Contains(out.Stdout, `"status": "ended"`) {
		t.Fatalf("%+v", out)
	}
	const path = `[.steps[1:][] | [.role, .output["$status"], .usage.turns, .usage.costUsd]] | tostring`
	out := c.Run(t.Context(), "thread", "steps", "@latest", "--jq", path)
	const want = `[["planner","ready",0,0],["developer","done",2,0.01],["reviewer","rejected",0,0],["developer","done",0,0],["reviewer","approved",0,0]]`
	if strings.TrimSpace(out.Stdout) != want {
		t.Errorf("%+v", out)
	}
}

// Every file of examples/ that is there to be copied stands in its README, and every
// workflow that a workflow file of a forge names is there, under its name.
func TestExampleFiles(t *testing.T) {
	readme, err := os.ReadFile("../../../../examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.yaml", "github/*.yml"} {
		names, err := fs.Glob(examples.Files, pattern)
		if err != nil || len(names) < 4 {
			t.Fatal(names, err)
		}
		for _, name := range names {
			if !strings.Contains(string(readme), "("+name+")") {
				t.Errorf("examples/README.md has no link to %s", name)
			}
			data, err := examples.Files.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			named := regexp.MustCompile(`(?m)^ +workflow: ([a-z-]+)$`)
			for _, found := range named.FindAllStringSubmatch(string(data), -1) {
				if _, err := fs.Stat(examples.Files, found[1]+".yaml"); err != nil {
					t.Errorf("%s runs the workflow %s, which is not in examples/", name, found[1])
				}
			}
		}
	}
}
