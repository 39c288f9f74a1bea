package sandbox

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each kernel says exactly what it can't enforce: a sentence a thing, and no more.
func TestGaps(t *testing.T) {
	for _, tt := range []struct {
		report  Report
		network Network
		want    []string // the beginnings, in order
	}{
		{Report{Landlock: 7, Seccomp: true, Root: true}, GatewayOnly, nil},
		{Report{Landlock: 7, Seccomp: true}, GatewayOnly, nil},
		{Report{Landlock: 5, Seccomp: true, Root: true}, Open, []string{"processes: abstract"}},
		{Report{Landlock: 5, Seccomp: true}, Open, []string{"processes: abstract", "processes: agents can signal"}},
		{Report{Landlock: 4, Seccomp: true, Root: true}, GatewayOnly, []string{"devices", "processes"}},
		{Report{Landlock: 3, Seccomp: true, Root: true}, Open, []string{"devices", "processes"}},
		{Report{Landlock: 3, Seccomp: true, Root: true}, GatewayOnly, []string{"network: TCP", "devices", "processes"}},
		{Report{Landlock: 1, Seccomp: true, Root: true}, Open, []string{"files: agents can't move", "files: agents can empty", "devices", "processes"}},
		{Report{Why: "no Landlock", Seccomp: true, Root: true}, Open,
			[]string{"files: agents can read", "files: agents can't move", "files: agents can empty", "devices", "processes"}},
		{Report{Landlock: 7, Root: true}, GatewayOnly, []string{"system calls: namespaces, ptrace, BPF, io_uring and the kernel's keyrings are not closed, nor UDP"}},
		{Report{Landlock: 7}, Open, []string{"system calls: namespaces, ptrace, BPF, io_uring and the kernel's keyrings are not closed, nor unix sockets"}},
		{Report{System: "darwin"}, Open, []string{"nothing can be enforced on darwin"}},
	} {
		if tt.report.System == "" {
			tt.report.System = "linux"
		}
		got := tt.report.Gaps(tt.network)
		ok := len(got) == len(tt.want)
		for i := 0; ok && i < len(got); i++ {
			ok = strings.HasPrefix(got[i], tt.want[i])
		}
		if !ok {
			t.Errorf("%+v, %s:\n%s\nwant\n%s", tt.report, tt.network, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
		for _, line := range got {
			if tt.report.Landlock > 0 && strings.Contains(line, "needs Landlock") && !strings.Contains(line, fmt.Sprintf("Landlock here has version %d", tt.report.Landlock)) {
				t.Errorf("doesn't say what there is: %s", line)
			}
		}
		// Require refuses for exactly these; auto needs a user or Landlock.
		var refused *RefusedError
		err := New(Options{Mode: Require, Network: tt.network, Report: &tt.report}).Check()
		if (len(got) > 0) != errors.As(err, &refused) || refused != nil && !slices.Equal(refused.Why, got) {
			t.Errorf("%+v: require says %v", tt.report, err)
		}
		err = New(Options{Mode: Auto, Network: tt.network, Report: &tt.report}).Check()
		if usable := tt.report.Root || tt.report.Landlock > 0; usable != (err == nil) {
			t.Errorf("%+v: auto says %v", tt.report, err)
		}
	}
}

func TestLines(t *testing.T) {
	r := Report{System: "linux", Landlock: 3, Seccomp: true, Root: true, UID: 60999, User: AgentName}
	for _, want := range []string{"user 60999 (uwf-agent)", "Landlock version 3", "system calls are filtered", "gateway can't be enforced", "Linux 6.12"} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("%q is not in: %s", want, r)
		}
	}
	if got := Probe().Lines(); len(got) == 0 {
		t.Error("nothing is said of this machine")
	}
	if s := New(Options{Mode: Off}); s != nil || s.Check() != nil || s.Gaps() != nil || s.AllowTraverse("/none") != nil {
		t.Error("off is not nothing")
	}
}

// Where neither is there, the refusal says what to do.
func TestRefusal(t *testing.T) {
	r := Report{System: "linux", Why: "this kernel has no Landlock"}
	for mode, want := range map[Mode]string{Auto: "sandbox: off", Require: "sandbox: auto"} {
		err := New(Options{Mode: mode, Report: &r}).Check()
		if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) || !strings.Contains(err.Error(), r.Why) {
			t.Errorf("%s: %v", mode, err)
		}
	}
}
