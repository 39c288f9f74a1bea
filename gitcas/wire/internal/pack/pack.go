// Package pack reads and writes git packs (gitformat-pack(5), version 2) in
// memory. What it reads it takes for hostile; it does no I/O of its own.
package pack

import "github.com/go-git/go-git/v5/plumbing"

// Object is one whole git object: Data is the content without git's header.
type Object struct {
	ID   plumbing.Hash
	Type plumbing.ObjectType
	Data []byte
}

// NewObject returns the object of that type and content, with its id.
func NewObject(t plumbing.ObjectType, data []byte) Object {
	return Object{ID: plumbing.ComputeHash(t, data), Type: t, Data: data}
}

// Entry is an object to write. When Base is set the receiver is known to hold
// that object, and the new one may be written as a delta against it.
type Entry struct {
	Object
	Base *Object
}
