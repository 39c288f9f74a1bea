//go:build unix

package app

import (
	"errors"

	"golang.org/x/sys/unix"
)

// alive reports whether a process of this machine is there. One that belongs to
// someone else is.
func alive(pid int) bool {
	err := unix.Kill(pid, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}
