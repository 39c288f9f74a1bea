// Package gitobj reads and writes the content of git's trees and commits. It is
// pure: bytes in, values out. What it reads it treats as hostile, and what it
// writes is the form that git itself would write; it never fetches, stores or
// hashes an object.
package gitobj

import "errors"

// Kinds of failure. Every error of this package matches one of them with
// errors.Is.
var (
	// ErrMalformed: the bytes are no object of that kind.
	ErrMalformed = errors.New("malformed git object")
	// ErrBadName: a tree entry has a name that git refuses to check out.
	ErrBadName = errors.New("name that git refuses")
)
