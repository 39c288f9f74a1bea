package rewrite_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/rewrite"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/gitservertest"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// BenchmarkPurge rewrites 10,000 state commits on a real git server: 20 threads
// alive at a time, with the secret in the very first step. It is made by the
// Store, in memory, and then copied to the server.
//
//	go test -run '^$' -bench Purge -benchtime 1x ./gitcas/rewrite
func BenchmarkPurge(b *testing.B) {
	if err := gitserver.Available(""); err != nil {
		b.Skip(err)
	}
	root := b.TempDir()
	s, err := gitservertest.Serve(root, gitserver.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	for _, where := range []string{"first", "last", "first-memory"} {
		mem := history(b, 10_000, strings.TrimSuffix(where, "-memory"))
		b.Run(where, func(b *testing.B) {
			for i := range b.N {
				name := fmt.Sprintf("%s-%d.git", where, i)
				copyTo(b, mem, filepath.Join(root, name))
				remote, err := wire.Dial(s.URL+"/"+name, wire.DialOptions{})
				if err != nil {
					b.Fatal(err)
				}
				purgeOnce(b, remote, strings.HasSuffix(where, "memory"))
			}
		})
	}
}

func purgeOnce(b *testing.B, remote wire.Remote, memory bool) {
	o := rewrite.Options{
		Branch: "refs/heads/uwf-state", Store: layout.StoreRef, Attempts: "refs/uwf/attempts/",
		Atomic: true, Find: finder(b, secret),
	}
	peak := func() uint64 { return 0 }
	if memory { // it costs time
		peak = watchHeap(b)
	}
	r := rewrite.New(remote, o)
	plan, err := r.MakePlan(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(b.Elapsed().Seconds(), "s/plan")
	if _, err := r.Execute(b.Context()); err != nil {
		b.Fatal(err)
	}
	if memory {
		b.ReportMetric(float64(peak())/(1<<20), "MB-heap")
	}
	b.ReportMetric(float64(plan.Changed), "commits")
	b.ReportMetric(float64(plan.Bytes)/(1<<20), "MB-new")
}

// watchHeap returns by how much the heap grew at most, seen now and then.
func watchHeap(b *testing.B) func() uint64 {
	b.Helper()
	// The heap of the benchmark itself is large: what is garbage must not count.
	percent := debug.SetGCPercent(5)
	b.Cleanup(func() { debug.SetGCPercent(percent) })
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	stop, out := make(chan struct{}), make(chan uint64)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		var most uint64
		for {
			select {
			case <-stop:
				out <- most - min(most, before.HeapAlloc)
				return
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
		}
	}()
	return func() uint64 { close(stop); return <-out }
}

// history makes a store in memory.
func history(b *testing.B, commits int, where string) *wiretest.Memory {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	f := newFixture(b, mem)
	words := strings.Repeat("all work and no play makes a dull page, and here is some more of it. ", 20)
	n, thread := 1, 0
	for n < commits {
		var ids []gitcas.ThreadID
		for range 20 {
			thread++
			ids = append(ids, id(thread))
			f.start(id(thread), "start of "+fmt.Sprint(thread))
			n++
		}
		for i := range 23 {
			for j, t := range ids {
				text := fmt.Sprintf("step %d of %d. %s", i, j, words)
				if where == "first" && n < 30 || where == "last" && n > commits-30 {
					text += secret
				}
				f.step(t, note(text), text+" body", strings.Repeat(text, 4))
				n++
			}
		}
		for _, t := range ids {
			f.end(t, "cancelled", "")
			n++
		}
	}
	return mem
}

func copyTo(b *testing.B, mem *wiretest.Memory, dir string) {
	b.StopTimer()
	defer b.StartTimer()
	if out, err := exec.Command("git", "init", "-q", "--bare", dir).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	remote, err := wire.Dial("file://"+dir, wire.DialOptions{})
	if err != nil {
		b.Fatal(err)
	}
	tip := mem.Refs()["refs/heads/uwf-state"]
	objs, err := mem.Fetch(b.Context(), wire.FetchRequest{Wants: []wire.ID{tip}})
	if err != nil {
		b.Fatal(err)
	}
	req := wire.PushRequest{Atomic: true, Updates: []wire.RefUpdate{{Name: "refs/heads/uwf-state", New: tip}, {Name: layout.StoreRef, New: tip}}}
	for _, o := range objs {
		req.Objects = append(req.Objects, wire.PackObject{Object: o})
	}
	if _, err := remote.Push(b.Context(), req); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("git", "-C", dir, "repack", "-adq")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}
