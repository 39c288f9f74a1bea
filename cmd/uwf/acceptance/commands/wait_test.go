package commands

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/gitcas"
)

// TestWait waits for what becomes of a thread while it waits. Time passes clitest.When the
// command asks for it.
func TestWait(t *testing.T) {
	newCopy := newFixture(t)
	mock := "uwf agent mock "
	for _, tt := range []struct {
		name, state string
		args        []string
		then        func(t *testing.T, f *fixture, id string) // while it waits
		code        int
		status      string
	}{
		{"it ends", stateActive, nil, func(t *testing.T, f *fixture, id string) {
			f.must(t, nil, "thread", "step", id, "-c", "9", "--agent", mock+f.repo()+"/script.yaml")
		}, 0, "ended"},
		{"it asks", stateActive, nil, func(t *testing.T, f *fixture, id string) {
			f.must(t, nil, "thread", "step", id, "--agent", mock+f.repo()+"/asks.yaml")
		}, 3, "suspended"},
		{"it is cancelled", stateActive, nil, func(t *testing.T, f *fixture, id string) {
			f.must(t, nil, "thread", "cancel", id)
		}, 4, "cancelled"},
		{"it has ended before", stateEnded, nil, nil, 0, "ended"},
		{"it waits already", stateSuspended, nil, nil, 3, "suspended"},
		{"the time is over", stateActive, []string{"--timeout", "1h"}, nil, 1, "active"},
		{"for a step", stateActive, []string{"--for", "step"}, func(t *testing.T, f *fixture, id string) {
			f.must(t, nil, "thread", "step", id, "--agent", mock+f.repo()+"/script.yaml")
		}, 0, "active"},
		{"for a job", stateActive, []string{"--for", "running"}, func(t *testing.T, f *fixture, id string) {
			f.claim(t, gitcas.ThreadID(id), "77", "runner-1")
		}, 0, "running"},
		{"for a job that never comes", stateActive, []string{"--for", "running"}, func(t *testing.T, f *fixture, id string) {
			f.must(t, nil, "thread", "cancel", id)
		}, 4, "cancelled"},
		{"for a question", stateSuspended, []string{"--for", "suspended"}, nil, 0, "suspended"},
		{"for the end, through a question", stateSuspended, []string{"--for", "ended"}, func(t *testing.T, f *fixture, id string) {
			f.must(t, nil, "thread", "resume", id, "-p", "the second one")
			f.must(t, nil, "thread", "step", id, "-c", "9", "--agent", mock+f.repo()+"/script.yaml")
		}, 0, "ended"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newCopy(t)
			id := f.threads[tt.state]
			fa, out, errs := f.factory(t)
			var pauses []time.Duration
			fa.After = func(d time.Duration) (<-chan time.Time, func()) {
				ch := make(chan time.Time, 1)
				switch {
				case d < time.Hour:
					pauses = append(pauses, d)
					if len(pauses) == 8 && tt.then != nil {
						tt.then(t, f, id)
					}
					if len(pauses) <= 8 || tt.then != nil {
						ch <- clitest.When
					}
				case len(pauses) == 0: // the time of --timeout: over clitest.When nothing has happened for long
					go func() { ch <- clitest.When }()
				}
				return ch, func() {}
			}
			code := cli.Execute(t.Context(), fa, append([]string{"thread", "wait", id}, tt.args...))
			var got struct {
				Status   string
				TimedOut bool
			}
			if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
				t.Fatalf("exit code %d: %v\n%s%s", code, err, out, errs)
			}
			if code != tt.code || got.Status != tt.status || got.TimedOut != (tt.code == 1) {
				t.Errorf("exit code %d, %+v; want %d, %s", code, got, tt.code, tt.status)
			}
			// It asks seldom where nothing happens.
			if len(pauses) >= 8 && (!slices.IsSorted(pauses[1:8]) || pauses[7] < 5*time.Second || pauses[7] > time.Minute) {
				t.Errorf("it waited %v between looks", pauses)
			}
		})
	}
}
