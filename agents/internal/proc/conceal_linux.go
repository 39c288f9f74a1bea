package proc

import (
	"errors"
	"fmt"
	"os"
	"strconv"

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
	return hideMemory()
}

// hideMemory keeps processes of the same user from reading and tracing this one.
func hideMemory() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hiding the memory from child processes: %w", err)
	}
	return nil
}

// wipeEnvironment overwrites the block that the kernel put the environment into.
func wipeEnvironment() error {
	os.Environ() // makes the copy, if nothing has so far
	start, end, err := environmentBlock()
	if err != nil || start == end {
		return err
	}
	return overwriteMemory(start, end)
}

// overwriteMemory has the kernel read zeros into this process's own memory. In a sandbox
// there is no /proc/self/mem to write to, nor process_vm_writev.
func overwriteMemory(start, end int64) (err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close(), w.Close()) }()
	zeros := make([]byte, os.Getpagesize()) // a pipe holds a page at least
	for at := start; at < end; {
		n, err := w.Write(zeros[:min(end-at, int64(len(zeros)))])
		if err != nil {
			return err
		}
		for left := n; left > 0; {
			got, _, errno := unix.Syscall(unix.SYS_READ, r.Fd(), uintptr(at), uintptr(left))
			switch {
			case errno == unix.EINTR:
				continue
			case errno != 0:
				return errno
			}
			at, left = at+int64(got), left-int(got)
		}
	}
	return nil
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
	f := statFields(b)
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
