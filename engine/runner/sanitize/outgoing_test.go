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

func TestOutgoing(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "# Done\n\nI changed *two* files: [a](https://x.org) and `b`.\n\n- [x] one\n", "# Done\n\nI changed *two* files: [a](https://x.org) and `b`.\n\n- [x] one"},
		{"mentions", "_@eve_ @ann, (@bob) **@org/team** a.@x -@y @@z \\@w [@v](u)", "_＠eve_ ＠ann, (＠bob) **＠org/team** a.＠x -＠y @＠z ＠w [＠v](u)"},
		{"mail and decorators", "a@b.org, @ 5, @, user@host", "a@b.org, @ 5, @, user@host"},
		{"mentions by entity", "&#64;ann &commat;bob &amp;#64;ann AT&T", "&amp;#64;ann &amp;commat;bob &amp;amp;#64;ann AT&T"},
		{"mentions in pieces", "@\u200bbob @`ann`", "＠bob @`ann`"},
		{"mentions in addresses", "https://x.org/@ann/y https://a@b.org", "https://x.org/%40ann/y https://a@b.org"},
		{"mentions in code", "`@dataclass` and\n```py\n@dataclass\n```\n", "<code>&#64;dataclass</code> and\n\n```py\n@dataclass\n```\n"},
		{"a row alone", "foo `bar\nbaz` @ann `x`", "foo &#96;bar\nbaz<code>&#64;ann</code>x&#96;"},
		{"a row that is escaped", "\\`@ann`", "\\`＠ann&#96;"},
		{"code in a table", "a|b\n-|-\n` | @ann `", "a|b\n-|-\n<code>&#124; &#64;ann</code>"},
		{"code or a link's address", "[x](a`b) @acme/all `", "[x](a<code>b) &#64;acme/all</code>"},
		{"code that is plain", "[`a`](b) `Make(\"x\", 1)` `fix|es`", "[`a`](b) `Make(\"x\", 1)` `fix|es`"},
		{"code that is not plain", "`a<b>` `a&b` `#1` `a/b#1` `https://x/y` `![x](y)` `[x](y)`", "<code>a&lt;b&gt;</code> <code>a&amp;b</code> <code>&#35;1</code> <code>a/b&#35;1</code> <code>https&#58;//x/y</code> <code>&#33;&#91;x&#93;(y)</code> <code>&#91;x&#93;(y)</code>"},
		{"code in a list", "1. a\n   ```go\n   @x\n     y\n   ```\n2. b", "1. a\n\n```go\n@x\n  y\n```\n\n2. b"},
		{"code in a quote", "> ```\n> @x\n> ```\n> b", "```\n@x\n```\n\n> b"},
		{"code in a list's line", "- ```\n  @x\n  ```\n", "-\n\n```\n@x\n```\n"},
		{"code that is open", "```\n@x", "```\n@x\n```\n"},
		{"code with marks in it", "````\n```\n````", "````\n```\n````\n"},
		{"code of tildes", "~~~sh\nls\n~~~", "```sh\nls\n```\n"},
		{"tildes elsewhere", "- a ~~~\n  b ~~~~", "- a &#126;&#126;&#126;\n  b &#126;&#126;&#126;~"},
		{"code that the forge would draw or apply", "```Mermaid\ngraph TD\n```\n```suggestion:-0+1\nx\n```", "```text\ngraph TD\n```\n\n```text\nx\n```\n"},
		{"code by entities", "&#96;&#96;&#96;\n@x\n", "&amp;#96;&amp;#96;&amp;#96;\n＠x"},
		{"closing keywords", "fixes #1, Closes: #2; RESOLVED **#3**\nfix GH-4. closed\n#5 resolves https://github.com/o/r/issues/6 reopens #12", "fixes issue #1, Closes: issue #2; RESOLVED **issue #3**\nfix issue GH-4. closed\nissue #5 resolves issue https://redirect.github.com/o/r/issues/6 reopens issue #12"},
		{"closing in code and by entity", "`fixes GH-1` `fixes #1` closes &#35;2 fix\\#3\n```\ngit commit -m 'Fixes #9'\n```\n", "`fixes issue GH-1` <code>fixes &#35;1</code> closes &amp;#35;2 fix＃3\n\n```\ngit commit -m 'Fixes issue #9'\n```\n"},
		{"closing behind a picture", "fixes ![#1](https://x/y.png) on\n<details>\nfixes ![](#)#2", "fixes [issue #1](https://x/y.png) on\n\nfixes [link](#)#2"},
		{"what the word must not become", "fix @#1 fix\n/#2 fix &#3;", "fix @#1 fix\n/#2 fix &amp;#3;"},
		{"closing over lines", "Fix:\n\n- #1\n\n**#2**", "Fix:\n\n- issue #1\n\n**#2**"},
		{"duplicates", "Duplicate of #12", "Duplicate of issue #12"},
		{"no closing", "prefixes #1, fixes the bug of #2, disclose #3", "prefixes #1, fixes the bug of #2, disclose #3"},
		{"other repositories", "see a/b#1, #3, jlord#4, closes a/b#12, a#1#2#3", "see a/b＃1, #3, jlord＃4, closes a/b＃12, a＃1＃2＃3"},
		{"addresses of issues", "https://github.com/a/b/issues/1 https://www.github.com/a/b/pull/2/files https://git.example.org/x/a/b/pulls/4 https://github.com/a/b/blob/main/x#L1 https://redirect.github.com/a/b/issues/1",
			"https://redirect.github.com/a/b/issues/1 https://redirect.github.com/a/b/pull/2/files https://git.example.org/x/a/b/pulls/%34 https://github.com/a/b/blob/main/x#L1 https://redirect.github.com/a/b/issues/1"},
		{"an address behind backslashes", "[x](https:\\/\\/github.com/a/b/issues/1) https\\://github.com/a/b/pull/2 a\\/b", "[x](https://redirect.github.com/a/b/issues/1) https://redirect.github.com/a/b/pull/2 a/b"},
		{"an address between brackets", "<https://x.org/y> <https://github.com/a/b/issues/1>", "https://x.org/y https://redirect.github.com/a/b/issues/1"},
		{"commands", "/uwf cancel\n  /merge\n> /close\n- /lgtm\n/usr/bin/x\n/etc\n```\n/approve\n```\na /uwf b", "\\/uwf cancel\n  \\/merge\n> \\/close\n- \\/lgtm\n/usr/bin/x\n\\/etc\n\n```\n /approve\n```\n\na /uwf b"},
		{"images", "![a](https://x/y.png) ![](https://x/y.png) ![b][ref] !![c](d)\n<img src=x>", "[a](https://x/y.png) [link](https://x/y.png) [b][ref] [c](d)\n&lt;img src=x>"},
		{"HTML", "<b>x</b> <script>y</script> <a href=z> 1 < 2 a<br/>b <sup>", "&lt;b>x&lt;/b> &lt;script>y&lt;/script> &lt;a href=z> 1 &lt; 2 a&lt;br/>b &lt;sup>"},
		{"what a click opens", "<details open><summary>more</summary>\n\nx\n\n</details>", "▸ more\n\nx\n"},
		{"our marker", "<!-- uwf:thread=01J -->x\n<!--\nuwf:thread=1 -->\n`<!-- uwf:a -->`\n```\n<!--uwf:b -->\n```", "&lt;!-- uwf:thread=01J -->x\n&lt;!--\nuwf:thread=1 -->\n<code>&lt;&#33;-- uwf&#58;a --&gt;</code>\n\n```\n<! --uwf:b -->\n```\n"},
		{"invisible", "a\u202eb\u200bc\x1b[0m\U000E0041d\x00", "abc[0md"},
		{"line ends", "a\r\nb\rc\u2028d", "a\nb\nc\nd"},
		{"many blank lines", "\n\na\n\n\n\nb", "a\n\nb"},
		{"data", "[a](data:text/html,evil)", "[a](data:)"},
		{"log commands are not for here", "::error::x", "::error::x"},
		{"nothing", " \n\n", ""},
	} {
		if got := Outgoing(c.in, "", 10_000); got != c.want {
			t.Errorf("%s: %q\n gives %q\n want  %q", c.name, c.in, got, c.want)
		}
	}
}

func TestOutgoingQuoted(t *testing.T) {
	if got := Outgoing("a\n\n```\nb\n```", "> ", 1_000); strings.TrimRight(got, ">\n ") != "> a\n>\n> ```\n> b\n> ```" {
		t.Errorf("quoted: %q", got)
	}
}

// Behind other text, nothing begins a line or a block.
func TestOutgoingLine(t *testing.T) {
	for in, want := range map[string]string{
		"a\n `b` @c\r\n- fixes\n#1 " + strings.Repeat("d ", 100): "a `b` ＠c - fixes issue #1 d d d d d d d d d…",
		"```\n/uwf cancel\n```":                                  "``` /uwf cancel ```",
		"漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢":                                       "漢漢漢漢漢漢漢漢漢漢漢漢漢…",
		" \n": "",
	} {
		if got := OutgoingLine(in, 40); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

// A text that is too long ends with a word on it, outside of any block of code.
func TestOutgoingCut(t *testing.T) {
	for name, in := range map[string]string{
		"lines": strings.Repeat("a line\n", 1_000), "one line": strings.Repeat("word `x<y` ", 1_000), "a block": "```\n" + strings.Repeat("code\n", 1_000) + "```",
		"backticks": strings.Repeat("`", 9_000), "characters of many bytes": strings.Repeat("漢", 3_000), "brackets": strings.Repeat("<", 9_000),
		"closings": strings.Repeat("fix #1 ", 2_000), "entities": strings.Repeat("&#64;a ", 3_000), "details": "<details>\n\n" + strings.Repeat("x `y` z\n", 3_000),
	} {
		for _, limit := range []int{0, 50, 700, 2_000} {
			got := Outgoing(in, "> ", limit)
			if len(got) > max(limit, 100) || !strings.HasSuffix(got, "_(shortened)_") || !utf8.ValidString(got) {
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

func TestTitle(t *testing.T) {
	for in, want := range map[string]string{
		"Fix #12: a\nb":                       "Fix issue #12: a b",
		"  by @ann\u202e for a/b#1 &#64;bob ": "by ＠ann for a/b＃1 &#64;bob",
		"<!-- x -->a <b> & c":                 "<!-- x -->a <b> & c",
		strings.Repeat("ü", 300):              strings.Repeat("ü", 255) + "…",
		"\x00\t":                              "",
		"&amp;lt;!-- x --&gt;a":               "&amp;lt;!-- x --&gt;a",
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
					Outgoing(text, "", 2500)
				}
			})
		}
	}
}

// What must not stand outside of blocks of code, whatever else a forge takes for code, by
// simple means of its own.
var (
	fenceMark = regexp.MustCompile("^(```+)[^`]*$")
	forbidden = regexp.MustCompile(`(?i)(?:^|[^A-Za-z0-9])@[A-Za-z0-9]|!\[|<[^c/]|</?[^c/]|(?m:^/uwf(?:[^A-Za-z0-9_/.-]|$))|` +
		`[A-Za-z0-9_-]+/[A-Za-z0-9_-]+#\d|//github\.com/[^/\s]+/[^/\s]+/(?:issues|pull)/\d|&(?:#64|commat);?[^<]*$`)
	forbiddenInCode = regexp.MustCompile(`(?i)<!--\s*uwf|\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#\d`)
	ourCode         = regexp.MustCompile(`<code>[^<>@#:!]*(?:&#[0-9]+;[^<>@#:!]*)*</code>`)
)

// withoutBlocks is a text without its blocks of code, each of which is closed by as many marks
// as open it.
func withoutBlocks(text string) string {
	var out []string
	open := ""
	for line := range strings.SplitSeq(text, "\n") {
		switch m := fenceMark.FindStringSubmatch(line); {
		case open == "" && m != nil:
			open = m[1]
		case open == "":
			out = append(out, line)
		case line == open:
			open = ""
		}
	}
	return strings.Join(out, "\n")
}

func FuzzOutgoing(f *testing.F) {
	for _, s := range []string{"@a `@b` fixes #1", "```\n/uwf\n", "> ```\n@a", "<details>`@a`", "a|b\n-|-\n`|@a`", "\\<!-- -->`@a`", "&#96;@a&#96;", "![a](b)", "``x``<!-- -->`@y`", "`a\n@b` c `d", "- ~~~\n@a", "&amp;#64;a", "fix\n#1", "a/b\\#1", "!<!-- -->[a](b)", "wfF\xf8\n/uwffuY/", "[x](a`b) @c `", "[x][a`b] @c `", "\u00a0/uwf cancel", "\u3000- /uwf retry", "https://a`b @c `", "[x](a\n'`') @c `", "fixes ![#1](a)", "`a`b`@c", "fix @#1", "fix\n/#2"} {
		f.Add(s, "> ", 1_000)
	}
	f.Fuzz(func(t *testing.T, s, _ string, limit int) {
		limit = max(min(limit, 100_000), 0)
		got := Outgoing(s, "", limit)
		if len(got) > max(limit, 100) || !utf8.ValidString(got) || dropInvisible(got) != got {
			t.Errorf("%q gives %q", s, got)
		}
		if m := forbiddenInCode.FindString(got); m != "" {
			t.Errorf("%q gives %q: %q", s, got, m)
		}
		if c, err := event.ParseCommand(got); c != nil || err != nil {
			t.Errorf("%q gives %q: the command %v, %v", s, got, c, err)
		}
		if m := forbidden.FindString(ourCode.ReplaceAllString(withoutBlocks(got), " ")); m != "" {
			t.Errorf("%q gives %q: %q", s, got, m)
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
			got := Outgoing(s, "", 1_000)
			if c, err := event.ParseCommand(got); c != nil || err != nil || word.MatchString(strings.ToLower(withoutBlocks(got))) {
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
