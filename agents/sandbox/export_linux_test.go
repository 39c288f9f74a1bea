package sandbox

import "testing"

// RunLine runs a command line confined by somebody else's means, with the options, in a
// workspace, with temp for its own folders, and files that it may read.
type RunLine func(t *testing.T, o Options, workspace, temp string, argv, files []string) (code int, output string)

// TryEscapes does what TestEscapes does with what others confine.
func TryEscapes(t *testing.T, run RunLine) {
	t.Helper()
	required(t)
	p := newPlace(t)
	p.by = run
	tryAll(p, escapes())
}

// TryNetworkEscapes does what TestNetworkEscapes does with what others confine, where nothing
// at all can be reached.
func TryNetworkEscapes(t *testing.T, run RunLine) {
	t.Helper()
	required(t)
	p := newPlace(t)
	p.by = run
	tryAll(p, networkEscapes())
}
