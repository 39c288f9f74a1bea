package sandbox

// Report is what this machine can enforce.
type Report struct {
	// System is the operating system: linux, darwin.
	System string
	// Landlock is the ABI version of Landlock; 0: there is none.
	Landlock int
	// Why says why there is no Landlock.
	Why string
	// Seccomp: system calls can be filtered.
	Seccomp bool
	// Root: this process is root, and can start others as another user.
	Root bool
	// UID and GID are of the agents' user where Root is true.
	UID, GID int
	// User is that user's name; empty: it has none.
	User string
}
