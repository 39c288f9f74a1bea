package testmode

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestProcessesAskedFor(t *testing.T) {
	for _, row := range []struct {
		words string
		want  bool
	}{
		{"", false},
		{"processes", true},
		{"forge,processes", true},
		{" processes , forge", true},
		{"process", false},
		{"noprocesses", false},
	} {
		t.Run(row.words, func(t *testing.T) {
			t.Setenv(Variable, row.words)
			t.Setenv(TurnVariable, "")
			if got := HasProcesses(); got != row.want {
				t.Errorf("%s=%q: asked for processes is %v, want %v", Variable, row.words, got, row.want)
			}
			some := []int{0, 3, 6}
			if row.want {
				some = []int{0, 1, 2, 3, 4, 5, 6}
			}
			if got := Some(3, 0, 1, 2, 3, 4, 5, 6); !slices.Equal(got, some) {
				t.Errorf("%s=%q: of 7 rows every third is %v", Variable, row.words, got)
			}
		})
	}
}

// TestEachGit: a test runs with each git that is listed, or with that of PATH.
func TestEachGit(t *testing.T) {
	var dirs []string
	for _, version := range []string{"2.31.0", "9.9.9"} {
		dir := t.TempDir()
		dirs = append(dirs, dir)
		script := "#!/bin/sh\necho git version " + version + "\n"
		if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	listed := filepath.Join(dirs[0], "git") + string(filepath.ListSeparator) + filepath.Join(dirs[1], "git")
	for list, want := range map[string][]string{"": dirs[1:], listed: dirs} {
		t.Setenv("PATH", dirs[1])
		t.Setenv(GitVariable, list)
		var got []string
		EachGit(t, func(_ *testing.T, dir string) { got = append(got, dir) })
		if !slices.Equal(got, want) {
			t.Errorf("%s=%q: ran with %q, want %q", GitVariable, list, got, want)
		}
	}
}

// TestTurns: two turns try each row once.
func TestTurns(t *testing.T) {
	t.Setenv(Variable, "processes")
	for turn, want := range map[string][]int{"": {0, 1, 2, 3, 4}, "both": {0, 1, 2, 3, 4}, "0": {0, 2, 4}, "1": {1, 3}} {
		t.Setenv(TurnVariable, turn)
		if got := Some(3, 0, 1, 2, 3, 4); !slices.Equal(got, want) || HasAll() != (len(want) == 5) {
			t.Errorf("turn %q: %v, want %v", turn, got, want)
		}
	}
}

// A recorder notes what a test would have done.
type recorder struct {
	testing.TB
	failed bool
	logged []string
}

func (r *recorder) Failed() bool { return r.failed }

func (r *recorder) Logf(format string, args ...any) {
	r.logged = append(r.logged, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(string, ...any) {
	r.failed = true
	panic("ended")
}

func TestSeeds(t *testing.T) {
	for name, row := range map[string]struct {
		words, seed string
		want        []uint64
	}{
		"few":      {"", "", []uint64{0, 1}},
		"many":     {"processes", "", []uint64{0, 1, 2, 3}},
		"one":      {"", "17", []uint64{17}},
		"one only": {"processes", "3", []uint64{3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(Variable, row.words)
			t.Setenv(SeedVariable, row.seed)
			r := &recorder{TB: t}
			if got := slices.Collect(Seeds(r, 2, 4)); !slices.Equal(got, row.want) {
				t.Errorf("seeds %v, want %v", got, row.want)
			}
			if r.logged != nil {
				t.Errorf("without a failure it says %q", r.logged)
			}
		})
	}
	t.Setenv(SeedVariable, "soon")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no number is a seed")
			}
		}()
		Seeds(&recorder{TB: t}, 1, 1)
	}()
}

// The seed of a failure is told, once, however it ends the test.
func TestSeedOfAFailure(t *testing.T) {
	t.Setenv(Variable, "")
	t.Setenv(SeedVariable, "")
	for _, fatal := range []bool{false, true} {
		r := &recorder{TB: t}
		func() {
			defer func() { _ = recover() }()
			for seed := range Seeds(r, 4, 4) {
				if seed == 2 && fatal {
					r.Fatalf("no")
				}
				r.failed = seed >= 2
			}
		}()
		if want := "with seed 2; UWF_TEST_SEED=2 tries it again"; len(r.logged) != 1 || r.logged[0] != want {
			t.Errorf("fatal %v: it says %q, want %q", fatal, r.logged, want)
		}
	}
}
