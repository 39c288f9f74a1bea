package commands

import (
	"os"
	"regexp"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow"
)

// TestShownDefinition reads the definition that docs/action.md shows: who copies it
// must not meet an error first.
func TestShownDefinition(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/action.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(# .uwf/workflows/.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/action.md shows no definition")
	}
	d, err := workflow.Parse("docs/action.md", block[1], workflow.Options{Warn: func(p workflow.Problem) { t.Error(p) }})
	if err != nil {
		t.Fatal(err)
	}
	if d.Limits == nil || len(d.Roles) < 2 {
		t.Errorf("the definition has lost its limits or roles: %+v", d)
	}
}
