package condition

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// kind is what a token is, as far as it matters here.
type kind uint8

const (
	other    kind = iota // an operator, a bracket
	variable             // $name
	name                 // a field's name, a keyword
	number
	quoted  // a text
	pattern // a regular expression
	broken  // a text, name or comment that has no end
)

// token is one token of an expression. at and length are in bytes.
type token struct {
	kind       kind
	text       string // as written
	name       string // of a variable, without $; what a text says, if it has no escapes
	at, length int
}

// scanTokens divides an expression into tokens, as the library's lexer does. The library
// doesn't say where its errors are.
func scanTokens(expression string) []token {
	var out []token
	for at := 0; at < len(expression); {
		c := expression[at]
		if strings.IndexByte(" \t\r\n\v", c) >= 0 {
			at++
			continue
		}
		t := nextToken(expression[at:], out)
		t.at, t.length = at, len(t.text)
		at += len(t.text)
		if t.kind != other || !strings.HasPrefix(t.text, "/*") {
			out = append(out, t)
		}
	}
	return out
}

// tokenForm is what an expression begins with: a comment, a text, a name in quotes, a number,
// a variable, a name, or an operator. What else begins with a quote, or like a comment, has no end.
var tokenForm = lazyregexp.New(`(?s)^(?:(/\*.*?\*/)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(` + "`[^`]*`" + `)|((?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]*)?)` +
	`|(/\*.*|["'` + "`" + `].*)|(\.\.|[:!><]=|\*\*|~>|\?[:?])|([` + stops + `])|([^` + stops + `]+))`)

// stops are the characters that end a name, for within brackets.
const stops = ` \t\n\r\v.\[\]{}(),@#;:?+\-*/%|=<>^&!~`

// nextToken is the token that rest begins with; before are those before it.
func nextToken(rest string, before []token) token {
	if rest[0] == '/' && !strings.HasPrefix(rest, "/*") && !afterValue(before) {
		return regexToken(rest)
	}
	m := tokenForm.FindStringSubmatch(rest)
	t := token{text: m[0]}
	switch {
	case m[2] != "":
		t.kind = quoted
		if !strings.Contains(t.text, `\`) {
			t.name = t.text[1 : len(t.text)-1]
		}
	case m[3] != "":
		t.kind = name
	case m[4] != "":
		t.kind = number
	case m[5] != "":
		t.kind = broken
	case m[8] != "" && rest[0] == '$':
		t.kind, t.name = variable, t.text[1:]
	case m[8] != "":
		t.kind = name
	}
	return t
}

// regexToken is a regular expression with its flags.
func regexToken(rest string) token {
	depth := 0
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case '/':
			slashes := len(rest[:i]) - len(strings.TrimRight(rest[:i], `\`))
			if depth != 0 || slashes%2 == 1 {
				continue
			}
			end := i + 1
			for end < len(rest) && (rest[end] >= 'a' && rest[end] <= 'z' || rest[end] >= 'A' && rest[end] <= 'Z') {
				end++
			}
			return token{kind: pattern, text: rest[:end]}
		}
	}
	return token{kind: broken, text: rest}
}

// afterValue reports whether a / after these tokens divides.
func afterValue(before []token) bool {
	if len(before) == 0 {
		return false
	}
	last := before[len(before)-1]
	switch last.kind {
	case other:
		return last.text == ")" || last.text == "]" || last.text == "}"
	case name:
		return last.text != "and" && last.text != "or" && last.text != "in" || isToken(before, len(before)-2, ".")
	}
	return true
}

// How long an expression may be for its mistake to be looked for.
const (
	maxTokens = 300
	maxLength = 2 << 10
)

// explainError says where an expression is wrong, and how.
func explainError(expression string, tokens []token, err error) *SyntaxError {
	out := &SyntaxError{Offset: -1, Length: 1, Message: wordError(err), Fix: "see docs.jsonata.org for the syntax"}
	if i := len(tokens) - 1; i >= 0 && tokens[i].kind == broken {
		out.Offset = tokens[i].at
		out.Message, out.Fix = "the quote or comment that begins here is never closed", "close it"
		return out
	}
	for i := 1; i < len(tokens); i++ {
		if tokens[i].text == "|" && tokens[i-1].text == "|" && tokens[i].at == tokens[i-1].at+1 {
			out.Offset, out.Length, out.Message, out.Fix = tokens[i-1].at, 2, "JSONata has no ||", suggestSyntaxFix(tokens, i)
			return out
		}
	}
	if len(tokens) > maxTokens || len(expression) > maxLength {
		return out
	}
	// The first token that brings the error about: without it there is another one,
	// or none.
	for i, t := range tokens {
		_, shorter := compileExpression(expression[:t.at+t.length])
		if shorter != nil && shorter.Error() == err.Error() {
			out.Offset, out.Length = t.at, t.length
			if fix := suggestSyntaxFix(tokens, i); fix != "" {
				out.Fix = fix
			}
			break
		}
	}
	if e := err.Error(); strings.Contains(e, "EOF") || strings.Contains(e, "nothing follows") || strings.Contains(e, `got 0 ("")`) {
		out.Offset, out.Length = max(len(strings.TrimRight(expression, " \t\r\n"))-1, 0), 1
		out.Message, out.Fix = "the expression ends too early", "complete it, and close what is open"
	}
	return out
}

// suggestSyntaxFix is the fix for what other languages write, where the i-th token is wrong.
func suggestSyntaxFix(tokens []token, i int) string {
	before := ""
	if i > 0 {
		before = tokens[i-1].text
	}
	switch at := tokens[i].text; {
	case at == "=" && before == "!=":
		return "write !=, with one ="
	case at == "=" && before == "=":
		return "write =: JSONata compares with one ="
	case at == "&" && before == "&":
		return "write `and`"
	case at == "|" && before == "|":
		return "write `or`"
	case at == "!" || before == "not":
		return "write $not(…)"
	case at == "." && i == 0:
		return "begin with start or steps, such as steps[-1].output"
	}
	return ""
}

var (
	coded    = lazyregexp.New(`^(?:JSONata error )?(S0\d+|[A-Z]\d{4})(?: at token "((?:[^"\\]|\\.)*)")?: (.*)$`)
	expected = lazyregexp.New(`expected token (\d+), got \d+ \("(.*)"\)|^invalid use of token as prefix|^unexpected token`)
)

// wordError is the library's message for people: its numbers of tokens say nothing.
func wordError(err error) string {
	m := coded.FindStringSubmatch(err.Error())
	if m == nil {
		return errorReason(err)
	}
	message := m[3]
	if e := expected.FindStringSubmatch(message); e != nil {
		message = fmt.Sprintf("%q can't stand here", cmp.Or(e[2], m[2], "this"))
	}
	if m[2] != "" && !strings.Contains(message, m[2]) && m[2] != "EOF" {
		message = fmt.Sprintf("%s at %q", message, m[2])
	}
	return message
}
