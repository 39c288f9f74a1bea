// Package testmem has tests use memory where that spares processor time. It is for tests
// alone; nothing that ships imports it.
package testmem

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Runner is *testing.M, as far as it is used here, and what wraps it.
type Runner interface{ Run() int }

// Spend has a package's tests spend memory instead of processor time, unless they
// are benchmarks.
//
// Temporary files are kept in memory, where the machine has a place for that and TMPDIR
// names no other. Tests of git make and remove tens of thousands of small files; ext4
// looks at all that were removed in the last seconds for each one that is made, which was
// half of the processor time of all tests.
//
// And garbage is collected less often, unless GOGC says how often: tests make much of it
// and keep little, and a third of the simulation's time was collecting.
func Spend(m Runner) Runner { return spender{m} }

type spender struct{ Runner }

// Run implements [Runner].
func (m spender) Run() int {
	if hasBenchmarks(os.Args) {
		return m.Runner.Run()
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("TMPDIR") != "" || !hasRoom(memoryDir) {
		return m.Runner.Run()
	}
	removeLeft(memoryDir)
	dir, err := os.MkdirTemp(memoryDir, fmt.Sprintf("%s%d-", prefix, os.Getpid()))
	if err != nil {
		return m.Runner.Run() // it was only a faster place
	}
	defer func() { _ = os.RemoveAll(dir) }()                          // the next run tries again
	err = errors.Join(os.Chmod(dir, 0o711), os.Setenv("TMPDIR", dir)) //nolint:gosec // as in /tmp, tests say who may read their own
	if err != nil {
		panic(err) // the folder was just made
	}
	return m.Runner.Run()
}

// hasBenchmarks reports whether benchmarks are run: those tell of disks, as users have them.
func hasBenchmarks(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-test.bench=") })
}

// prefix begins the name of a run's folder; its process and a random number follow.
const prefix = "uwf-tests-"

// removeLeft removes the folders of runs that were killed: they take memory. A container
// may share the folder and not see whose process lives, but no run is quiet for so long.
func removeLeft(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		_, gone := os.Stat(filepath.Join("/proc", pid))
		was, err := os.Stat(dir)
		if err == nil && os.IsNotExist(gone) && time.Since(was.ModTime()) > time.Hour {
			_ = os.RemoveAll(dir) // it may be somebody else's
		}
	}
}
