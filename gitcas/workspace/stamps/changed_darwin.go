package stamps

import "syscall"

// changedAt is when a file was last changed in any way, in nanoseconds.
func changedAt(s *syscall.Stat_t) int64 { return s.Ctimespec.Nano() }
