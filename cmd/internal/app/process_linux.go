package app

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ownPIDNS names the pid namespace of this process; empty where the system doesn't say.
func ownPIDNS() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
}

// isAlive reports whether the process is there that has a pid and began at a time. One
// of which that can't be read, since it belongs to someone else, is.
func isAlive(pid int, started int64) bool {
	if pid <= 0 || errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return false
	}
	began, running, err := startOf(pid)
	return err != nil || running && began == started
}

// startOf is when a process began, in clock ticks since the boot, and whether it still
// runs: one that has died may be listed until its parent has taken note. See proc(5).
func startOf(pid int) (ticks int64, running bool, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false, err
	}
	// The second field is the program's name in brackets, which may hold anything.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	const state, start = 0, 22 - 3 // of those from the third on
	if len(fields) <= start {
		return 0, false, fmt.Errorf("/proc/%d/stat has only %d fields", pid, len(fields))
	}
	ticks, err = strconv.ParseInt(string(fields[start]), 10, 64)
	return ticks, !bytes.ContainsAny(fields[state], "ZXx"), err
}
