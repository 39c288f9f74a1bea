package gitobj

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// MaxName is the longest name of a tree entry, in bytes, that is read or
// written. Git's own check (fsck, large pathname) has the same limit.
const MaxName = 4096

// CheckName reports why git would not check out an entry of that name: it is
// empty, "." or "..", holds a slash or a NUL, is too long, or is a spelling of
// ".git" on a file system that ignores case (Windows, macOS), trailing dots and
// spaces, alternate data streams or short names (NTFS), or invisible characters
// (HFS+). These are the rules of git's verify_path with core.protectNTFS and
// core.protectHFS on, whatever the system. The error matches [ErrBadName].
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: empty", ErrBadName)
	case len(name) > MaxName:
		return fmt.Errorf("%w: %q…: longer than %d bytes", ErrBadName, name[:40], MaxName)
	case name == "." || name == "..":
		return fmt.Errorf("%w: %q", ErrBadName, name)
	case strings.ContainsAny(name, "/\x00"):
		return fmt.Errorf("%w: %q holds a slash or a NUL", ErrBadName, name)
	case looksLikeDotGit(name):
		return fmt.Errorf("%w: %q is .git on some file systems", ErrBadName, name)
	}
	return nil
}

// CheckEntry is [CheckName] and what depends on the mode: git takes no symlink
// in the place of .gitmodules.
func CheckEntry(name string, mode filemode.FileMode) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if mode == filemode.Symlink && strings.EqualFold(hfsVisible(name), ".gitmodules") {
		return fmt.Errorf("%w: %q is a symlink", ErrBadName, name)
	}
	return nil
}

// looksLikeDotGit reports whether name, or a part of it that a backslash
// divides (a folder separator on Windows), is a spelling of ".git".
func looksLikeDotGit(name string) bool {
	// Nearly all names are out after this: a spelling of .git begins with a
	// dot, with g, with an invisible character, or follows a backslash.
	if c := name[0]; c != '.' && c != 'g' && c != 'G' && c < utf8.RuneSelf && strings.IndexByte(name, '\\') < 0 {
		return false
	}
	if strings.EqualFold(hfsVisible(name), ".git") {
		return true
	}
	return slices.ContainsFunc(strings.Split(name, `\`), ntfsDotGit)
}

// ntfsDotGit reports whether NTFS would take name for ".git": any case, the
// short name git~1, then dots, spaces or a colon and anything (a data stream).
func ntfsDotGit(name string) bool {
	rest, ok := cutFold(name, ".git")
	if !ok {
		if rest, ok = cutFold(name, "git~1"); !ok {
			return false
		}
	}
	rest = strings.TrimLeft(rest, ". ")
	return rest == "" || rest[0] == ':'
}

func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// hfsVisible is name without the characters that HFS+ ignores when it compares
// names.
func hfsVisible(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e,
			r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name)
}
