package redact_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/redact"
)

// traces are pieces of a value that are left in a dump of it: three bytes as pairs, or
// four characters.
func traces(dump, value string) []string {
	var out []string
	dump = strings.ToLower(dump)
	for i := 0; i+4 <= len(value); i++ {
		if c := strings.ToLower(value[i : i+4]); strings.Contains(dump, c) {
			out = append(out, c)
		}
		for _, format := range []string{"%02x%02x%02x", "%02x %02x %02x", "%02x%02x %02x", "%02x %02x%02x", "%02x  %02x %02x", "0x%02x, 0x%02x, 0x%02x"} {
			if c := fmt.Sprintf(format, value[i], value[i+1], value[i+2]); strings.Contains(dump, c) {
				out = append(out, c)
			}
		}
	}
	return out
}

// sameLines says whether every line of got but those with a placeholder is one of want.
func sameLines(got, want string) bool {
	lines := map[string]bool{}
	for line := range strings.Lines(want) {
		lines[line] = true
	}
	for line := range strings.Lines(got) {
		if !lines[line] && !strings.Contains(line, "[redacted:") {
			return false
		}
	}
	return true
}

// TestRealDumps: what xxd, hexdump and od print of a file with a secret has nothing of it
// after redaction, wherever in a line it begins, and is the same where there is none.
func TestRealDumps(t *testing.T) {
	const secret = "q7Zr" + "1LmW9xKd2Tb8vN"
	r := newRedactor(t, redact.Options{Secrets: []redact.Secret{{"T", secret}}})
	for _, command := range []string{
		"xxd", "xxd -u", "xxd -g 1", "xxd -g 4", "xxd -g 0", "xxd -c 8", "xxd -c 5 -g 1", "xxd -c 3", "xxd -p", "xxd -p -c 7", "xxd -i", "xxd -i -u",
		"hexdump -C", "hexdump -v -C", "od -tx1", "od -An -tx1", "od -tx1z", "od -A x -tx1z -v", "od -A n -t x1 -w5",
	} {
		words := strings.Fields(command)
		if _, err := exec.LookPath(words[0]); err != nil {
			t.Logf("%s is not here", words[0])
			continue
		}
		dump := func(text string) string {
			cmd := exec.Command(words[0], words[1:]...)
			cmd.Stdin = strings.NewReader(text)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v", command, err)
			}
			return string(out)
		}
		for n := range 17 {
			before := "# settings\n" + strings.Repeat("-", n) + "key="
			text := dump(before + secret + "\n" + strings.Repeat("some more text, 12:34:56\n", 4))
			got, count := r.String(text)
			if left := traces(got, secret); count == 0 || len(left) > 0 {
				t.Fatalf("%s at %d: left %q in\n%s\nof\n%s", command, len(before), left, got, text)
			}
			if !sameLines(got, text) {
				t.Errorf("%s at %d: other lines were changed:\n%s", command, len(before), got)
			}
			if out := cut(t, r, text, 7*n+1); len(traces(out, secret)) > 0 {
				t.Errorf("%s at %d, written in two parts: %s", command, len(before), out)
			}
		}
		harmless := dump(strings.Repeat("nothing of it: q7Zr1LmX 9xKd2Tb8 \x00\xff\n", 20))
		if got, n := r.String(harmless); n != 0 || got != harmless {
			t.Errorf("%s of something else became\n%s", command, got)
		}
	}
}

// cut writes text in two parts, of which the first has at bytes.
func cut(t *testing.T, r *redact.Redactor, text string, at int) string {
	t.Helper()
	var out bytes.Buffer
	w := r.NewWriter(&out)
	at = min(at, len(text))
	for _, part := range []string{text[:at], text[at:]} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestNumbersAreNoDumps: tables and times beside a value of digits are no dump of it.
func TestNumbersAreNoDumps(t *testing.T) {
	r := newRedactor(t, redact.Options{Secrets: []redact.Secret{{"PIN", "123456"}, {"PIN8", "12345678"}}})
	for _, text := range []string{
		"31 32 33 34 35 36 37 38 39\n", "31:32:33:34:35:36\n", "0x31, 0x32, 0x33, 0x34, 0x35, 0x36\n", "31\n32\n33\n34\n35\n36\n37\n38\n",
	} {
		if got, n := r.String(text); n != 0 || got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got, _ := r.String("pin 313233343536."); got != "pin [redacted:PIN]." {
		t.Errorf("hexadecimal in one piece: %q", got)
	}
}
