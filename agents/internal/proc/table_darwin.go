package proc

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// sessionAttributes puts a program into a session of its own, where nothing it starts
// can come back into ours.
func sessionAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// adoptOrphans does nothing: macOS gives every orphan to process 1. What left the
// program's session and lost its parents as well is not found there.
func adoptOrphans() error { return nil }

// replaceFile makes a descriptor one of another open file.
func replaceFile(by, fd int) error { return unix.Dup2(by, fd) }

func ownSession() (int, error) { return unix.Getsid(0) }

// listProcesses reads the process table.
func listProcesses() ([]process, error) {
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("reading the process table: %w", err)
	}
	out := make([]process, 0, len(infos))
	for i := range infos {
		p := processOf(&infos[i])
		sid, err := unix.Getsid(p.pid)
		if err != nil {
			continue // it ended meanwhile, or is not ours to look at
		}
		p.session = sid
		out = append(out, p)
	}
	return out, nil
}

func processOf(k *unix.KinfoProc) process {
	start := k.Proc.P_starttime
	return process{
		pid: int(k.Proc.P_pid), ppid: int(k.Eproc.Ppid), pgrp: int(k.Eproc.Pgid),
		start: uint64(start.Sec)*1e6 + uint64(start.Usec),
	}
}

// startOf is when a process began, in microseconds; 0 where unknown.
func startOf(pid int) uint64 {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	return processOf(k).start
}

// markOf is always empty: macOS does not show another process's environment.
func markOf(int) string { return "" }
