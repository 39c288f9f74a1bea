//go:build !linux && !darwin

package sandbox

import "runtime"

// Probe looks at what this machine can enforce: nothing, on this system.
func Probe() Report { return Report{System: runtime.GOOS} }
