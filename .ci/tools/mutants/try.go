package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// helper is the file that a package gets besides. A place that refuses is noted once
// in a process, at once: the process may be killed or panic.
const helper = `package %s

import (
	"os"
	"strconv"
	"sync"
)

var (
	mutantTaken = func() int {
		n, err := strconv.Atoi(os.Getenv("MUTANTS_TAKEN"))
		if err != nil {
			return -1
		}
		return n
	}()
	mutantNotes = os.Getenv("MUTANTS_NOTES")
	mutantNoted sync.Map
)

// mutantHolds is a condition that refuses where it holds.
func mutantHolds(id int, cond bool) bool { return cond && mutantGoesOn(id) }

// mutantFails is a condition that refuses where it does not hold.
func mutantFails(id int, cond bool) bool { return cond || !mutantGoesOn(id) }

// mutantGoesOn reports whether a refusal is still in the code.
func mutantGoesOn(id int) bool {
	if mutantNotes != "" {
		if _, done := mutantNoted.LoadOrStore(id, true); !done {
			if f, err := os.OpenFile(mutantNotes, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666); err == nil {
				_, _ = f.WriteString(strconv.Itoa(id) + "\n")
				_ = f.Close()
			}
		}
	}
	return id != mutantTaken
}
`

// instrument applies the edits to a file. The lines stay where they are.
func instrument(src []byte, edits []edit) []byte {
	type piece struct {
		at, length int
		opens      bool
		text       string
	}
	var pieces []piece
	for _, e := range edits {
		pieces = append(pieces, piece{e.from, e.to - e.from, true, e.before})
		if e.after != "" {
			pieces = append(pieces, piece{e.to, e.to - e.from, false, e.after})
		}
	}
	// What is inside closes first and opens last.
	slices.SortStableFunc(pieces, func(a, b piece) int {
		switch {
		case a.at != b.at:
			return a.at - b.at
		case a.opens != b.opens:
			if b.opens {
				return -1
			}
			return 1
		case a.opens:
			return b.length - a.length
		}
		return a.length - b.length
	})
	var out bytes.Buffer
	done := 0
	for _, p := range pieces {
		out.Write(src[done:p.at])
		out.WriteString(p.text)
		done = p.at
	}
	out.Write(src[done:])
	return out.Bytes()
}

// trial is a package's test program.
type trial struct {
	work, program, dir string
	limit              time.Duration
	times              map[string]time.Duration // of processor time, by test, as the code is
}

// test runs tests of the program, one of the places taken out (-1: none). A run that
// takes far too much of a processor fails, and one that waits for ever: the machine may
// be busy with other things. took is the processor time.
func (t *trial) test(names []string, taken int, notes string) (took time.Duration, output []byte, err error) {
	limit := t.limit
	for _, name := range names {
		limit += 10 * t.times[name]
	}
	if taken < 0 {
		limit = 10 * time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*limit)
	defer cancel()
	temp, err := os.MkdirTemp(t.work, "t")
	if err != nil {
		return 0, nil, err
	}
	defer removeAll(temp)
	if err := os.Chmod(temp, 0o777|os.ModeSticky); err != nil { // as /tmp is
		return 0, nil, err
	}
	// A loop that is not ended must not take all of the machine's memory.
	cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit -v 16000000 2>/dev/null; ulimit -t "$1"; shift; exec "$@"`, "sh",
		strconv.Itoa(int(limit.Seconds())+1), t.program, "-test.run", "^("+strings.Join(names, "|")+")$", "-test.failfast", "-test.count=1", "-test.timeout=0")
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "MUTANTS_TAKEN="+strconv.Itoa(taken), "MUTANTS_NOTES="+notes)
	log, err := os.Create(filepath.Join(temp, "log"))
	if err != nil {
		return 0, nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return 0, nil, fmt.Errorf("start the test program: %w", err)
	}
	if err != nil {
		output, _ = os.ReadFile(log.Name())
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), output, err
}

// removeAll removes a folder in which tests may have made folders read-only.
func removeAll(dir string) {
	if os.RemoveAll(dir) != nil {
		_ = exec.Command("chmod", "-R", "u+w", dir).Run()
		_ = os.RemoveAll(dir)
	}
}

// build makes the test program; nil: the package has no tests.
func (pkg *folder) build(o options, work string) (*trial, error) {
	t := &trial{work: work, program: filepath.Join(work, "tests"), dir: filepath.Join(o.root, filepath.FromSlash(pkg.tests)),
		limit: o.limit, times: map[string]time.Duration{}}
	overlay := map[string]string{filepath.Join(o.root, filepath.FromSlash(pkg.folder), "mutants_of_refusals.go"): filepath.Join(work, "helper.go")}
	if err := os.WriteFile(filepath.Join(work, "helper.go"), fmt.Appendf(nil, helper, pkg.name), 0o666); err != nil {
		return nil, err
	}
	for i, f := range pkg.files {
		name := filepath.Join(o.root, filepath.FromSlash(f.name))
		src, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		overlay[name] = filepath.Join(work, strconv.Itoa(i)+".go")
		if err := os.WriteFile(overlay[name], instrument(src, pkg.edits[f.name]), 0o666); err != nil {
			return nil, err
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(work, "overlay.json"), data, 0o666); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "test", "-c", "-o", t.program, "-overlay", filepath.Join(work, "overlay.json"), ".")
	cmd.Dir = t.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go test -c: %w\n%s", err, out)
	}
	if _, err := os.Stat(t.program); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return t, nil
}

// testNames are the tests, examples and fuzz targets (with their seeds) of a program.
func (t *trial) testNames(skip *regexp.Regexp) ([]string, error) {
	cmd := exec.Command(t.program, "-test.list", ".")
	cmd.Dir = t.dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests: %w", err)
	}
	names := strings.Fields(string(out))
	return slices.DeleteFunc(names, func(s string) bool {
		return !strings.HasPrefix(s, "Test") && !strings.HasPrefix(s, "Fuzz") && !strings.HasPrefix(s, "Example") ||
			skip != nil && skip.MatchString(s)
	}), nil
}

// try finds the test that misses each place of a package.
func (pkg *folder) try(o options) error {
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer removeAll(work)
	if err := os.Chmod(work, 0o755); err != nil { // tests may run programs as other users
		return err
	}
	t, err := pkg.build(o, work)
	if t == nil || err != nil {
		return err
	}
	names, err := t.testNames(o.skip)
	if err != nil {
		return err
	}
	if err := pkg.reach(t, names, o.jobs); err != nil {
		return err
	}
	return atOnce(o.jobs, len(pkg.places), func(i int) error { return t.take(pkg.places[i]) })
}

// reach runs each test alone with nothing taken out, and notes where it is refused.
func (pkg *folder) reach(t *trial, names []string, jobs int) error {
	byID := map[int]*place{}
	for _, p := range pkg.places {
		byID[p.id] = p
	}
	var mu sync.Mutex
	err := atOnce(jobs, len(names), func(i int) error {
		notes := filepath.Join(t.work, "notes"+strconv.Itoa(i))
		took, out, err := t.test(names[i:i+1], -1, notes)
		if err != nil {
			return fmt.Errorf("with nothing taken out, %s: %w\n%s", names[i], err, out)
		}
		data, err := os.ReadFile(notes)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		t.times[names[i]] = took
		for line := range strings.FieldsSeq(string(data)) {
			id, err := strconv.Atoi(line)
			if err != nil {
				return fmt.Errorf("notes of %s: %w", names[i], err)
			}
			// A test may be several processes.
			if p := byID[id]; p != nil && !slices.Contains(p.tests, names[i]) {
				p.tests = append(p.tests, names[i])
			}
		}
		return nil
	})
	for _, p := range pkg.places {
		slices.SortFunc(p.tests, func(a, b string) int {
			return cmp.Or(cmp.Compare(t.times[a], t.times[b]), strings.Compare(a, b))
		})
	}
	return err
}

// take takes a place out and looks for a test that fails: the quickest first, the rest
// in one go.
func (t *trial) take(p *place) error {
	const alone = 3
	rest := p.tests
	for len(rest) > 0 {
		n := 1
		if len(p.tests)-len(rest) >= alone {
			n = len(rest)
		}
		_, _, err := t.test(rest[:n], p.id, "")
		var failed *exec.ExitError
		switch {
		case errors.As(err, &failed):
			p.killer = some(rest[:n])
			return nil
		case err != nil:
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// atOnce calls do for 0 to n-1, some at once. It ends at the first error.
func atOnce(jobs, n int, do func(int) error) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	next := 0
	for range max(jobs, 1) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := failed != nil || i >= n
				mu.Unlock()
				if stop {
					return
				}
				if err := do(i); err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return failed
}
