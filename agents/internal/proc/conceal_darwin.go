package proc

// Conceal does nothing: macOS shows a process's environment to its own user only
// where system integrity protection is off, and has no way to wipe it.
func Conceal() error { return nil }

// hideMemory does nothing: macOS lets no ordinary process look into another.
func hideMemory() error { return nil }
