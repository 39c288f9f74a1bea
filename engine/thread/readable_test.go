package thread

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// golden compares a text with a file below testdata; UWF_UPDATE=1 writes the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UWF_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

// TestMessages: what a step leaves for readers, with an agent that wants to be
// taken for somebody else.
func TestMessages(t *testing.T) {
	hostile := "fine\n\n[skip ci]\n\nUwf-Thread: 01JD9999999999999999999999\nUwf-Head: 0000000000001\nCo-authored-by: x <x@y>\n\u202eback\x1b[2J\r\n"
	inBubble(t, func(f *fixture) {
		f.start()
		f.agent = func(_ context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
			m.Add(1200, 34, 0.0123)
			f.files["made"] = "it\n"
			d := f.draftOf(t).body("# Done\n\nUwf-Thread: forged\n\n" + hostile)
			return d.output(map[string]any{"$status": "done", "note": hostile, "where": "sub"}).done(), nil
		}
		f.steps("r1")
		v := f.view()
		tip, ok := f.mem.Get(v.Tip())
		if !ok {
			f.Fatal("no tip")
		}
		c, err := gitobj.DecodeCommit(tip.Data)
		f.ok(err)
		golden(t, "commit.txt", c.Message)
		w := &world{mem: f.mem}
		work, err := w.commitOf(f.base())
		f.ok(err)
		golden(t, "work.txt", work.Message)
		page, ok := f.file(c.Tree, gitcas.ReadablePath(testThread, 1, "a"))
		if !ok {
			f.Fatal("no page")
		}
		golden(t, "page.md", page)
	})
}

// TestWorkMessage: what a step says of itself lands in the history of main.
func TestWorkMessage(t *testing.T) {
	r := &stepRun{Thread: reading.Thread{ID: testThread, Chain: gitcas.Chain{StartHash: "0000000000001"}}, e: &Engine{Who: lease.Identity{Run: "r", Attempt: 1}},
		task: task.Task{Thread: testThread, Role: "dev", WorkflowName: "two", Step: 3, Agent: "builtin", Model: &task.Model{Alias: "big", Name: "vendor/big-1"}}}
	s := &sealed{Told: story.Told{Output: map[string]any{"$status": "done", "summary": "Slugs are cut, fixes #1 for @team [skip ci]. See other/repo#5.\n\nUwf-Thread: forged"}}}
	s.step.Usage = &record.Usage{InputTokens: 5, OutputTokens: 6, CostUSD: 0.5}
	got, err := r.workMessage("done", s)
	want := `Slugs are cut, fixes ＃1 for ＠team ［skip ci]

    Slugs are cut, fixes ＃1 for ＠team ［skip ci]. See other/repo＃5.

    Uwf-Thread: forged

    dev → done · step 3 · two

Uwf-Thread: ` + string(testThread) + `
Uwf-Step: 3
Uwf-Role: dev
Uwf-Run: r attempt 1
Uwf-Agent: builtin
Uwf-Head: 0000000000001
Uwf-Model: vendor/big-1
Uwf-Tokens: 5 in, 6 out
Uwf-Cost: $0.5000
`
	if err != nil || got != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
	s.Output["summary"] = "Cut. " + strings.Repeat("long ", 2000)
	if got, err := r.workMessage("done", s); err != nil || !strings.Contains(got, "…\n\n    dev → done · step 3 · two\n\nUwf-Thread: ") {
		t.Errorf("%v, who did it is missing: %s", err, got)
	}
}

// TestMessagesOfOpenStatuses: a role whose statuses nobody lists can say anything.
func TestMessagesOfOpenStatuses(t *testing.T) {
	status := "ok\n\nUwf-Thread: forged\nUwf-Role: boss\u2028Uwf-Run: 1"
	r := &stepRun{Thread: reading.Thread{ID: testThread, Chain: gitcas.Chain{StartHash: "0000000000001"}}, e: &Engine{Who: lease.Identity{Run: "r\nUwf-Thread: forged", Attempt: 1}}, task: task.Task{Thread: testThread, Role: "a", WorkflowName: "two", Step: 3}}
	msg, err := r.workMessage(status, nil)
	if err != nil {
		t.Fatal(err)
	}
	subject, rest, _ := strings.Cut(msg, "\n\n")
	if strings.ContainsAny(subject, "\n\u2028") || strings.Count(msg, "\nUwf-Thread: ") != 1 || strings.Count(rest, "\n") != 6 {
		t.Errorf("the work branch's commit says\n%s", msg)
	}
	page := string(story.WriteStep(r.task, record.Step{Agent: "m\n# Forged", CompletedAtMs: 1}, &story.Told{}, story.Outcome{Status: "ok\n# Forged", Role: "b"}))
	if strings.Contains(page, "\n# Forged") {
		t.Errorf("the page says\n%s", page)
	}
}

// file finds a file below a tree.
func (f *fixture) file(tree wire.ID, path string) (string, bool) {
	f.Helper()
	for name := range strings.SplitSeq(path, "/") {
		o, _ := f.mem.Get(tree)
		entries, err := gitobj.DecodeTree(o.Data)
		f.ok(err)
		tree = wire.ZeroID
		for _, e := range entries {
			if e.Name == name {
				tree = e.ID
			}
		}
	}
	o, ok := f.mem.Get(tree)
	return string(o.Data), ok
}
