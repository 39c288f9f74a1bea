package convert

import "github.com/united-workforce/uwf/internal/lazyregexp"

// LFS is the Filter of files whose content Git LFS keeps: git has a pointer to it.
const LFS = "lfs"

// MaxPointer is less than the bytes of no pointer of Git LFS.
const MaxPointer = 1024

var pointer = lazyregexp.New(`^version https://git-lfs\.github\.com/spec/v1\n(ext-[^\n]+\n)*oid sha256:[0-9a-f]{64}\nsize [0-9]+\n$`)

// IsPointer reports whether a content is a pointer of Git LFS, as its specification has it.
func IsPointer(data []byte) bool { return len(data) < MaxPointer && pointer.Match(data) }

// IsStored reports whether git may store a content at a path with this form as it is: there is no
// filter that would have changed it. Git LFS stores what is empty as it is.
func (f Form) IsStored(data []byte) bool {
	return f.Filter == "" || f.Filter == LFS && (len(data) == 0 || IsPointer(data))
}
