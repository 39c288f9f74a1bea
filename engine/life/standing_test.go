package life

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas"
)

var update = flag.Bool("update", false, "write docs/states.md anew")

const page = "../../docs/states.md"

// states are all states, each with what it means and an example of a thread in it.
var states = []struct {
	state  State
	status string
	means  string
	thread Standing
}{
	{Active, "active", "Its next step is due, and nobody works on it yet.", alive(gitcas.Entry{Status: gitcas.StatusActive})},
	{Running, "running", "A job has claimed it, and works on its next step.", Standing{Alive: true, Entry: gitcas.Entry{Status: gitcas.StatusActive}, Claim: &gitcas.Claim{Run: "r1", Attempt: 1, Host: "here", Renewed: 1_800_000_000_000}}},
	{Failed, "failed", "Attempts at its next step failed. What they made is kept, and its head has not moved.", alive(gitcas.Entry{Status: gitcas.StatusActive, Attempts: []string{"a"}})},
	{Pausing, "active", "A person has paused it, and the step that runs is not over yet.", alive(gitcas.Entry{Status: gitcas.StatusActive, Pause: &gitcas.Pause{Reason: "lunch"}})},
	{Suspended, "suspended", "It waits for a person: a role asked something, a limit is reached, three attempts failed, or somebody made it wait.", alive(gitcas.Entry{Status: gitcas.StatusSuspended, Suspended: &gitcas.Suspended{Role: "developer", Reason: "which one?"}})},
	{ToDeliver, "ended", "All roles are done; a job is to open the pull request and to write the comment.", alive(gitcas.Entry{Status: gitcas.StatusEnded, Deliver: true})},
	{Undelivered, "suspended", "All roles are done, and it could not be delivered: it waits for a person.", alive(gitcas.Entry{Status: gitcas.StatusSuspended, Deliver: true, Suspended: &gitcas.Suspended{Reason: "it has ended, but 3 deliveries failed"}, Attempts: make([]string, 3)})},
	{Ended, "ended", "It has ended. The list of threads has it no more, the history does.", Standing{Ended: gitcas.Ended{Reason: gitcas.ReasonEnded}, Reopens: true}},
	{Cancelled, "cancelled", "A person ended it for good.", Standing{Ended: gitcas.Ended{Reason: gitcas.ReasonCancelled}}},
	{Removed, "removed", "It is in no list any more; the branch's older commits still have it.", Standing{Ended: gitcas.Ended{Reason: gitcas.ReasonRemoved}}},
}

func alive(e gitcas.Entry) Standing { return Standing{Alive: true, Entry: e} }

// deeds are those of the table, in its order.
var deeds = func() (out []Deed) {
	for _, r := range rules {
		if !slices.Contains(out, r.deed) {
			out = append(out, r.deed)
		}
	}
	return out
}()

// TestAgentsWordsAreNoLimit: what an agent asks is answered, whatever it looks like.
func TestAgentsWordsAreNoLimit(t *testing.T) {
	for reason, want := range map[string]string{
		"Deadlock reached: which branch?": "answer", "tokens reached: 5": "answer", "limit speed reached: x": "answer", "limit tokens reached: x": "raise it",
	} {
		e := gitcas.Entry{Status: gitcas.StatusSuspended, Suspended: &gitcas.Suspended{Role: "developer", Reason: reason}}
		if got := WaysOn("T", e)[0].For; got != want {
			t.Errorf("%s: %s, want %s", reason, got, want)
		}
	}
}

// TestRetryOfADeliveryThatRuns: a person is led to taking it from a job that is dead.
func TestRetryOfADeliveryThatRuns(t *testing.T) {
	s := alive(gitcas.Entry{Status: gitcas.StatusEnded, Deliver: true})
	s.Claim = &gitcas.Claim{Run: "r", For: ForDelivery}
	if next := NextOf(s.Judge(Retry)); len(next) != 1 || next[0].Do != Take {
		t.Errorf("%+v", next)
	}
	if err := s.Judge(Take); err != nil {
		t.Error(err)
	}
}

// TestStates: every deed at every state does or says what docs/states.md has.
func TestStates(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# What may be done with a thread, and when

This page is made from the table that the program itself asks (engine/life/standing.go):
` + "`go test ./engine/life -update`" + ` writes it anew. A deed that is refused changes nothing.

*start* is a start with the same key as the thread's; *take* is ` + "`retry --take`" + `; *raise the
limits of* is ` + "`resume`" + ` with limits and without a text. Jobs do *step* and *deliver*, the action
does *suspend* where a run was cancelled; the rest are people's.
`)
	for _, s := range states {
		if got := s.thread.FindState(); got != s.state {
			t.Errorf("a thread that is %s is taken for %s", s.state, got)
		}
		if got := s.thread.Status(); got != s.status {
			t.Errorf("a thread that is %s is shown as %s", s.state, got)
		}
		title := string(s.state)
		if s.status != title {
			title += " (shown as " + s.status + ")"
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| deed | what it does |\n|---|---|\n", title, s.means)
		told := map[string][]string{}
		var order []string
		for _, d := range deeds {
			does := outcome(t, s.thread, d)
			if told[does] == nil {
				order = append(order, does)
			}
			told[does] = append(told[does], string(d))
		}
		for _, does := range order {
			fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(told[does], ", "), does)
		}
	}
	for _, r := range rules {
		if !slices.Contains(deeds, r.deed) {
			t.Errorf("%s is not shown", r.deed)
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if was, err := os.ReadFile(page); err != nil || string(was) != b.String() {
		t.Errorf("%s does not say what the program does (%v); where that is meant: go test ./engine/life -update", page, err)
	}
}

// outcome is what a deed does with a thread, or why not.
func outcome(t *testing.T, s Standing, d Deed) string {
	err := s.Judge(d)
	if err == nil {
		return effectOf(d, s.FindState())
	}
	var refused *DeedError
	if !errors.As(err, &refused) || refused.Reason == "" || effectOf(d, s.FindState()) != "" && s.hasFailed() {
		t.Fatalf("%s at %s: %v", d, s.FindState(), err)
	}
	said := "refused: " + refused.Reason
	if refused.Kind == KindSuspended {
		said = "nothing: it waits for a person (" + refused.Reason + ")"
	}
	var next []string
	for _, v := range refused.Next {
		next = append(next, fmt.Sprintf("%s (%s)", v.For, v.Do))
	}
	if len(next) > 0 {
		said += "; next: " + strings.Join(next, ", ")
	}
	return said
}
