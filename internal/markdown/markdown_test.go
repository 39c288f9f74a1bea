package markdown

import (
	"strings"
	"testing"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"Fix slugs, v1.2 (#3)!": "Fix slugs, v1.2 (#3)!", "a|b `c` *d* _e_ ~f~": "a\\|b \\`c\\` \\*d\\* \\_e\\_ \\~f\\~",
		"<img src=x> &lt; ![a](b)": `\<img src=x> \&lt; !\[a\](b)`, `\|`: `\\\|`,
	} {
		if got := Escape(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

func TestLink(t *testing.T) {
	const good = "https://forge.example/o/r/issues/7#issuecomment-9"
	if got := Link("here", good); got != "[here]("+good+")" {
		t.Error(got)
	}
	for _, bad := range []string{"", "javascript:x", "//x/y", "https://a b", "https://x/)", "https://u:p@x/", "https://x/\u202e", "file:///etc", "https://x/`", "https://x/" + strings.Repeat("y", 1000)} {
		if got := Link("here", bad); got != "here" {
			t.Errorf("%q gives %q", bad, got)
		}
	}
}

// Nothing that a block of code holds ends it.
func TestFence(t *testing.T) {
	for in, want := range map[string]string{
		"x := 1\n": "```go\nx := 1\n```", "a ``b``": "```go\na ``b``\n```", "```\n`````": "``````go\n```\n`````\n``````", "": "```go\n\n```",
	} {
		if got := Fence(in, "go"); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
