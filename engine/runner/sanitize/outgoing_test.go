package sanitize

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/engine/runner/event"
)

var opts = Options{Closes: []int{12}, Repo: "o/r", Server: "https://github.com"}

func TestOutgoing(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "# Done\n\nI changed *two* files: [a](https://x.org) and `b`.\n\n- [x] one\n", "# Done\n\nI changed *two* files: [a](https://x.org) and `b`.\n\n- [x] one\n"},
		{"mentions", "_@eve_ @ann, (@bob) **@org/team** a.@x -@y @@z \\@w [@v](u)", "_＠eve_ ＠ann, (＠bob) **＠org/team** a.＠x -＠y @＠z ＠w [＠v](u)"},
		{"mail and decorators", "a@b.org, `@dataclass` @ 5, @, user@host", "a@b.org, `@dataclass` @ 5, @, user@host"},
		{"mentions by entity", "&#64;ann &commat;bob @&#x61;nn &#0000000000064;x &amp;#64;ann", "＠ann ＠bob ＠ann ＠x &amp;#64;ann"},
		{"mentions in pieces", "@<!-- x -->ann @\u200bbob &#<!-- -->64;c", "＠ann ＠bob ＠c"},
		{"mentions in addresses", "https://x.org/@ann/y https://a@b.org", "https://x.org/%40ann/y https://a@b.org"},
		{"mentions in code", "```py\n@dataclass\n```\n", "```py\n@dataclass\n```\n"},
		{"no code: over lines", "foo `bar\nbaz` @ann `x`", "foo \\`bar\nbaz` @ann `x\\`"},
		{"no code: escaped", "\\`@ann`", "\\`＠ann\\`"},
		{"no code: a table", "a|b\n-|-\n` | @ann `", "a|b\n-|-\n\\` | ＠ann \\`"},
		{"no code: a table by entity", "a|b\n&#45;|-\n` | @ann `", "a|b\n-|-\n\\` | ＠ann \\`"},
		{"no code: in HTML", "<details>\n`@ann`\n```\n@bob\n```\n</details>", "<details>\n\\`＠ann\\`\n\n```\n@bob\n```\n</details>"},
		{"no code: after a comment", "\\<!-- x -->`@ann`", "\\\\`@ann`"},
		{"no code: a link's address", "[x](a`b) @acme/all `", "[x](a\\`b) ＠acme/all \\`"},
		{"no code: a link's title", "[x](<a b> 't`') @acme/all `", "[x](&lt;a b> 't\\`') ＠acme/all \\`"},
		{"no code: a link's label", "[x][a`b] @acme/all `\n\n[a`b]: /u", "[x][a\\`b] ＠acme/all \\`\n\n[a\\`b]: /u"},
		{"no code: an address", "https://x.org/a`b @acme/all `\nwww.x.org/a`b @bob `", "https://x.org/a\\`b ＠acme/all \\`\nwww.x.org/a\\`b ＠bob \\`"},
		{"no code: a link over lines", "[x](a\n't`') @ann `\n\n`@b`", "[x](a\n't\\`') ＠ann \\`\n\n`@b`"},
		{"code beside links", "[`@a`](b) `[x](`@a`)` [x](y) `@b` https://x.org/`@c` a[0](`@d`) f(`@e`)", "[`@a`](b) `[x](`＠a`)` [x](y) `@b` https://x.org/`@c` a[0](`@d`) f(`@e`)"},
		{"code in a list", "1. a\n   ```go\n   @x\n     y\n   ```\n2. b", "1. a\n```go\n@x\n  y\n```\n2. b"},
		{"code in a quote", "> ```\n> @x\n> ```\n> b", "```\n@x\n```\n> b"},
		{"code in a list's line", "- ```\n  @x\n  ```\n", "-\n```\n@x\n```\n"},
		{"code that is open", "```\n@x", "```\n@x\n```\n"},
		{"code by entities", "&#96;&#96;&#96;\n@x\n", "```\n@x\n```\n"},
		{"our closing keyword", "Fixes #12, closes o/r#12", "Fixes #12, closes o/r#12"},
		{"closing keywords", "fixes #1, Closes: #2; RESOLVED **#3**\nfix GH-4. closed\n#5 resolves https://github.com/o/r/issues/6 reopens #12", "fixes issue #1, Closes: issue #2; RESOLVED **issue #3**\nfix issue GH-4. closed\nissue #5 resolves issue https://github.com/o/r/issues/6 reopens issue #12"},
		{"closing in code and by entity", "`fixes #1` closes &#35;2 fix\\#3\n```\ngit commit -m 'Fixes #9'\n```\n", "`fixes issue #1` closes issue #2 fix＃3\n```\ngit commit -m 'Fixes issue #9'\n```\n"},
		{"duplicates", "Duplicate of #12", "Duplicate of issue #12"},
		{"no closing", "prefixes #1, fixes the bug of #2, disclose #3", "prefixes #1, fixes the bug of #2, disclose #3"},
		{"other repositories", "see a/b#1, o/r#2, #3, jlord#4, closes a/b#12", "see a/b＃1, o/r#2, #3, jlord＃4, closes a/b＃12"},
		{"addresses of issues", "https://github.com/a/b/issues/1 https://www.github.com/a/b/pull/2/files https://github.com/o/r/issues/3 https://git.example.org/x/a/b/pulls/4 https://github.com/a/b/blob/main/x#L1",
			"https://redirect.github.com/a/b/issues/1 https://redirect.github.com/a/b/pull/2/files https://github.com/o/r/issues/3 https://git.example.org/x/a/b/pulls/%34 https://github.com/a/b/blob/main/x#L1"},
		{"commands", "/uwf cancel\n  /merge\n> /close\n- /lgtm\n/usr/bin/x\n/etc\n```\n/approve\n```\na /uwf b", "\\/uwf cancel\n  \\/merge\n> \\/close\n- \\/lgtm\n/usr/bin/x\n\\/etc\n```\n /approve\n```\na /uwf b"},
		{"images", "![a](https://x/y.png) ![](https://x/y.png) ![b][ref] !![c](d)\n<img src=x>", "[a](https://x/y.png) [link](https://x/y.png) [b][ref] [c](d)\n&lt;img src=x>"},
		{"images by entity", "&#33;[a](b)", "[a](b)"},
		{"HTML", "<b>x</b> <script>y</script> <a href=z> 1 < 2 H<sub>2</sub>O a<br/>b <sup>", "&lt;b>x&lt;/b> &lt;script>y&lt;/script> &lt;a href=z> 1 &lt; 2 H<sub>2</sub>O a<br>b &lt;sup>"},
		{"details", "<details open><summary>more</summary>\n\nx\n", "<details><summary>more</summary>\n\nx\n</details>\n"},
		{"details that end what is not open", "</details>x", "&lt;/details>x"},
		{"our marker", "<!-- uwf:thread=01J -->x\n<!--\nuwf:thread=1 -->\n`<!-- uwf:a -->`\n```\n<!--uwf:b -->\n```", "x\n&lt;!--\nuwf:thread=1 -->\n`<! -- uwf:a -->`\n```\n<! --uwf:b -->\n```\n"},
		{"invisible", "a\u202eb\u200bc\x1b[0m\U000E0041d\x00", "abc[0md"},
		{"line ends", "a\r\nb\rc\u2028d", "a\nb\nc\nd"},
		{"data", "[a](data:text/html,evil)", "[a](data:)"},
		{"log commands are not for here", "::error::x", "::error::x"},
	} {
		if got := Outgoing(c.in, opts); got != c.want {
			t.Errorf("%s: %q\n gives %q\n want  %q", c.name, c.in, got, c.want)
		}
	}
	if got := Outgoing("fixes #12 o/r#1 https://github.com/o/r/issues/1", Options{}); got != "fixes issue #12 o/r＃1 https://redirect.github.com/o/r/issues/1" {
		t.Error(got)
	}
}

func TestOutgoingCut(t *testing.T) {
	for _, s := range []string{
		strings.Repeat("word ", 5000), strings.Repeat("line\n", 5000), "```\n" + strings.Repeat("code\n", 5000), "<details>\n\n" + strings.Repeat("x `y` z\n", 3000),
		strings.Repeat("`", 9000), strings.Repeat("<", 9000), strings.Repeat("ü", 9000), strings.Repeat("fix #1 ", 2000), strings.Repeat("`a\n", 4000), strings.Repeat("&#64;a ", 3000),
	} {
		for _, most := range []int{1000, 90} {
			got := Outgoing(s, Options{Max: most})
			if n := utf8.RuneCountInString(got); n > most || !strings.Contains(got, "… cut here: ") || n < most/8 {
				t.Errorf("%.20q, %d: %d characters: %q", s, most, n, got)
			}
			if again := Outgoing(got, Options{Max: most}); again != got {
				t.Errorf("%.20q: not stable: %q, then %q", s, got, again)
			}
			if strings.Count(got, "```")%2 != 0 || strings.Count(got, "<details>") != strings.Count(got, "</details>") {
				t.Errorf("%.20q: open: %q", s, got)
			}
		}
	}
	got := Outgoing("```\n"+strings.Repeat("code\n", 100)+"```\nend", Options{Max: 200})
	if !strings.HasSuffix(got, "code\n```\n\n… cut here: 353 more characters") {
		t.Errorf("%q", got)
	}
}

func TestTitle(t *testing.T) {
	for in, want := range map[string]string{
		"Fix #12: a\nb":                       "Fix issue #12: a b",
		"  by @ann\u202e for a/b#1 &#64;bob ": "by ＠ann for a/b＃1 ＠bob",
		"<!-- x -->a <b> & c":                 "a <b> & c",
		strings.Repeat("ü", 300):              strings.Repeat("ü", 255) + "…",
		"\x00\t":                              "",
		"&amp;lt;!-- x --&gt;a":               "a",
		"::error::x":                          "::error::x",
	} {
		got := Title(in)
		if got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
		if again := Title(got); again != got {
			t.Errorf("not stable: %q, then %q", got, again)
		}
	}
}

// BenchmarkOutgoingHostile: as BenchmarkIncomingHostile.
func BenchmarkOutgoingHostile(b *testing.B) {
	for _, unit := range []string{"[", "`", "` ``", "<", "@a", "&#64;", "fix #1 ", "<details>", "- ", "> ", "!", "https://github.com/a/b/issues/1", "a|-\n", "```\n", "<!-- ", "fix", "](", "](<", "](a '", "][", "https://`", "](a\\ "} {
		for _, size := range []int{4 << 10, 16 << 10} {
			text := strings.Repeat(unit, size/len(unit))
			b.Run(fmt.Sprintf("%q/%d", unit, size), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					Outgoing(text, Options{Max: 2500})
				}
			})
		}
	}
}

// What must not stand outside of code, by simple means of its own.
var (
	anyFence    = regexp.MustCompile("(?ms)^(```+|~~~+)[^\n]*\n.*?^(```+|~~~+)\n")
	forbidden   = regexp.MustCompile(`(?i)(?:^|[^A-Za-z0-9])@[A-Za-z0-9]|!\[|<img|<a\s|<script|(?m:^/uwf(?:[^A-Za-z0-9_/.-]|$))`)
	forbidden2  = regexp.MustCompile(`(?i)<!--\s*uwf|\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#\d`)
	inlineCode  = regexp.MustCompile("`+[^\n]*`+")
	crossReferr = regexp.MustCompile(`[A-Za-z0-9_-]+/[A-Za-z0-9_-]+#\d|//github\.com/[^/\s]+/[^/\s]+/(?:issues|pull)/\d`)
)

func FuzzOutgoing(f *testing.F) {
	for _, s := range []string{"@a `@b` fixes #1", "```\n/uwf\n", "> ```\n@a", "<details>`@a`", "a|b\n-|-\n`|@a`", "\\<!-- -->`@a`", "&#96;@a&#96;", "![a](b)", "``x``<!-- -->`@y`", "`a\n@b` c `d", "- ~~~\n@a", "&amp;#64;a", "fix\n#1", "a/b\\#1", "!<!-- -->[a](b)", "wfF\xf8\n/uwffuY/", "[x](a`b) @c `", "[x][a`b] @c `", "\u00a0/uwf cancel", "\u3000- /uwf retry", "https://a`b @c `", "[x](a\n'`') @c `"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Outgoing(s, Options{})
		if again := Outgoing(got, Options{}); again != got {
			t.Errorf("not stable: %q, then %q", got, again)
		}
		if len(got) > 8*len(s)+100 || !utf8.ValidString(got) || dropInvisible(got) != got {
			t.Errorf("%q gives %q", s, got)
		}
		if m := forbidden2.FindString(got); m != "" {
			t.Errorf("%q gives %q: %q", s, got, m)
		}
		if c, err := event.ParseCommand(got); c != nil || err != nil {
			t.Errorf("%q gives %q: the command %v, %v", s, got, c, err)
		}
		text := inlineCode.ReplaceAllString(anyFence.ReplaceAllString(got, ""), " ")
		for _, r := range []*regexp.Regexp{forbidden, crossReferr} {
			if m := r.FindString(text); m != "" {
				t.Errorf("%q gives %q: %q", s, got, m)
			}
		}
	})
}

// What uwf posts is read again as a comment, and bots read it with white space of their
// own (that of JavaScript has no-break spaces): whatever stands before a command, nobody
// takes it for one.
func TestOutgoingCommand(t *testing.T) {
	var spaces []string
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.IsSpace(r) || unicode.Is(unicode.Z, r) || unicode.Is(unicode.Cf, r) {
			spaces = append(spaces, string(r), " "+string(r), string(r)+" ", "> "+string(r), "- "+string(r))
		}
	}
	word := regexp.MustCompile(`(?m)^[\s\pZ\p{Cf}>-]*/uwf`)
	for _, before := range spaces {
		for _, s := range []string{before + "/uwf cancel", "```\n" + before + "```\n/uwf cancel\n```", "a\n" + before + "/UWF\u00a0cancel", before + "&#47;uwf cancel", "<!-- -->" + before + "/uwf cancel"} {
			got := Outgoing(s, Options{})
			if c, err := event.ParseCommand(got); c != nil || err != nil || word.MatchString(strings.ToLower(anyFence.ReplaceAllString(got, ""))) {
				t.Errorf("%q gives %q: the command %v, %v", s, got, c, err)
			}
		}
	}
}

func FuzzTitle(f *testing.F) {
	for _, s := range []string{"fix #1", "&amp;lt;!--x-->", "@a", `a\\@`, "a#7#1", strings.Repeat("👩‍💻", 200), "a&#10;b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Title(s)
		if again := Title(got); again != got || utf8.RuneCountInString(got) > maxTitle || strings.ContainsAny(got, "\n\r") {
			t.Errorf("%q gives %q, then %q", s, got, again)
		}
	})
}
