//go:build unix

package app

import "golang.org/x/sys/unix"

// mayWrite and mayRead ask the system what this user may do with a file.
func mayWrite(path string) error { return unix.Access(path, unix.W_OK) }

func mayRead(path string) error { return unix.Access(path, unix.R_OK|unix.X_OK) }
