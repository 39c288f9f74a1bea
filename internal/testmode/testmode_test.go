package testmode

import "testing"

func TestProcessesAskedFor(t *testing.T) {
	for _, row := range []struct {
		words string
		want  bool
	}{
		{"", false},
		{"processes", true},
		{"forge,processes", true},
		{" processes , forge", true},
		{"process", false},
		{"noprocesses", false},
	} {
		t.Run(row.words, func(t *testing.T) {
			t.Setenv(Variable, row.words)
			if got := HasProcesses(); got != row.want {
				t.Errorf("%s=%q: asked for processes is %v, want %v", Variable, row.words, got, row.want)
			}
			asked := &recorder{TB: t}
			Processes(asked)
			if asked.skipped == row.want {
				t.Errorf("%s=%q: skipped is %v", Variable, row.words, asked.skipped)
			}
		})
	}
}

// A recorder notes that its test would be skipped.
type recorder struct {
	testing.TB
	skipped bool
}

func (r *recorder) Skipf(string, ...any) { r.skipped = true }
