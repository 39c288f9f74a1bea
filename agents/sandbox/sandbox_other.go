//go:build !linux

package sandbox

import "runtime"

// Helper confines nothing on this system: no command line is its.
func Helper([]string, []string) (code int, ours bool) { return 0, false }

// Probe looks at what this machine can enforce: nothing, on this system.
func Probe() Report {
	return Report{System: runtime.GOOS, Why: "there is no Landlock on " + runtime.GOOS}
}

// ownershipLoan is a folder that belongs to another user for a while. Nothing is lent here.
type ownershipLoan struct{}

func borrowFolder(string, int, int) (*ownershipLoan, error) { return nil, nil }

func (*ownershipLoan) giveBack() error { return nil }

func canUseContainerEngine([]string, int, int) bool { return false }

func closedAncestor(string, int, int) string { return "" }
