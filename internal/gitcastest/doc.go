// Package gitcastest turns a repository in memory into text and back, for golden
// tests: everything that its refs reach, with all commits, as a stream that git
// fast-import reads too. It is for tests, and never touches a disk.
package gitcastest
