package config

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/engine/config/table"
	"github.com/united-workforce/uwf/internal/text"
)

// Info is what is known of a setting without looking at any source.
type Info = table.Setting

// Describe says what may stand at a path. A path that leads nowhere is an
// *UnknownPathError.
func Describe(p Path) (Info, error) { return allSettings(&Config{}).At(p) }

// Check finds what is wrong with one file by itself; name is used in messages.
func Check(name string, data []byte) []Problem {
	_, problems := readFile(name, data)
	return problems
}

// HasSecret says whether a file's text sets anything that is secret: a provider's
// key, or an agent's variable with a name such as API_TOKEN. It gives its path. The
// file need not be valid.
func HasSecret(data []byte) (Path, bool) {
	return allSettings(&Config{}).SecretIn(data)
}

// ParseValue reads a value as people type it for the setting at a path; see package
// table.
func ParseValue(p Path, text string) (*yaml.Node, error) {
	return allSettings(&Config{}).ParseValue(p, text)
}

// Plain is a value as JSON has it, for messages: never call it on a secret.
func Plain(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return ""
	}
	b, err := text.EncodeJSON(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
