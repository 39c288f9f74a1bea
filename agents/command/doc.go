// Package command runs the commands that a repository brings: what prepares a workspace,
// and what checks a result. It gives a command one folder to change, a HOME and a TMPDIR of
// its own, and bounds of time, output and disk space; the sandbox adds those of files,
// network and processes, where there is one. When a run returns, no process of it is left,
// nor when this process is killed.
//
// It never decides whether a command may be run, which is for people to consent to; it never
// gives one a token, a key or the address of a model, and never tells its output before
// secrets are taken out of it.
package command
