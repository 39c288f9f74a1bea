package liquid

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/osteele/liquid/parser"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// piece is a text, an operator, a word or one other character of an expression.
var piece = lazyregexp.New(`(?s)"[^"]*"|'[^']*'|[<>]=?|\.?[A-Za-z_][\w-]*[?:]?|.`)

// comparisons are the filters that stand in for operators, which compare as
// JavaScript does.
func comparisons() map[string]string {
	return map[string]string{"<": "uwf_lt", "<=": "uwf_le", ">": "uwf_gt", ">=": "uwf_ge"}
}

// rangeEnd is the filter that makes whole numbers of the ends of loopRange.
const rangeEnd = "uwf_whole"

var loopRange = lazyregexp.New(`^(\w+\s+in\s+)\(([^()"']*)\.\.([^()"']*)\)`)

// rewriteText writes what the library does otherwise than liquidjs in other words. The
// texts with escapes become variables, which it returns.
func rewriteText(text string) (string, map[string]any) {
	var out strings.Builder
	texts := map[string]any{}
	verbatim := ""
	for _, t := range parser.Scan(text, parser.SourceLoc{LineNo: 1}, nil) {
		written := t.Source
		switch {
		case verbatim != "":
			if t.Name == "end"+verbatim {
				verbatim = ""
			}
		case t.Name == "raw" || t.Name == "comment":
			verbatim = t.Name
		case t.Type != parser.TextTokenType && t.Name != "cycle" && len(written) <= maxTag:
			if i := strings.LastIndex(written, t.Args); t.Args != "" {
				args := loopRange.ReplaceAllString(t.Args, "$1(($2 | "+rangeEnd+")..($3 | "+rangeEnd+"))")
				written = written[:i] + rewriteArgs(args, texts) + written[i+len(t.Args):]
			}
		}
		out.WriteString(written)
	}
	return out.String(), texts
}

// rewriteArgs makes `and` and `or` bind from the right if they are mixed.
func rewriteArgs(args string, texts map[string]any) string {
	pieces := piece.FindAllString(args, -1)
	mixed := slices.Contains(pieces, "and") && slices.Contains(pieces, "or")
	var out strings.Builder
	open := 0
	for _, p := range pieces {
		switch {
		case (p[0] == '"' || p[0] == '\'') && strings.Contains(p, `\`):
			name := fmt.Sprintf("uwf_text_%d", len(texts))
			texts[name] = unescape(p[1 : len(p)-1])
			p = name
		case comparisons()[p] != "":
			p = "| " + comparisons()[p] + ":"
		case mixed && (p == "and" || p == "or"):
			p += " ("
			open++
		}
		out.WriteString(p)
	}
	return out.String() + strings.Repeat(")", open)
}

var escape = lazyregexp.New(`(?s)\\(u[0-9a-fA-F]{4}|.)`)

// unescape reads the escapes that a text has in JavaScript.
func unescape(s string) string {
	return escape.ReplaceAllStringFunc(s, func(e string) string {
		if len(e) > 2 {
			n, _ := strconv.ParseUint(e[2:], 16, 32) // the expression takes four hex digits
			return string(rune(n))
		}
		if i := strings.Index("bfnrtv", e[1:]); i >= 0 {
			return "\b\f\n\r\t\v"[i : i+1]
		}
		return e[1:]
	})
}
