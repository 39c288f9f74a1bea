package step

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

const testThread gitcas.ThreadID = "01JD0000000000000000000001"

// testRun is a run that has read its thread and its task.
func testRun(who lease.Identity, asked task.Task) *run {
	r := newRun(&Stepper{Engine: &thread.Engine{Who: who}}, Request{Thread: testThread})
	r.Chain.StartHash, r.task = "0000000000001", asked
	return r
}

// TestWorkMessage: what a step says of itself lands in the history of main.
func TestWorkMessage(t *testing.T) {
	r := testRun(lease.Identity{Run: "r", Attempt: 1}, task.Task{Thread: testThread, Role: "dev", WorkflowName: "two", Step: 3, Agent: "builtin", Model: &task.Model{Alias: "big", Name: "vendor/big-1"}})
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
	r := testRun(lease.Identity{Run: "r\nUwf-Thread: forged", Attempt: 1}, task.Task{Thread: testThread, Role: "a", WorkflowName: "two", Step: 3})
	msg, err := r.workMessage(status, nil)
	if err != nil {
		t.Fatal(err)
	}
	subject, rest, _ := strings.Cut(msg, "\n\n")
	if strings.ContainsAny(subject, "\n\u2028") || strings.Count(msg, "\nUwf-Thread: ") != 1 || strings.Count(rest, "\n") != 6 {
		t.Errorf("the work branch's commit says\n%s", msg)
	}
	page := string(story.WriteStep(r.task, record.Step{Agent: "m\n# Forged", CompletedAtMs: 1}, &story.Told{}, story.Outcome{Result: "ok\n# Forged", Role: "b"}))
	if strings.Contains(page, "\n# Forged") {
		t.Errorf("the page says\n%s", page)
	}
}

// TestFillRefuses: a step is read back from what was stored of it.
func TestFillRefuses(t *testing.T) {
	const nowhere, output, text node.Hash = "0000000000000", "0000000000001", "0000000000002"
	known := node.Map{output: {Payload: map[string]any{}}, text: {Type: node.String, Payload: "x"}}
	body := nowhere
	for want, step := range map[string]record.Step{
		"output: node not found":      {Output: nowhere},
		"the output is not an object": {Output: text},
		"body: node not found":        {Output: output, Body: &body},
	} {
		if err := (&sealed{step: step}).readBack(known); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestLocationElsewhere: what is no folder of the work tree is no place to work in, as the path
// that a thread of the predecessor has of the machine that it was started on.
func TestLocationElsewhere(t *testing.T) {
	for _, cwd := range []string{"/home/somebody/repo", "..", "../other", "a/../..", "a//b", "./a", `C:\repo`, "C:", `a\b`, "a/"} {
		r := testRun(lease.Identity{}, task.Task{})
		r.Chain.Start.Cwd = cwd
		if got := r.WorkFolder(); got != "." || r.workLocation() != "" {
			t.Errorf("a thread with %q works in %q", cwd, got)
		}
	}
}
