//go:build !unix

package app

// alive can't tell on this system: a claim is then taken over when it has run out.
func alive(int) bool { return true }
