//go:build unix

package debuglog

import (
	"os"

	"golang.org/x/sys/unix"
)

// openLog opens a file to append to. A link in its place is not followed: who made
// it would choose what is written to. A pipe does not block.
func openLog(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
}
