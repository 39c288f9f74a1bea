// Package testmode says which of the expensive tests a run asked for. It is for
// tests alone; nothing that ships imports it.
package testmode

import (
	"bytes"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Variable names the words, separated by commas, that a run of the tests is asked
// for besides what it always does: UWF_TEST=processes go test ./...
const Variable = "UWF_TEST"

const processes = "processes"

// HasProcesses reports whether UWF_TEST asks for what proves processes, for a test
// that does less of the same without it.
func HasProcesses() bool { return hasWord(os.Getenv(Variable), processes) }

// TurnVariable says, as 0 or 1, which half of the rows a run tries for which UWF_TEST asks: .ci/run
// tries the other half at the next commit. Without it all are tried.
const TurnVariable = "UWF_TEST_TURN"

// HasAll reports whether UWF_TEST asks for processes, and no turn for half of them.
func HasAll() bool { return HasProcesses() && askedHalf() < 0 }

// IsTurnOf reports whether a run of processes tries a row, by its number.
func IsTurnOf(row int) bool { return askedHalf() < 0 || row%2 == askedHalf() }

// askedHalf is the half that is asked for; -1 for all, and for what names no half.
func askedHalf() int { return slices.Index([]string{"0", "1"}, os.Getenv(TurnVariable)) }

// Some are the rows of a table that a run of the tests tries: all where UWF_TEST asks for
// processes, or those whose turn it is, else every n-th, from the first on.
func Some[Row any](n int, rows ...Row) []Row {
	var some []Row
	for i, row := range rows {
		if HasProcesses() && IsTurnOf(i) || !HasProcesses() && i%n == 0 {
			some = append(some, row)
		}
	}
	return some
}

// StartBenchmarks runs each benchmark of this test program that matches the pattern once,
// with the sizes of -short, so that none of them is found broken on the day it is needed.
func StartBenchmarks(t *testing.T, pattern string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0],
		"-test.run=^$", "-test.bench="+pattern, "-test.benchtime=1x", "-test.short")

	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the benchmarks %s: %v\n%s", pattern, err, out)
	}
	if !bytes.Contains(out, []byte("\nBenchmark")) {
		t.Fatalf("no benchmark matches %s:\n%s", pattern, out)
	}
}

// GitVariable lists git programs, separated as in PATH, that a run tries the tests of EachGit with.
const GitVariable = "UWF_TEST_GIT"

// EachGit runs a test as a subtest for each git that UWF_TEST_GIT lists, otherwise once with that
// of PATH. It gets the folder of the program git: the first one of a PATH that means this git.
// Without any git the test is skipped.
func EachGit(t *testing.T, test func(t *testing.T, dir string)) {
	t.Helper()
	listed := filepath.SplitList(os.Getenv(GitVariable))
	if len(listed) == 0 {
		test(t, filepath.Dir(NeedGit(t)))
		return
	}
	for _, program := range listed {
		version, err := exec.CommandContext(t.Context(), program, "version").Output()
		if err != nil || !filepath.IsAbs(program) || filepath.Base(program) != "git" {
			t.Fatalf("%s names %s, which is no absolute path of a program git: %v", GitVariable, program, err)
		}
		name := strings.ReplaceAll(strings.TrimSpace(string(version)), " ", "-")
		t.Run(name, func(t *testing.T) { test(t, filepath.Dir(program)) })
	}
}

// NeedGit returns the program git of PATH. Without one it skips the test.
func NeedGit(t testing.TB) string {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	return program
}

// SeedVariable names the one seed that random tests are to try: that of a failure.
const SeedVariable = "UWF_TEST_SEED"

// Seeds are those that a random test tries, from 0 on: few of them, or many where
// UWF_TEST asks for processes; or the one that UWF_TEST_SEED names. The seed of a
// failure is printed with how to try it again.
func Seeds(tb testing.TB, few, many uint64) iter.Seq[uint64] {
	tb.Helper()
	from, to := uint64(0), few
	if HasProcesses() {
		to = many
	}
	if text := os.Getenv(SeedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			tb.Fatalf("%s: %v", SeedVariable, err)
		}
		from, to = seed, seed+1
	}
	return func(yield func(uint64) bool) {
		for seed := from; seed < to; seed++ {
			if !trySeed(tb, seed, yield) {
				return
			}
		}
	}
}

// trySeed tells of the first seed that fails, also where it ends the test.
func trySeed(tb testing.TB, seed uint64, yield func(uint64) bool) bool {
	before := tb.Failed()
	defer func() {
		if tb.Failed() && !before {
			tb.Logf("with seed %d; %s=%d tries it again", seed, SeedVariable, seed)
		}
	}()
	return yield(seed)
}

func hasWord(words, wanted string) bool {
	for word := range strings.SplitSeq(words, ",") {
		if strings.TrimSpace(word) == wanted {
			return true
		}
	}
	return false
}
