//go:build linux && !amd64 && !arm64

package sandbox

// There is no filter for this architecture: some of these multiplex sockets
// through one call, whose arguments a filter can't see.
const (
	auditArch = 0
	otherABI  = 0
)

var refused, refusedHere, missing [0]uint32
