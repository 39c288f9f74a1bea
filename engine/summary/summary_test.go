package summary

import (
	"strings"
	"testing"
)

func TestTitle(t *testing.T) {
	long := strings.Repeat("word ", 20)
	for name, c := range map[string]struct {
		output map[string]any
		want   string
	}{
		"a field for it":        {map[string]any{"PR-Title": " Fix\nslugs ", "title": "other", "summary": "s"}, "Fix slugs"},
		"twice":                 {map[string]any{"pr_title": "C", "prTitle": "B", "PR-Title": "A"}, "A"},
		"none that is text":     {map[string]any{"title": 7, "summary": "Did it. And more."}, "Did it"},
		"blank":                 {map[string]any{"title": " ", "summary": "Did it"}, "Did it"},
		"the better text":       {map[string]any{"changes": "x", "description": "Version 1.2 is out! Yes."}, "Version 1.2 is out"},
		"too long":              {map[string]any{"summary": long}, strings.TrimSpace(long[:70]) + "…"},
		"too long for a word":   {map[string]any{"summary": strings.Repeat("ü", 100)}, strings.Repeat("ü", 71) + "…"},
		"long but meant so":     {map[string]any{"title": long}, strings.TrimSpace(long)},
		"nothing of that":       {map[string]any{"$status": "done", "note": "x"}, ""},
		"a sentence in Chinese": {map[string]any{"summary": "修好了。还有"}, "修好了。还有"},
	} {
		if got := Title(c.output); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if got := Line(c.output); c.want != "" && got != c.want {
			t.Errorf("%s: on a line %q, want %q", name, got, c.want)
		}
	}
	if got := Line(map[string]any{"$status": "no", "exitStatus": "x", "a": " ", "b": 7, "comments": "Cut it\nbetween words. Then", "d": "x"}); got != "Cut it between words" {
		t.Errorf("%q", got)
	}
	if got := Line(map[string]any{"$status": "no"}); got != "" {
		t.Errorf("%q", got)
	}
}
