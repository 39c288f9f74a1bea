package benchmarks

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/gitcas/workspace/stamps"
)

// BenchmarkRole is one step of a role whose agent edits 20 files at once, in a folder that the
// thread's last step left: confined as by default, over HTTP. cpu-ms is the processor time of uwf
// with all that it starts, git-ms that of native git in a clone: the same edits, add, write-tree,
// commit-tree and push. Each is a median, of pairs. ratio is the median of the pairs' ratios.
//
// UWF_TEST_PROGRAMS lists other uwf binaries, separated as in PATH, that run in the same pairs. Agents have
// a user of their own only if root runs it.
//
//	go test ./cmd/uwf/acceptance/benchmarks -run '^$' -bench Role -benchtime 10x
func BenchmarkRole(b *testing.B) {
	sizes := []int{3_000, 30_000}
	if testing.Short() {
		sizes = []int{100}
	}
	programs := roleProgramsOf(b)
	for _, files := range sizes {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			var steppers []*roleStepper
			for _, program := range programs {
				steppers = append(steppers, newRoleStepper(b, program, files))
			}
			steppers[0].checkFolder()
			for b.Loop() {
				for _, s := range steppers {
					s.comparePair()
				}
			}

			b.ReportMetric(0, "ns/op")
			for i, s := range steppers {
				name := ""
				if i > 0 {
					name = "old" + strings.Repeat("er", i-1) + "-"
				}
				b.ReportMetric(inMs(s.ours), name+"cpu-ms")
				b.ReportMetric(inMs(s.natives), name+"git-ms")
				b.ReportMetric(s.medianRatio(), name+"ratio")
			}
		})
	}
}

// roleProgramsOf returns uwf as it is in this working tree, and the other binaries.
func roleProgramsOf(b *testing.B) []string {
	b.Helper()
	dir := openFolder(b)
	built := filepath.Join(dir, "uwf")
	if out, err := exec.Command("go", "build", "-o", built, "github.com/united-workforce/uwf/cmd/uwf").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return append([]string{built}, filepath.SplitList(os.Getenv("UWF_TEST_PROGRAMS"))...)
}

// openFolder is a temporary one to which the agents' user gets.
func openFolder(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("", "uwf-benchmark-") //nolint:usetesting // no other user gets to those of b.TempDir
	if err := errors.Join(err, os.Chmod(dir, 0o755)); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// roleStepper steps one thread with one binary, and has native git do the same.
type roleStepper struct {
	*benchJob
	program, tmp  string
	ours, natives []time.Duration
}

func newRoleStepper(b *testing.B, program string, files int) *roleStepper {
	b.Helper()
	s := &roleStepper{benchJob: newBenchJob(b, files, 20), program: program}
	open := openFolder(b)
	s.home, s.tmp = filepath.Join(open, "home"), filepath.Join(open, "tmp")
	s.check(errors.Join(os.Mkdir(s.home, 0o755), os.Mkdir(s.tmp, 0o755)))
	agent := filepath.Join(open, "agent.sh")
	script := filepath.Join(open, "script.yaml")
	s.check(os.WriteFile(agent, []byte("[ -e hard ] || { echo x >hard && ln hard link; }\n"+s.edit+"exec \"$UWF_BIN\" agent mock \"$@\"\n"), 0o755))
	s.check(os.WriteFile(script, []byte(s.read("script.yaml")), 0o644))
	s.check(os.WriteFile(filepath.Join(s.home, "config.yaml"), fmt.Appendf(nil, "agents:\n  instant: {command: /bin/sh, args: [%q, %q]}\n", agent, script), 0o600))
	s.git(s.dir, "clone", "-q", "--depth", "1", "--branch", "main", s.url, filepath.Join(s.dir, "native"))
	s.runStep() // which restores the folder
	return s
}

// checkFolder checks that a step leaves most files as they are, and that agents keep their own.
func (s *roleStepper) checkFolder() {
	s.Helper()
	was := s.statOf("src/part000/file01.txt")
	s.runStep()
	if is := s.statOf("src/part000/file01.txt"); is != was {
		s.Errorf("a step without use of a file left it as %+v, it was %+v", is, was)
	}
	if report := sandbox.Probe(); report.Root && (int(was.Owner) != report.UID || s.statOf("").Owner != 0) {
		s.Errorf("the folder is %+v, and a file in it %+v", s.statOf(""), was)
	}
	if got := s.git(s.repo, "ls-tree", "--name-only", "uwf/"+s.id, "hard", "link"); got != "hard\nlink" {
		s.Errorf("of a file with two names the commit has %q", got)
	}
}

// statOf is a file of the working folder.
func (s *roleStepper) statOf(name string) stamps.Stat {
	s.Helper()
	info, err := os.Lstat(filepath.Join(s.home, "work", s.id, name))
	s.check(err)
	return stamps.StatOf(info)
}

// comparePair is a step, and what native git takes for it.
func (s *roleStepper) comparePair() {
	s.Helper()
	s.ours = append(s.ours, s.runStep())
	native := filepath.Join(s.dir, "native")
	var took time.Duration
	run := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Dir = native
		out, used := s.runMeasured(cmd)
		took += used
		return strings.TrimSpace(out)
	}
	run("sh", filepath.Join(s.dir, "edit.sh"))
	run("git", "add", "-A")
	commit := run("git", "commit-tree", "-m", "The same", "-p", "HEAD", run("git", "write-tree"))
	run("git", "push", "-q", "origin", commit+":refs/heads/uwf/native")
	run("git", "update-ref", "HEAD", commit)
	s.natives = append(s.natives, took)
}

// runStep returns the processor time that it took.
func (s *roleStepper) runStep() time.Duration {
	s.Helper()
	cmd := exec.Command(s.program, "thread", "step", s.id, "--agent", "instant")
	cmd.Dir = s.clone
	_, took := s.runMeasured(cmd)
	return took
}

// runMeasured runs a command and returns what it printed, and the processor time that it and those
// that it waited for have used.
func (s *roleStepper) runMeasured(cmd *exec.Cmd) (string, time.Duration) {
	s.Helper()
	cmd.Env = append(s.environ(), "TMPDIR="+s.tmp)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		s.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, out.String(), errs.String())
	}
	return out.String(), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func (s *roleStepper) medianRatio() float64 {
	var ratios []float64
	for i := range s.ours {
		ratios = append(ratios, float64(s.ours[i])/float64(s.natives[i]))
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}
