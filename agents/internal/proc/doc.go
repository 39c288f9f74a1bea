// Package proc runs one program to its end together with everything it starts.
// When Run returns, no process of that program is left: not its group, not what
// moved to a group or session of its own, and on Linux not a daemon that cut
// itself off by forking twice. A watcher does the same where this process is killed
// before that (see NewRunner). It never decides what to run, and never reads the
// environment of this process.
package proc
