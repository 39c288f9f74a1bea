package app

import "github.com/united-workforce/uwf/engine/life"

// The exit codes. They are part of the interface: scripts and jobs branch on them.
const (
	CodeOK        = 0 // advanced, or ended
	CodeFailed    = 1 // the step failed
	CodeUsage     = 2 // wrong usage or invalid definition
	CodeSuspended = 3 // waits for a person
	CodeNotYours  = 4 // moved, claimed, cancelled or ended: not as it would have to be
	CodeDamaged   = 5 // store damaged or unreadable
	CodeLimit     = 6 // a limit is reached
)

var exitCodes = map[life.Kind]int{
	life.KindDone: CodeOK, life.KindFailed: CodeFailed, life.KindUsage: CodeUsage, life.KindSuspended: CodeSuspended,
	life.KindNotYours: CodeNotYours, life.KindDamaged: CodeDamaged, life.KindLimit: CodeLimit,
}
