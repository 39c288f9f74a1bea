// Package statefile reads and writes the files of the state branch: threads.yaml,
// registry.yaml, VERSION, the history lines of ended threads, and the messages
// of its commits. It is pure: bytes in, values out. It takes every byte it reads
// for hostile, and it never fetches, stores or hashes anything.
//
// The formats are a public interface (docs/protocol.md): what one
// version wrote every later version reads.
package statefile
