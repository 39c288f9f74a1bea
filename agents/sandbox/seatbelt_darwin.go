package sandbox

import (
	"os/exec"
)

// Probe looks at what this machine can enforce. A process that is in a sandbox itself can
// put nothing into another one.
func Probe() Report {
	r := Report{System: "darwin"}
	if out, err := exec.Command(seatbeltProgram, "-p", "(version 1)(allow default)", "/usr/bin/true").CombinedOutput(); err != nil {
		r.Why = seatbeltProgram + " can't be used: " + err.Error() + " " + string(out)
		return r
	}
	r.Seatbelt = true
	return r
}
