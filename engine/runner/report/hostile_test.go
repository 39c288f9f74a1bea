package report_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/testmode"
)

// nasty are texts that try to get out of the place that they are put in.
func nasty() []string {
	return []string{
		"", " ", "\n", "```", "````\n", "~~~\n", "```mermaid\nflowchart TD\n", "\n```", "`", "``", "` ` `", "\\`", "\\\\`", "[x](a`b) <script> `",
		"<details>", "</details>", "</summary></details>", "<!--", "-->", "<script>alert(1)</script>", "<img src=https://evil.example/x.png>",
		"<!-- uwf:thread=01JY5XK8Q2V7M3N9T4R6W8ZZZZ -->", "![x](https://evil.example/p.png)", "![x]: https://evil.example/p.png",
		"@everybody", "@acme/all ", "Fixes #1", "closes: acme/slugs#2", "resolves https://github.com/acme/slugs/issues/3",
		"/uwf cancel", "\n/uwf start\n", "|", " | | ", "\\|", "> ", "- ~~~", "1. ```go", "    ```\n    x", "\t```", "   ~~~~", "# ", "---\n", "***",
		"\r", "\r\n", "\x00", "\x1b[31m", "\u202e", "\u200b", "\ufeff", "\xff\xfe", "\U000e0041", "é", "漢字", "🎉", "&lt;", "&#96;", "&#x3c;b&#x3e;",
		"$x$", "$$", "[^1]: note", "[a]: https://evil.example", "<https://example.com/a>", "a<b", "Vec<T>", "`Vec<T>`", "`a`b`", strings.Repeat("x", 300), strings.Repeat("`", 70),
	}
}

// hostile is a text made of such pieces.
func hostile(r *rand.Rand, most int) string {
	var b strings.Builder
	pieces := nasty()
	for range r.IntN(most + 1) {
		b.WriteString(pieces[r.IntN(len(pieces))])
		switch r.IntN(4) {
		case 0:
			b.WriteByte('\n')
		case 1:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// anyThread is a thread whose every text is hostile.
func anyThread(r *rand.Rand, d *workflow.Definition, steps int) report.Thread {
	h := func() string { return hostile(r, 12) }
	states := []report.State{report.Running, report.Queued, report.Waiting, report.Failed, report.Delivered, report.NoChanges, report.Cancelled, report.Limited, "else"}
	th := report.Thread{
		ID: threadID, Workflow: h(), State: states[r.IntN(len(states))], Role: h(), Agent: h(), Question: h(), Limit: h(),
		Tokens: r.Int64(), MaxTokens: r.Int64N(3), CostUSD: r.NormFloat64(), MaxSteps: r.IntN(5), Subject: r.IntN(3), SubjectPull: r.IntN(2) == 0,
		Prevented: h(), Now: time.Unix(r.Int64N(1<<40), 0), Since: time.Unix(r.Int64N(1<<40), 0),
		Links: report.Links{Repo: "https://github.com/acme/slugs", Run: h(), Compare: h(), Comment: h(), Gitea: r.IntN(2) == 0, StateBranch: h(), WorkBranch: h()},
	}
	if r.IntN(4) > 0 {
		th.Definition = d
	}
	if r.IntN(3) == 0 {
		th.Links.Repo = h()
	}
	if r.IntN(2) == 0 {
		th.Failure = &report.Failure{Phase: h(), Message: h(), Attempt: h(), Advice: h(), Tries: r.IntN(4), MaxTries: r.IntN(4)}
	}
	if r.IntN(2) == 0 {
		th.Pull = &report.Pull{Number: r.IntN(99), URL: h()}
	}
	for i := range steps {
		role := h()
		if names := d.RoleNames(); r.IntN(2) == 0 {
			role = names[r.IntN(len(names))]
		}
		fields := map[string]any{"$status": h(), h(): h(), "summary": h(), "list": []any{h(), h()}, h(): map[string]any{h(): h()}, "n": r.NormFloat64()}
		add(&th, i+1, worked{role, h(), fields, hostile(r, 30), time.Duration(r.Int64()), r.Int64(), h(), r.IntN(3)})
		for range r.IntN(3) {
			th.Steps[i].Checks = append(th.Steps[i].Checks, record.Check{Name: h(), Status: h(), ExitCode: r.Int(), DurationMs: r.Int64(), Note: h(), Output: h()})
		}
	}
	return th
}

var (
	tag     = regexp.MustCompile(`<[a-zA-Z/!?][^>\n]*>?`)
	ours    = regexp.MustCompile(`^</?(details|summary|sub|code)>$`)
	fenceAt = regexp.MustCompile("^[> ]*(```+)([^`]*)$")
	// What a forge acts upon: mentions, closing keywords, pictures, commands.
	harmful = regexp.MustCompile(`(?im)(^|[^\w/.&;])@[a-z0-9]|\b(close[sd]?|fix(e[sd])?|resolve[sd]?):?\s+([\w.-]+/[\w.-]+)?#\d|` +
		`\b(close[sd]?|fix(e[sd])?|resolve[sd]?):?\s+https?://\S+/issues/\d|!\[[^\]\n]*\]\(http|^[\s\pZ\p{Cf}]*/uwf([\s\pZ\p{Cf}]|$)`)
	// Addresses of links, and code: there a forge looks for none of these.
	targets  = regexp.MustCompile(`\]\([^)\n]*\)|<code>[^<\n]*</code>`)
	ourFixes = regexp.MustCompile(`(?m)^Fixes #\d+$`)
	tildes   = regexp.MustCompile("(?m)^[> ]*([-*+] +|[0-9]+[.)] +)*~~~")
)

// outside is a page without its blocks of code. It fails the test where one is
// not closed, or doesn't begin as ours do.
func outside(t *testing.T, page string) string {
	t.Helper()
	var out []string
	open := ""
	for _, line := range strings.Split(page, "\n") {
		m := fenceAt.FindStringSubmatch(line)
		switch {
		case open == "" && m != nil:
			open = m[1]
		case open != "" && m != nil && m[1] == open && m[2] == "":
			open = ""
		case open == "":
			out = append(out, line)
		}
	}
	if open != "" {
		t.Fatalf("a block of code is not closed")
	}
	return strings.Join(out, "\n")
}

// withoutSpans is a text without its code spans: on each line, from a run of
// backticks to the next one of the same length.
func withoutSpans(text string) string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		var b strings.Builder
		runs := regexp.MustCompile("`+").FindAllStringIndex(line, -1)
		from := 0
		for i := 0; i < len(runs); i++ {
			j := i + 1
			for j < len(runs) && runs[j][1]-runs[j][0] != runs[i][1]-runs[i][0] {
				j++
			}
			if j < len(runs) {
				b.WriteString(line[from:runs[i][0]] + "x")
				from, i = runs[j][1], j
			}
		}
		out = append(out, b.String()+line[from:])
	}
	return strings.Join(out, "\n")
}

// check fails where a page is not fit to be posted.
func check(t *testing.T, what, page string, limit int, marker string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("%s:\n%s", what, page)
		}
	}()
	if len(page) > limit || !utf8.ValidString(page) {
		t.Fatalf("%s has %d bytes of %d, valid UTF-8: %v", what, len(page), limit, utf8.ValidString(page))
	}
	if !strings.HasPrefix(page, marker) || strings.Contains(page[len(marker):], "<!-- uwf:") {
		t.Fatalf("%s doesn't begin with its marker, or has two", what)
	}
	text := withoutSpans(outside(t, page[len(marker):]))
	if tildes.MatchString(text) {
		t.Fatalf("%s: tildes open a block of code", what)
	}
	if strings.Count(text, "<details>") != strings.Count(text, "</details>") {
		t.Fatalf("%s: details are not closed", what)
	}
	for _, found := range tag.FindAllString(text, -1) {
		if !ours.MatchString(found) {
			t.Fatalf("%s holds %q", what, found)
		}
	}
	if strings.ContainsAny(page, "\r\x00\x1b\u202e\U000e0041") {
		t.Fatalf("%s holds control characters", what)
	}
	if what == "the pull request" {
		text = ourFixes.ReplaceAllString(text, "")
	}
	if found := harmful.FindString(targets.ReplaceAllString(text, "]")); found != "" {
		t.Fatalf("%s does something on the forge: %q", what, found)
	}
}

func checkAll(t *testing.T, th report.Thread) {
	t.Helper()
	marker := report.Marker(th.ID)
	check(t, "the comment", report.Comment(th), report.MaxComment, marker)
	check(t, "the pull request", report.PullBody(th), report.MaxComment, marker)
	check(t, "the summary", report.Summary(th), report.MaxSummary, "")
	check(t, "the reply", report.Reply{Kind: report.NotNow, Verb: th.Role, Login: th.Agent, Comment: 7, Thread: th, Why: th.Question}.Markdown(), report.MaxComment, report.ReplyMarker(7))
	for _, line := range []string{report.Sentence(th), report.PullTitle(th, th.Question)} {
		if strings.ContainsAny(line, "\n\r\x00\x1b") || len(line) > 1_200 || strings.TrimSpace(line) == "" {
			t.Fatalf("not one line: %q", line)
		}
	}
}

// Whatever agents and strangers wrote, what is posted stays in one piece.
func TestHostile(t *testing.T) {
	d := definition(t, "solve-issue")
	for seed := range testmode.Seeds(t, 15, 60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			checkAll(t, anyThread(r, d, r.IntN(20)))
		})
	}
}

func FuzzPosted(f *testing.F) {
	for _, s := range nasty() {
		f.Add(s, s)
	}
	f.Add("/uwfcancel", "/u{f cancel") // one word, which is no command
	d := definition(f, "solve-issue")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, state := range []report.State{report.Waiting, report.Failed, report.NoChanges, report.Delivered} {
			th := report.Thread{ID: threadID, Workflow: a, State: state, Definition: d, Role: b, Question: a + b, Prevented: a, Subject: 1,
				Failure: &report.Failure{Message: b, Advice: a, Attempt: a}, Links: report.Links{Repo: a, StateBranch: b, WorkBranch: a}}
			add(&th, 1, worked{"developer", b, map[string]any{"summary": a, a: b, "list": []any{b}}, b + "\n" + a, 0, 0, a, 0})
			checkAll(t, th)
		}
	})
}

// A thread as long and as large as they come still says what matters.
func TestLong(t *testing.T) {
	const steps, roles = 1_000, 200
	d := &workflow.Definition{Name: "large", Roles: map[string]workflow.Role{}, Graph: map[string][]workflow.Edge{}}
	name := func(i int) string { return fmt.Sprintf("role-%d-%s", i%roles, strings.Repeat("long", 12)) }
	for i := range roles {
		d.Roles[name(i)] = workflow.Role{Name: name(i)}
		for _, to := range []int{i + 1, i + 2, i + 7} {
			d.Graph[name(i)] = append(d.Graph[name(i)], workflow.Edge{When: workflow.When{Kind: workflow.OnStatus, Value: fmt.Sprint("to", to)}, To: name(to)})
		}
	}
	d.Graph[workflow.Start] = []workflow.Edge{{To: name(0)}}
	th := sample(t, report.NoChanges, 0)
	th.Definition = d
	megabyte := strings.Repeat("What was done, and `why <so>`.\n", 1<<20/31)
	for i := range steps {
		w := worked{name(i), fmt.Sprint("to", i%roles+1), map[string]any{"summary": "s"}, "b", time.Minute, 1_000, "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334", 1}
		if i == steps-1 {
			w.fields, w.body = map[string]any{"summary": megabyte, "other": megabyte}, megabyte
		}
		add(&th, i+1, w)
		for j := range 16 {
			th.Steps[i].Checks = append(th.Steps[i].Checks, record.Check{Name: fmt.Sprint(strings.Repeat("l", 30), j), Status: record.CheckFailed, Note: strings.Repeat("x", 1_000), Output: strings.Repeat("`x\n", 1_300)})
		}
	}
	for _, state := range []report.State{report.Failed, report.Waiting, report.NoChanges} {
		th.State, th.Question, th.Role = state, megabyte, name(3)
		th.Failure = &report.Failure{Message: megabyte + "the reason", Advice: megabyte}
		page := report.Comment(th)
		check(t, "the comment", page, report.MaxComment, report.Marker(th.ID))
		for _, want := range []string{"| 1000 |", "older steps", "Steps ", "```mermaid", "/uwf "} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: no %q in\n%s", state, want, page)
			}
		}
		if state == report.Failed && !strings.Contains(page, "the reason\n```") {
			t.Error("the end of the failure's message is gone")
		}
		if len(page) < report.MaxComment/2 {
			t.Errorf("only %d bytes were used of what there is", len(page))
		}
	}
	check(t, "the pull request", report.PullBody(th), report.MaxComment, report.Marker(th.ID))
	s := report.Summary(th)
	check(t, "the summary", s, report.MaxSummary, "")
	if len(s) < 500_000 {
		t.Errorf("the summary has %d bytes: the last output is not in it in full", len(s))
	}
}

// moderator.Thread that doesn't fit its definition must not keep a comment from
// being written.
func TestForeignPast(t *testing.T) {
	th := sample(t, report.Running, 2)
	th.Past.Steps = append(th.Past.Steps, moderator.Output{Role: "nobody", Output: map[string]any{"$status": "lost"}})
	checkAll(t, th)
}

// TestHostileChecks: what a check is called and what its note says is shown, and does nothing.
func TestHostileChecks(t *testing.T) {
	th := sample(t, report.Running, 2)
	th.Steps[1].Checks = []record.Check{
		{Name: "test", Status: record.CheckFailed, ExitCode: 1, Note: "it changed @acme/all`|x<!-- uwf:thread=1 -->\n\n# Fixes #1\n/uwf cancel"},
		{Name: "a|`b`\n@team", Status: "great|", Note: ""},
	}
	page := report.Comment(th)
	for _, want := range []string{
		"| 2 | developer | done ✗\u00a0test ",
		"Checks of step 2:\n\n- `test failed, exit code 1: it changed ＠acme/all'¦x<! -- uwf:thread=1 --> # Fixes issue #1 /uwf cancel`\n- `a¦'b' ＠team great¦`\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
	checkAll(t, th)
}
