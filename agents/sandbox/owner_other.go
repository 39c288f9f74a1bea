//go:build !linux

package sandbox

// loan is a folder that belongs to another user for a while. Nothing is lent here.
type loan struct{}

func borrowFolder(string, int, int) (*loan, error) { return nil, nil }

func (*loan) giveBack() error { return nil }

func engineOpen([]string, int, int) bool { return false }

func closedAncestor(string, int, int) string { return "" }
