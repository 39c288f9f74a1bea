package board

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/moderator"
	engine "github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/outage"
)

var update = flag.Bool("update", false, "write the golden screens anew")

// newTestProgress shows a workflow of three roles on a terminal of that width; 0: on none.
func newTestProgress(b *bytes.Buffer, width int, now *time.Time) *Progress {
	p := &Progress{notes: output.Printer{Out: b}.Text(), width: func() int { return width }, now: func() time.Time { return *now }}
	if width > 0 {
		p.raw = b
	}
	edge := func(to string) []workflow.Edge { return []workflow.Edge{{To: to}} }
	def := &workflow.Definition{Name: "solve-issue", Roles: map[string]workflow.Role{"planner": {}, "developer": {}, "reviewer": {}},
		Graph: map[string][]workflow.Edge{"$START": edge("planner"), "planner": edge("developer"), "developer": edge("reviewer"), "reviewer": {{To: "developer"}, {To: "$END"}}}}
	p.Follow(def, "The parser panics on an empty file", moderator.Limits{CostUSD: 2, Tokens: 500_000}, nil, moderator.Totals{}, func(string) string { return "gpt-5.1" })
	return p
}

// Attempts that failed cost something, and are no visits of the role.
func TestFailedAttemptsAreNoVisits(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	p := newTestProgress(&b, 100, &now)
	before := moderator.Totals{Steps: 4, PerRole: map[string]int{"planner": 1, "developer": 3}, CostUSD: 0.5, Tokens: 100}
	p.Follow(&workflow.Definition{Name: "w", Graph: map[string][]workflow.Edge{"$START": {{To: "planner"}}, "planner": {{To: "developer"}}, "developer": {{To: "$END"}}},
		Roles: map[string]workflow.Role{"planner": {}, "developer": {}}}, "t", moderator.Limits{}, []gitcas.ChainStep{{Step: record.Step{Role: "planner"}}}, before, nil)
	p.ShowEvent(engine.Event{Kind: "agent", Step: 2, Role: "developer", Agent: "builtin"})
	if path := p.board.renderPath(100); path != "✓ planner → ● developer → end" || p.board.cost != 0.5 || p.board.tokens != 100 {
		t.Errorf("%s, $%v, %d tokens", path, p.board.cost, p.board.tokens)
	}
}

// tell is a run of three steps: the board is in the middle of the last one.
func tell(p *Progress, now *time.Time) {
	begin := func(step int, role string) {
		p.ShowEvent(engine.Event{Kind: "agent", Step: step, Role: role, Agent: "builtin", Text: "Do it."})
	}
	end := func(step int, role, status string, cost float64) {
		p.ShowEvent(engine.Event{Kind: "committed", Step: step, Role: role, Status: status, Usage: record.Usage{InputTokens: 30_000, OutputTokens: 2_000, CostUSD: cost, DurationMs: 61_000}})
	}
	begin(1, "planner")
	end(1, "planner", "ready", 0.08)
	begin(2, "developer")
	end(2, "developer", "done", 0.31)
	begin(3, "reviewer")
	end(3, "reviewer", "rejected", 0.05)
	begin(4, "developer")
	*now = now.Add(72 * time.Second)
	p.ShowEvent(engine.Event{Kind: "tokens", Usage: record.Usage{InputTokens: 12_345, OutputTokens: 678, CostUSD: 0.12}})
	p.ShowEvent(engine.Event{Kind: "turn", Turn: 7, Text: "edit_file internal/parser/a/rather/long/path/that/goes/on/and/on/parser.go"})
	p.ShowEvent(engine.Event{Kind: "check", Text: "test passed in 4s"})
	_, _ = p.Write([]byte("\x1b[31mone\x1b[0m\n\ntwo 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字\nthree\nfour\nfive\nsix\n"))
	p.mu.Lock()
	p.drawBoard()
	p.mu.Unlock()
}

// The board fits terminals of any width, and no line of it is longer than the terminal.
func TestBoard(t *testing.T) {
	for _, width := range []int{20, 40, 80, 140} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			var b bytes.Buffer
			now := time.Unix(0, 0)
			tell(newTestProgress(&b, width, &now), &now)
			frames := strings.Split(b.String(), "\x1b[J")
			last := frames[len(frames)-1]
			for line := range strings.Lines(last) {
				if n := ansi.StringWidth(strings.TrimRight(line, "\n")); n >= width {
					t.Errorf("%d columns: %q", n, line)
				}
			}
			got := ansi.Strip(last) + "\n"
			file := filepath.Join("testdata", fmt.Sprintf("board-%d.txt", width))
			if *update {
				if err := errors.Join(os.MkdirAll("testdata", 0o750), os.WriteFile(file, []byte(got), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || got != string(want) {
				t.Errorf("%v; it shows\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

// Where no terminal is, each thing is one line, and none is written anew.
func TestPlainLines(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	tell(newTestProgress(&b, 0, &now), &now)
	if strings.ContainsAny(b.String(), "\x1b\r") {
		t.Errorf("%q", b.String())
	}
	for _, want := range []string{"step 1  planner works (builtin): Do it.\n", "step 2  developer → done  1m1s, 30000 tokens in, 2000 out, $0.3100\n", "check: test passed in 4s\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

// What is told while an agent works has a line of its own above the board.
func TestTellAside(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	p := newTestProgress(&b, 80, &now)
	p.ShowEvent(engine.Event{Kind: "agent", Step: 1, Role: "planner", Agent: "mock"})
	lines := strings.Count(b.String(), "\n")
	b.Reset()
	p.ShowWaiting(outage.Wait{Err: errors.New("push: refused"), For: 2 * time.Second, Until: time.Unix(60, 0)})
	if want := fmt.Sprintf("\r\x1b[%dA\x1b[J", lines) + "waiting: push: refused; trying again in 2s, until 00:01:00 UTC\n\r\x1b[J\x1b[2msolve-issue"; !strings.HasPrefix(b.String(), want) {
		t.Errorf("it shows %q, want %q", b.String(), want)
	}
	release := p.Hold()
	b.Reset()
	p.ShowEvent(engine.Event{Kind: "turn", Turn: 1, Text: "x"})
	if b.Len() > 0 {
		t.Errorf("while somebody is asked it draws %q", b.String())
	}
	release()
}
