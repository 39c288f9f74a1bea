// Package markdown puts text of others into Markdown. It is pure.
package markdown

import (
	"net/url"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// Escape is one line of text as Markdown that shows it as it is, in a cell of a table too.
func Escape(s string) string { return escape.Replace(s) }

var escape = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, "|", `\|`, "&", `\&`, "~", `\~`)

// Link is a link; the text alone where the address isn't one to be trusted with a place
// in it.
func Link(text, address string) string {
	if !IsAddress(address) {
		return text
	}
	return "[" + text + "](" + address + ")"
}

// maxAddress is the longest address that is taken, in bytes.
const maxAddress = 1_000

// IsAddress reports whether s is an address on the web without a user, and without what
// would end a link.
func IsAddress(s string) bool {
	if s == "" || len(s) > maxAddress || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("()<>[]\"'`\\|", r) }) {
		return false
	}
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http")
}

// Fence is a text as a block of code. What it holds can't end it.
func Fence(s, language string) string {
	marks := FenceMarks(s)
	return marks + language + "\n" + strings.Trim(s, "\n") + "\n" + marks
}

var backticks = lazyregexp.New("`{3,}")

// FenceMarks are the backticks around a block of code that holds a text.
func FenceMarks(s string) string {
	marks := "```"
	for _, row := range backticks.FindAllString(s, -1) {
		if len(row) >= len(marks) {
			marks = row + "`"
		}
	}
	return marks
}
