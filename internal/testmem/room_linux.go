package testmem

import "syscall"

// memoryDir is Linux's file system in memory; see shm_overview(7).
const memoryDir = "/dev/shm"

// room is many times what the tests of a package have at a time, in bytes.
const room = 1 << 30

// hasRoom reports whether there is room in a file system that lets programs be run:
// containers often have little, or none for programs.
func hasRoom(dir string) bool {
	const noExec = 0x8 // ST_NOEXEC of statvfs(3)
	var fs syscall.Statfs_t
	err := syscall.Statfs(dir, &fs)
	return err == nil && fs.Flags&noExec == 0 && fs.Bavail > room/uint64(fs.Bsize) //nolint:gosec // a block has a size
}
