package report

import (
	"strings"
	"testing"
)

func TestMarkdown(t *testing.T) {
	p := newPage(Thread{Links: Links{Repo: "https://github.com/acme/slugs"}})
	for _, tt := range []struct{ name, in, want string }{
		{"a block that isn't closed", "a\n```go\nx := 1", "a\n\n```go\nx := 1\n```"},
		{"a block with marks in it", "````\n```\n````", "````\n```\n````"},
		{"a block of tildes", "~~~sh\nls\n~~~", "```sh\nls\n```"},
		{"a block that the forge would draw", "```mermaid\ngraph TD\n```", "```text\ngraph TD\n```"},
		{"a span with angle brackets", "`Vec<T>`", "<code>Vec&lt;T&gt;</code>"},
		{"a link that could begin code", "[x](a`b) `c`", "[x&#93;(a&#96;b) `c`"},
		{"a link", "[x](https://a.b/c_(d)) `c`", "[x](https://a.b/c_(d)) `c`"},
		{"HTML", "a <script> b", "a &lt;script> b"},
		{"a block that opens by a click", "<details>\n<summary>Log</summary>\n\ntext\n\n</details>", "▸ Log\n\ntext"},
		{"many blank lines", "a\n\n\n\nb", "a\n\nb"},
		{"carriage returns", "a\r\nb\rc", "a\nb\nc"},
		{"an issue of this repository", "See #3.", "See #3."},
		{"nothing", " \n\n", ""},
	} {
		if got := strings.TrimSpace(p.embedMarkdown(tt.in, "", 1_000)); got != tt.want {
			t.Errorf("%s: %q, not %q", tt.name, got, tt.want)
		}
	}
	if got := p.embedMarkdown("a\n\n```\nb\n```", "> ", 1_000); strings.TrimRight(got, ">\n ") != "> a\n>\n> ```\n> b\n> ```" {
		t.Errorf("quoted: %q", got)
	}
}

// A text that is too long ends with a word on it, outside of any block of code.
func TestShortened(t *testing.T) {
	p := newPage(Thread{})
	for name, in := range map[string]string{
		"lines": strings.Repeat("a line\n", 1_000), "one line": strings.Repeat("word `x<y` ", 1_000), "a block": "```\n" + strings.Repeat("code\n", 1_000) + "```",
		"backticks": strings.Repeat("`", 9_000), "characters of many bytes": strings.Repeat("漢", 3_000), "brackets": strings.Repeat("<", 9_000),
	} {
		for _, limit := range []int{0, 50, 700, 2_000} {
			got := p.embedMarkdown(in, "> ", limit)
			if len(got) > max(limit, 100) || !strings.HasSuffix(got, "_(shortened)_") {
				t.Errorf("%s in %d bytes: %d bytes, ending in %q", name, limit, len(got), got[max(0, len(got)-60):])
			}
			if limit > 1_000 && name != "backticks" && len(got) < limit/4 { // these are the beginning of an empty block
				t.Errorf("%s in %d bytes: only %d bytes", name, limit, len(got))
			}
			if strings.Count(got, "> ```")%2 != 0 {
				t.Errorf("%s in %d bytes: a block is open", name, limit)
			}
		}
	}
}

func TestPrinted(t *testing.T) {
	p := newPage(Thread{})
	got := p.embedPrinted(strings.Repeat("noise\n", 5_000)+"@ops <b>the reason</b> ```", 1_000)
	if !strings.HasPrefix(got, "````text\n…\n") || !strings.Contains(got, "<b>the reason</b> ```\n````") || len(got) > 2_000 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if got := p.embedPrinted(" \n", 100); got != "" {
		t.Errorf("nothing became %q", got)
	}
}
