package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/markdown"
)

func TestAmounts(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "1s": 600 * time.Millisecond, "59s": 59 * time.Second, "1m": time.Minute, "2m 5s": 125 * time.Second,
		"1h": 3600 * time.Second, "3h 20m": 3*time.Hour + 20*time.Minute + 59*time.Second, "2d 4h": 52 * time.Hour, "0s ": -time.Hour,
	} {
		if got := formatDuration(d); got != strings.TrimSpace(want) {
			t.Errorf("took(%v) = %q, not %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{
		-1: "0", 0: "0", 999: "999", 1_000: "1k", 12_400: "12.4k", 99_949: "99.9k", 99_960: "100k", 340_499: "340k", 999_499: "999k", 999_600: "1M",
		1_250_000: "1.2M", 2_000_000_000: "2G",
	} {
		if got := formatAmount(n); got != want {
			t.Errorf("amount(%d) = %q, not %q", n, got, want)
		}
	}
	for usd, want := range map[float64]string{
		0: "0", -1: "0", 1e-9: "0.0001", 0.0012: "0.0012", 0.12: "0.12", 2: "2.00", 1234.5: "1234.50", math.Inf(1): "1000000000.00",
	} {
		if got := formatDollars(usd); got != want {
			t.Errorf("dollars(%v) = %q, not %q", usd, got, want)
		}
	}
	if got := formatDollars(math.NaN()); got != "0" {
		t.Errorf("dollars(NaN) = %q", got)
	}
	for want, c := range map[string]struct {
		usd      float64
		unpriced bool
	}{
		"$0": {0, false}, "$0.12": {0.12, false}, "cost unknown": {0, true}, "at least $0.12": {0.12, true}, "at least $0.0001": {1e-9, true},
	} {
		if got := formatPrice(c.usd, c.unpriced); got != want {
			t.Errorf("price(%v, %v) = %q, not %q", c.usd, c.unpriced, got, want)
		}
	}
	if got := formatPrice(math.NaN(), true); got != "cost unknown" {
		t.Errorf("price(NaN, true) = %q", got)
	}
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 111: "111th"} {
		if got := formatOrdinal(n); got != want {
			t.Errorf("ordinal(%d) = %q, not %q", n, got, want)
		}
	}
}

func TestMoments(t *testing.T) {
	now := time.Date(2026, 7, 1, 1, 0, 0, 0, time.FixedZone("east", 7200)) // 30 June in UTC
	if got := formatMoment(now.Add(-time.Hour), now); got != "22:00 UTC" {
		t.Error(got)
	}
	if got := formatMoment(now.Add(-48*time.Hour), now); got != "28 June 23:00 UTC" {
		t.Error(got)
	}
}

func TestSentences(t *testing.T) {
	pull := func(p Pull) *Pull { return &p }
	for want, th := range map[string]Thread{
		"developer is working on step 1.":                                                             {State: Running, Role: "developer"},
		"The next role is next, with step 1; the job for it is on its way.":                           {State: Queued},
		"The thread waits for a person before step 1.":                                                {State: Waiting},
		"All steps are done, but the result is not delivered until a person says so.":                 {State: Waiting, Delivering: true},
		"Paused before step 3: the limit on cost is reached.":                                         {State: Limited, Limit: "costUsd", Steps: []Step{{N: 2}}},
		"Paused before step 1: the limit of this thread is reached.":                                  {State: Limited},
		"Paused before step 1: the limit on a month's cost is reached.":                               {State: Limited, Limit: "month.costUsd"},
		"developer is next, with step 1, and goes on by itself when steps of other threads are done.": {State: Held, Role: "developer"},
		"developer failed at step 1, and nothing goes on by itself.":                                  {State: Failed, Role: "developer"},
		"Step 1 failed for the 3rd time, and nothing goes on by itself.":                              {State: Failed, Failure: &Failure{Tries: 3}},
		"All steps are done, but the result could not be delivered.":                                  {State: Failed, Failure: &Failure{Phase: "deliver"}},
		"Done: pull request #5 is ready for review.":                                                  {State: Delivered, Subject: 5, Pull: pull(Pull{Number: 5})},
		"Done: the changes are on this pull request's branch.":                                        {State: Delivered, Subject: 5, SubjectPull: true, Pull: pull(Pull{Number: 5})},
		"Done: pull request #5 is there, as a draft.":                                                 {State: Delivered, Pull: pull(Pull{Number: 5, Draft: true})},
		"Done: pull request #5 is brought up to date, and ready for review.":                          {State: Delivered, Pull: pull(Pull{Number: 5, Updated: true})},
		"Done, but the pull request has to be opened by you.":                                         {State: Delivered, Prevented: "x"},
		"Done.":                          {State: Delivered},
		"The thread is at step 1.":       {},
		"Done, and no file was changed.": {State: NoChanges},
		"Done, but no file was changed: what an agent wrote could not be kept. The notes below say why.": {State: NoChanges, Steps: []Step{{}, {Notes: []string{"x", "reported by job: " + record.NoteAllSkipped}}}},
		"The job for step 1 could not be started, and nothing goes on by itself.":                        {State: Failed, Failure: &Failure{Phase: "dispatch"}},
	} {
		if got := Sentence(th); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// A thread whose changes were all skipped does not look like a success.
func TestIconOfSkippedChanges(t *testing.T) {
	skipped := []Step{{Notes: []string{record.NoteAllSkipped}}}
	for want, th := range map[string]Thread{
		"✅": {State: NoChanges}, "⚠️": {State: NoChanges, Steps: skipped}, "❌": {State: Failed, Steps: skipped},
	} {
		if got := th.chooseIcon(); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

func TestLinks(t *testing.T) {
	hub := Links{Repo: "https://github.com/acme/slugs/"}
	tea := Links{Repo: "https://git.example/acme/slugs", Gitea: true}
	for _, c := range [][2]string{
		{hub.CommitURL("abc"), "https://github.com/acme/slugs/commit/abc"},
		{tea.CommitURL("abc"), "https://git.example/acme/slugs/commit/abc"},
		{hub.BranchURL("uwf/01"), "https://github.com/acme/slugs/tree/uwf/01"},
		{tea.BranchURL("uwf/01"), "https://git.example/acme/slugs/src/branch/uwf/01"},
		{hub.BranchURL("a b(c)?#"), "https://github.com/acme/slugs/tree/a%20b%28c%29%3F%23"},
		{hub.LogURL("uwf-state", "threads/01"), "https://github.com/acme/slugs/commits/uwf-state/threads/01"},
		{tea.LogURL("uwf-state", "threads/01"), "https://git.example/acme/slugs/commits/branch/uwf-state/threads/01"},
		{hub.CompareURL("main", "uwf/01"), "https://github.com/acme/slugs/compare/main...uwf/01?expand=1"},
		{tea.CompareURL("main", "uwf/01"), "https://git.example/acme/slugs/compare/main...uwf/01"},
		{hub.IssueURL(3), "https://github.com/acme/slugs/issues/3"},
		{Links{}.CommitURL("abc"), ""}, {Links{}.CompareURL("a", "b"), ""},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, not %q", c[0], c[1])
		}
	}
	for _, bad := range []string{"javascript:alert(1)", "https://user@example.com/", "https://a/b)c", "https://a/b c", "https://a/<b>", "", "/x", "https://a/" + strings.Repeat("b", 2000)} {
		if got := markdown.Link("x", bad); got != "x" {
			t.Errorf("%q became a link: %s", bad, got)
		}
	}
}

func TestMarkers(t *testing.T) {
	const id = "01JY5XK8Q2V7M3N9T4R6W8Z0AB"
	for body, want := range map[string]string{
		Marker(id): id, Marker(id) + "\ntext": id,
		"": "", " " + Marker(id): "", "text\n" + Marker(id): "", "> " + Marker(id): "", ReplyMarker(3): "",
		"<!-- uwf:thread=short -->": "", "<!-- uwf:thread=" + id + " x -->": "",
	} {
		if got, ok := FindMarker(body); got != want || ok != (want != "") {
			t.Errorf("FindMarker(%q) = %q, %v", body, got, ok)
		}
	}
	if got := Marker("01-->\n@x"); got != "<!-- uwf:thread=01x -->" {
		t.Error(got)
	}
}

// What nobody knows the cost of is told as that, and not as nothing.
func TestUnknownCost(t *testing.T) {
	for want, th := range map[string]Thread{
		"0 steps · 5 tokens · cost unknown":           {Tokens: 5, Unpriced: true},
		"0 steps · 5 tokens · at least $0.12":         {Tokens: 5, CostUSD: 0.12, Unpriced: true},
		"0 steps · 5 tokens · at least $0.12 of 2.00": {Tokens: 5, CostUSD: 0.12, MaxCostUSD: 2, Unpriced: true},
		"0 steps · 5 tokens · $0 of 2.00":             {Tokens: 5, MaxCostUSD: 2},
		"0 steps · 5 tokens":                          {Tokens: 5},
	} {
		if got := (page{Thread: th}).writeUsage(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// A command that mends stands by itself, to be copied whole; advice that is none is a
// sentence.
func TestMending(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "",
		"use a newer uwf":               "Use a newer uwf.",
		"ask <b> for it":                "Ask \\<b> for it.",
		"delete it: git push o :x":      "Delete it:\n\n```sh\ngit push o :x\n```",
		"restore: git a; take: uwf b c": "Restore:\n\n```sh\ngit a\n```\n\nTake:\n\n```sh\nuwf b c\n```",
	} {
		if got := Mending(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestPrinted(t *testing.T) {
	p := newPage(Thread{})
	got := p.embedPrinted(strings.Repeat("noise\n", 5_000)+"@ops <b>the reason</b> ```", 1_000)
	if !strings.HasPrefix(got, "````text\n…\n") || !strings.Contains(got, "<b>the reason</b> ```\n````") || len(got) > 2_000 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if got := p.embedPrinted(" \n", 100); got != "" {
		t.Errorf("nothing became %q", got)
	}
}
