package action

import (
	"path"
	"path/filepath"
	"strings"
)

// isPath reports whether a text is the path of something in a repository, as git
// writes it: relative, with slashes, not into .git and not out of it.
func isPath(p string) bool {
	if p == "" || p == "." || path.Clean(p) != p || !filepath.IsLocal(filepath.FromSlash(p)) || strings.ContainsAny(p, "\\\x00\n\r:") {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if strings.EqualFold(part, ".git") {
			return false
		}
	}
	return true
}
