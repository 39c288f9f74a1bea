package redact_test

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/redact"
)

// values are known secrets with everything in them that encodings change. They
// are put together here, so that no scanner takes this file for a leak.
func values() map[string]string {
	return map[string]string{
		"PLAIN_TOKEN":    "q7Zr" + "1LmW9xKd2Tb8",
		"SHORT_PASS":     "x9$kQ2",
		"SPECIAL_SECRET": `a"b\c/d&e<f>'g` + "é%h+i j=",
		"NEWLINE_KEY":    "first line of it 1\nsecond line of it 2\nthird line of it 3",
		"TAB_PASSWORD":   "tab\there\x01and\u2028there",
		"SLASHES":        "///+++???>>>~~~9",
		"WINDOWS_PATHY":  `C:\new\users\x41`,
		"PERCENT":        "100%25off%sure",
		"REFERENCES":     "!4@nna#7x",
	}
}

func secretsOf(m map[string]string) []redact.Secret {
	var out []redact.Secret
	for k, v := range m {
		out = append(out, redact.Secret{Name: k, Value: v})
	}
	return out
}

func newRedactor(t testing.TB, o redact.Options) *redact.Redactor {
	t.Helper()
	r, err := redact.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// leaked says whether a part of an encoded value is still there: a piece of most
// of its length.
func leaked(output, encoded string) bool {
	size := max(4, len(encoded)*3/4)
	for i := 0; i+size <= len(encoded); i++ {
		if strings.Contains(output, encoded[i:i+size]) {
			return true
		}
	}
	return false
}

func TestKnownValuesInEveryForm(t *testing.T) {
	r := newRedactor(t, redact.Options{Secrets: secretsOf(values())})
	for name, value := range values() {
		for form, f := range encoders() {
			if !f.finds(value) {
				continue
			}
			encoded := f.encode(value)
			text := `before {"key": "` + encoded + `"} after` + "\n"
			got, n := r.String(text)
			if n == 0 || leaked(got, encoded) {
				t.Errorf("%s as %s survives:\n%s\n%s", name, form, text, got)
				continue
			}
			if !strings.HasPrefix(got, "before {") || !strings.HasSuffix(got, " after\n") {
				t.Errorf("%s as %s: the text around is gone: %s", name, form, got)
			}
			if again, n := r.String(got); n != 0 || again != got {
				t.Errorf("%s as %s: redacting twice changes\n%s\n%s", name, form, got, again)
			}
			found, err := r.Find([]byte(text))
			if err != nil || len(found) == 0 || !known(found, name) || found[0].Offset < 10 ||
				found[0].Line != 1+strings.Count(text[:found[0].Offset], "\n") {
				t.Errorf("%s as %s: found %+v, %v", name, form, found, err)
			}
		}
	}
}

func known(found []redact.Finding, name string) bool {
	for _, f := range found {
		if f.Known && f.Name == name {
			return true
		}
	}
	return false
}

// shapesOf are secrets by their look, in parts.
func shapesOf() map[string]string {
	const mixed = "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6hJ9kL2nP5rS8"
	hexes := strings.Repeat("0f1e2d3c4b5a6978", 4)
	jwt := "ey" + "JhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + mixed[:43]
	return map[string]string{
		"ghp":         "gh" + "p_" + mixed[:36],
		"gho":         "gh" + "o_" + mixed[:36],
		"ghs":         "gh" + "s_" + mixed[:36],
		"github pat":  "github" + "_pat_" + mixed[:22] + "_" + mixed + mixed[:11],
		"gitlab":      "gl" + "pat-" + mixed[:20],
		"aws key":     "AK" + "IA" + "QZJ4XV7BKD2MWC5H",
		"google":      "AI" + "za" + mixed[:35],
		"slack":       "xox" + "b-123456789012-" + mixed[:24],
		"openai":      "s" + "k-" + mixed,
		"openai proj": "s" + "k-proj-" + mixed + "_" + mixed + "-" + mixed,
		"openrouter":  "s" + "k-or-v1-" + hexes,
		"anthropic":   "s" + "k-ant-api03-" + mixed + "-" + mixed[:40] + "AA",
		"npm":         "np" + "m_" + mixed[:36],
		"stripe":      "sk" + "_live_" + mixed[:24],
		"sendgrid":    "S" + "G." + mixed[:22] + "." + mixed[:43],
		"jwt":         jwt,
		"huggingface": "h" + "f_" + mixed[:34],
		"pypi":        "py" + "pi-AgEIcHlwaS5vcmc" + mixed,
	}
}

func TestShapes(t *testing.T) {
	r := newRedactor(t, redact.Options{})
	for name, secret := range shapesOf() {
		for _, text := range []string{secret, "key=" + secret, `{"k":"` + secret + `"}`, "a " + secret + ". b", secret + "\nnext", `{"log":"x\n` + secret + `"}`, "?k%3D" + secret + "&b"} {
			got, n := r.String(text)
			if n != 1 || leaked(got, secret) {
				t.Errorf("%s: %d in %s", name, n, got)
			}
			if strings.Contains(text, "next") && !strings.HasSuffix(got, "\nnext") {
				t.Errorf("%s: took the next line: %s", name, got)
			}
			if again, n := r.String(got); n != 0 || again != got {
				t.Errorf("%s: not stable: %s", name, again)
			}
		}
	}
}

func TestShapesInContext(t *testing.T) {
	const password = "hunter2-and-more"
	key40 := "wJalrXUtnFEMI/K7MDENG+bPxRfiCYZZ" + "ABCD1234"
	pem := "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7" + "q1w2e3r4\nabcdEFGH1234+/==\n-----END RSA " + "PRIVATE KEY-----"
	cases := []struct{ text, secret, want string }{
		{"git clone https://me:" + password + "@host/x.git", password, "git clone https://me:[redacted:url-password]@host/x.git"},
		{"postgres://u:" + password + "@db:5432/x", password, "postgres://u:[redacted:url-password]@db:5432/x"},
		{"Authorization: Bearer abcdef0123456789abcdef", "abcdef0123456789", "Authorization: Bearer [redacted:authorization]"},
		{"authorization: token abcdef0123456789abcdef", "abcdef0123456789", "authorization: token [redacted:authorization]"},
		{`{"Authorization": "Basic dXNlcjpodW50ZXIy"}`, "dXNlcjpodW50ZXIy", `{"Authorization": "Basic [redacted:authorization]"}`},
		{"X-Api-Key: abcdef0123456789abcdef", "abcdef0123456789", "X-Api-Key: [redacted:authorization]"},
		{"aws_secret_access_key = " + key40, key40, "aws_secret_access_key = [redacted:aws-secret-key]"},
		{`{"SecretAccessKey":"` + key40 + `"}`, key40, `{"SecretAccessKey":"[redacted:aws-secret-key]"}`},
		{`"{\"SecretAccessKey\":\"` + key40 + `\"}"`, key40, `"{\"SecretAccessKey\":\"[redacted:aws-secret-key]\"}"`},
		{"a\n" + pem + "\nb", "abcdEFGH1234", "a\n[redacted:private-key]\nb"},
		{`{"k":"` + strings.ReplaceAll(pem, "\n", `\n`) + `","x":1}`, "abcdEFGH1234", `{"k":"[redacted:private-key]","x":1}`},
		{pem[:len(pem)-20], "abcdEFGH1234", "[redacted:private-key]"},
	}
	r := newRedactor(t, redact.Options{})
	for _, c := range cases {
		got, _ := r.String(c.text)
		if got != c.want || strings.Contains(got, c.secret) {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
}

// What stands beside a secret may be one only once that is gone: neither is left.
func TestBesideASecret(t *testing.T) {
	known := "correct-horse-battery"
	aws, hf, age := "AKIA"+"IOSFODNN7ABCDEFG", "hf_"+strings.Repeat("aB3dE", 7), "AGE-SECRET-KEY-1"+strings.Repeat("QPZRY9X8", 6)
	for name, c := range map[string]struct {
		text, want string
		n          int
	}{
		"behind it": {known + hf, "[redacted:KNOWN][redacted:huggingface-token]", 2},
		"before it": {aws + age, "[redacted:aws-access-key][redacted:age-key]", 2},
		"several":   {known + hf + " " + known + hf + known + aws, "[redacted:KNOWN][redacted:huggingface-token] [redacted:KNOWN][redacted:huggingface-token][redacted:KNOWN][redacted:aws-access-key]", 6},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRedactor(t, redact.Options{Secrets: []redact.Secret{{Name: "KNOWN", Value: known}}})
			got, n := r.String(c.text)
			if got != c.want || n != c.n {
				t.Errorf("%d secrets, %s\nwant %d, %s", n, got, c.n, c.want)
			}
			if found, err := r.Find([]byte(got)); err != nil || len(found) > 0 {
				t.Errorf("left in it: %v, %v", found, err)
			}
		})
	}
}

// What uwf, git and ordinary texts are full of is never taken for a secret.
func TestHarmless(t *testing.T) {
	texts := []string{
		"44P8EP6N3NXZ5 108DB063KRQWW CTS5P6RD8HMCS", // node hashes
		"01ARZ3NDEKTSV4RRFFQ69G5FAV 06F1ZQ6C9HM4V2R7T3XQ0ABCDE",
		"da39a3ee5e6b4b0d3255bfef95601890afd80709 commit",
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"h1:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg= go.sum",
		"sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
		"550e8400-e29b-41d4-a716-446655440000",
		"https://example.com:8080/a@b?x=1#y mailto:me@example.com ssh://git@example.com/x.git",
		"https://user:$PASSWORD@host https://user:${TOKEN}@host https://x:***@host",
		"Bearer authentication is used; basic authentication-and-more is not. Basic principles apply.",
		"use Authorization: Bearer <token> or Authorization: Bearer $TOKEN",
		"task-force-one sk-learn-style-estimators-and-more desk-top risk-based-approach-in-2024",
		"eyJust a word. AKIA is a prefix, ghp_ too, xoxb- and AIza also.",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
		"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
		"aws_secret_access_key = os.environ['X']",
		// What documentation has in the place of secrets.
		"AKIAIOSFODNN7EXAMPLE ASIAIOSFODNN7EXAMPLE aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
		"ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx glpat-xxxx-xxxx-xxxx-xxxx-xxxx https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
		"AKIAEXAMPLE123456789 ghp_1234567890abcdefghijklmnopqrstuvwxyz sk-1234567890abcdef1234567890abcdef",
		"ghp_your_personal_access_token_here github_pat_your_fine_grained_personal_access_token_here glpat-your-gitlab-token-here",
		"dckr_pat_your_docker_access_token GOCSPX-your-google-client-secret xoxb-your-bot-token-1 hvs.your-vault-token-goes-here-2024",
		"sk_test_your_stripe_secret_key sk-ant-api03-your-api-key-here hf_yourHuggingFaceTokenGoesHere1",
		"https://hooks.slack.com/services/YOUR/SLACK/WEBHOOK/URL https://discord.com/api/webhooks/YOUR_WEBHOOK_ID/YOUR_WEBHOOK_TOKEN_GOES_HERE",
		// Words of programs.
		"func network_test_connection_timeout() task_test_runner_configuration _mm_mask_test_epi16_mask0_and_mask_test_epi32",
		"day_highs_and_lows_of_the_market_over_time_series eyJ.prototype.somethingLong.andMore.bar()",
		`Contains(s, "-----BEGIN RSA PRIVATE KEY-----") || Contains(s, "-----END RSA PRIVATE KEY-----")`,
		"const begin = '-----BEGIN PRIVATE KEY-----'\nx509.MarshalPKCS8PrivateKey(key)\nconst end = '-----END PRIVATE KEY-----'",
		"what begins with -----BEGIN RSA PRIVATE KEY----- is a key",
		"-----BEGIN PRIVATE KEY-----\nYOUR PRIVATE KEY HERE\n-----END PRIVATE KEY----- or\n-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
		"npm_config_registry=https://registry.npmjs.org npm_lifecycle_event=test",
		"[redacted:GITHUB_TOKEN] [redacted:nonsense] [redacted:",
		"%zz %4 \\u12 \\ % \\x \\777 \\",
		"",
	}
	r := newRedactor(t, redact.Options{Secrets: secretsOf(values())})
	for _, text := range texts {
		if got, n := r.String(text); n != 0 || got != text {
			t.Errorf("%s\nbecame\n%s", text, got)
		}
	}
}

func TestIgnoredValues(t *testing.T) {
	r := newRedactor(t, redact.Options{Secrets: []redact.Secret{
		{"A", "true"}, {"B", "abc"}, {"C", "password"}, {"D", "000000000"}, {"E", ""}, {"F", "redacted"}, {"G", "really-secret"},
	}})
	text := "true abc password 000000000 redacted really-secret"
	if got, _ := r.String(text); got != "true abc password 000000000 redacted [redacted:G]" {
		t.Error(got)
	}
}

func TestAllowAndPatterns(t *testing.T) {
	token := shapesOf()["ghp"]
	r := newRedactor(t, redact.Options{
		Allow:    []string{token, "T-000000"},
		Patterns: []redact.Pattern{{"ticket", `T-[0-9]{6}`}, {"pin", `pin=(?P<secret>[0-9]+)`}},
		Secrets:  []redact.Secret{{"X", token}},
	})
	got, n := r.String("T-000000 T-123456 pin=42 " + token)
	if want := "T-000000 [redacted:ticket] pin=[redacted:pin] " + token; got != want || n != 2 {
		t.Errorf("%d %s", n, got)
	}
	off := newRedactor(t, redact.Options{NoShapes: true})
	if got, _ := off.String(token); got != token {
		t.Errorf("shapes are off: %s", got)
	}
	for _, bad := range []redact.Options{
		{Patterns: []redact.Pattern{{"x", "("}}},
		{Patterns: []redact.Pattern{{"x", "a*"}}},
		{Secrets: []redact.Secret{{"x", "a[redacted:b]c"}}},
		{Secrets: []redact.Secret{{"x", strings.Repeat("ab", 40_000)}}},
	} {
		if _, err := redact.New(bad); !errors.Is(err, redact.ErrOptions) {
			t.Errorf("%+v: %v", bad.Patterns, err)
		}
	}
}

// A name must not give away what it stands for, nor break what it stands in.
func TestNames(t *testing.T) {
	r := newRedactor(t, redact.Options{Secrets: []redact.Secret{
		{"key-of-hunter42", "hunter42"}, {"odd name]\n", "another-value"}, {"a", "secret-1"}, {"b", "secret-2"},
	}})
	for _, text := range []string{"hunter42 another-value secret-1 secret-2", "[redacted:key-of-hunter42]"} {
		got, n := r.String(text)
		again, more := r.String(got)
		if n == 0 || more != 0 || again != got || strings.ContainsAny(got, "\n") {
			t.Errorf("%q → %q → %q", text, got, again)
		}
		for _, v := range []string{"hunter42", "another-value", "secret-1", "secret-2"} {
			if strings.Contains(got, v) {
				t.Errorf("%q survives in %q", v, got)
			}
		}
	}
}

func TestValue(t *testing.T) {
	secret := values()["PLAIN_TOKEN"]
	r := newRedactor(t, redact.Options{Secrets: []redact.Secret{{"T", secret}, {"PIN", "98765432"}}})
	in := map[string]any{
		"a": []any{secret, int64(1), 2.5, true, nil, json.Number("98765432")}, secret: "k", "x" + secret: map[string]any{"deep": "b" + secret},
		"n": int64(98765432),
	}
	got, n, err := r.Value(in)
	want := map[string]any{
		"a": []any{"[redacted:T]", int64(1), 2.5, true, nil, "[redacted:PIN]"}, "[redacted:T]": "k",
		"x[redacted:T]": map[string]any{"deep": "b[redacted:T]"}, "n": "[redacted:PIN]",
	}
	if err != nil || n != 6 || !reflect.DeepEqual(got, want) {
		t.Errorf("%d, %v\n%v\n%v", n, err, got, want)
	}
	if _, kept := in[secret]; !kept {
		t.Error("the input was changed")
	}
	both, _, err := r.Value(map[string]any{"[redacted:T]": 1, secret: 2})
	if m, ok := both.(map[string]any); err != nil || !ok || len(m) != 2 {
		t.Errorf("two keys became one: %v, %v", both, err)
	}
}

func TestFailsClosed(t *testing.T) {
	r := newRedactor(t, redact.Options{MaxBytes: 1000})
	deep := any("x")
	for range 300 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		v    any
		want error
	}{
		{deep, redact.ErrTooDeep},
		{strings.Repeat("a", 1001), redact.ErrTooLarge},
		{map[string]any{strings.Repeat("a", 600): strings.Repeat("a", 600)}, redact.ErrTooLarge},
		{struct{ A string }{"x"}, redact.ErrType},
		{map[string]any{"a": []byte("x")}, redact.ErrType},
		{[]any{[]string{"x"}}, redact.ErrType},
		{make([]any, 2000), redact.ErrTooLarge},
	} {
		if got, _, err := r.Value(c.v); !errors.Is(err, c.want) || got != nil {
			t.Errorf("%T: %v, %v", c.v, got, err)
		}
	}
	big := make([]byte, 1001)
	if got, err := r.Find(big); !errors.Is(err, redact.ErrTooLarge) || got != nil {
		t.Errorf("Find: %v", err)
	}
}

func TestFind(t *testing.T) {
	r := newRedactor(t, redact.Options{Secrets: []redact.Secret{{"T", values()["PLAIN_TOKEN"]}}})
	found, err := r.Find([]byte("a\n" + values()["PLAIN_TOKEN"] + "\nb\n\n " + shapesOf()["ghp"] + "\x00"))
	want := []redact.Finding{{Name: "T", Known: true, Offset: 2, Line: 2}, {Name: "github-token", Token: true, Offset: 23, Line: 5, Sum: sumOf(shapesOf()["ghp"])}}
	if err != nil || !reflect.DeepEqual(found, want) {
		t.Errorf("%+v, %v", found, err)
	}
}

// sumOf is the entry of redact.allow for a text.
func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// TestFindInLargeText: a text that is searched in pieces has the same in it as one that
// is searched at once, wherever it is divided.
func TestFindInLargeText(t *testing.T) {
	secret, form := values()["PLAIN_TOKEN"], encoders()["xxd, more around"].encode
	r := newRedactor(t, redact.Options{Secrets: []redact.Secret{{"T", secret}}, Patterns: []redact.Pattern{{"ticket", `T-[0-9]{6}`}}})
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 20 {
		var text strings.Builder
		var want []redact.Finding
		put := func(s string, f redact.Finding) {
			f.Offset += text.Len()
			f.Line += 1 + strings.Count(text.String(), "\n")
			want = append(want, f)
			text.WriteString(s)
		}
		for range 6 {
			text.WriteString(strings.Repeat("an ordinary line\n", rnd.IntN(20_000)))
			put(secret, redact.Finding{Name: "T", Known: true})
			text.WriteString("\n")
			put(shapesOf()["ghp"], redact.Finding{Name: "github-token", Token: true, Sum: sumOf(shapesOf()["ghp"])})
			text.WriteString(" ")
			put("T-123456", redact.Finding{Name: "ticket", Token: true, Pattern: true, Sum: sumOf("T-123456")})
			text.WriteString("\n" + strings.Repeat("\n", rnd.IntN(100)))
			dump := form(secret)
			put(dump, redact.Finding{Name: "T", Known: true, Offset: strings.Index(dump, "71 37"), Line: 0})
		}
		got, err := r.Find([]byte(text.String()))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\n%+v\n%+v", err, got, want)
		}
	}
	// More than is ever held for one secret.
	if got, err := r.Find([]byte("-----BEGIN " + "PRIVATE KEY-----\n" + strings.Repeat("abcdEFGH1234", 50_000))); err != nil || len(got) == 0 || got[0].Line != 1 {
		t.Errorf("a key without an end: %+v, %v", got, err)
	}
}

// TestAllow: what is allowed is named by its text, its SHA-256 or its file.
func TestAllow(t *testing.T) {
	ghp, jwt := shapesOf()["ghp"], shapesOf()["jwt"]
	pem := "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7" + "q1w2e3r4\n-----END RSA " + "PRIVATE KEY-----"
	known := values()["PLAIN_TOKEN"]
	r := newRedactor(t, redact.Options{
		Secrets: []redact.Secret{{"T", known}},
		Allow: []string{"sha256:" + strings.ToUpper(sumOf(ghp)[7:]), sumOf(known), sumOf(strings.Join(strings.Fields(pem), "")),
			"path:testdata/", "path:*.golden", "path:/a/b[0-9]", "path:!keep.golden"},
	})
	for _, text := range []string{ghp, known, "x " + pem, strings.ReplaceAll(pem, "\n", "\n    "), strings.ReplaceAll(pem, "\n", `\n`)} {
		if got, n := r.String(text); n != 0 || got != text {
			t.Errorf("%s is allowed and became %s", text, got)
		}
		if found, err := r.Find([]byte(text)); err != nil || len(found) > 0 {
			t.Errorf("%s is allowed: %+v, %v", text, found, err)
		}
	}
	if got, _ := r.String(jwt); got != "[redacted:jwt]" {
		t.Error(got)
	}
	for path, want := range map[string]bool{
		"testdata/x": true, "a/testdata/b/c": true, "testdata": false, "x.golden": true, "d/y.golden": true, "keep.golden": false,
		"a/b7": true, "x/a/b7": false, "main.go": false, "": false,
	} {
		if r.AllowsFile(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
	if newRedactor(t, redact.Options{Allow: []string{"a text"}}).AllowsFile("a text") {
		t.Error("a text allows a file")
	}
	for _, bad := range []string{"sha256:", "sha256:12", "sha256:" + strings.Repeat("g", 64), sumOf("x") + "00", "path:", "path:# x", "path:a\nb", "path:a\x00"} {
		_, err := redact.New(redact.Options{Allow: []string{bad}})
		if !errors.Is(err, redact.ErrOptions) || !errors.Is(redact.CheckAllow(bad), redact.ErrOptions) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := errors.Join(redact.CheckAllow("a text"), redact.CheckAllow(sumOf("x")), redact.CheckAllow("path:a")); err != nil {
		t.Error(err)
	}
}

// TestFindingKinds: what names a secret by itself is told from what only stands where
// secrets do.
func TestFindingKinds(t *testing.T) {
	r := newRedactor(t, redact.Options{Patterns: []redact.Pattern{{"ticket", `T-[0-9]{6}`}}})
	for text, want := range map[string]bool{
		shapesOf()["ghp"]: true, shapesOf()["jwt"]: true, "T-123456": true, "Authorization: Bearer " + shapesOf()["ghp"]: true,
		"https://me:hunter2-and-more@host": false, "Authorization: Bearer abcdef0123456789abcdef": false,
	} {
		found, err := r.Find([]byte(text))
		if err != nil || len(found) != 1 || found[0].Token != want || found[0].Known || !strings.HasPrefix(found[0].Sum, "sha256:") {
			t.Errorf("%s: %+v, %v", text, found, err)
		}
	}
}

func TestFromEnv(t *testing.T) {
	env := []string{
		"GITHUB_TOKEN=tok-1", "ACTIONS_RUNTIME_TOKEN=tok-2", "INPUT_API-KEY=k-1", "DB_PASSWORD=p-1", "dbPassword=p-2", "AWS_ACCESS_KEY_ID=a-1",
		"DATABASE_URL=postgres://u:pg-pass@h/x", "GIT_URL=https://abcdefghij0123456789@h/x", "DB_PWD=p-3", "MY_SECRET=has=equals",
		`CREDS={"client_email":"x","private_key":"pk-1"}`, "SSH_PRIVATE_KEY=-----BEGIN x", "JWT=j-1",
		// no secrets:
		"PATH=/bin", "PWD=/home/x", "OLDPWD=/home/x", "GITHUB_REPOSITORY=a/b", "KEYBOARD=us", "TOKENIZERS_PARALLELISM=false",
		"SSH_AUTH_SOCK=/run/x", "AUTHOR=me", "API_KEY_FILE=/run/secrets/k", "SSH_KEY=/home/me/.ssh/id", "TOKEN_URL=https://x/y", "PUBLIC_KEY=pub",
		"EMPTY_TOKEN=", "noequals", "HOME=/root", "GIT_ASKPASS=/bin/true", "MONKEY=1",
	}
	got := map[string]string{}
	for _, s := range redact.FromEnv(env) {
		got[s.Value] = s.Name
	}
	want := map[string]string{
		"tok-1": "GITHUB_TOKEN", "tok-2": "ACTIONS_RUNTIME_TOKEN", "k-1": "INPUT_API-KEY", "p-1": "DB_PASSWORD", "p-2": "dbPassword", "a-1": "AWS_ACCESS_KEY_ID",
		"pg-pass": "DATABASE_URL", "abcdefghij0123456789": "GIT_URL", "p-3": "DB_PWD", "has=equals": "MY_SECRET",
		"pk-1": "CREDS", "-----BEGIN x": "SSH_PRIVATE_KEY", "j-1": "JWT",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestWith(t *testing.T) {
	r := newRedactor(t, redact.Options{})
	more, err := r.With(redact.Secret{Name: "LATE", Value: "late-secret"})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := more.String("late-secret"); got != "[redacted:LATE]" {
		t.Error(got)
	}
	if got, _ := r.String("late-secret"); got != "late-secret" {
		t.Error("the first one changed")
	}
}

// BenchmarkHostileText: no input makes the search slow.
func BenchmarkHostileText(b *testing.B) {
	r := newRedactor(b, redact.Options{Secrets: append(secretsOf(values()), redact.Secret{Name: "P", Value: strings.Repeat("ab", 1000) + "c"})})
	for _, piece := range []string{"ab", "ghp_", "sk-", "eyJ.", "://a:", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "sk_test_word_", "eyJhbGciOiJIUzI1NiJ9.", "Bearer ", `\`, `\u00`, "%", "%25", "[redacted:", "\n ", `\n`, "AKIA", "Authorization: "} {
		text := strings.Repeat(piece, (1<<20)/len(piece))
		b.Run(fmt.Sprintf("%q", piece), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r.String(text)
			}
		})
	}
}

// BenchmarkHostileGaps: nor do line breaks and dumps that nearly hold a secret which
// repeats itself.
func BenchmarkHostileGaps(b *testing.B) {
	for _, value := range []string{"0 ", "0", "+-", "=\""} {
		r := newRedactor(b, redact.Options{Secrets: []redact.Secret{{Name: "P", Value: strings.Repeat(value, 400) + "1"}}})
		for _, piece := range []string{"0\n", "0\n> ", "+\n-", "30 ", "30\n", "=\"\n\""} {
			text := strings.Repeat(piece, (64<<10)/len(piece))
			b.Run(fmt.Sprintf("%q in %q", value, piece), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					r.String(text)
				}
			})
		}
	}
}

func FuzzNoPlantedValueSurvives(f *testing.F) {
	for i := range 12 {
		f.Add("x9$kQ2-value", "some text before ", " and behind\n", uint8(i*5), uint64(i))
	}
	f.Add(`a"b\c/d`, `\`, `n\u0061%41`, uint8(3), uint64(7))
	f.Add("nabcdef", `\`, `\`, uint8(0), uint64(7))
	all := encoders()
	var names []string
	for name := range all {
		names = append(names, name)
	}
	f.Fuzz(func(t *testing.T, value, before, behind string, form uint8, seed uint64) {
		if strings.ContainsRune(value, '\ufffd') || strings.ToValidUTF8(value, "") != value || len(value) > 1000 {
			t.Skip()
		}
		r, err := redact.New(redact.Options{Secrets: []redact.Secret{{Name: "PLANTED", Value: value}}})
		if err != nil || redact.IsIgnored(value) || value == "" {
			t.Skip()
		}
		// An escape that begins before it makes its first characters another text.
		for at := strings.LastIndexAny(before, `\%&=`); at >= 0 && len(before)-at < 12; at = strings.LastIndexAny(before, `\%&=`) {
			before = before[:at]
		}
		name := sorted(names)[int(form)%len(names)]
		if !all[name].finds(value) {
			t.Skip()
		}
		encoded := all[name].encode(value)
		if all[name].row == rowBroken && (strings.ContainsAny(value, "\r\n\t") || strings.Contains(value, "  ")) {
			t.Skip() // white space of both runs together
		}
		if strings.Contains(name, "without") { // the last entity has no end
			behind = " " + behind
		}
		text := before + encoded + behind
		got, _ := r.String(text)
		if strings.Contains(got, encoded) {
			t.Fatalf("%q as %s survives in %q", value, name, got)
		}
		if again, n := r.String(got); n != 0 || again != got {
			t.Fatalf("not idempotent: %q → %q → %q", text, got, again)
		}
		if streamed := stream(t, r, text, rand.New(rand.NewPCG(seed, 1))); strings.Contains(streamed, encoded) && len(encoded) < 4096 {
			t.Fatalf("%q as %s survives a stream: %q", value, name, streamed)
		}
	})
}

// FuzzOtherText: a text is left byte for byte as it is, at once and in pieces, where a
// value isn't in it: one that is made up after the text.
func FuzzOtherText(f *testing.F) {
	for name, form := range encoders() {
		f.Add(name+": "+form.encode("another-Value_17")+"\n", uint64(7))
	}
	f.Add("00000000: 7137 \n&#113;\\u0071%71\n> + q\x00\x00\x00=\n", uint64(1))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, uint64(len(text))))
		value := make([]byte, 12+rnd.IntN(30))
		for i := range value {
			value[i] = byte('!' + rnd.IntN('~'-'!'))
		}
		r, err := redact.New(redact.Options{Secrets: []redact.Secret{{Name: "OTHER", Value: string(value)}}, NoShapes: true})
		if err != nil || redact.IsIgnored(string(value)) || strings.Contains(text, string(value)) {
			t.Skip()
		}
		if got, n := r.String(text); n != 0 || got != text {
			t.Fatalf("%q: %q became %q", value, text, got)
		}
		if got := stream(t, r, text, rnd); got != text {
			t.Fatalf("%q: %q came out of a stream as %q", value, text, got)
		}
	})
}

func sorted(s []string) []string {
	out := append([]string(nil), s...)
	for i := range out {
		for j := i + 1; j < len(out); j++ {
			if out[j] < out[i] {
				out[i], out[j] = out[j], out[i]
			}
		}
	}
	return out
}

// TestHarmlessByChance: what chance makes in files that are full of it is not taken for a
// token: sums of lock files, ids, encoded data.
func TestHarmlessByChance(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 9))
	bytesOf := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.UintN(256))
		}
		return b
	}
	std, hexed := base64.StdEncoding.EncodeToString, hex.EncodeToString
	r := newRedactor(t, redact.Options{})
	for name, line := range map[string]func() string{
		"go.sum":            func() string { return "example.com/mod v1.2.3/go.mod h1:" + std(bytesOf(32)) },
		"package-lock.json": func() string { return `      "integrity": "sha512-` + std(bytesOf(64)) + `",` },
		"yarn.lock": func() string {
			return `  resolved "https://registry.yarnpkg.com/x/-/x-1.0.0.tgz#` + hexed(bytesOf(20)) + `"`
		},
		"Cargo.lock": func() string { return `checksum = "` + hexed(bytesOf(32)) + `"` },
		"commits":    func() string { return hexed(bytesOf(20)) + " refs/heads/x" },
		"uuids": func() string {
			return fmt.Sprintf("%x-%x-%x-%x-%x", bytesOf(4), bytesOf(2), bytesOf(2), bytesOf(2), bytesOf(6))
		},
		"base64":    func() string { return std(bytesOf(48)) },
		"base64url": func() string { return "/assets/index-" + base64.RawURLEncoding.EncodeToString(bytesOf(12)) + ".js" },
		"base32":    func() string { return base32.StdEncoding.EncodeToString(bytesOf(10)) },
		"source map": func() string {
			return "//# sourceMappingURL=data:application/json;base64,ey" + "J2ZXJzaW9uIjoz" + std(bytesOf(90))
		},
		"SVG": func() string {
			return fmt.Sprintf(`<path d="M%d.%dc-%d,0Z"/>`, rnd.IntN(999), rnd.IntN(999), rnd.IntN(99))
		},
		"certificate": func() string {
			return "-----BEGIN CERTIFICATE-----\n" + std(bytesOf(48)) + "\n-----END CERTIFICATE-----"
		},
	} {
		var text strings.Builder
		for range 3_000 {
			text.WriteString(line() + "\n")
		}
		if found, err := r.Find([]byte(text.String())); err != nil || len(found) > 0 {
			t.Errorf("%s: %+v, %v", name, found[:min(3, len(found))], err)
		}
	}
}

// Escapes that stand inside of base64, or inside of each other, are not undone by a view.
func TestStackedEscapes(t *testing.T) {
	const secret = `Tr0ub4dor&3+/=<x>"y'`
	r := newRedactor(t, redact.Options{Secrets: []redact.Secret{{"T", secret}}})
	xml := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&apos;", `"`, "&quot;").Replace(secret)
	std := base64.StdEncoding.EncodeToString
	for name, text := range map[string]string{
		"XML in base64":           std([]byte("<password>" + xml + "</password>")),
		"HTML in base64":          std([]byte("<p>" + html.EscapeString(secret) + "</p>")),
		"a path in base64":        std([]byte("https://u:" + url.PathEscape(secret) + "@host")),
		"a path in HTML":          html.EscapeString("https://host/" + url.PathEscape(secret) + "/x"),
		"HTML in a query":         "k=" + url.QueryEscape(html.EscapeString(secret)),
		"XML in a query":          "k=" + url.QueryEscape(xml),
		"light escapes in base64": std([]byte(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(secret))),
	} {
		if got, _ := r.String("before " + text + " after"); !strings.Contains(got, "[redacted:T]") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
