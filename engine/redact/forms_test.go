package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"

	"github.com/united-workforce/uwf/internal/commitmsg"
)

// encoders are the forms in which programs print a value.
func encoders() map[string]func(string) string {
	jsonText := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			return s
		}
		return string(b[1 : len(b)-1])
	}
	unhtml := func(s string) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if e.Encode(s) != nil {
			return s
		}
		return strings.TrimSuffix(b.String(), "\n")
	}
	everyRune := func(format string) func(string) string {
		return func(s string) string {
			var b strings.Builder
			for _, c := range s {
				fmt.Fprintf(&b, format, c)
			}
			return b.String()
		}
	}
	everyByte := func(format string) func(string) string {
		return func(s string) string {
			var b strings.Builder
			for i := range len(s) {
				fmt.Fprintf(&b, format, s[i])
			}
			return b.String()
		}
	}
	wrap := func(s string, width int, end string) string {
		var b strings.Builder
		for i := 0; i < len(s); i += width {
			b.WriteString(s[i:min(len(s), i+width)] + end)
		}
		return b.String()
	}
	std := base64.StdEncoding.EncodeToString
	out := map[string]func(string) string{
		"raw":                 func(s string) string { return s },
		"in the middle":       func(s string) string { return "abc" + s + "def" },
		"commit message":      commitmsg.Quiet,
		"JSON":                jsonText,
		"JSON without HTML":   unhtml,
		"JSON in JSON":        func(s string) string { return jsonText(jsonText(s)) },
		"JSON three times":    func(s string) string { return jsonText(jsonText(jsonText(s))) },
		"JSON with \\/":       func(s string) string { return strings.ReplaceAll(jsonText(s), "/", `\/`) },
		"JSON all \\u":        everyRune(`\u%04x`),
		"JSON all \\U":        everyRune(`\u%04X`),
		"mixed \\u":           func(s string) string { return fmt.Sprintf(`\u%04x`, []rune(s)[0]) + jsonText(string([]rune(s)[1:])) },
		"\\x":                 everyByte(`\x%02x`),
		"octal":               everyByte(`\%03o`),
		"percent":             everyByte("%%%02X"),
		"percent, small":      everyByte("%%%02x"),
		"query":               url.QueryEscape,
		"path":                url.PathEscape,
		"query, small":        func(s string) string { return lowerPercent(url.QueryEscape(s)) },
		"query twice":         func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
		"query in JSON":       func(s string) string { return jsonText(url.QueryEscape(s)) },
		"JSON in a query":     func(s string) string { return url.QueryEscape(jsonText(s)) },
		"hex":                 func(s string) string { return hex.EncodeToString([]byte(s)) },
		"HEX":                 func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
		"HTML":                html.EscapeString,
		"shell single quotes": func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
		"shell mixed quotes":  func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" },
		"shell backslashes":   shellBackslashes,
		"base64 wrapped":      func(s string) string { return wrap(std([]byte("user:"+s)), 19, "\n") },
		"base64 wrapped CRLF": func(s string) string { return wrap(std([]byte(s)), 19, "\r\n  ") },
		"base64 wrapped JSON": func(s string) string { return jsonText(wrap(std([]byte(s)), 19, "\n")) },
		"base64 in a query":   func(s string) string { return url.QueryEscape(std([]byte(s))) },
		"base64 of JSON":      func(s string) string { return std([]byte(`{"a":"` + jsonText(s) + `"}`)) },
		"base64 of a query":   func(s string) string { return std([]byte("?k=" + url.QueryEscape(s) + "&z=1")) },
		"base64 of base64":    func(s string) string { return std([]byte(`{"auth":"` + std([]byte("u:"+s)) + `"}`)) },
	}
	for k := range 3 {
		before := "123"[:k]
		for name, e := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding, "raw std": base64.RawStdEncoding, "raw url": base64.RawURLEncoding} {
			out[fmt.Sprintf("base64 %s at %d", name, k)] = func(s string) string { return e.EncodeToString([]byte(before + s)) }
			out[fmt.Sprintf("base64 %s at %d, more behind", name, k)] = func(s string) string { return e.EncodeToString([]byte(before + s + "tail")) }
		}
	}
	return out
}

func lowerPercent(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			b.WriteString(strings.ToLower(s[i : i+3]))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func shellBackslashes(s string) string {
	var b strings.Builder
	for _, c := range s {
		if strings.ContainsRune(` "'\$&<>+=%/`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}
