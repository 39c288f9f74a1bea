package table

import (
	"fmt"
	"strconv"
	"strings"
)

// Path is where a setting stands: the keys that lead to it.
type Path []string

// String writes a path with dots; a key that holds anything but letters, digits,
// "_", "-" and "$" is written in double quotes.
func (p Path) String() string {
	parts := make([]string, len(p))
	for i, key := range p {
		if parts[i] = key; !plainKey(key) {
			parts[i] = strconv.Quote(key)
		}
	}
	return strings.Join(parts, ".")
}

func plainKey(key string) bool {
	return key != "" && strings.IndexFunc(key, func(r rune) bool {
		return !(r == '_' || r == '-' || r == '$' || r == '*' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r > 0x7f)
	}) < 0
}

// ParsePath reads a dotted path. A key that holds a dot stands in quotes, double
// ones with Go's escapes or single ones without any: models."gpt-4.1".window.
func ParsePath(text string) (Path, error) {
	var p Path
	for rest := text; ; {
		key, after, err := firstKey(rest)
		if err != nil {
			return nil, fmt.Errorf("read the path %q: %w", text, err)
		}
		p = append(p, key)
		if after == "" {
			return p, nil
		}
		if after[0] != '.' {
			return nil, fmt.Errorf("read the path %q: a dot is missing after %q", text, key)
		}
		rest = after[1:]
	}
}

// firstKey takes the first key off a path.
func firstKey(s string) (key, rest string, err error) {
	switch {
	case s == "" || s[0] == '.':
		return "", "", fmt.Errorf("a name between two dots is missing; quote a name that holds a dot: models.\"gpt-4.1\".window")
	case s[0] == '"':
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "", fmt.Errorf("a quote is not closed")
		}
		key, err = strconv.Unquote(quoted)
		if err == nil && key == "" {
			err = fmt.Errorf("a name can't be empty")
		}
		return key, s[len(quoted):], err
	case s[0] == '\'':
		end := strings.IndexByte(s[1:], '\'')
		if end < 1 {
			return "", "", fmt.Errorf("a quote is not closed, or nothing is in it")
		}
		return s[1 : 1+end], s[2+end:], nil
	}
	if end := strings.IndexByte(s, '.'); end >= 0 {
		return s[:end], s[end:], nil
	}
	return s, "", nil
}
