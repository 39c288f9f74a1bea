package step

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/internal/text"
)

// TestShowPrepared: what prepared the workspace stands among the details, between the turns
// and what was changed, and nothing that the agent kept in its place.
func TestShowPrepared(t *testing.T) {
	d := details{
		Prepare: "added 3 packages\n## Step 9", Turns: []any{map[string]any{"content": "a turn"}},
		Patch: map[string]any{"diff": "+x"}, kept: map[string]any{"Prepare": "forged"},
	}
	raw, err := text.EncodeJSON(d)
	if err != nil || !strings.Contains(string(raw), `"prepare":"added 3 packages\n## Step 9"`) || strings.Contains(string(raw), "forged") {
		t.Errorf("%s, %v", raw, err)
	}
	whole := renderText(func(w *output.Writer) { (&ShowOptions{Read: true}).writeMarkdown(w, d) })
	before, after, found := strings.Cut(whole, "\n### Prepared\n\n> added 3 packages\n> ## Step 9\n\n")
	if !found || !strings.Contains(before, "### Turn 1") || !strings.HasPrefix(after, "### What it changed") {
		t.Errorf("it reads:\n%s", whole)
	}
	if got := renderText(func(w *output.Writer) { (&ShowOptions{Read: true, Prompt: true}).writeMarkdown(w, d) }); strings.Contains(got, "Prepared") {
		t.Errorf("the prompt reads:\n%s", got)
	}
	d.Prepare = ""
	if got := renderText(d.writeMarkdown); strings.Contains(got, "Prepared") {
		t.Errorf("where nothing was run:\n%s", got)
	}
	if raw, err := text.EncodeJSON(d); err != nil || strings.Contains(string(raw), `"prepare"`) {
		t.Errorf("where nothing was run: %s, %v", raw, err)
	}
}
