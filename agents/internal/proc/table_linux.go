package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sessionAttributes puts a program into a session of its own, where nothing it starts
// can come back into ours, and has it killed when we are.
func sessionAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// adoptOrphans has the kernel give us orphaned descendants instead of process 1.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// replaceFile makes a descriptor one of another open file.
func replaceFile(by, fd int) error { return unix.Dup3(by, fd, 0) }

func ownSession() (int, error) { return unix.Getsid(0) }

// listProcesses reads the process table. Processes that end meanwhile are left out.
func listProcesses() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("reading the process table: %w", err)
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("reading the process table: %w", err)
	}
	var out []process
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ESRCH):
			continue
		case err != nil:
			return nil, fmt.Errorf("reading the process table: %w", err)
		}
		if p, ok := parseStat(stat); ok {
			out = append(out, p)
		}
	}
	return out, nil
}

// parseStat reads a line of proc(5) stat. The command name may hold anything,
// parentheses and newlines included, so fields are counted after its last one.
func parseStat(b []byte) (process, bool) {
	id, _, ok := bytes.Cut(b, []byte("("))
	f := statFields(b)
	if !ok || len(f) < 20 {
		return process{}, false
	}
	var p process
	for _, x := range []struct {
		text string
		to   *int
	}{{strings.TrimSpace(string(id)), &p.pid}, {f[1], &p.ppid}, {f[2], &p.pgrp}, {f[3], &p.session}} {
		n, err := strconv.Atoi(x.text)
		if err != nil {
			return process{}, false
		}
		*x.to = n
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return process{}, false
	}
	p.start = start
	return p, true
}

// statFields are the fields after the command name: the state and what follows.
func statFields(stat []byte) []string {
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}

// startOf is when a process began, in clock ticks since boot; 0 where unknown.
func startOf(pid int) uint64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	p, _ := parseStat(b)
	return p.start
}

// markOf is the mark in the environment that a process was started with; empty
// for zombies, and where it can't be read.
func markOf(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	for _, v := range strings.Split(string(b), "\x00") {
		if mark, ok := strings.CutPrefix(v, MarkName+"="); ok {
			return mark
		}
	}
	return ""
}
