package text

import "strings"

// plainInShell are the characters that no shell gives a meaning to.
const plainInShell = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/:._-@+=,"

// ShellWord makes an argument of a command that people paste into a shell: as it is where
// it can be, else in single quotes.
func ShellWord(s string) string {
	if s != "" && strings.Trim(s, plainInShell) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
