package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/markdown"
)

func needle(t testing.TB, texts ...string) *Needle {
	t.Helper()
	n, _, err := NewNeedle(texts)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNeedleFinds(t *testing.T) {
	const text = `p"4ss\w0rd-Ünï/x+y`
	const long = "-----BEGIN KEY-----\n\tMIIEpAIBAAKCAQEA7bq3\n\tzzz+QUJDREVGR0hJSktM\n-----END KEY-----\n"
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	for name, tt := range map[string]struct{ text, in, want string }{
		"plain":              {text, "a " + text + " b", "a [purged] b"},
		"json":               {text, quoted("a " + text), `"a [purged]"`},
		"json in json":       {text, quoted(quoted(text)), `"\"[purged]\""`},
		"percent":            {text, "k=" + url.QueryEscape(text) + "&b", "k=[purged]&b"},
		"hex":                {text, hex.EncodeToString([]byte(text)), "[purged]"},
		"base64":             {text, base64.StdEncoding.EncodeToString([]byte(text)), "[purged]="},
		"twice":              {text, text + text, "[purged][purged]"},
		"beside itself":      {"abcabc", "abcabcabc", "[purged]"},
		"one line":           {"two  words\nthree", "x two words three y", "x [purged] y"},
		"indented":           {long, "    -----BEGIN KEY-----\n        MIIEpAIBAAKCAQEA7bq3\n        zzz+QUJDREVGR0hJSktM\n    -----END KEY-----\n", "    [purged]\n"},
		"a line of it":       {long, "> MIIEpAIBAAKCAQEA7bq3", "> [purged]"},
		"control characters": {"a\x1b[31mbcdef", "a\uFFFD[31mbcdef", "[purged]"},
		"cut at the end":     {"0123456789abcdef", "it is 0123456789ab", "it is [purged]"},
		"cut with a mark":    {"0123456789abcdef", "it is 0123456789ab… and more", "it is [purged]… and more"},
		"cut with dots":      {"0123456789abcdef", "it is 0123456789...", "it is [purged]..."},
		"cut at its begin":   {"0123456789abcdef", "…789abcdef is it", "…[purged] is it"},
		"goes on after":      {"0123456789abcdef", "6789abcdef is it", "[purged] is it"},
		"cut over lines":     {"0123456789abcdef", "0123\n    4567 89…", "[purged]…"},
		"cut on a page":      {"github_pat_11" + "ABC_defghij", "| " + markdown.Escape("github_pat_11"+"ABC_d") + "… |", "| [purged]… |"},
		"cut in a message":   {"!4@nna#7xyzzy", "for ！4@nna＃7xy… · done", "for [purged]… · done"},
		"cut in a row":       {"!4@nna#7x_yzzy", "for ！4@nna＃7x\\_y… |", "for [purged]… |"},
		"too little":         {"0123456789abcdef", "it is 0123456…", "it is 0123456…"},
		"in the middle":      {"0123456789abcdef", "x 0123456789 y", "x 0123456789 y"},
		"nothing":            {text, "nothing … of it", "nothing … of it"},
		"repeats":            {"abababababab", "x ababababab", "x [purged]"},
	} {
		n := needle(t, tt.text)
		got, count := n.Replace(tt.in, nil)
		if got != tt.want || (count > 0) != (tt.in != tt.want) {
			t.Errorf("%s: %q became %q (%d), want %q", name, tt.in, got, count, tt.want)
		}
		if again, count := n.Replace(got, nil); count != 0 || again != got {
			t.Errorf("%s: the second time %q became %q", name, got, again)
		}
	}
}

func TestNeedleRefuses(t *testing.T) {
	for _, text := range []string{
		"", " \n", "x", "12345", "password", "******", "\xff\xfe\xfd\xfc\xfb\xfa", "purged", "[purged]", "a [purged] b", "[redacted:x]",
		strings.Repeat("ab", 64<<10),
	} {
		_, num, err := NewNeedle([]string{"a good one", text})
		if !errors.Is(err, ErrNeedle) || num != 1 {
			t.Errorf("%.20q: %d, %v", text, num, err)
		}
		if len(text) > 6 && err != nil && strings.Contains(err.Error(), text) {
			t.Errorf("the error quotes %.20q", text)
		}
	}
}

func TestNeedleWith(t *testing.T) {
	got, n := needle(t, "secret-one", "secret-two").Replace("a secret-one, b secret-two", strings.ToUpper)
	if got != "a SECRET-ONE, b SECRET-TWO" || n == 0 {
		t.Errorf("%q, %d", got, n)
	}
}

func FuzzNeedle(f *testing.F) {
	f.Add("secret-text", "it is secret-text, secre")
	f.Add("two\n  lines of it", "two lines of it… two\\nlines")
	f.Add("abcabcabc", "abcabcabcabcabc")
	f.Fuzz(func(t *testing.T, text, in string) {
		n, _, err := NewNeedle([]string{text})
		if err != nil {
			if !errors.Is(err, ErrNeedle) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		out, count := n.Replace(in, nil)
		if count == 0 && out != in {
			t.Fatalf("%q became %q without a find", in, out)
		}
		if strings.Contains(out, text) {
			t.Fatalf("%q is left in %q", text, out)
		}
	})
}

func BenchmarkNeedle(b *testing.B) {
	n := needle(b, "hunter2-7Zq-LEAK")
	text := strings.Repeat("A page of words, with some \"quotes\" and 100% of it is harmless…\n", 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, count := n.Replace(text, nil); count > 0 {
			b.Fatal("found")
		}
	}
}

// BenchmarkNeedleHostile: no text and no input make it slow.
func BenchmarkNeedleHostile(b *testing.B) {
	for name, tt := range map[string]struct{ text, in string }{
		"long":     {strings.Repeat("abcdefg ", 8<<10), strings.Repeat("abcdefg ", 100<<10)},
		"edges":    {strings.Repeat("ab", 32<<10), strings.Repeat("ab...", 200<<10)},
		"spaces":   {"abcdef ghijkl", strings.Repeat(" ", 4<<20)},
		"repeated": {"abcdefgh", strings.Repeat("abcdefgh", 100<<10)},
		"escapes":  {"abcdef\"\\%", strings.Repeat("\\u0061%61", 100<<10)},
	} {
		b.Run(name, func(b *testing.B) {
			n := needle(b, tt.text)
			b.SetBytes(int64(len(tt.in)))
			for b.Loop() {
				n.Replace(tt.in, nil)
			}
		})
	}
}
