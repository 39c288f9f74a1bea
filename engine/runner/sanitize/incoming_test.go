package sanitize

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestIncoming(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a comment", "a<!-- do evil -->b", "ab"},
		{"over lines", "a\n<!--\nevil\n\nevil\n-->\nb", "a\n\nb"},
		{"unclosed", "a\n\n<!-- evil\n\nevil", "a\n\n"},
		{"unclosed in a line of HTML", "<p>x</p> <!-- evil\n\nevil", "<p>x</p> "},
		{"unclosed in text, which is seen", "if a <!-- b", "if a  b"},
		{"behind entities", "a&lt;!-- evil --&gt;b", "ab"},
		{"behind entities, twice", "a&amp;lt;!-- evil --&amp;#62;b", "ab"},
		{"behind many entities", "a&" + strings.Repeat("amp;", 500) + "lt;!-- evil --&gt;b", "ab"},
		{"in pieces", "a<!<!-- x -->-- evil -->b", "ab"},
		{"processing instruction", "a<?evil?>b<!DOCTYPE evil>c<![CDATA[evil]]>d", "abcd"},
		{"zero width", "a\u200bb\u2060c\ufeffd\u00ade\u034ff\u3164g", "abcdefg"},
		{"zero width by entity", "a&#8203;b&ZeroWidthSpace;c&#x200b;d", "abcd"},
		{"bidi", "a\u202eb\u2066c\u200fd\u061ce", "abcde"},
		{"tags", "hi\U000E0069\U000E0067\U000E006E\U000E006F\U000E0072\U000E0065", "hi"},
		{"variation selectors", "a\ufe01b\U000E0100\U000E01EFc\ufe0fd", "abcd"},
		{"controls", "a\x00b\x1b[31mc\x7fd\u0085e\tf", "ab[31mcde\tf"},
		{"broken UTF-8", "a\xffb", "a\uFFFDb"},
		{"emoji stay", "👩‍💻 🏳️‍🌈 👍🏽 ❤️ 1️⃣ ☎︎", "👩‍💻 🏳️‍🌈 👍🏽 ❤️ 1️⃣ ☎︎"},
		{"joiners between letters", "a\u200db\u200cc", "abc"},
		{"scripts stay", "می\u200cخواهم שלום क्\u200dष 日本語 Ελληνικά é e\u0301", "می\u200cخواهم שלום क्\u200dष 日本語 Ελληνικά é e\u0301"},
		{"line ends", "a\r\n\r\nb\rc\r\n", "a\n\nb\nc\n"},
		{"hidden elements", `a<div hidden>evil</div>b<span style="display:none">evil<span>more</span></span>c<p style='x:y;visibility: hidden'>evil</p>d`, "abcd"},
		{"hidden, unclosed", "a <span style=\"font-size:0px\">evil\n\nevil", "a "},
		{"hidden input", `a<input type=hidden value="evil">b`, "ab"},
		{"tiny image", `a<img src="https://x/y.png" width=1 height=1 alt="evil">b`, "ab"},
		{"a template that nothing ends, in prose", "A root <template> is lost.\n\nSteps: 1. build", "A root  is lost.\n\nSteps: 1. build"},
		{"hidden, a template that nothing ends", "a <template hidden>evil\n\nevil", "a "},
		{"unclosed beside a closed one", "a <template>evil<template>evil</template> evil", "a "},
		{"noscript, unclosed", "a <noscript>evil\n\nevil", "a "},
		{"script and style", "a<script>evil</script>b<STYLE>evil</style >c<template>evil</template>", "abc"},
		{"attributes", `<a href="https://x.org/y" title="evil" data-x='evil > evil'>link</a><foo evil words>`, `<a href="https://x.org/y">link</a><foo>`},
		{"an image's description", `<img src="https://x/y.png" alt="evil"> ![evil](https://x/y.png) ![evil][ref] ![](z.png)`, `<img src="https://x/y.png"> ![image](https://x/y.png) ![image][ref] ![](z.png)`},
		{"details are seen", "<details><summary>more</summary>\n\ntext\n\n</details>", "<details><summary>more</summary>\n\ntext\n\n</details>"},
		{"open tags", "a\n<div title=\"evil\nevil\n\nevil", "a\n"},
		{"generics and comparisons", "Map<String, T> x < 3 && y > 4; <T> List<T>", "Map<String, T> x < 3 && y > 4; <T> List<T>"},
		{"link titles", `[a](https://x.org "evil") [b](<u> 'evil') [c](d (evil)) [e](f)`, `[a](https://x.org) [b](<u>) [c](d) [e](f)`},
		{"empty links", "a[](evil)b[ ](evil)c", "abc"},
		{"comments by definition", "a\n\n[//]: # (evil)\n[comment]: <> (evil)\n[x]: # \"evil\"\n[y]: https://evil\nb", "a\n\nb"},
		{"used definitions", "see [y] and [Z][]\n\n[y]: https://x.org \"evil\"\n[z]: <u>\n", "see [y] and [Z][]\n\n[y]: https://x.org\n[z]: <u>\n"},
		{"a title on the next line", "[y]\n\n[y]: https://x.org\n  \"evil\"\nb", "[y]\n\n[y]: https://x.org\nb"},
		{"footnotes", "a[^1]\n\n[^1]: seen\n[^2]: evil\n    evil\nevil\n\n    evil\n\nb", "a[^1]\n\n[^1]: seen\n\nb"},
		{"data addresses", "![x](data:image/png;base64,AAAA) data:text/plain,evil metadata: a, data: b, c", "![image](data:) data: metadata: a, data: b, c"},
		{"a task list", "- [ ] one\n- [x] two", "- [ ] one\n- [x] two"},
		{"code blocks", "```html\n<!-- kept -->\n<p hidden>&lt;kept&gt;</p>\u200b\n```\n", "```html\n<!-- kept -->\n<p hidden>&lt;kept&gt;</p>\n```\n"},
		{"what follows a code block's language", "```go evil words\nx\n```\n~~~ evil=1\n~~~\n", "```go\nx\n```\n~~~ evil\n~~~\n"},
		{"tags that only browsers read", "<div>\na <b \"evil> c <d, \"evil\n\nevil", "<div>\na  c "},
		{"a line that is no HTML", "<T> is `<!-- kept -->` of <List", "<T> is `<!-- kept -->` of <List"},
		{"tildes, in a list", "- x\n  ~~~\n  <!-- kept -->\n  ~~~\n", "- x\n  ~~~\n  <!-- kept -->\n  ~~~\n"},
		{"code in a quote", "> ```\n> <!-- kept -->\n> ```\n", "> ```\n> <!-- kept -->\n> ```\n"},
		{"code spans", "use `<!-- kept -->` and ``a ` <b x=y>``", "use `<!-- kept -->` and ``a ` <b x=y>``"},
		{"not code: over lines", "foo `bar\nbaz` <!-- evil --> `x`", "foo `bar\nbaz`  `x`"},
		{"not code: escaped", "\\`<!-- evil -->`", "\\``"},
		{"not code: in HTML", "<div>\n`<!-- evil -->`\n```\n<!-- evil -->\n```\n</div>", "<div>\n``\n```\n\n```\n</div>"},
		{"not code: a table", "a|b\n-|-\n` | <!-- evil --> | `", "a|b\n-|-\n` |  | `"},
		{"not code: out of the list", "- a\n  ```\n<!-- evil -->\n  ```\n", "- a\n  ```\n\n  ```\n"},
		{"not code: out of the quote", "> ```\n<!-- evil -->\n```\n<!-- evil -->\n```", "> ```\n\n```\n\n```"},
		{"not code: a link's address", "[x](a`b) <!-- evil --> `", "[x](a`b)  `"},
		{"not code: a link's label", "[x][a`b] <!-- evil --> `", "[x][a`b]  `"},
		{"not code: an address", "<https://x.org/a`b> <!-- evil --> `", "<https://x.org/a`b>  `"},
		{"not code: a tag", "a <b title='`'> <!-- evil --> `", "a <b>  `"},
		{"not code: a tag over lines", "a <b\ntitle='`'> <!-- evil --> `", "a <b>  `"},
		{"not code: a link over lines", "[x](a\n't`') <!-- evil --> `", "[x](a)  `"},
		{"not code: entities for backticks", "&#96;<!-- evil -->&#96;", "``"},
		{"not code: after a row alone", "a ` b\nc `<!-- evil -->`", "a ` b\nc ``"},
		{"code beside a link", "[x](https://x.org/y) and `<!-- kept -->`", "[x](https://x.org/y) and `<!-- kept -->`"},
		{"code beside an address at a line's end", "See https://x.org/y\nThe tag `<script>` is kept.\n\nSteps", "See https://x.org/y\nThe tag `<script>` is kept.\n\nSteps"},
		{"code with a | outside of a table", "`a | b`, `c|d` and `<script src=\"x\">` or `<!-- kept -->`\n\nmore", "`a | b`, `c|d` and `<script src=\"x\">` or `<!-- kept -->`\n\nmore"},
		{"code with an escaped | in a table", "a|b\n-|-\n`a \\| b` | `<!-- kept -->`", "a|b\n-|-\n`a \\| b` | `<!-- kept -->`"},
		{"code beside links with parentheses and titles", "[x](y(z)), [x](<y>) and [x](y \"\") `<!-- kept -->`", "[x](y(z)), [x](<y>) and [x](y) `<!-- kept -->`"},
		{"code beside a row alone", "``` and `<script>`\nx", "``` and `<script>`\nx"},
		{"code behind tags, comments and comparisons", "<a href=\"https://x.y\">z</a> if a<b, i<n: <!-- - --> [x](a\\_b) `<script>`", "<a href=\"https://x.y\">z</a> if a<b, i<n:  [x](a\\_b) `<script>`"},
		{"code behind what ends a tag", "a<b <i> it's www.x.org/<br>`<script>`", "a<b <i> it's www.x.org/<br>`<script>`"},
		{"code behind a < and a tag, in another line", "a<b <i>\n`<script>`", "a<b <i>\n`<script>`"},
		{"code beside a row that a longer one does not close", "`` and `<script>`\n```\nx\n```", "`` and `<script>`\n```\nx\n```"},
		{"hidden, unclosed, behind code over lines", "a `b\nc` <script> evil\n\nevil", "a `b\nc` "},
		{"not code: an address in an escaped tag", "\\<b t=\"http://x.y\">z`<!-- evil -->`", "\\<b>z``"},
		{"not code: an address of another scheme", "<git:a`b> <!-- evil --> `", "<git:a`b>  `"},
		{"data longer than markup", "![x](data:text/plain," + strings.Repeat("A", 3100) + "/evil/)", "![image](data:)"},
		{"not code: a title behind brackets that are no tag", "[foo<a](b> \"x ` y\") <!-- evil --> ` end", "[foo<a](b> \"x ` y\")  ` end"},
		{"not code: a title behind an address", "[see http://x.y](b> \"t ` u\") <!-- evil --> `", "[see http://x.y](b> \"t ` u\")  `"},
		{"not code: a tag in brackets", "[x][<a b=\"] ` c\"> <!-- evil --> `", "[x][<a>  `"},
		{"not code: an address behind what is no link", "](http://x.y)z`<!-- evil --> `", "](http://x.y)z` `"},
		{"not code: a table's head", "` | <!-- evil --> | `\n:-|-|-", "` |  | `\n:-|-|-"},
		{"not code: a table with backslashes", "a|b\n-|-\n`a\\\\| <!-- evil -->`", "a|b\n-|-\n`a\\\\| `"},
		{"not code: in a comment", "<!--\n```\nevil -->\n```\nx", "\n```\nx"},
	} {
		if got, _ := dropUnseen(c.in); got != c.want {
			t.Errorf("%s: %q\n gives %q\n want  %q", c.name, c.in, got, c.want)
		}
	}
}

// Whoever reads a text is told that it isn't all that was written.
func TestIncomingTellsOfLoss(t *testing.T) {
	const one, two = "\n\n(1 part that readers do not see was left out.)", "\n\n(2 parts that readers do not see were left out.)"
	for in, want := range map[string]string{
		"a<!-- x -->b":                      "ab" + one,
		"a<!-- x -->b\n\n<p hidden>y</p>\n": "ab" + two,
		"<!-- x -->":                        one[2:],
		"Put a <noscript> there.\n\nSteps to reproduce": "Put a" + one,
		"Put a <template> there.\n\nSteps to reproduce": "Put a  there.\n\nSteps to reproduce" + one,
		"[x]: # (y)":                                     one[2:],
		"[Bug]: Segfault\n\nIt crashes.":                 "It crashes." + one,
		"![a screenshot](https://x.org/y.png)":           "![image](https://x.org/y.png)" + one,
		"&lt;!-- x --&gt; and <!-- y -->":                " and" + two,
		"<a href=\"https://x.org\" title=\"y\">z</a>":    "<a href=\"https://x.org\">z</a>" + one,
		"a<!<!-- x -->-- y -->b":                         "ab" + two,
		"&amp; <BR />, <img src='https://x.org/y.png'/>": "& <BR/>, <img src=\"https://x.org/y.png\"/>",
		"soft\u00adhyphen":                               "softhyphen",
	} {
		if got := Incoming(in); got != want {
			t.Errorf("%q\n gives %q\n want  %q", in, got, want)
		}
	}
}

// titles are what a forge shows as they stand here.
var titles = []string{
	"[Bug]: Segfault", "[Bug]:Crash", "[Feature]: dark-mode (beta)", "[Docs]: https://example.com/guide", "[Bug]: ", "[^1]: note", "[x]: # (y)",
	"<!-- a --> b", "a <!-- b", "Wrong escape of &lt; and &amp;amp;", "&#64;all", "<template> loses its <slot>", "<script>alert(1)</script>", "<p hidden>a</p>", "<T> of List<T>",
	"![logo](x.png) is lost", "[](evil) and [ ](x)", "[a](b \"c\") d", "data:text/plain,abc", "`a` ``b", "```go evil words", "# a", "> a", "- [ ] a", "1. a", "    a", "| a | b |", "---", "***", "~~~",
	"a\\b \\[c\\]", "{{ a }} {% b %} ${c} $(d)", "*a* _b_ ~c~", "</details>", "<?php echo", "<![CDATA[x]]>", "<!DOCTYPE html>", "100% & more; x &y", "日本語 Ελληνικά é", "👩‍💻 ❤️",
}

// A title is plain text: all that a person sees in it is there afterwards.
func TestLineKeepsTitles(t *testing.T) {
	for _, title := range titles {
		if got, want := Line(title), strings.Join(strings.Fields(title), " "); got != want {
			t.Errorf("%q gives %q", title, got)
		}
	}
	if got := Line("a\u200bb\r\n c\u202e\x00\u2028d\te"); got != "ab c d e" {
		t.Errorf("invisible characters and line ends: %q", got)
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range titles {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Line(s)
		if strings.ContainsAny(got, "\r\n") || Line(got) != got {
			t.Errorf("%q gives %q, then %q", s, got, Line(got))
		}
		seen := func(s string) string { // by means that don't share code with Line
			return strings.Map(func(r rune) rune {
				if unicode.IsSpace(r) || !unicode.IsGraphic(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) {
					return -1
				}
				return r
			}, strings.ToValidUTF8(s, "\ufffd"))
		}
		if seen(got) != seen(s) {
			t.Errorf("%q gives %q", s, got)
		}
	})
}

// TestIncomingPlain: ordinary texts are not touched.
func TestIncomingPlain(t *testing.T) {
	for _, s := range []string{
		"", "# Title\n\nText with *marks*, [a link](https://x.org/a_(b)), <https://x.org> and a@b.org.\n\n1. one\n2. two\n   ```go\n   x := a[i] & b\n   ```\n\n| a | b |\n|---|---|\n| `x` | y |\n",
		"AT&T, R&D, a & b; x &y", "1 < 2 > 0, <3, a<-b, <= >=", "!important [brackets] (and) ![", "data: see below, or metadata", "```\nunclosed <!-- x -->",
	} {
		if got := Incoming(s); got != s {
			t.Errorf("%q gives %q", s, got)
		}
	}
}

// BenchmarkIncomingHostile: hostile texts take no time that grows with their square,
// so that the larger one is read as fast, in bytes a second, as the smaller.
func BenchmarkIncomingHostile(b *testing.B) {
	for _, unit := range []string{"[", "](", "![", "<!--", "<a ", "<div hidden>", "&amp;", "&#38;lt;", "`", "``` `", "[a]: ", "\n[a]: b \"", "[ ", "data:", "<!-", "> ", "- ", "<script>", "<template>", "&lt;!-- --&gt;", "](a b", "a `b\nc` <p hidden>\n\n", "a|b\n-|-\n", "[x](y(", "`\n``\n"} {
		for _, size := range []int{8 << 10, 32 << 10} {
			text := strings.Repeat(unit, size/len(unit))
			b.Run(fmt.Sprintf("%q/%d", unit, size), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					Incoming(text)
				}
			})
		}
	}
}

func FuzzIncoming(f *testing.F) {
	for _, s := range []string{"a<!-- b -->c", "&amp;lt;div hidden&gt;x", "```\n<!-- -->\n```", "[x]: # (y)\n", "![a](data:,b)", "> ```\n`", "<!<!-- -->--", "[^1]: a\n    b", "<a title='x>y'>", "a\u200d\ufe0f👩\u200d💻"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, _ := dropUnseen(s)
		if again, more := dropUnseen(got); again != got || more != 0 {
			t.Errorf("not stable: %q, then %q", got, again)
		}
		if !utf8.ValidString(got) || len(got) > 4*len(s)+16 {
			t.Errorf("%d bytes became %d", len(s), len(got))
		}
		if dropInvisible(got) != got {
			t.Errorf("invisible characters are left in %q", got)
		}
	})
}
