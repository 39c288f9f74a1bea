package redact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
)

const (
	allowSum  = "sha256:"
	allowFile = "path:"
)

// allowed is what Options.Allow names.
type allowed struct {
	texts map[string]bool
	sums  map[string]bool
	files []byte // patterns as in .gitignore, one a line
}

// maxAllowSteps bounds what the patterns may cost for one path.
const maxAllowSteps = 10_000_000

// CheckAllow says what is wrong with an entry of Options.Allow; nil: nothing. An entry is
// sha256: and the SHA-256 of a text without white space in it, in hexadecimal; or path:
// and a pattern as in .gitignore, of files that may hold what only looks like a secret;
// or the text itself.
func CheckAllow(entry string) error {
	_, err := readAllow([]string{entry})
	return err
}

func readAllow(entries []string) (allowed, error) {
	a := allowed{texts: map[string]bool{}, sums: map[string]bool{}}
	var patterns strings.Builder
	for _, entry := range entries {
		if sum, ok := strings.CutPrefix(entry, allowSum); ok {
			if b, err := hex.DecodeString(sum); err != nil || len(b) != sha256.Size {
				return a, fmt.Errorf("%w: %q has no SHA-256: write its %d digits behind %s", ErrOptions, entry, 2*sha256.Size, allowSum)
			}
			a.sums[allowSum+strings.ToLower(sum)] = true
			continue
		}
		pattern, ok := strings.CutPrefix(entry, allowFile)
		if !ok {
			a.texts[entry] = true
			continue
		}
		none := ignore.New(maxAllowSteps)
		rules, err := none.Folder("", []byte(pattern))
		if strings.ContainsAny(pattern, "\n\r\x00") || err != nil || rules == none {
			return a, fmt.Errorf("%w: %q names no file: write a pattern as in .gitignore behind %s", ErrOptions, entry, allowFile)
		}
		patterns.WriteString(pattern + "\n")
	}
	a.files = []byte(patterns.String())
	return a, nil
}

// isAllowed says whether a text is named, by itself or by its sum; "": that is not known.
func (a allowed) isAllowed(text, sum string) bool { return a.texts[text] || a.sums[sum] }

// AllowsFile says whether Options.Allow names the file at a path (with slashes), or a
// folder that it is in.
func (r *Redactor) AllowsFile(path string) bool {
	if len(r.allow.files) == 0 {
		return false
	}
	// Rules count what they cost, so each call has its own: a Redactor is shared.
	rules, err := ignore.New(maxAllowSteps).Folder("", r.allow.files)
	if err != nil {
		return false // what can't be compared allows nothing
	}
	for i, c := range path {
		if c != '/' {
			continue
		}
		if ok, err := rules.Ignored(path[:i], true); ok || err != nil {
			return ok && err == nil
		}
	}
	ok, err := rules.Ignored(path, false)
	return ok && err == nil
}

// sumOf is the entry of Options.Allow for a text, however it is indented or divided into
// lines, also within a string.
func sumOf(text []byte) string {
	for _, escaped := range []string{`\n`, `\r`, `\t`} {
		text = bytes.ReplaceAll(text, []byte(escaped), nil)
	}
	sum := sha256.Sum256(withoutSpace(text))
	return allowSum + hex.EncodeToString(sum[:])
}
