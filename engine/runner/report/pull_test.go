package report_test

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/runner/report"
)

func TestPullTitle(t *testing.T) {
	step := func(fields map[string]any) moderator.Output { return moderator.Output{Role: "r", Output: fields} }
	long := "This sentence goes on for so long that nobody would take it for the title of anything"
	for _, tt := range []struct {
		name, issue, want string
		steps             []moderator.Output
	}{
		{"a field for it", "Issue", "Mend it", []moderator.Output{step(map[string]any{"pr_title": " Mend\n it ", "summary": "S."})}},
		{"an older field for it", "Issue", "Mend it", []moderator.Output{step(map[string]any{"title": "Mend it"}), step(map[string]any{"summary": "S."})}},
		{"the newest of two", "Issue", "New", []moderator.Output{step(map[string]any{"title": "Old"}), step(map[string]any{"Title": "New"})}},
		{"a short summary", "Issue", "Version 1.2 is out", []moderator.Output{step(map[string]any{"summary": "Version 1.2 is out. And more."})}},
		{"a long summary", "Issue", "Issue", []moderator.Output{step(map[string]any{"summary": long})}},
		{"a long summary alone", "", "This sentence goes on for so long that nobody would take it for the tit…", []moderator.Output{step(map[string]any{"summary": long})}},
		{"no text", "Issue", "Issue", []moderator.Output{step(map[string]any{"title": 3, "summary": " "})}},
		{"nothing", "", "solve-issue: thread " + threadID, nil},
	} {
		th := report.Thread{ID: threadID, Workflow: "solve-issue", Past: moderator.Thread{Steps: tt.steps}}
		if got := report.PullTitle(th, tt.issue); got != tt.want {
			t.Errorf("%s: %q, not %q", tt.name, got, tt.want)
		}
	}
}

// Only an issue is closed, and only by us.
func TestFixes(t *testing.T) {
	th := threads(t)["delivered"]
	if body := report.PullBody(th); strings.Count(body, "Fixes #12\n") != 1 {
		t.Errorf("the issue is not closed:\n%s", body)
	}
	if strings.Contains(report.Comment(th), "Fixes") {
		t.Error("a comment closes something")
	}
	th.SubjectPull = true
	if strings.Contains(report.PullBody(th), "Fixes") {
		t.Error("a pull request is closed")
	}
	th.Subject, th.SubjectPull = 0, false
	if strings.Contains(report.PullBody(th), "Fixes") {
		t.Error("no issue is closed")
	}
}

// Nothing that was shown once is shown again below it.
func TestNoRepetition(t *testing.T) {
	all := threads(t)
	for page, text := range map[string]string{
		report.Comment(all["waiting"]): "longer titles stay readable", report.PullBody(all["delivered"]): "Empty titles give an empty slug",
	} {
		if strings.Count(page, text) != 1 {
			t.Errorf("%q stands %d times in\n%s", text, strings.Count(page, text), page)
		}
	}
}
