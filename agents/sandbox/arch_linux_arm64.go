package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	otherABI  = 0 // there is none
)

// refusedHere are refused system calls that only this architecture has.
var refusedHere [0]uint32
