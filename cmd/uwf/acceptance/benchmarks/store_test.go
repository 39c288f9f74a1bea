package benchmarks

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
)

const envFormer = "UWF_TEST_FORMER" // FILE: a uwf of an earlier commit, to compare with

// BenchmarkStore is what reads a whole store, over HTTP: fsck of 1,000 live threads of two steps, and
// gc and the list of all threads after 10,000 threads have ended, 20 a day. On the machine of the gc lie
// the folders of five threads that the store doesn't know. A uwf of an earlier commit, if one is
// named, does the same in turn: old/new-wall and old/new-cpu are the medians' ratios.
//
//	UWF_TEST_FORMER=<a uwf> go test ./cmd/uwf/acceptance/benchmarks -run '^$' -bench Store -benchtime 7x
func BenchmarkStore(b *testing.B) {
	threads, ended := 1000, 10_000
	if testing.Short() {
		threads, ended = 3, 30
	}
	alive := newLongThread(b, true, false, 1)
	alive.growStore(threads, 0)
	over := newLongThread(b, true, false, 1)
	over.growStore(1, ended)
	for i := range 5 {
		over.check(os.MkdirAll(filepath.Join(worker.WorkRoot(over.home), string(storeThread(90_000+i))), 0o700))
	}
	for _, tc := range []struct {
		l    *longThread
		args []string
	}{{alive, []string{"fsck"}}, {over, []string{"gc", "--dry-run"}}, {over, []string{"thread", "list", "--all", "--format", "json"}}} {
		b.Run(tc.args[0], func(b *testing.B) { tc.l.in(b).compareFormer(tc.args) })
	}
}

// BenchmarkStep is one whole step over HTTP with the mock agent: what its processes cost. cpu counts
// those that it started.
//
//	UWF_TEST_FORMER=<a uwf> go test ./cmd/uwf/acceptance/benchmarks -run '^$' -bench 'Step$' -benchtime 15x
func BenchmarkStep(b *testing.B) {
	l := newLongThread(b, true, false, 10)
	l.compareFormer([]string{"thread", "step", l.id, "--agent", "uwf agent mock '" + filepath.Join(l.dir, "script.yaml") + "'", "--sandbox", "off"})
}

// compareFormer runs a command, and that of an earlier commit in turn.
func (l *longThread) compareFormer(args []string) {
	names, programs := []string{"new", "old"}, []string{"uwf-measured", os.Getenv(envFormer)}
	var walls, cpus [2][]time.Duration
	var requests [2]int64
	var rss [2]int64
	for l.Loop() {
		for i, program := range programs {
			if program == "" {
				continue
			}
			cmd := exec.Command(program, args...)
			cmd.Dir, cmd.Env = l.clone, append(l.environ(), envProfile+"="+os.Getenv(envProfile))
			var errs bytes.Buffer
			cmd.Stderr = &errs
			before, at := l.requests.Load(), time.Now()
			if err := cmd.Run(); err != nil {
				l.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, errs.String())
			}
			walls[i] = append(walls[i], time.Since(at))
			cpus[i] = append(cpus[i], cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			requests[i], rss[i] = l.requests.Load()-before, max(rss[i], cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10)
			if slices.Contains(args, "step") {
				l.reset()
			}
		}
	}

	l.ReportMetric(0, "ns/op")
	for i, name := range names {
		if len(walls[i]) == 0 {
			continue
		}
		l.ReportMetric(inMs(walls[i]), name+"-wall-ms")
		l.ReportMetric(float64(slices.Min(walls[i]).Microseconds())/1000, name+"-best-ms") // as on a machine with nothing else to do
		l.ReportMetric(inMs(cpus[i]), name+"-cpu-ms")
		l.ReportMetric(float64(requests[i]), name+"-requests")
		l.ReportMetric(float64(rss[i])/(1<<20), name+"-MB-rss")
	}
	if programs[1] != "" {
		l.ReportMetric(inMs(walls[0])/inMs(walls[1]), "new/old-wall")
		l.ReportMetric(inMs(cpus[0])/inMs(cpus[1]), "new/old-cpu")
	}
}

func storeThread(n int) gitcas.ThreadID { return gitcas.ThreadID(fmt.Sprintf("01KN%022d", n)) }

// growStore puts so many more threads of two steps on the branch, and so many lines of ended ones into
// the history.
func (l *longThread) growStore(threads, ended int) {
	l.Helper()
	remote, err := wire.Dial("file://"+l.repo, wire.DialOptions{})
	l.check(err)
	id := gitcas.ThreadID(l.id)
	v, err := gitcas.Open(remote, gitcas.Options{}).Load(l.Context(), id)
	l.check(err)
	chain, err := v.ReadChain(l.Context(), id)
	l.check(err)
	cmd := exec.Command("git", "fast-import", "--quiet", "--force", "--done")
	cmd.Dir, cmd.Env = l.repo, l.environ()
	in, err := cmd.StdinPipe()
	l.check(err)
	l.check(cmd.Start())

	g := &grower{w: in, v: v, rnd: rand.New(rand.NewPCG(1, 1)), seen: map[string]bool{}}
	output, err := v.In(l.Context(), gitcas.Place{Thread: id, Of: chain.Steps[0].Hash}).Get(chain.Steps[0].Output)
	l.check(err)
	set := map[gitcas.ThreadID]*gitcas.Entry{}
	for i := range threads {
		g.id = storeThread(i)
		start := chain.Start
		start.Prompt = fmt.Sprint("Make it good, ", i)
		n, h, err := start.Node(clitest.When)
		g.node(gitcas.Place{Thread: g.id}, n, h, err)
		g.before, err = n.Sum()
		g.started, g.counts = g.before, record.Counts{}
		g.err = errors.Join(g.err, err)
		entry := &gitcas.Entry{Workflow: start.Workflow, Next: &gitcas.Next{Role: longRoles[0], Since: clitest.When.UnixMilli()}}
		var prev *node.Hash
		for k := range 2 {
			entry.Head = g.step(k, longRoles[0], output.Type, h, prev)
			prev = &entry.Head
		}
		set[g.id] = entry
	}
	file, err := v.ThreadsFile.With(set)
	l.check(err)
	g.file(layout.ThreadsName, file.Encode())
	l.check(g.growHistory(ended, chain))
	ref := "refs/heads/" + gitcas.DefaultBranch
	g.printf("commit %s\ncommitter uwf <uwf@localhost> 1700000000 +0000\ndata 2\nm\nfrom %s^0\n%s\nreset %s\nfrom %s\n\ndone\n", ref, ref, g.files.String(), layout.StoreRef, ref)
	l.check(errors.Join(g.err, in.Close(), cmd.Wait()))
	l.git(l.repo, "repack", "-adfq")
	l.git(l.repo, "pack-refs", "--all")
}

// growHistory writes ended threads, 20 a day.
func (g *grower) growHistory(ended int, chain gitcas.Chain) error {
	days := map[string][]byte{}
	for i := range ended {
		at := clitest.When.Add(-24 * time.Hour * time.Duration(i/20))
		e := gitcas.Ended{
			Thread: storeThread(10_000 + i), Title: g.words(40), Workflow: chain.Start.Workflow, Head: chain.StartHash, CompletedAt: at.UnixMilli(),
			Reason: gitcas.ReasonEnded, Commit: strings.Repeat("a", 40), Result: "done", Used: &gitcas.Cost{Steps: 10, Tokens: 220_000, CostUSD: 1.5, DurationMs: 300_000},
		}
		for range 10 {
			e.Steps = append(e.Steps, chain.StartHash)
		}
		line, err := statefile.EncodeEnded(e)
		if err != nil {
			return err
		}
		year, day := layout.HistoryFile(at)
		path := layout.HistoryDir + "/" + year + "/" + day
		days[path] = append(days[path], line...)
	}
	for path, data := range days {
		g.file(path, data)
	}
	return nil
}
