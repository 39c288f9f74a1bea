//go:build !unix

package transport

import "os/exec"

// ownGroup does nothing where there are no process groups: the command itself
// is killed when its context ends.
func ownGroup(*exec.Cmd) {}
