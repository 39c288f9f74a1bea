package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/united-workforce/uwf/internal/commitmsg"
)

// minLine is the length from which one line of a secret of several lines is a
// secret of its own.
const minLine = 16

// parts are the texts to search for one secret: the value, without white space
// around it, and each longer line of a value of several lines (a key printed line
// by line with a prefix has no text in common with the whole).
func parts(value string) []string {
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

// trivial tells values that would be found in any text.
func trivial(v string, minLength int) bool {
	if len(v) < minLength || len(v) < keySize || strings.Contains(open, v) {
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

// forms are the byte sequences in which a value is met. Escapes that may stand at
// any character (JSON, percent, backslash) are not here: the views undo them.
func forms(v string) []literal {
	var out []literal
	seen := map[string]bool{}
	add := func(l literal) {
		if len(l.text) < keySize || seen[string(l.text)] {
			return
		}
		seen[string(l.text)] = true
		out = append(out, l)
		// As it stands in the view without line breaks.
		if bytes.IndexByte(l.text, '\n') >= 0 {
			flat := unwrap(l.text).text
			if len(flat) >= keySize && !seen[string(flat)] {
				seen[string(flat)] = true
				out = append(out, literal{text: flat, left: l.left, right: l.right})
			}
		}
	}
	plain := plainForms(v)
	for _, p := range plain {
		add(literal{text: []byte(p)})
	}
	for _, p := range plain {
		for _, inner := range base64Forms([]byte(p)) {
			add(inner)
		}
	}
	// A value in a file in an encoded archive of settings is encoded twice.
	for _, inner := range base64Forms([]byte(v)) {
		for _, outer := range base64Forms(inner.text) {
			if len(outer.text) >= 8 { // fewer are found in any base64
				add(outer)
			}
		}
	}
	low := hex.EncodeToString([]byte(v))
	add(literal{text: []byte(low)})
	add(literal{text: []byte(strings.ToUpper(low))})
	return out
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
	if strings.Contains(v, "'") { // inside single quotes of a shell
		out = append(out, strings.ReplaceAll(v, "'", `'\''`), strings.ReplaceAll(v, "'", `'"'"'`))
	}
	if strings.ContainsAny(v, `&<>"'`) {
		named := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")
		numbered := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")
		xml := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;")
		light := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
		out = append(out, named.Replace(v), numbered.Replace(v), xml.Replace(v), light.Replace(v))
	}
	return out
}

// base64Forms are the characters that a value has in base64 whatever stands
// before and after it: at each of the three alignments, in both alphabets. The
// characters that it shares with its neighbours are left and right of them.
func base64Forms(v []byte) []literal {
	var out []literal
	for k := range 3 {
		std := base64.RawStdEncoding.EncodeToString(append(make([]byte, k), v...))
		from, to := (8*k+5)/6, 8*(k+len(v))/6
		if to <= from {
			continue
		}
		l := literal{text: []byte(std[from:to]), left: k > 0, right: 8*(k+len(v))%6 != 0}
		out = append(out, l)
		if bytes.ContainsAny(l.text, "+/") {
			u := l
			u.text = bytes.ReplaceAll(bytes.ReplaceAll(l.text, []byte("+"), []byte("-")), []byte("/"), []byte("_"))
			out = append(out, u)
		}
	}
	return out
}

func numeric(v string) bool {
	return strings.Trim(v, "0123456789.-+eE") == ""
}
