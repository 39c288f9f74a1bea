package report_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/record"
)

var update = flag.Bool("update", false, "write the golden files")

const threadID = "01JY5XK8Q2V7M3N9T4R6W8Z0AB"

func definition(t testing.TB, name string) *workflow.Definition {
	t.Helper()
	data, err := os.ReadFile("../../../examples/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := workflow.Parse(name+".yaml", data, workflow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// worked is one step of the sample.
type worked struct {
	role, status string
	fields       map[string]any
	body         string
	took         time.Duration
	tokens       int64
	commit       string
	attempts     int
}

func story() []worked {
	return []worked{
		{"planner", "ready", map[string]any{
			"plan":  "1. In `slug_test.go`, add the cases of the issue and see them fail.\n2. In `slug.go`, write a dash only between two words.\n3. Cut the result to `MaxLen` bytes.",
			"files": []any{"slug/slug.go", "slug/slug_test.go"},
		}, "`Make` writes one dash for every character that is no letter or digit (`slug/slug.go:21`), so `\", \"` becomes two.", 72 * time.Second, 12_400, "", 0},
		{"developer", "done", map[string]any{
			"summary": "`Make` now remembers that a separator was seen and writes it before the next word.",
			"tests":   "go test ./... – ok",
		}, "Changed:\n\n- `slug/slug.go`: the loop in `Make`\n- `slug/slug_test.go`: four cases", 4*time.Minute + 3*time.Second, 55_310, "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334", 0},
		{"reviewer", "rejected", map[string]any{
			"comments": "1. `slug/slug.go:34`: the result can end in a dash when it is cut to `MaxLen`.",
		}, "I ran `go test ./...` and read the whole change.", 98 * time.Second, 31_020, "", 0},
		{"developer", "done", map[string]any{
			"summary": "`Make` cuts to `MaxLen` first and then takes trailing dashes away.",
			"tests":   "go test ./... – ok",
		}, "One more case in the test.", 121 * time.Second, 40_900, "b2c3d4e5f60718293a4b5c6d7e8f9001122334a1", 1},
		{"reviewer", "approved", map[string]any{
			"summary": "Slugs have one dash between two words, none at their ends, and never exceed `MaxLen`. Empty titles give an empty slug.",
		}, "I ran all tests, and took the change out to see the new ones fail:\n\n```\n--- FAIL: TestMake (0.00s)\n    slug_test.go:31: Make(\"Hello, World!\") = \"hello--world-\"\n```\n\nNothing else was touched.", 85 * time.Second, 28_800, "", 0},
	}
}

// sample is a thread of solve-issue after n steps of the story.
func sample(t testing.TB, state report.State, n int) report.Thread {
	t.Helper()
	th := report.Thread{
		ID: threadID, Workflow: "solve-issue", State: state, Definition: definition(t, "solve-issue"),
		MaxSteps: 30, MaxTokens: 500_000, MaxCostUSD: 2, Subject: 12,
		Now:   time.Date(2026, 7, 1, 14, 9, 0, 0, time.UTC),
		Since: time.Date(2026, 7, 1, 14, 7, 0, 0, time.UTC),
		Links: report.Links{
			Repo: "https://github.com/acme/slugs", Run: "https://github.com/acme/slugs/actions/runs/9876543210",
			StateBranch: "uwf-state", WorkBranch: "uwf/" + threadID,
		},
	}
	for i, w := range story()[:n] {
		add(&th, i+1, w)
	}
	th.Role = map[int]string{0: "planner", 1: "developer", 2: "reviewer", 3: "developer", 4: "reviewer", 5: "reviewer"}[n]
	return th
}

// add puts a step at the end of a thread.
func add(th *report.Thread, n int, w worked) {
	fields := map[string]any{"$status": w.status}
	for k, v := range w.fields {
		fields[k] = v
	}
	cost := float64(w.tokens) * 3e-6
	th.Past.Steps = append(th.Past.Steps, moderator.Output{Role: w.role, Output: fields, Body: w.body})
	th.Steps = append(th.Steps, report.Step{N: n, Role: w.role, Agent: "builtin", Result: w.status, Took: w.took,
		Tokens: w.tokens, CostUSD: cost, Commit: w.commit, Attempts: w.attempts})
	th.Last = &report.Output{Role: w.role, Status: w.status, Fields: fields, Body: w.body}
	th.Tokens += w.tokens
	th.CostUSD += cost
}

// threads are samples in every state that there is.
func threads(t testing.TB) map[string]report.Thread {
	t.Helper()
	with := func(th report.Thread, change func(*report.Thread)) report.Thread {
		change(&th)
		return th
	}
	asked := with(sample(t, report.Waiting, 1), func(th *report.Thread) {
		question := "`MaxLen` is 64 in the code and 80 in `README.md`. Which one is right?\n\n1. 64: links that exist stay as they are.\n2. 80: longer titles stay readable."
		add(th, 2, worked{"developer", "blocked", map[string]any{"question": question},
			"I stopped before I changed anything.", 64 * time.Second, 18_200, "", 0})
		th.Role, th.Question, th.Asks = "developer", question, true
	})
	failed := with(sample(t, report.Failed, 3), func(th *report.Thread) {
		th.Failure = &report.Failure{Phase: "agent", Tries: 2, MaxTries: 3,
			Message: "the model's provider answered 401 Unauthorized: invalid x-api-key",
			Attempt: "refs/uwf/attempts/" + threadID + "/9876543210.1",
			Advice:  "The key is refused. Set the secret `ANTHROPIC_API_KEY` again: *Settings → Secrets and variables → Actions*."}
	})
	stranded := with(sample(t, report.Failed, 2), func(th *report.Thread) {
		th.Failure = &report.Failure{Phase: "dispatch", ByForge: true, Message: "403 Resource not accessible by integration",
			Advice: "Give the job the permission `actions: write`. Then go on with /uwf resume in a comment."}
	})
	prevented := with(sample(t, report.Delivered, 5), func(th *report.Thread) {
		th.Prevented = "GitHub doesn't let Actions open pull requests in this repository: *Settings → Actions → General → Workflow permissions*."
		th.Links.Compare = th.Links.CompareURL("main", th.Links.WorkBranch)
	})
	return map[string]report.Thread{
		"started":   sample(t, report.Running, 0),
		"running":   sample(t, report.Running, 3),
		"queued":    sample(t, report.Queued, 2),
		"waiting":   asked,
		"failed":    failed,
		"stranded":  stranded,
		"prevented": prevented,
		"delivered": with(sample(t, report.Delivered, 5), func(th *report.Thread) {
			th.Pull = &report.Pull{Number: 57, URL: "https://github.com/acme/slugs/pull/57"}
			th.Links.Comment = "https://github.com/acme/slugs/issues/12#issuecomment-1001"
		}),
		"limited": with(sample(t, report.Limited, 4), func(th *report.Thread) {
			th.MaxSteps, th.Limit, th.Question = 4, "maxSteps", "The thread has done 4 steps, which is its limit."
		}),
		"limited-month": with(sample(t, report.Limited, 1), func(th *report.Thread) {
			th.Limit, th.Waits = "month.costUsd", true
			th.Question = (&moderator.LimitError{Limit: th.Limit, Used: "$50.12", Max: "$50.00", Month: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}).Error()
		}),
		"held": with(sample(t, report.Held, 1), func(th *report.Thread) {
			th.Why = (&life.MonthHeldError{Limit: "month.costUsd", Max: "$50.00", Used: "$38.50", Held: "$10.00", Steps: 2}).Error()
		}),
		"cancelled": with(sample(t, report.Cancelled, 2), func(th *report.Thread) {
			th.Closed = &record.By{Kind: record.ByForge, Login: "alice", ID: 7}
			th.Why = "It is a duplicate of #3.\nThanks, @bob."
		}),
		"cancelled-silently": sample(t, report.Cancelled, 0),
		"cancelled-stopping": with(sample(t, report.Cancelled, 2), func(th *report.Thread) {
			th.Closed, th.Stopping = &record.By{Kind: record.ByForge, Login: "alice", ID: 7}, true
		}),
		"failed-again": with(failed, func(th *report.Thread) {
			f := *th.Failure
			f.Tries, f.Forgiven = 4, 3
			th.Failure = &f
		}),
		"undispatched": with(stranded, func(th *report.Thread) {
			f := *th.Failure
			f.ByForge, f.Message = false, "which workflow file this job is from is not known"
			th.Failure = &f
		}),
		"lost": with(sample(t, report.Lost, 2), func(th *report.Thread) {
			th.Lost = report.LostJob{Began: true, At: th.Since.Add(-time.Hour)}
		}),
		"lost-again": with(sample(t, report.Lost, 2), func(th *report.Thread) {
			th.Lost = report.LostJob{At: th.Since.Add(-time.Hour), Again: true}
		}),
		"lost-delivery": with(sample(t, report.Lost, 5), func(th *report.Thread) {
			th.Role, th.Delivering, th.Lost = "", true, report.LostJob{Began: true, At: th.Since}
		}),
		"delivering":      with(sample(t, report.Running, 5), func(th *report.Thread) { th.Role, th.Delivering = "", true }),
		"undelivered-yet": with(sample(t, report.Queued, 5), func(th *report.Thread) { th.Role, th.Delivering = "", true }),
		"damaged": with(sample(t, report.Damaged, 2), func(th *report.Thread) {
			th.Failure = &report.Failure{
				Message: "refs/heads/uwf-state: the state branch was deleted: refs/uwf/store is there, the branch is not",
				Mend:    "restore it: git fetch https://github.com/acme/slugs.git refs/uwf/store && git push https://github.com/acme/slugs.git abc:refs/heads/uwf-state; if it was rewritten on purpose, accept it: git push --force https://github.com/acme/slugs.git abc:refs/uwf/store",
			}
		}),
		"damaged-unread": {
			ID: threadID, State: report.Damaged, Subject: 12, Now: time.Date(2026, 7, 1, 14, 9, 0, 0, time.UTC),
			Links:   report.Links{Repo: "https://github.com/acme/slugs", StateBranch: "uwf-state"},
			Failure: &report.Failure{Message: "VERSION: unknown format of the state branch: format 9", Mend: "use a newer uwf"},
		},
		"checked": with(sample(t, report.Running, 3), func(th *report.Thread) {
			lacks := "not in the agents' folder: 1 submodule (vendor/lib); 1 link out of the repository (tz)"
			th.Steps[0].Checks, th.Steps[0].Notes = []record.Check{{Name: "test", Status: record.CheckPassed}}, []string{lacks}
			th.Steps[1].Notes = []string{lacks, "the step changes no file: all that its agent wrote is skipped", "vendor/lib/`a`.c is not kept: it lies in the submodule vendor/lib"}
			th.Steps[1].Checks = []record.Check{
				{Name: "test", Status: record.CheckPassed, DurationMs: 61_300, Note: "it changed slug/slug_test.go; 1 test fewer than before"},
				{Name: "lint", Status: record.CheckFailed, ExitCode: 2, DurationMs: 900, Note: "it fails on the commit that the thread began from, too, and so is not enforced", Output: "slug.go:21:6: `loop` is unused\n<!-- -->\n1 issue\n"},
				{Name: "e2e", Status: record.CheckSkipped, Note: "there is no command for it: set checks.e2e in .uwf/config.yaml"},
			}
		}),
		"started-over": with(sample(t, report.Running, 0), func(th *report.Thread) { th.Former = 41 }),
		"no-changes": with(sample(t, report.NoChanges, 5), func(th *report.Thread) {
			for i := range th.Steps {
				th.Steps[i].Commit = ""
			}
		}),
		"terminal": with(asked, func(th *report.Thread) { th.Subject = 0 }),
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%s differs (write it with: go test -update): %v; got:\n%s", file, err, got)
	}
}

// What people see in each state.
func TestGolden(t *testing.T) {
	for name, th := range threads(t) {
		golden(t, name+".md", report.Comment(th))
		if s := report.Sentence(th); strings.ContainsAny(s, "\n*`") || s == "" {
			t.Errorf("the sentence of %s is %q", name, s)
		}
	}
	done := threads(t)["delivered"]
	checked := report.PullBody(threads(t)["checked"])
	if warns := "⚠️ Step 2: `lint failed, exit code 2, 900ms: it fails on the commit that the thread began from, too, and so is not enforced`\n\n```text\nslug.go:21:6"; !strings.Contains(checked, warns) {
		t.Errorf("the pull request says\n%s", checked)
	}
	golden(t, "pull.md", "# "+report.PullTitle(done, "Slugs with punctuation look broken")+"\n\n"+report.PullBody(done))
	golden(t, "summary.md", report.Summary(done))
}

// A thread whose step failed can be told something only while it waits for a person.
func TestFailedIsToldOnlyWhileItWaits(t *testing.T) {
	th := threads(t)["failed"]
	for _, waits := range []bool{false, true} {
		th.Waits = waits
		if page := report.Comment(th); strings.Contains(page, "/uwf resume") != waits || !strings.Contains(page, "/uwf retry") {
			t.Errorf("waits %v: %s", waits, page)
		}
	}
}
