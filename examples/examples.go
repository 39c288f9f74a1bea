// Package examples holds workflows and the demo's files, embedded so that the
// binary has them with it.
package examples

import "embed"

// Files are the example workflows and the demo's repository, issue and cassette.
//
//go:embed *.yaml demo
var Files embed.FS
