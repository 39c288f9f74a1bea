package redact

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
)

// FromEnv picks the secrets of an environment ("NAME=value" each): the values of
// variables whose name says so (see SecretName), the passwords in URLs whatever
// the variable's name, and the secrets inside a value that is a JSON object.
func FromEnv(env []string) []Secret {
	var out []Secret
	for _, e := range env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || value == "" {
			continue
		}
		if SecretName(name) && !isLocation(value) {
			out = append(out, Secret{Name: name, Value: value})
		}
		out = append(out, inURL(name, value)...)
		out = append(out, inJSON(name, value)...)
	}
	return out
}

// SecretName says whether a setting of this name holds a secret: one of its words
// is TOKEN, KEY, SECRET, PASSWORD or the like, and it doesn't end in a word that
// makes it a place or a name (KEY_FILE, TOKEN_URL).
func SecretName(name string) bool {
	words := nameWords(name)
	if len(words) == 0 {
		return false
	}
	switch words[len(words)-1] {
	case "FILE", "PATH", "DIR", "SOCK", "SOCKET", "URL", "URI", "NAME", "HOST", "PORT", "TYPE", "LENGTH",
		"TTL", "EXPIRY", "EXPIRES", "TIMEOUT", "COUNT", "LIMIT", "ALGORITHM", "VERSION":
		return false
	}
	for i, w := range words {
		switch w {
		case "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "APIKEY", "CREDENTIAL",
			"CREDENTIALS", "AUTH", "PAT", "BEARER", "JWT", "DSN", "COOKIE", "AUTHTOKEN", "ACCESSKEY", "SECRETKEY",
			"PRIVATEKEY", "ACCESSTOKEN", "PASSKEY", "PRIVKEY", "WEBHOOK":
			return true
		case "KEY", "KEYS":
			if i == 0 || words[i-1] != "PUBLIC" && words[i-1] != "PUB" {
				return true
			}
		case "PWD":
			if i > 0 && words[i-1] != "OLD" { // DB_PWD, not PWD
				return true
			}
		}
	}
	return false
}

// camel is where a word begins in camelCase.
var camel = lazyregexp.New(`([a-z])([A-Z])`)

// nameWords splits a name at what is no letter or digit, and where camelCase
// begins a word; in capitals.
func nameWords(name string) []string {
	words := strings.FieldsFunc(camel.ReplaceAllString(name, "${1}_$2"), func(c rune) bool { return c > unicode.MaxASCII || !isAlnum(byte(c)) })
	return lists.Map(words, strings.ToUpper)
}

// isLocation tells a file's path, by its first folder, from a secret; SSH_KEY and
// the like hold either.
func isLocation(value string) bool {
	roots := []string{"~/", "./", "../", `C:\`, "/bin/", "/builds/", "/data/", "/dev/", "/etc/", "/github/",
		"/home/", "/mnt/", "/opt/", "/private/", "/proc/", "/root/", "/run/", "/srv/", "/tmp/", "/usr/", "/var/",
		"/Users/", "/workspace/", "/Library/"}
	return !strings.Contains(value, "\n") && slices.ContainsFunc(roots, func(root string) bool { return strings.HasPrefix(value, root) })
}

func inURL(name, value string) []Secret {
	if !strings.Contains(value, "://") || !strings.Contains(value, "@") {
		return nil
	}
	u, err := url.Parse(strings.TrimSpace(value))
	if err != nil || u.User == nil {
		return nil
	}
	if p, ok := u.User.Password(); ok && p != "" {
		return []Secret{{Name: name, Value: p}}
	}
	if user := u.User.Username(); len(user) >= 20 { // a token in the place of the user
		return []Secret{{Name: name, Value: user}}
	}
	return nil
}

// inJSON finds the secrets of a value such as a service account's key file.
func inJSON(name, value string) []Secret {
	if !strings.HasPrefix(strings.TrimSpace(value), "{") {
		return nil
	}
	var object map[string]any
	if json.Unmarshal([]byte(value), &object) != nil {
		return nil // no JSON: then it is only the text that it is
	}
	var out []Secret
	for _, k := range slices.Sorted(maps.Keys(object)) {
		if s, ok := object[k].(string); ok && SecretName(k) && s != "" {
			out = append(out, Secret{Name: name, Value: s})
		}
	}
	return out
}
