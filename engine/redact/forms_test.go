package redact_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/internal/commitmsg"
)

// form is a form in which programs print a value, and the row of SECURITY.md that speaks
// of it.
type form struct {
	row    string
	least  int  // bytes of a value that is looked for in it
	upon   bool // a form in UTF-16, which is undone as far as it is Latin-1
	early  bool // a line with less than four characters of the value comes first: a Writer has let it out
	encode func(string) string
}

// finds says whether a value is looked for in the form.
func (f form) finds(value string) bool {
	if (f.row == rowApart || f.row == rowDump) && len(value) < 12 && !strings.ContainsAny(hexOf(value), "abcdef") {
		return false // numbers of two digits beside each other
	}
	if f.upon && strings.ContainsFunc(value, func(c rune) bool { return c == 0 || c > unicode.MaxLatin1 }) {
		return false
	}
	return len(value) >= f.least
}

// The rows of SECURITY.md's table.
const (
	rowPlain    = "as it is"
	rowMessage  = "in the messages of uwf's commits"
	rowEscapes  = "in a string"
	rowPercent  = "percent-encoded"
	rowEntities = "HTML and XML"
	rowShell    = "quoted for a shell"
	rowBase64   = "base64"
	rowHex      = "hexadecimal"
	rowApart    = "hexadecimal, apart"
	rowDump     = "dumped"
	rowWide     = "UTF-16"
	rowMail     = "quoted-printable"
	rowBroken   = "broken over lines"
	rowUpon     = "one upon another"
)

// encoders are the forms in which a known value is found, by what they are called.
func encoders() map[string]form {
	out := map[string]form{}
	for row, group := range map[string]map[string]func(string) string{
		rowPlain: {
			"raw":           func(s string) string { return s },
			"in the middle": func(s string) string { return "abc" + s + "def" },
		},
		rowMessage:  {"commit message": commitmsg.Quiet},
		rowEscapes:  escapeForms(),
		rowPercent:  percentForms(),
		rowEntities: entityForms(),
		rowShell: {
			"shell single quotes": func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
			"shell mixed quotes":  func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" },
			"shell backslashes":   shellBackslashes,
		},
		rowBase64: base64Forms(),
		rowHex: {
			"hex":       hexOf,
			"HEX":       func(s string) string { return strings.ToUpper(hexOf(s)) },
			"Hex mixed": func(s string) string { return mixedCase(hexOf(s)) },
		},
		rowApart: apartForms(),
		rowDump:  dumpForms(),
		rowWide:  wideForms(),
		rowMail: {
			"quoted-printable":        func(s string) string { return quotedPrintable(s, 200) },
			"quoted-printable folded": func(s string) string { return quotedPrintable(s, 12) },
		},
		rowBroken: brokenForms(),
		rowUpon:   uponForms(),
	} {
		for name, encode := range group {
			f := form{row: row, encode: encode}
			if row == rowBroken || strings.Contains(name, "wrapped") || strings.Contains(name, "folded") {
				f.least = 10
			}
			f.upon = row == rowWide && strings.Contains(name, " of ")
			f.early = strings.Contains(name, "before 1 by") || strings.HasSuffix(name, `"\n"`)
			out[name] = f
		}
	}
	return out
}

// beyond are the forms in which a known value is not found.
func beyond() map[string]func(string) string {
	reversed := func(s string) string {
		b := []byte(s)
		slices.Reverse(b)
		return string(b)
	}
	swapped := func(s string) string {
		b := []byte(s)
		for i := 0; i+1 < len(b); i += 2 {
			b[i], b[i+1] = b[i+1], b[i]
		}
		return string(b)
	}
	return map[string]func(string) string{
		"words of several bytes": func(s string) string { return xxd(swapped(s), 16, 2, false) },
		"characters apart":       func(s string) string { return strings.Join(strings.Split(s, ""), "   ") },
		"decimal or octal bytes": func(s string) string { return fmt.Sprint([]byte(s)) },
		"bits":                   func(s string) string { return spaced(s, "%08b", " ") },
		"coloured":               func(s string) string { return s[:1] + "\x1b[01;31m\x1b[K" + s[1:4] + "\x1b[m\x1b[K" + s[4:] },
		"invisible characters":   func(s string) string { return s[:9] + "\u200b" + s[9:] },
		"escaped UTF-16":         func(s string) string { return strings.Join(strings.Split(s, ""), `\x00`) + `\x00` },
		"other alphabets":        func(s string) string { return base32.StdEncoding.EncodeToString([]byte(s)) },
		"reversed":               reversed,
		"compressed": func(s string) string {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			if _, err := w.Write([]byte(s + s + s)); err != nil || w.Close() != nil {
				panic("gzip")
			}
			return b.String()
		},
		"UTF-32": func(s string) string {
			var b []byte
			for _, c := range s {
				b = binary.LittleEndian.AppendUint32(b, uint32(c))
			}
			return string(b)
		},
		"other forms upon another": func(s string) string { return spaced(base64.StdEncoding.EncodeToString([]byte(s)), "%02x", " ") },
		"other text between":       func(s string) string { return s[:len(s)/2] + "\n10:04:05 INFO " + s[len(s)/2:] },
		"a part of it":             func(s string) string { return s[:len(s)-3] },
	}
}

// TestFormsOfSecurityPage: SECURITY.md lists the forms that are found and those that are
// not, and it is so.
func TestFormsOfSecurityPage(t *testing.T) {
	b, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(b), "### Forms of secrets\n")
	page, _, _ = strings.Cut(page, "\n### ")
	rows := map[string][]string{}
	table := ""
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		switch {
		case len(cells) < 4:
			table = ""
		case table == "":
			table = strings.TrimSpace(cells[1])
		case !strings.HasPrefix(cells[1], "---"):
			rows[table] = append(rows[table], strings.TrimSpace(cells[1]))
		}
	}
	want := map[string][]string{}
	for _, f := range encoders() {
		if !slices.Contains(want["found"], f.row) {
			want["found"] = append(want["found"], f.row)
		}
	}
	value := values()["PLAIN_TOKEN"]
	r := newRedactor(t, redact.Options{Secrets: []redact.Secret{{Name: "T", Value: value}}, NoShapes: true})
	for name, encode := range beyond() {
		want["not found"] = append(want["not found"], name)
		if got, n := r.String("x " + encode(value) + "\n"); n != 0 {
			t.Errorf("%s is found after all: %q", name, got)
		}
	}
	for table, names := range want {
		slices.Sort(names)
		slices.Sort(rows[table])
		if !slices.Equal(rows[table], names) {
			t.Errorf("SECURITY.md lists as %s\n%q\nthe tests have\n%q", table, rows[table], names)
		}
	}
	words := strings.FieldsFunc(page, func(c rune) bool { return c != '-' && (c < 'a' || c > 'z') })
	for _, name := range redact.Shapes() {
		if !slices.Contains(words, name) {
			t.Errorf("SECURITY.md doesn't name the shape %s", name)
		}
	}
}

// each formats every character, or byte, of a text.
func each[T rune | byte](format string, all func(string) []T) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for _, c := range all(s) {
			fmt.Fprintf(&b, format, c)
		}
		return b.String()
	}
}

func runes(s string) []rune { return []rune(s) }
func units(s string) []rune {
	var out []rune
	for _, unit := range utf16.Encode([]rune(s)) {
		out = append(out, rune(unit))
	}
	return out
}
func octets(s string) []byte { return []byte(s) }

func jsonText(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(b[1 : len(b)-1])
}

func hexOf(s string) string { return hex.EncodeToString([]byte(s)) }

// mixedCase writes every second letter in capitals.
func mixedCase(s string) string {
	b := []byte(s)
	for i := range b {
		if i%2 == 0 {
			b[i] = bytes.ToUpper(b[i : i+1])[0]
		}
	}
	return string(b)
}

// wrap ends each line after so many bytes.
func wrap(s string, width int, end string) string {
	var b strings.Builder
	for i := 0; i < len(s); i += width {
		b.WriteString(s[i:min(len(s), i+width)] + end)
	}
	return b.String()
}

func escapeForms() map[string]func(string) string {
	unhtml := func(s string) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if e.Encode(s) != nil {
			return s
		}
		return strings.TrimSuffix(b.String(), "\n")
	}
	return map[string]func(string) string{
		"JSON":              jsonText,
		"JSON without HTML": unhtml,
		"JSON in JSON":      func(s string) string { return jsonText(jsonText(s)) },
		"JSON three times":  func(s string) string { return jsonText(jsonText(jsonText(s))) },
		"JSON with \\/":     func(s string) string { return strings.ReplaceAll(jsonText(s), "/", `\/`) },
		"JSON all \\u":      each(`\u%04x`, units),
		"JSON all \\U":      each(`\u%04X`, units),
		"mixed \\u": func(s string) string {
			return each(`\u%04x`, units)(string([]rune(s)[0])) + jsonText(string([]rune(s)[1:]))
		},
		"\\u{}": each(`\u{%x}`, runes),
		"\\U":   each(`\U%08x`, runes),
		"\\x":   each(`\x%02x`, octets),
		"octal": each(`\%03o`, octets),
		"%q":    func(s string) string { return fmt.Sprintf("%+q", s) },
	}
}

func percentForms() map[string]func(string) string {
	return map[string]func(string) string{
		"percent":        each("%%%02X", octets),
		"percent, small": each("%%%02x", octets),
		"query":          url.QueryEscape,
		"path":           url.PathEscape,
		"query, small":   func(s string) string { return lowerPercent(url.QueryEscape(s)) },
		"query twice":    func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
	}
}

func entityForms() map[string]func(string) string {
	mixed := func(s string) string {
		var b strings.Builder
		for i, c := range []rune(s) {
			switch {
			case i%3 == 0:
				fmt.Fprintf(&b, "&#%d;", c)
			case i%3 == 1:
				fmt.Fprintf(&b, "&#X%X;", c)
			default:
				b.WriteString(html.EscapeString(string(c)))
			}
		}
		return b.String()
	}
	return map[string]func(string) string{
		"HTML":                       html.EscapeString,
		"entities":                   each("&#%d;", runes),
		"entities with zeros":        each("&#%07d;", runes),
		"entities without semicolon": each("&#%d", runes),
		"hex entities":               each("&#x%x;", runes),
		"HEX entities with zeros":    each("&#x%06X;", runes),
		"hex entities without end":   each("&#x%x", runes),
		"mixed entities":             mixed,
		"entities twice":             func(s string) string { return html.EscapeString(mixed(s)) },
	}
}

func base64Forms() map[string]func(string) string {
	std := base64.StdEncoding.EncodeToString
	out := map[string]func(string) string{
		"base64 wrapped":      func(s string) string { return wrap(std([]byte("user:"+s)), 19, "\n") },
		"base64 wrapped CRLF": func(s string) string { return wrap(std([]byte(s)), 19, "\r\n  ") },
		"base64 of JSON":      func(s string) string { return std([]byte(`{"a":"` + jsonText(s) + `"}`)) },
		"base64 of a query":   func(s string) string { return std([]byte("?k=" + url.QueryEscape(s) + "&z=1")) },
		"base64 of HTML":      func(s string) string { return std([]byte("<p>" + html.EscapeString(s) + "</p>")) },
		"base64 of XML": func(s string) string {
			return std([]byte("<p>" + strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&apos;", `"`, "&quot;").Replace(s) + "</p>"))
		},
		"base64 of a path": func(s string) string { return std([]byte("https://u:" + url.PathEscape(s) + "@host")) },
		"base64 of base64": func(s string) string { return std([]byte(`{"auth":"` + std([]byte("u:"+s)) + `"}`)) },
		"base64 of UTF-16": func(s string) string { return std(utf16Of("$k='"+s+"'", binary.LittleEndian)) },
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

// spaced formats every byte, with something between them.
func spaced(s, format, between string) string {
	var out []string
	for i := range len(s) {
		out = append(out, fmt.Sprintf(format, s[i]))
	}
	return strings.Join(out, between)
}

func apartForms() map[string]func(string) string {
	out := map[string]func(string) string{
		"0x, in lines": func(s string) string {
			return wrap(spaced(s, "0x%02x", ", ")+", ", 12*6, "\n  ") // as xxd -i
		},
		"0x in a diff":     func(s string) string { return wrap(spaced(s, "0x%02X", ", ")+", ", 8*6, "\n+\t") },
		"pairs in lines":   func(s string) string { return wrap(spaced(s, "%02x", ":")+":", 15*3, "\n    ") }, // as openssl
		"\\x in strings":   func(s string) string { return `"` + wrap(each(`\x%02x`, octets)(s), 16, "\"\n  \"") + `"` },
		"pairs of pairs":   func(s string) string { return wrap(hexOf(s), 4, " ") },
		"quoted":           func(s string) string { return spaced(s, `"%02x"`, ", ") },
		"quoted-printable": func(s string) string { return each("=%02X", octets)(s) },
	}
	for _, between := range []string{":", " ", "-", ", ", ",", ";", ".", "\n", "\t"} {
		out[fmt.Sprintf("pairs with %q", between)] = func(s string) string { return spaced(s, "%02x", between) }
		out[fmt.Sprintf("PAIRS with %q", between)] = func(s string) string { return spaced(s, "%02X", between) }
	}
	for _, format := range []string{`0x%02x`, `\x%02x`, "x%02x", "%02xh", "0X%02X"} {
		out["apart as "+format] = func(s string) string { return spaced(s, format, " ") }
	}
	return out
}

// xxd dumps a text as the program of that name does.
func xxd(s string, columns, group int, capitals bool) string {
	var b strings.Builder
	for at := 0; at < len(s); at += columns {
		line := s[at:min(len(s), at+columns)]
		pairs := ""
		for i := range len(line) {
			if i > 0 && i%group == 0 {
				pairs += " "
			}
			pairs += fmt.Sprintf("%02x", line[i])
		}
		if capitals {
			pairs = strings.ToUpper(pairs)
		}
		width := 2*columns + (columns-1)/group
		fmt.Fprintf(&b, "%08x: %-*s  %s\n", at, width, pairs, printable(line))
	}
	return b.String()
}

func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '.'
		}
		return c
	}, strings.ToValidUTF8(s, "."))
}

func dumpForms() map[string]func(string) string {
	prefixed := func(prefix string, dump func(string) string) func(string) string {
		return func(s string) string { return prefix + strings.ReplaceAll(dump(s), "\n", "\n"+prefix) }
	}
	around := func(s string) string { return "key=\n" + s + " and more\n" }
	plain := func(s string) string { return xxd(s, 16, 2, false) }
	od := func(s string) string {
		var b strings.Builder
		for at := 0; at < len(s); at += 16 {
			fmt.Fprintf(&b, "%07o %s\n", at, spaced(s[at:min(len(s), at+16)], "%02x", " "))
		}
		return b.String()
	}
	return map[string]func(string) string{
		"xxd":                   plain,
		"xxd, more around":      func(s string) string { return plain(around(s)) },
		"xxd -u":                func(s string) string { return xxd(around(s), 16, 2, true) },
		"xxd -g 1":              func(s string) string { return xxd(around(s), 16, 1, false) },
		"xxd -g 4 -c 24":        func(s string) string { return xxd(around(s), 24, 4, false) },
		"xxd -c 5":              func(s string) string { return xxd(around(s), 5, 2, false) },
		"xxd -p":                func(s string) string { return wrap(hexOf(around(s)), 60, "\n") },
		"xxd -p, capitals":      func(s string) string { return wrap(strings.ToUpper(hexOf(around(s))), 10, "\n") },
		"hexdump -C":            func(s string) string { return hex.Dump([]byte(s)) },
		"hexdump -C, more":      func(s string) string { return hex.Dump([]byte(around(s))) },
		"od -tx1":               od,
		"od -tx1, more":         func(s string) string { return od(around(s)) },
		"xxd in mail":           prefixed("> ", plain),
		"xxd in a diff":         prefixed("+", func(s string) string { return plain(around(s)) }),
		"hexdump -C in a quote": prefixed("> + ", func(s string) string { return hex.Dump([]byte(around(s))) }),
		"xxd in JSON":           func(s string) string { return jsonText(plain(around(s))) },
	}
}

func utf16Of(s string, order binary.AppendByteOrder) []byte {
	var out []byte
	for _, unit := range utf16.Encode([]rune(s)) {
		out = order.AppendUint16(out, unit)
	}
	return out
}

func wideForms() map[string]func(string) string {
	out := map[string]func(string) string{}
	for name, order := range map[string]binary.AppendByteOrder{"LE": binary.LittleEndian, "BE": binary.BigEndian} {
		out["UTF-16"+name] = func(s string) string { return string(utf16Of(s, order)) }
		out["UTF-16"+name+" with a mark"] = func(s string) string { return string(utf16Of("\ufeff"+s+"\r\n", order)) }
		out["UTF-16"+name+" at an odd place"] = func(s string) string { return "\x01\x02\x03" + string(utf16Of(s, order)) }
		out["UTF-16"+name+" of JSON"] = func(s string) string { return string(utf16Of(`{"k":"`+jsonText(s)+`"}`, order)) }
		out["UTF-16"+name+" of base64"] = func(s string) string { return string(utf16Of(base64.StdEncoding.EncodeToString([]byte(s)), order)) }
	}
	return out
}

func quotedPrintable(s string, width int) string {
	var b strings.Builder
	line := 0
	for i := range len(s) {
		part := s[i : i+1]
		if c := s[i]; c != '\n' && (c == '=' || c < ' ' || c > '~') {
			part = fmt.Sprintf("=%02X", c)
		}
		if line+len(part) > width {
			b.WriteString("=\n")
			line = 0
		}
		b.WriteString(part)
		line += len(part)
	}
	return b.String()
}

func brokenForms() map[string]func(string) string {
	out := map[string]func(string) string{}
	for _, end := range []string{
		"\n", "\r\n", "\n    ", "\n\n", " \n", "\n> ", "\n>> ", "\n> > ", "\n+", "\n-", "\n ", "\n> +", "\n# ", "\n// ", "\n * ", "\n-- ", "\n; ", "\n| ",
		"\\\n", "\" \\\n  \"", "\"\n\t\"", "\" +\n\t\"", "' +\n'", "\"\n\t+ \"", "' .\n  '", "\",\n\"", "\" &\n\"", "=\n", "=\r\n",
	} {
		out[fmt.Sprintf("broken by %q", end)] = func(s string) string {
			// Not within a character.
			r := []rune(s)
			n := len(r) / 2
			return string(r[:n]) + end + string(r[n:])
		}
		for n := range 4 {
			out[fmt.Sprintf("broken after %d and before 1 by %q", n+1, end)] = func(s string) string {
				r := []rune(s)
				return string(r[:n+1]) + end + string(r[n+1:len(r)-1]) + end + string(r[len(r)-1:])
			}
		}
	}
	out["base64 wrapped in a quote"] = func(s string) string {
		return wrap(base64.StdEncoding.EncodeToString([]byte(s)), 7, "\n> ")
	}
	out["percent wrapped in a diff"] = func(s string) string { return wrap(url.QueryEscape(s), 9, "\n+") }
	return out
}

func uponForms() map[string]func(string) string {
	std := base64.StdEncoding.EncodeToString
	return map[string]func(string) string{
		"query in JSON":       func(s string) string { return jsonText(url.QueryEscape(s)) },
		"JSON in a query":     func(s string) string { return url.QueryEscape(jsonText(s)) },
		"entities in JSON":    func(s string) string { return jsonText(each("&#%d;", runes)(s)) },
		"JSON in HTML":        func(s string) string { return html.EscapeString(jsonText(s)) },
		"base64 wrapped JSON": func(s string) string { return jsonText(wrap(std([]byte(s)), 19, "\n")) },
		"base64 in a query":   func(s string) string { return url.QueryEscape(std([]byte(s))) },
	}
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
