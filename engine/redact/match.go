package redact

import (
	"bytes"
	"encoding/base64"
	"unicode"
	"unicode/utf8"
)

// check is a condition on the byte before a token (looked at first, since it costs
// nothing) or on the whole token.
type check struct {
	start func(before byte) bool
	token func(token []byte) bool
}

// tokenMatch is a prefix and at least so many characters of a class after it.
func tokenMatch(least int, class func(byte) bool, checks []check) matcher {
	return func(b []byte, at, n int) verdict {
		for _, c := range checks {
			if c.start != nil && !c.start(byteBefore(b, at)) {
				return verdict{}
			}
		}
		end := runEnd(b, at+n, maxToken, class)
		v := verdict{from: at, to: end, more: end == len(b), ok: end-at-n >= least && !isPlaceholder(b[at+n:end])}
		for _, c := range checks {
			v.ok = v.ok && (c.token == nil || c.token(b[at:end]))
		}
		return v
	}
}

func byteBefore(b []byte, at int) byte {
	if at == 0 {
		return ' '
	}
	return b[at-1]
}

// runEnd is the end of the longest run of a class from b[at], most bytes long.
func runEnd(b []byte, at, most int, class func(byte) bool) int {
	end := at
	for end < len(b) && end-at < most && class(b[end]) {
		end++
	}
	return end
}

func isLower(c byte) bool    { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool    { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool    { return c >= '0' && c <= '9' }
func isAlnum(c byte) bool    { return isLower(c) || isUpper(c) || isDigit(c) }
func wordChar(c byte) bool   { return isAlnum(c) || c == '_' }
func dashChar(c byte) bool   { return wordChar(c) || c == '-' }
func dotChar(c byte) bool    { return dashChar(c) || c == '.' }
func slackChar(c byte) bool  { return isAlnum(c) || c == '-' }
func pathChar(c byte) bool   { return dashChar(c) || c == '/' }
func upperDigit(c byte) bool { return isUpper(c) || isDigit(c) }
func hexChar(c byte) bool    { return isDigit(c) || c >= 'a' && c <= 'f' }
func base64Std(c byte) bool  { return isAlnum(c) || c == '+' || c == '/' || c == '=' }
func tokenChar(c byte) bool {
	return dotChar(c) || c == '+' || c == '/' || c == '=' || c == '~'
}

func noWordBefore(before byte) bool { return !wordChar(before) }
func noDashBefore(before byte) bool { return !dashChar(before) }

func lengthIs(n int) check {
	return check{token: func(token []byte) bool { return len(token) == n }}
}

// isPlaceholder tells what documentation and tests have in the place of a token from what
// chance makes: xxxxxxxx, 1234567890abcdef, your-token-here.
func isPlaceholder(token []byte) bool {
	return isMonotonous(token) || len(token) <= maxPlaceholder && (isSequence(token) || isWords(token))
}

// isMonotonous: one character eight times in a row, or no more than three different ones.
func isMonotonous(token []byte) bool {
	const inRow, different = 8, 3
	var seen [256]bool
	count, same := 0, 0
	for i, c := range token {
		if !seen[c] {
			seen[c] = true
			count++
		}
		if i == 0 || c != token[i-1] {
			same = 0
		}
		if same++; same >= inRow {
			return true
		}
	}
	return count <= different
}

// isSequence: four of five characters are the next ones of those before them, as in
// abcdef and 7890.
func isSequence(token []byte) bool {
	next := 0
	for i := 1; i < len(token); i++ {
		if token[i] == token[i-1]+1 || token[i-1] == '9' && token[i] == '0' {
			next++
		}
	}
	return 5*next >= 4*(len(token)-1)
}

// maxWord is the length of the longest word: more letters may be by chance.
const maxWord = 15

// isWords: several words, each with a small number behind it at most, written like_this,
// like-this, LIKE_THIS or likeThis.
func isWords(text []byte) bool {
	words := 0
	for piece := range bytes.FieldsFuncSeq(text, func(c rune) bool { return c > unicode.MaxASCII || !isAlnum(byte(c)) }) {
		letters := bytes.TrimRight(piece, "0123456789")
		n, ok := countWords(letters)
		if !ok || len(piece)-len(letters) > 4 {
			return false
		}
		words += n
	}
	return words > 1
}

// countWords counts one in capitals or small letters, or several likeThis, none of them
// with less than three letters.
func countWords(letters []byte) (n int, ok bool) {
	if len(letters) <= maxWord && runEnd(letters, 0, maxWord, isUpper) == len(letters) {
		return min(1, len(letters)), true
	}
	for at := 0; at < len(letters); n++ {
		end := runEnd(letters, at, 1, isUpper)
		end = runEnd(letters, end, maxWord+1, isLower)
		if end-at > maxWord || end-at < 3 && end-at < len(letters) {
			return 0, false
		}
		at = end
	}
	return n, true
}

// noExample tells Amazon's documented keys, which have EXAMPLE in them, from others.
func noExample(token []byte) bool { return !bytes.Contains(token, []byte("EXAMPLE")) }

func hasDigit(token []byte) bool { return bytes.ContainsAny(token, "0123456789") }

// tokenLike tells a random token from words with dashes between them: digits, and
// either a long run without a dash or a great length.
func tokenLike(token []byte) bool {
	if !hasDigit(token) {
		return false
	}
	longest := 0
	for at := 0; at < len(token); at++ {
		end := runEnd(token, at, maxToken, isAlnum)
		if hasDigit(token[at:end]) {
			longest = max(longest, end-at)
		}
		at = end
	}
	return longest >= 16 || len(token) >= 60 && longest >= 8
}

// awsSecret is 40 characters of base64 behind the name of the setting. Without the
// name they would be any hash.
func awsSecret(b []byte, at, n int) verdict {
	start, ok, more := skipAssignment(b, at+n)
	if !ok {
		return verdict{more: more}
	}
	end := runEnd(b, start, maxToken, base64Std)
	ok = end-start == 40 && !bytes.HasSuffix(b[start:end], []byte("EXAMPLEKEY")) // which the documentation has
	return verdict{from: start, to: end, ok: ok, more: end == len(b)}
}

// skipAssignment skips what stands between a name and its value: a closing quote, : or =,
// spaces, an opening quote.
func skipAssignment(b []byte, at int) (start int, ok, more bool) {
	quote := func(c byte) bool { return c == '"' || c == '\'' || c == '\\' || c == '`' }
	space := func(c byte) bool { return c == ' ' || c == '\t' }
	at = runEnd(b, at, 4, quote)
	at = runEnd(b, at, 16, space)
	sign := runEnd(b, at, 2, func(c byte) bool { return c == ':' || c == '=' || c == '>' })
	if sign == at {
		return at, false, at == len(b)
	}
	at = runEnd(b, sign, 16, space)
	at = runEnd(b, at, 4, quote)
	return at, true, at == len(b)
}

// pemMatch is a private key in PEM form up to its last line, or, where that is
// missing, as far as its characters go.
func pemMatch(b []byte, at, n int) verdict {
	title := runEnd(b, at+n, 64, func(c byte) bool { return upperDigit(c) || c == ' ' })
	const rest = "-----"
	if title == len(b) || bytes.HasPrefix([]byte(rest), b[title:]) && len(b)-title < len(rest) {
		return verdict{more: true}
	}
	if !bytes.HasPrefix(b[title:], []byte(rest)) || !bytes.Contains(b[at+n:title], []byte("PRIVATE KEY")) {
		return verdict{}
	}
	start := title + len(rest)
	if ok, more := hasKey(b[start:min(len(b), start+maxPEMHead)]); !ok {
		return verdict{more: more}
	}
	window := b[start:min(len(b), start+maxPEM)]
	if i := bytes.Index(window, []byte(pemEnd)); i >= 0 {
		end := runEnd(b, start+i+9, 64, func(c byte) bool { return upperDigit(c) || c == ' ' })
		end = runEnd(b, end, 5, func(c byte) bool { return c == '-' })
		return verdict{from: at, to: end, ok: true, more: end == len(b)}
	}
	end := runEnd(b, start, len(b), func(c byte) bool {
		return tokenChar(c) || c == '\n' || c == '\r' || c == ' ' || c == '\t' || c == '\\' || c == ':' || c == ','
	})
	return verdict{from: at, to: end, ok: true, more: end == len(b)}
}

// hasKey tells a key from what else stands behind its title: the title of its end in a
// program's text, YOUR KEY HERE, three dots. more: one may begin behind the head.
func hasKey(head []byte) (ok, more bool) {
	const least = 24 // MarshalPKCS8PrivateKey has 22
	more = len(head) < maxPEMHead
	if i := bytes.Index(head, []byte(pemEnd)); i >= 0 {
		head, more = head[:i], false
	}
	for at := 0; at < len(head); at++ {
		end := runEnd(head, at, len(head), base64Std)
		if part := head[at:end]; end-at >= least && hasDigit(part) && !isPlaceholder(part) {
			return true, false
		}
		at = end
	}
	return false, more
}

// johnDoe begins the payload of the examples of jwt.io, in base64:
// {"sub":"1234567890","name":"John Doe"
const johnDoe = ".eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lI"

// jwtMatch is three (signed) or five (encrypted) parts of base64url, of which the
// first is a JSON object.
func jwtMatch(b []byte, at, _ int) verdict {
	v := jwtParts(b, at)
	v.ok = v.ok && !bytes.Contains(b[v.from:v.to], []byte(johnDoe))
	return v
}

func jwtParts(b []byte, at int) verdict {
	const leastHeader = 16 // {"alg":"none"} has 19
	if header := runEnd(b, at, leastHeader, dashChar); wordChar(byteBefore(b, at)) || header < len(b) && header-at < leastHeader {
		return verdict{}
	}
	end, dots := at, 0
	for {
		stop := runEnd(b, end, maxJWT, dashChar)
		if stop == len(b) {
			return verdict{from: at, to: stop, ok: dots >= 2 && stop > end, more: true}
		}
		if b[stop] != '.' || dots == 4 || stop == end && dots != 1 {
			ok := dots >= 2 && stop-at >= 30
			if stop == end { // a full stop after the token
				stop--
			}
			return verdict{from: at, to: stop, ok: ok}
		}
		end, dots = stop+1, dots+1
	}
}

// urlPassword is what stands between user: and @ in a URL.
func urlPassword(b []byte, at, n int) verdict {
	if !isAlnum(byteBefore(b, at)) {
		return verdict{}
	}
	user := runEnd(b, at+n, 256, func(c byte) bool { return urlUser(c) && c != ':' && c != '@' })
	if user == len(b) {
		return verdict{more: true}
	}
	if b[user] != ':' {
		return verdict{}
	}
	from := user + 1
	to := runEnd(b, from, maxToken, func(c byte) bool { return urlUser(c) && c != '@' })
	if to == len(b) {
		return verdict{more: true}
	}
	return verdict{from: from, to: to, ok: b[to] == '@' && to-from >= 3 && !isVariable(b[from:to])}
}

// urlUser is what may stand before the @ of a URL: all but what ends that part.
func urlUser(c byte) bool {
	return c > ' ' && c != 0x7f && c != '/' && c != '?' && c != '#' && c != '"' && c != '<' && c != '>' &&
		c != '`' && c != '\\'
}

// isVariable tells a place for a password from a password: $NAME, ${NAME}, {{name}},
// %(name)s, ***.
func isVariable(b []byte) bool {
	switch {
	case bytes.HasPrefix(b, []byte("${")) || bytes.HasPrefix(b, []byte("{{")) || bytes.HasPrefix(b, []byte("$(")):
		return b[len(b)-1] == '}' || b[len(b)-1] == ')'
	case b[0] == '$':
		return runEnd(b, 1, len(b), func(c byte) bool { return upperDigit(c) || c == '_' }) == len(b)
	case b[0] == '*' || b[0] == '.':
		return bytes.Count(b, b[:1]) == len(b)
	}
	return false
}

// checkBearer is the token after the word; ordinary words after it are none.
func checkBearer(b []byte, at, n int) verdict {
	start := runEnd(b, at+n, 8, func(c byte) bool { return c == ' ' })
	return checkOpaque(b, start)
}

func checkOpaque(b []byte, start int) verdict {
	end := runEnd(b, start, maxJWT, tokenChar)
	token := b[start:end]
	return verdict{from: start, to: end, more: end == len(b),
		ok: len(token) >= 16 && hasDigit(token)}
}

// matchBasicAuth matches base64 of user:password; other words after "Basic" are none.
func matchBasicAuth(b []byte, at, n int) verdict {
	start := runEnd(b, at+n, 8, func(c byte) bool { return c == ' ' })
	end := runEnd(b, start, maxToken, base64Std)
	v := verdict{from: start, to: end, more: end == len(b)}
	text := bytes.TrimRight(b[start:end], "=")
	plain := make([]byte, base64.RawStdEncoding.DecodedLen(len(text)))
	size, err := base64.RawStdEncoding.Decode(plain, text)
	v.ok = err == nil && bytes.IndexByte(plain[:size], ':') >= 0 && utf8.Valid(plain[:size])
	return v
}

// authHeader is the value of a header that authenticates, whatever its scheme.
func authHeader(b []byte, at, n int) verdict {
	start, ok, more := skipAssignment(b, at+n)
	if !ok {
		return verdict{more: more}
	}
	scheme := runEnd(b, start, 32, func(c byte) bool { return isLower(c) || isUpper(c) || c == '-' })
	if scheme == len(b) {
		return verdict{more: true}
	}
	if scheme > start && b[scheme] == ' ' {
		start = runEnd(b, scheme, 8, func(c byte) bool { return c == ' ' })
	}
	return checkOpaque(b, start)
}
