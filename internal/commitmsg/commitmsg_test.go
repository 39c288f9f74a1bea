package commitmsg

import (
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/united-workforce/uwf/internal/testmode"
)

const (
	thread = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	head   = "0123456789ABC"
)

func TestMessage(t *testing.T) {
	body := "Uwf-Thread: forged\n\n\n[skip ci]\r\nSigned-off-by: x\ttab\x1b[31m \u202eflip\n\nUwf-Head: forged"
	msg, err := Message{Subject: "a → b\nc\x07", Body: body, Trailers: []Trailer{{"Uwf-Thread", thread}, {"Uwf-Run", "7 attempt\n2"}, {"Uwf-Empty", ""}}, SkipCI: true}.Format()
	if err != nil {
		t.Fatal(err)
	}
	want := "a → b c\uFFFD\n\n    Uwf-Thread: forged\n\n\n    ［skip ci]\n    Signed-off-by: x    tab\uFFFD[31m \uFFFDflip\n\n    Uwf-Head: forged\n\n[skip ci]\n\nUwf-Thread: " + thread + "\nUwf-Run: 7 attempt 2\nUwf-Empty: -\n"
	if msg != want {
		t.Errorf("got\n%q\nwant\n%q", msg, want)
	}
	back := Parse(msg)
	if back.Subject != "a → b c\uFFFD" || len(back.Trailers) != 3 || back.Trailers[1].Value != "7 attempt 2" || !strings.HasPrefix(back.Body, "Uwf-Thread: forged") || !back.SkipCI {
		t.Errorf("read back: %+v", back)
	}
	long, err := Message{Subject: "s", Body: strings.Repeat("é", 3000), SkipCI: true}.Format()
	if err != nil || len(long) > 4200 || !utf8.ValidString(long) {
		t.Errorf("a long body gives %d bytes", len(long))
	}
	if _, err := (Message{Subject: " \n", SkipCI: true}).Format(); !errors.Is(err, ErrInvalid) {
		t.Errorf("no subject: %v", err)
	}
	if _, err := (Message{Subject: "s", Trailers: []Trailer{{"a b", "c"}}, SkipCI: true}).Format(); !errors.Is(err, ErrInvalid) {
		t.Errorf("a bad key: %v", err)
	}
}

// TestMessageTrailersInGit: git itself reads exactly our trailers.
func TestMessageTrailersInGit(t *testing.T) {
	testmode.NeedGit(t)
	for _, body := range []string{"", "x", "Uwf-Thread: forged", "a\n\nUwf-Thread: forged\nUwf-Head: forged", "\n\n\nUwf-Thread: forged\n\n\n"} {
		msg, err := Message{Subject: "subject", Body: body, Trailers: []Trailer{{"Uwf-Thread", thread}, {"Uwf-Head", head}}, SkipCI: true}.Format()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("git", "interpret-trailers", "--parse", "--no-divider")
		cmd.Stdin = strings.NewReader(msg)
		out, err := cmd.Output()
		if want := "Uwf-Thread: " + thread + "\nUwf-Head: " + head + "\n"; err != nil || string(out) != want {
			t.Errorf("body %q: git reads %q, %v", body, out, err)
		}
	}
}

// loud is what a forge acts on, by simple means of its own.
var loud = regexp.MustCompile(`(?i:\[(?:skip ci|ci skip|no ci|skip actions|actions skip)\](?:[^\n]|\n[^\n]))|(?:^|[^A-Za-z0-9])@[A-Za-z0-9]|[#!][0-9]|(?i:\bgh-[0-9])|(?i:https?://[^\s]*/(?:issues|pulls?|discussions|commits?)/[0-9a-f])`)

func TestQuiet(t *testing.T) {
	for in, want := range map[string]string{
		"fixes #1, closes: GH-2 and gh-3":                                "fixes ＃1, closes: GH\u20112 and gh\u20113",
		"@team (@a/b) `@code` \\@x @@y":                                  "＠team (＠a/b) `＠code` \\＠x @＠y",
		"other/repo#5 o/r!6 AB#7":                                        "other/repo＃5 o/r！6 AB＃7",
		"resolves https://github.com/o/r/issues/1":                       "resolves github.com/o/r/issues/1",
		"see HTTPS://x/o/r/pull/1,http://y/z":                            "see x/o/r/pull/1,y/z",
		"hthttps://tps://x/o/r/commit/abc":                               "x/o/r/commit/abc",
		"https://example.org/a b@c.d C# a[#x] !x":                        "https://example.org/a b@c.d C# a[#x] !x",
		"Cut [skip ci] [CI SKIP], [no ci][skip  actions] [actions skip]": "Cut ［skip ci] ［CI SKIP], ［no ci]［skip  actions] ［actions skip]",
		"***NO_CI*** skip-checks: true [ci-skip] a[0] [x] [note]":        "***NO CI*** skip\u2011checks: true ［ci-skip] a[0] [x] [note]",
		"[skip azp] [vercel skip] [CF-Pages-Skip] [no changes] [ci]":     "［skip azp] ［vercel skip] ［CF-Pages-Skip] [no changes] [ci]",
		"": "",
	} {
		if got := Quiet(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
		if again := Quiet(want); again != want {
			t.Errorf("not stable: %q, then %q", want, again)
		}
	}
	got, err := Message{Subject: "for @a #1", Body: "```\n@b #2\n```", Trailers: []Trailer{{"Uwf-Role", "@c #3"}}}.Format()
	if want := "for ＠a ＃1\n\n    ```\n    ＠b ＃2\n    ```\n\nUwf-Role: ＠c ＃3\n"; err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
}

// FuzzMessage: no text can form a trailer or leave its place.
func FuzzMessage(f *testing.F) {
	f.Add("s", "b\n\nUwf-Thread: x", "v")
	f.Add("@a #1", "https://https://x/issues/1 gh-1 o/r!1", "@@b##2")
	f.Add("\x00", "\u2028Uwf-Thread: x\r\rUwf-Thread: y", "a\nUwf-Head: b")
	f.Fuzz(func(t *testing.T, subject, body, val string) {
		msg, err := Message{Subject: subject, Body: body, Trailers: []Trailer{{"Uwf-Thread", val}}, SkipCI: true}.Format()
		if err != nil {
			return
		}
		if !utf8.ValidString(msg) || strings.ContainsAny(msg, "\x00\r\x1b\u2028") {
			t.Fatalf("%q", msg)
		}
		n := 0
		for line := range strings.SplitSeq(msg, "\n") {
			if strings.HasPrefix(line, "Uwf-") {
				n++
			}
		}
		if first, _, _ := strings.Cut(msg, "\n"); strings.HasPrefix(first, "Uwf-") {
			n--
		}
		if n != 1 {
			t.Fatalf("%d trailers in %q", n, msg)
		}
		if ts := Parse(msg).Trailers; len(ts) != 1 || ts[0].Key != "Uwf-Thread" {
			t.Fatalf("read %v of %q", ts, msg)
		}
		if m := loud.FindString(msg); m != "" {
			t.Fatalf("%q in %q", m, msg)
		}
	})
}
