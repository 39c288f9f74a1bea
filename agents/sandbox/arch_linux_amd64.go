package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	// otherABI is the first number of the system calls of the x32 ABI.
	otherABI = 0x4000_0000
)

// refusedHere are refused system calls that only this architecture has: the ports of
// devices.
var refusedHere = [...]uint32{unix.SYS_IOPL, unix.SYS_IOPERM}
