package commands

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestPullRequest: what a thread made on this machine becomes a pull request, one, with the words
// that a job would give it; what is in the way is said with the command that mends it.
func TestPullRequest(t *testing.T) {
	t.Parallel()
	fixture := newFixture(t)
	for name, gitea := range map[string]bool{"GitHub": false, "Gitea": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixture(t)
			s, id := f.publish(t, gitea), f.threads[stateEnded]
			code, _, said := f.uwf(t, "thread", "pr", id)
			if code != 2 || !strings.Contains(said, "is not on "+s.URL+"/octo/demo as it is here: push it first: git push origin uwf/"+id) {
				t.Fatalf("a branch that is not there: exit code %d: %s", code, said)
			}
			f.git(t, "push", "-q", s.Dir(), "uwf/"+id)
			token := f.env[2]
			f.env[2] = "GITHUB_TOKEN="
			if code, _, said := f.uwf(t, "thread", "pr", id); code == 0 || !strings.Contains(said, "there is no token for the forge's API") {
				t.Fatalf("without a token: exit code %d: %s", code, said)
			}
			f.env[2] = token
			var made, again struct {
				Number  int
				URL     string
				Existed bool
			}
			f.must(t, &made, "thread", "pr", id)
			f.must(t, &again, "thread", "pr", id)
			pulls := s.Pulls()
			if len(pulls) != 1 || made.Existed || !again.Existed || made.Number != again.Number || made.URL == "" || made.URL != again.URL {
				t.Fatalf("%+v, then %+v: %+v", made, again, pulls)
			}
			text, err := json.Marshal(pulls[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{id, "uwf/" + id, "solve-issue"} {
				if !strings.Contains(string(text), want) {
					t.Errorf("the pull request does not have %q: %s", want, text)
				}
			}
		})
	}
}
