package commands

import (
	"os"
	"regexp"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow"
)

// TestReadmeDefinition reads the definition that the README shows: who copies it
// must not meet an error first.
func TestReadmeDefinition(t *testing.T) {
	readme, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(# .uwf/workflows/.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("the README shows no definition")
	}
	d, err := workflow.Parse("README.md", block[1], workflow.Options{Warn: func(p workflow.Problem) { t.Error(p) }})
	if err != nil {
		t.Fatal(err)
	}
	if d.Limits == nil || len(d.Roles) < 2 {
		t.Errorf("the definition has lost its limits or roles: %+v", d)
	}
}
