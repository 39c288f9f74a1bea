package extract_test

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/extract"
)

// No text, however made, may keep a job busy. There is no clock in this: quadratic
// time on four megabytes runs into the test's own time-out.
func TestHostileTextEnds(t *testing.T) {
	fill := func(piece string, size int) string { return strings.Repeat(piece, size/len(piece)) }
	texts := map[string]string{
		"rules":       fill("---\n", extract.MaxText),
		"fields":      fill("---\n$status\n", extract.MaxText),
		"maps":        fill("---\na: $status\n", extract.MaxText),
		"indents":     fill("---\n ---\n  ---\n", extract.MaxText),
		"code fences": fill("```\n$status: x\n", extract.MaxText),
		"brackets":    "---\n$status: " + fill("[", extract.MaxBlock-100) + "\n---\n",
		"braces":      "---\n$status: " + fill("{a: ", extract.MaxBlock-100) + "\n---\n",
		"questions":   "---\n$status: a\n" + fill("? ", extract.MaxBlock-100) + "\n---\n",
		"dashes":      "---\n$status: a\nfree:\n " + fill("- ", extract.MaxBlock-100) + "\n---\n",
		"keys":        "---\n" + fill("$status: a\n", extract.MaxBlock-100) + "\n---\n",
		"thoughts":    fill("<think>\n", extract.MaxText),
		"closed":      fill("<think>\n</think>\n", extract.MaxText),
		"ends":        "x\n" + fill("</think>", extract.MaxText-10),
		"objects":     "x\n" + fill("{\"a\":[\n", extract.MaxText-10),
		"open braces": "x\n" + fill("{\n", extract.MaxText-10),
		"long braces": "x\n" + fill("{\"a\": \""+strings.Repeat("a", 8000)+"\",\n", extract.MaxText-10),
		"dressed":     "---\n" + fill("**$status**: a\n", extract.MaxBlock-100) + "\n---\n",
		"stars":       "---\n" + fill("*", extract.MaxBlock-100) + ":\n---\n",
		"near names":  "---\n$status: approved\n" + fill("$Status: a\n", extract.MaxBlock-100) + "\n---\n",
		"drafts":      "x\n" + fill("---\n$status: approved\n---\n", extract.MaxText-10),
		"JSON":        `{"$status":` + fill("[", extract.MaxText-100),
		"repairs":     "---\n$status: approved\n" + fill("summary: a: b\n", extract.MaxBlock-100) + "\n---\n",
	}
	schema := schemaOf(t, reviewSchema)
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			_, err := extract.Frontmatter(text, schema)
			t.Logf("%.80v", err)
		})
	}
}
