package workflow

import "testing"

// TestFillRefuses: a text that is no template of the definition's dialect.
func TestFillRefuses(t *testing.T) {
	for dialect, template := range map[Dialect]string{StatusMap: "{{#a}}", Liquid: "{% if a %}"} {
		d := &Definition{Dialect: dialect}
		if text, err := d.Fill(template, nil); err == nil {
			t.Errorf("%s: %q", dialect, text)
		}
	}
}
