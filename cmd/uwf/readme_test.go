package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow"
)

// TestReadmeDefinition reads the definition that the README shows: who copies it
// must not meet an error first.
func TestReadmeDefinition(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(# .uwf/workflows/.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("the README shows no definition")
	}
	d, err := workflow.Parse("README.md", block[1], workflow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Limits == nil || len(d.Roles) < 2 {
		t.Errorf("the definition has lost its limits or roles: %+v", d)
	}
}

// TestReadmeWorkflowFile: the file that the README tells to copy is the one that uwf
// init writes for OpenAI, without what that says at its top.
func TestReadmeWorkflowFile(t *testing.T) {
	written, err := os.ReadFile("internal/initialize/testdata/openai.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, want, ok := strings.Cut(string(written), "\nname: uwf\n")
	if _, got, _ := strings.Cut(readmeFiles(t)[ciWorkflow], "\nname: uwf\n"); !ok || got != want {
		t.Error("the README's uwf.yml is not what uwf init writes: copy internal/initialize/testdata/openai.yml from `name: uwf` on")
	}
}
