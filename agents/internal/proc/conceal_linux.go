package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Conceal hides this process from the ones it starts: its environment, as
// /proc/<pid>/environ shows it, is wiped, and it is marked so that processes of
// the same user can't read its memory. What os.Getenv says does not change: Go
// keeps a copy. Root is not kept out of the memory.
func Conceal() error {
	if err := wipeEnvironment(); err != nil {
		return fmt.Errorf("hiding the environment from child processes: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hiding the memory from child processes: %w", err)
	}
	return nil
}

// wipeEnvironment overwrites the block that the kernel put the environment into.
func wipeEnvironment() (err error) {
	os.Environ() // makes the copy, if nothing has so far
	start, end, err := environmentBlock()
	if err != nil || start == end {
		return err
	}
	blank := make([]byte, end-start)
	mem, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if errors.Is(err, os.ErrPermission) {
		return overwrite(start, blank) // a sandbox leaves nothing of /proc to write
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mem.Close()) }()
	_, err = mem.WriteAt(blank, start)
	return err
}

// overwrite writes into this process's own memory through a system call, which
// needs no /proc.
func overwrite(at int64, b []byte) error {
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	n, err := unix.ProcessVMWritev(os.Getpid(), local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}}, 0)
	if err == nil && n < len(b) {
		err = fmt.Errorf("only %d of %d bytes were overwritten", n, len(b))
	}
	return err
}

// environmentBlock reads env_start and env_end, fields 50 and 51 of proc(5) stat.
func environmentBlock() (start, end int64, err error) {
	b, err := os.ReadFile("/proc/self/stat")
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil // without /proc nobody can read it there
	}
	if err != nil {
		return 0, 0, err
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 49 {
		return 0, 0, errors.New("/proc/self/stat does not say where the environment is")
	}
	start, err = strconv.ParseInt(f[47], 10, 64)
	if err != nil {
		return 0, 0, err
	}
	end, err = strconv.ParseInt(f[48], 10, 64)
	if err != nil || start <= 0 || end < start || end-start > 64<<20 {
		return 0, 0, fmt.Errorf("/proc/self/stat gives no place of the environment: %s to %s", f[47], f[48])
	}
	return start, end, nil
}
