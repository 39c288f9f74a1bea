package report_test

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
)

// What a command is answered with.
func TestReplies(t *testing.T) {
	waiting := threads(t)["waiting"]
	waiting.Links.Comment = "https://github.com/acme/slugs/issues/12#issuecomment-1001"
	var all []string
	for _, r := range []report.Reply{
		{Kind: report.Refused, Verb: "start", Login: "mallory"},
		{Kind: report.Unknown, Verb: "begin"},
		{Kind: report.Unknown, Why: "There is no `/uwf begin`; did you mean start?"},
		{Kind: report.NoThread, Verb: "resume"},
		{Kind: report.NotNow, Verb: "retry", Thread: waiting, Why: "It asks something."},
		{Kind: report.NotNow, Verb: "start", Why: "Write a whole number."},
		{Kind: report.Done, Verb: "cancel", Thread: waiting},
		{Kind: report.Done, Verb: "help", Why: event.Verbs()},
	} {
		r.Comment = 1002
		text := r.Markdown()
		check(t, "the reply", text, report.MaxComment, report.ReplyMarker(1002))
		if _, ours := report.FindMarker(text); ours {
			t.Error("a reply passes for a thread's comment")
		}
		all = append(all, text)
	}
	golden(t, "replies.md", strings.Join(all, "\n---\n\n"))
}

// Every command that people are shown is one that is understood, and no page of ours
// is taken for a command.
func TestCommands(t *testing.T) {
	shown := 0
	for name, th := range threads(t) {
		page := report.Comment(th)
		if c, err := event.ParseCommand(page); c != nil || err != nil {
			t.Errorf("%s passes for the command %v, %v", name, c, err)
		}
		blocks := strings.Split(page, "```text\n")[1:]
		for _, block := range blocks {
			text, _, _ := strings.Cut(block, "\n```")
			if !strings.HasPrefix(text, "/uwf") {
				continue
			}
			shown++
			if c, err := event.ParseCommand(text); c == nil || err != nil {
				t.Errorf("%s shows %q, which is not understood: %v", name, text, err)
			}
		}
	}
	if shown < 15 {
		t.Errorf("only %d commands are shown", shown)
	}
}
