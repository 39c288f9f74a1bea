package thread_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/gitcastest"
	"github.com/united-workforce/uwf/internal/wiretest"
)

var addGolden = flag.Bool("add-golden", false, "write the golden stores that are not there yet")

// goldenStory says how a golden store came to be.
type goldenStory struct {
	name    string
	about   string
	answers answers // what agents say, also later, when the threads go on
	tell    func(g *golden, w *goldenWriter)
}

// TestWriteGolden checks that every story can still be told, and writes the stores
// that are missing. One that is there is never written again: it is what an
// earlier version wrote.
func TestWriteGolden(t *testing.T) {
	for _, story := range goldenStories() {
		t.Run(story.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(time.Date(2026, 6, 4, 12, 0, 0, 0, time.UTC)))
				g := newGolden(t, wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), story.answers)
				story.tell(g, &goldenWriter{g: g, ids: map[string]gitcas.ThreadID{}})
				g.sound()
				if *addGolden {
					g.write("testdata/golden/"+story.name+".txtar", story)
				}
			})
		})
	}
}

func (g *golden) write(file string, story goldenStory) {
	g.Helper()
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		g.ok(err)
		return
	}
	stream, err := gitcastest.Export(g.mem)
	g.ok(err)
	a := &txtar.Archive{
		Comment: []byte(strings.TrimSpace(story.about) + "\n"),
		Files:   []txtar.File{{Name: "facts.json", Data: g.text(g.read())}, {Name: "answers.json", Data: g.text(story.answers)}, {Name: "store", Data: stream}},
	}
	g.ok(os.WriteFile(file, txtar.Format(a), 0o644)) //nolint:gosec // a file of the repository
}

// goldenWriter tells stories with names for threads.
type goldenWriter struct {
	g      *golden
	ids    map[string]gitcas.ThreadID
	last   int
	limits map[string]float64 // of the threads to be started
}

func (w *goldenWriter) id(name string) gitcas.ThreadID {
	if _, ok := w.ids[name]; !ok {
		w.last++
		w.ids[name] = goldenID(w.last)
	}
	return w.ids[name]
}

// start starts a thread of a workflow that is written in YAML.
func (w *goldenWriter) start(name, prompt, flow string) {
	w.g.Helper()
	def, err := workflow.Parse("flow.yaml", []byte(flow), workflow.Options{})
	w.g.ok(err)
	h, nodes, err := workflow.Materialize(def, time.Now())
	w.g.ok(err)
	req := thread.StartRequest{ID: w.id(name), Workflow: h, Nodes: map[node.Hash]node.Node{}, Prompt: prompt, Key: "test/" + name, Limits: w.limits}
	for _, n := range nodes {
		nh, err := n.ComputeHash()
		w.g.ok(err)
		req.Nodes[nh] = n
	}
	_, err = w.g.engine().Start(w.g.Context(), req)
	w.g.ok(err)
	time.Sleep(time.Minute)
}

// steps works on a thread that many times.
func (w *goldenWriter) steps(name string, n int) {
	w.g.Helper()
	for range n {
		_, err := w.g.step(w.id(name))
		w.g.ok(err)
		time.Sleep(time.Minute)
	}
}

// fails works on a thread with an agent that gives up.
func (w *goldenWriter) fails(name string) {
	w.g.Helper()
	w.g.fails = 1
	if _, err := w.g.step(w.id(name)); err == nil {
		w.g.Fatal("a step was to fail")
	}
	time.Sleep(time.Minute)
}

func (w *goldenWriter) resume(name, text string) {
	w.g.Helper()
	w.g.ok(w.g.engine().Resume(w.g.Context(), thread.ResumeRequest{Thread: w.id(name), Text: text}))
	time.Sleep(time.Minute)
}

func (w *goldenWriter) cancel(name string) {
	w.g.Helper()
	_, err := w.g.engine().Cancel(w.g.Context(), w.id(name), "no longer wanted")
	w.g.ok(err)
	time.Sleep(time.Minute)
}

func (w *goldenWriter) fork(name, from string, steps int) {
	w.g.Helper()
	_, err := w.g.engine().Fork(w.g.Context(), thread.ForkRequest{ID: w.id(name), From: w.id(from), Steps: steps})
	w.g.ok(err)
	time.Sleep(time.Minute)
}

// says lets a role begin again with its first answer, or a later one.
func (w *goldenWriter) says(role string, n int) { w.g.said[role] = n }
