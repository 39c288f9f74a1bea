package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/united-workforce/uwf/engine/redact/internal/literal"
	"github.com/united-workforce/uwf/internal/commitmsg"
)

// minLine is the length from which one line of a secret of several lines is a
// secret of its own.
const minLine = 16

// searchedParts are the texts to search for one secret: the value, without white space
// around it, and each longer line of a value of several lines (a key printed line
// by line with a prefix has no text in common with the whole).
func searchedParts(value string) []string {
	out := []string{value}
	trimmed := strings.TrimSpace(value)
	if trimmed != value {
		out = append(out, trimmed)
	}
	if !strings.Contains(trimmed, "\n") {
		return out
	}
	for line := range strings.Lines(trimmed) {
		line = strings.TrimSpace(line)
		if len(line) >= minLine && !strings.HasPrefix(line, "-----") {
			out = append(out, line)
		}
	}
	return out
}

// isTrivial tells values that would be found in any text.
func isTrivial(v string, minLength int) bool {
	if len(v) < minLength || len(v) < literal.KeySize || strings.Contains(open, v) {
		return true
	}
	if strings.Count(v, v[:1]) == len(v) { // ******, 000000
		return true
	}
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "true", "false", "null", "none", "undefined", "default", "enabled", "disabled", "required",
		"optional", "localhost", "secret", "secrets", "password", "passwd", "changeme", "example",
		"production", "staging", "development", "testing", "master", "github", "gitlab", "string",
		"unknown", "anonymous", "oauth2", "x-access-token", "redacted", "https:", "http://", "https://":
		return true
	}
	return false
}

// encodedForms are the byte sequences in which a value is met. Escapes that may stand at
// any character (JSON, percent, backslash, HTML) are not here: the views undo them. Nor
// are line breaks and what is between the digits of dumps: the index passes over them.
func encodedForms(v string) []literal.Literal {
	var out []literal.Literal
	seen := map[string]bool{}
	add := func(l literal.Literal) {
		if len(l.Text) >= literal.KeySize && !seen[string(l.Text)] {
			seen[string(l.Text)] = true
			out = append(out, l)
		}
	}
	plain := plainForms(v)
	for _, p := range plain {
		add(literal.Literal{Text: []byte(p)})
		add(literal.Literal{Text: joinLines(p)})
	}
	for _, p := range plain {
		for _, inner := range base64Forms([]byte(p)) {
			add(inner)
		}
	}
	// A value in a file in an encoded archive of settings is encoded twice.
	for _, inner := range base64Forms([]byte(v)) {
		for _, outer := range base64Forms(inner.Text) {
			if len(outer.Text) >= 8 { // fewer are found in any base64
				add(outer)
			}
		}
	}
	little, big := wideForms(v)
	if strings.ContainsFunc(v, func(c rune) bool { return c == 0 || c > unicode.MaxLatin1 }) { // the view of UTF-16 has no others
		add(literal.Literal{Text: little})
		add(literal.Literal{Text: big})
	}
	for _, l := range base64Forms(little) { // as PowerShell takes commands
		add(l)
	}
	out = append(out, literal.Literal{Text: []byte(hex.EncodeToString([]byte(v))), Hex: true})
	return out
}

// joinLines is a text without its line breaks and the indentation behind them: so it is
// found however its lines are divided.
func joinLines(s string) []byte {
	if !strings.ContainsAny(s, "\r\n") {
		return []byte(s)
	}
	var out []byte
	for line := range strings.FieldsFuncSeq(s, func(c rune) bool { return c == '\n' || c == '\r' }) {
		if len(out) > 0 {
			line = strings.TrimLeft(line, " \t")
		}
		out = append(out, line...)
	}
	return out
}

// wideForms are a value in UTF-16, little and big endian.
func wideForms(v string) (little, big []byte) {
	for _, unit := range utf16.Encode([]rune(v)) {
		little = binary.LittleEndian.AppendUint16(little, unit)
		big = binary.BigEndian.AppendUint16(big, unit)
	}
	return little, big
}

// plainForms are the value and its escapes as whole texts, which are also what is
// found inside base64.
func plainForms(v string) []string {
	out := []string{v}
	if j, err := json.Marshal(v); err == nil {
		out = append(out, string(j[1:len(j)-1]))
	}
	if quiet := commitmsg.Quiet(v); quiet != v { // in the messages of uwf's commits
		out = append(out, quiet)
	}
	query := url.QueryEscape(v)
	out = append(out, query, url.PathEscape(v), strings.ReplaceAll(v, " ", "+"))
	for _, keep := range []string{"\n\r", "\n\r\t"} {
		if quoted := quotedPrintable(v, keep); quoted != v {
			out = append(out, quoted)
		}
	}
	if strings.Contains(v, "'") { // inside single quotes of a shell
		out = append(out, strings.ReplaceAll(v, "'", `'\''`), strings.ReplaceAll(v, "'", `'"'"'`))
	}
	// Views undo these wherever they stand by themselves, and not inside of base64 or of
	// each other.
	if strings.ContainsAny(v, `&<>"'`) {
		for _, quotes := range [][]string{{}, {`"`, "&quot;", "'", "&#39;"}, {`"`, "&#34;", "'", "&#39;"}, {`"`, "&quot;", "'", "&apos;"}} {
			out = append(out, strings.NewReplacer(append(quotes, "&", "&amp;", "<", "&lt;", ">", "&gt;")...).Replace(v))
		}
	}
	return out
}

// quotedPrintable is a value in mail (RFC 2045), without its soft line breaks. keep are
// control characters that stay.
func quotedPrintable(v, keep string) string {
	var b strings.Builder
	for i := range len(v) {
		if c := v[i]; c == '=' || c > '~' || c < ' ' && strings.IndexByte(keep, c) < 0 {
			fmt.Fprintf(&b, "=%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// base64Forms are the characters that a value has in base64 whatever stands
// before and after it: at each of the three alignments, in both alphabets. The
// characters that it shares with its neighbours are left and right of them.
func base64Forms(v []byte) []literal.Literal {
	var out []literal.Literal
	for k := range 3 {
		std := base64.RawStdEncoding.EncodeToString(append(make([]byte, k), v...))
		from, to := (8*k+5)/6, 8*(k+len(v))/6
		if to <= from {
			continue
		}
		l := literal.Literal{Text: []byte(std[from:to]), Left: k > 0, Right: 8*(k+len(v))%6 != 0}
		out = append(out, l)
		if bytes.ContainsAny(l.Text, "+/") {
			u := l
			u.Text = bytes.ReplaceAll(bytes.ReplaceAll(l.Text, []byte("+"), []byte("-")), []byte("/"), []byte("_"))
			out = append(out, u)
		}
	}
	return out
}

func isNumeric(v string) bool {
	return strings.Trim(v, "0123456789.-+eE") == ""
}
