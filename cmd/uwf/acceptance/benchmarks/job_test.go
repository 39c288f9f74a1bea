package benchmarks

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkJob is one step as a CI job does it: a whole process, in a checkout that
// was made a moment before, of a repository with 10,000 files, by an agent that
// changes 20 of them, over HTTP. git-ms is native git adding, committing and pushing
// the same 20 files. wall-ms is without the agent, cpu-ms the process's own processor
// time, without the agent's and the git server's; best-ms is as on a machine with
// nothing else to do.
//
//	go test ./cmd/uwf/acceptance/benchmarks -run '^$' -bench Job -benchtime 10x
func BenchmarkJob(b *testing.B) {
	files := 10_000
	if testing.Short() {
		files = 100
	}
	made := newBenchJob(b, files, 20)
	j := &benchJob{longThread: made.in(b), edit: made.edit}
	var walls, cpus, natives, agents []time.Duration
	for j.Loop() {
		j.resetMachine()
		_, m, wall := j.uwf(j.stepArgs()...)
		agent := j.agentTook()
		walls, cpus, agents = append(walls, wall-agent), append(cpus, m.Self), append(agents, agent)
		if got := strings.Count(j.git(j.repo, "diff", "--name-only", "main", "uwf/"+j.id), "\n") + 1; got != 20 {
			j.Fatalf("%d files changed", got)
		}
		natives = append(natives, j.nativePush())
		j.reset()
	}
	j.ReportMetric(0, "ns/op")
	j.ReportMetric(inMs(walls), "wall-ms")
	j.ReportMetric(float64(slices.Min(walls).Microseconds())/1000, "best-ms")
	j.ReportMetric(inMs(cpus), "cpu-ms")
	j.ReportMetric(float64(slices.Min(cpus).Microseconds())/1000, "best-cpu-ms")
	j.ReportMetric(inMs(natives), "git-ms")
	j.ReportMetric(float64(slices.Min(natives).Microseconds())/1000, "best-git-ms")
	j.ReportMetric(inMs(agents), "agent-ms")
}

// benchJob is a repository of many files with a thread.
type benchJob struct {
	*longThread
	edit string // a shell script that changes files
}

// newBenchJob makes a repository of so many files, 100 in a folder, each of 1 to 8 KB.
func newBenchJob(b *testing.B, files, changed int) *benchJob {
	b.Helper()
	l := newLongThread(b, true, false, 3)
	j := &benchJob{longThread: l}
	g := &grower{rnd: rand.New(rand.NewPCG(1, 2))}
	j.edit = "set -e\n"
	for i := range files {
		name := fmt.Sprintf("src/part%03d/file%02d.txt", i/100, i%100)
		l.write("clone/"+name, g.words(1<<10+g.rnd.IntN(7<<10)))
		if i%(files/changed) == 0 {
			j.edit += fmt.Sprintf("echo 'one more line' >>%s\n", name)
		}
	}
	l.git(l.clone, "config", "gc.auto", "0")
	l.git(l.clone, "config", "maintenance.auto", "false")
	l.git(l.clone, "add", "-A")
	l.git(l.clone, "commit", "-q", "-m", "Many files")
	l.git(l.clone, "push", "-q", "origin", "main")
	l.write("agent.sh", strings.Replace(l.read("agent.sh"), "uwf agent", j.edit+"uwf agent", 1))
	l.write("edit.sh", j.edit)
	l.write("config.yaml", l.read("clone/.uwf/config.yaml"))
	j.begin()
	return j
}

func (l *longThread) read(name string) string {
	l.Helper()
	b, err := os.ReadFile(filepath.Join(l.dir, name))
	l.check(err)
	return string(b)
}

// begin starts the thread that is stepped: its work begins from all the files.
func (j *benchJob) begin() {
	j.Helper()
	out, _, _ := j.uwf("thread", "start", "long", "-p", "Make it good.", "--format", "json")
	var started struct {
		Thread string `json:"thread"`
	}
	j.check(json.Unmarshal([]byte(out), &started))
	j.id = started.Thread
	j.git(j.repo, "repack", "-adfq")
	j.git(j.repo, "pack-refs", "--all")
	j.refs = j.git(j.repo, "for-each-ref", "--format=update %(refname) %(objectname)")
}

// resetMachine makes the machine of a new job: nothing is left of the last one.
func (j *benchJob) resetMachine() {
	j.Helper()
	j.check(errors.Join(os.RemoveAll(j.clone), os.RemoveAll(j.home), os.MkdirAll(j.clone, 0o700), os.MkdirAll(j.home, 0o700)))
	j.git(j.clone, "init", "-q", "-b", "main")
	j.git(j.clone, "remote", "add", "origin", j.url)
	// Only the configuration, so that the store is found.
	j.write("clone/.uwf/config.yaml", j.read("config.yaml"))
}

// nativePush is what native git takes for the same work.
func (j *benchJob) nativePush() time.Duration {
	j.Helper()
	dir := filepath.Join(j.dir, "native")
	j.git(j.dir, "clone", "-q", "--depth", "1", "--single-branch", "--branch", "main", j.url, dir)
	cmd := exec.Command("sh", filepath.Join(j.dir, "edit.sh"))
	cmd.Dir = dir
	j.check(cmd.Run())
	at := time.Now()
	j.git(dir, "add", "-A")
	j.git(dir, "commit", "-q", "-m", "The same")
	j.git(dir, "push", "-q", "origin", "HEAD:refs/heads/uwf/native")
	took := time.Since(at)
	j.check(os.RemoveAll(dir))
	return took
}
