package redact_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/redact"
)

// stream writes text in random pieces and returns what comes out.
func stream(t testing.TB, r *redact.Redactor, text string, rnd *rand.Rand) string {
	t.Helper()
	var out bytes.Buffer
	w := r.NewWriter(&out)
	for rest := text; rest != ""; {
		n := min(len(rest), 1+rnd.IntN(12))
		if _, err := w.Write([]byte(rest[:n])); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWriterAtEverySplit(t *testing.T) {
	r := newRedactor(t, redact.Options{Secrets: secretsOf(values())})
	for name, value := range values() {
		for form, f := range encoders() {
			if !f.finds(value) {
				continue
			}
			encoded := f.encode(value)
			text := "log: " + encoded + " end\n"
			want, _ := r.String(text)
			for cut := 1; cut < len(text); cut++ {
				var out bytes.Buffer
				w := r.NewWriter(&out)
				for _, part := range []string{text[:cut], text[cut:]} {
					if _, err := w.Write([]byte(part)); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				if out.String() != want && (!f.early || leaked(out.String(), encoded)) {
					t.Errorf("%s as %s, cut at %d:\n%q\nwant\n%q", name, form, cut, out.String(), want)
					break
				}
			}
		}
	}
	for name, secret := range shapesOf() {
		text := "log: " + secret + " end\n"
		want, _ := r.String(text)
		for seed := range uint64(20) {
			if got := stream(t, r, text, rand.New(rand.NewPCG(seed, 2))); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
				break
			}
		}
	}
}

// Ordinary lines come out at once, so that a person sees a log live.
func TestWriterIsLive(t *testing.T) {
	r := newRedactor(t, redact.Options{Secrets: secretsOf(values())})
	var out bytes.Buffer
	w := r.NewWriter(&out)
	for _, line := range []string{"building\n", "ok  \tpkg/a\t0.1s\n", "--- FAIL: TestX (0.00s)\n", "progress 12%\n", "https://example.com/path\n", "C:\\dir\\\n", "{\"a\": \"b\\n\"}\n"} {
		out.Reset()
		if _, err := w.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if out.String() != line {
			t.Errorf("wrote %q, out came %q", line, out.String())
		}
	}
}

// What may be the beginning of a secret is held until it is one, or nothing follows.
func TestWriterHoldsABeginning(t *testing.T) {
	secret := values()["PLAIN_TOKEN"]
	r := newRedactor(t, redact.Options{Secrets: []redact.Secret{{"T", secret}}})
	var out bytes.Buffer
	w := r.NewWriter(&out)
	if _, err := w.Write([]byte("prompt: " + secret[:6])); err != nil {
		t.Fatal(err)
	}
	if out.String() != "prompt: " {
		t.Errorf("%q", out.String())
	}
	if _, err := w.Write([]byte(secret[6:] + " x " + secret[:6])); err != nil {
		t.Fatal(err)
	}
	if out.String() != "prompt: [redacted:T] x " {
		t.Errorf("%q", out.String())
	}
	if err := w.Close(); err != nil || out.String() != "prompt: [redacted:T] x "+secret[:6] {
		t.Errorf("%q, %v", out.String(), err)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, redact.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// A secret that never ends is not held for ever, and not let through.
func TestWriterBoundsWhatItHolds(t *testing.T) {
	value := strings.Repeat("ab", 500) + "c"
	r := newRedactor(t, redact.Options{Secrets: []redact.Secret{{"T", value}}})
	var out bytes.Buffer
	w := r.NewWriter(&out)
	for range 600 {
		if _, err := w.Write([]byte(value[:1000])); err != nil { // overlapping beginnings
			t.Fatal(err)
		}
	}
	if _, err := w.Write([]byte("c\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), value) {
		t.Error("it came through")
	}
	key := "-----BEGIN " + "PRIVATE KEY-----\n" + strings.Repeat("abcdEFGH1234abcdEFGH1234abcdEFGH\n", 3_000)
	if got := stream(t, r, key, rand.New(rand.NewPCG(1, 1))); strings.Contains(got, "abcdEFGH") {
		t.Errorf("a key without an end: %.200q", got)
	}
}

// What follows a beginning that had to be let out is still known as the rest of another secret.
func TestWriterRemembersWhatIsOut(t *testing.T) {
	random := func(seed uint64) string {
		rnd := rand.New(rand.NewPCG(seed, 1))
		return strings.Join(strings.Split(fmt.Sprintf("%x", [8]uint64{rnd.Uint64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64()}), " "), "")
	}
	long, other := strings.Repeat(random(1), 16), strings.Repeat(random(2), 16)
	r := newRedactor(t, redact.Options{Secrets: []redact.Secret{{"LONG", long}, {"OTHER", other}}})
	var out bytes.Buffer
	w := r.NewWriter(&out)
	for _, part := range []string{long[:1000] + strings.Repeat("\\\n", 1<<17), strings.Repeat("\\\n", 20000) + other[:500], other[500:] + " end"} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), other[600:]) {
		t.Error("the rest came through")
	}
}

func TestWriterPatterns(t *testing.T) {
	r := newRedactor(t, redact.Options{Patterns: []redact.Pattern{{"ticket", `T-[0-9]{6}`}}})
	for seed := range uint64(50) {
		if got := stream(t, r, "a T-123456 b\nT-654321\nc T-1", rand.New(rand.NewPCG(seed, 3))); got != "a [redacted:ticket] b\n[redacted:ticket]\nc T-1" {
			t.Fatalf("%q", got)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("broken")

func TestWriterErrors(t *testing.T) {
	r := newRedactor(t, redact.Options{})
	w := r.NewWriter(broken{})
	if _, err := w.Write([]byte("hello\n")); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
	if err := w.Close(); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
}
