package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/testmode"
	"github.com/united-workforce/uwf/internal/wiretest"
)

const benchChanges = 20

// benchFiles is how many files the workspace has.
func benchFiles() int {
	if testing.Short() {
		return 100
	}
	return 10_000
}

func TestBenchmarksStart(t *testing.T) {
	testmode.StartBenchmarks(t, ".")
}

// benchRepo is a served repository of 10,000 files in 1,000 folders, two commits
// that differ in 20 files, and a native clone of it.
type benchRepo struct {
	*repo
	one, two wire.ID
	clone    string
}

func newBench(b *testing.B) *benchRepo {
	b.Helper()
	r := &benchRepo{repo: newRepo(b, "http")}
	src := b.TempDir()
	for i := range benchFiles() {
		path := filepath.Join(src, fmt.Sprintf("p%02d/q%d/f%03d.go", i/100%100, i%10, i/10))
		must(b, os.MkdirAll(filepath.Dir(path), 0o755))
		must(b, os.WriteFile(path, []byte(strings.Repeat(fmt.Sprintf("line %d of a file\n", i), 150)), 0o644))
	}
	r.one = r.commit(src)
	edit(b, src, 0)
	r.two = r.commit(src, r.one.String())
	r.git("update-ref", "refs/heads/main", r.two.String())
	r.clone = filepath.Join(b.TempDir(), "clone")
	runGit(b, src, "", "clone", "-q", "--no-local", r.url, r.clone)
	return r
}

// edit changes 20 files of a workspace.
func edit(b *testing.B, dir string, round int) {
	b.Helper()
	for i := range benchChanges {
		i := i * benchFiles() / benchChanges
		path := filepath.Join(dir, fmt.Sprintf("p%02d/q%d/f%03d.go", i/100%100, i%10, i/10))
		must(b, os.WriteFile(path, fmt.Appendf(nil, "edited in round %d: %d\n", round, i), 0o644))
	}
}

// settle waits until a look at a workspace can trust the times of its files.
func settle(b *testing.B, dir string) {
	b.Helper()
	start := time.Now()
	for time.Since(start) < 20*time.Millisecond {
		must(b, os.WriteFile(filepath.Join(dir, ".git-settle"), nil, 0o644))
	}
	must(b, os.Remove(filepath.Join(dir, ".git-settle")))
}

// timed adds the time of f to sum.
func timed(sum *time.Duration, f func()) {
	start := time.Now()
	f()
	*sum += time.Since(start)
}

func report(b *testing.B, ours, native time.Duration) {
	b.Helper()
	n := float64(b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(ours.Microseconds())/1000/n, "ours-ms")
	b.ReportMetric(float64(native.Microseconds())/1000/n, "native-ms")
	b.ReportMetric(float64(ours)/float64(native), "ratio")
}

// BenchmarkSnapshot: what it takes from 20 edits in a workspace that was restored before
// to the commit's objects, against native git add and commit.
func BenchmarkSnapshot(b *testing.B) {
	r := newBench(b)
	dir := b.TempDir()
	w := open(b, dir, r)
	must(b, w.Restore(ctx, r.two))
	settle(b, dir)
	snapshot(b, w, r.two)
	var ours, native time.Duration
	parent := r.two
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		edit(b, dir, i+1)
		edit(b, r.clone, i+1)
		settle(b, dir)
		timed(&ours, func() {
			s := snapshot(b, w, parent)
			if len(s.Changes) != benchChanges {
				b.Fatalf("%d changes", len(s.Changes))
			}
			parent = s.Commit
		})
		timed(&native, func() {
			runGit(b, r.clone, "", "add", "-A")
			runGit(b, r.clone, "", "commit", "-q", "-m", "m")
		})
	}
	report(b, ours, native)
}

// BenchmarkRestore: 20 changed files in a known workspace, objects fetched over
// HTTP, against native git fetch (depth 1) and checkout.
func BenchmarkRestore(b *testing.B) {
	r := newBench(b)
	dir := b.TempDir()
	w := open(b, dir, r)
	must(b, w.Restore(ctx, r.two))
	served := strings.TrimSuffix(r.URL(), "/")
	var ours, native time.Duration
	at := r.two
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		next := benchEdit(b, r, at, i)
		settle(b, dir)
		timed(&ours, func() { must(b, w.Restore(ctx, next)) })
		timed(&native, func() {
			runGit(b, r.clone, "", "fetch", "-q", "--depth", "1", served, next.String())
			runGit(b, r.clone, "", "checkout", "-q", next.String())
		})
		at = next
	}
	report(b, ours, native)
}

// benchEdit commits 20 edits on top of a commit, in the served repository.
func benchEdit(b *testing.B, r *benchRepo, parent wire.ID, round int) wire.ID {
	b.Helper()
	stream := fmt.Sprintf("commit refs/heads/main\ncommitter t <t@t> %d +0000\ndata 2\nm\nfrom %s\n", 1700000001+round, parent)
	for i := range benchChanges {
		i := i * benchFiles() / benchChanges
		text := fmt.Sprintf("restored in round %d: %d\n", round, i)
		stream += fmt.Sprintf("M 100644 inline p%02d/q%d/f%03d.go\ndata %d\n%s\n", i/100%100, i%10, i/10, len(text), text)
	}
	runGit(b, r.url, stream, "fast-import", "--quiet", "--force")
	return plumbing.NewHash(r.git("rev-parse", "main"))
}

// BenchmarkRestoreFresh: into an empty folder, against a native shallow clone.
func BenchmarkRestoreFresh(b *testing.B) {
	r := newBench(b)
	var ours, native time.Duration
	b.ResetTimer()
	for b.Loop() {
		dir, clone := b.TempDir(), filepath.Join(b.TempDir(), "c")
		timed(&ours, func() { must(b, open(b, dir, r).Restore(ctx, r.two)) })
		timed(&native, func() { runGit(b, dir, "", "clone", "-q", "--depth", "1", r.URL(), clone) })
		must(b, os.RemoveAll(dir))
		must(b, os.RemoveAll(clone))
	}
	report(b, ours, native)
}

// BenchmarkRestoreUnknown: a folder that an earlier step of the job checked out,
// of which nothing is known, against native git without an index.
func BenchmarkRestoreUnknown(b *testing.B) {
	r := newBench(b)
	dir := b.TempDir()
	var ours, native time.Duration
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		from, to := r.one, r.two
		if i%2 == 1 {
			from, to = r.two, r.one
		}
		must(b, open(b, dir, r).Restore(ctx, from))
		runGit(b, r.clone, "", "checkout", "-q", from.String())
		timed(&ours, func() { must(b, open(b, dir, r).Restore(ctx, to)) })
		must(b, os.Remove(filepath.Join(r.clone, ".git/index")))
		timed(&native, func() { runGit(b, r.clone, "", "checkout", "-q", "-f", to.String()) })
	}
	report(b, ours, native)
}

// BenchmarkSteps tells the processor time of the walks that steps do, in one process and, with
// kept stamps, in a new one. The store is a memory, so that no server is measured.
func BenchmarkSteps(b *testing.B) {
	for name, attributes := range map[string]string{"plain": "", "attributes": "*.go text eol=crlf\n*.png binary\n[attr]gen -text\ngen/** gen\n"} {
		b.Run(name, func(b *testing.B) {
			m := wiretest.NewMemory(wiretest.MemoryOptions{})
			all := files{}
			for i := range 3 * benchFiles() {
				all[fmt.Sprintf("p%02d/q%d/f%03d.go", i/100%100, i%10, i/10)] = strings.Repeat(fmt.Sprintf("line %d of a file\n", i), 150)
			}
			if attributes != "" {
				all[".gitattributes"] = attributes
			}
			commit := commitOf(b, m, all)
			file := filepath.Join(b.TempDir(), "stamps")
			var restored, same, scanned, other time.Duration
			for b.Loop() {
				dir := b.TempDir()
				w := open(b, dir, m)
				burnt(&restored, func() { must(b, w.Restore(ctx, commit)) })
				settle(b, dir)
				snapshot(b, w, commit)
				burnt(&same, func() { must(b, w.Restore(ctx, commit)) })
				burnt(&scanned, func() { snapshot(b, w, commit) })
				must(b, w.KeepStamps(file))
				burnt(&other, func() {
					next := open(b, dir, m)
					must(b, next.RecallStamps(file))
					snapshot(b, next, commit)
				})
			}
			for unit, sum := range map[string]time.Duration{"restore-ms": restored, "again-ms": same, "snapshot-ms": scanned, "recalled-ms": other} {
				b.ReportMetric(float64(sum.Microseconds())/1000/float64(b.N), unit)
			}
		})
	}
}

// burnt adds the processor time of f to sum.
func burnt(sum *time.Duration, f func()) {
	runtime.GC() // so that f doesn't pay for earlier garbage
	before := processorTime()
	f()
	*sum += processorTime() - before
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkRestoreMemory tells how much memory a restore into an empty folder takes, in MiB above
// what the process had.
func BenchmarkRestoreMemory(b *testing.B) {
	r := newBench(b)
	most := func() (kib int64) {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			b.Skip("only Linux tells")
		}
		_, after, _ := strings.Cut(string(status), "VmHWM:")
		_, err = fmt.Sscan(after, &kib)
		must(b, err)
		return kib
	}
	for b.Loop() {
		debug.FreeOSMemory()
		if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
			b.Skip(err)
		}
		before := most()
		must(b, open(b, b.TempDir(), r).Restore(ctx, r.two))
		b.ReportMetric(float64(most()-before)/1024, "MiB")
	}
}
