// Package thread is the life of a thread over a Store: start, step, suspend,
// resume, cancel. [Engine.Step] runs exactly one moderator → agent → extract
// cycle by the step protocol of the design (load, decide, claim, workspace,
// agent, seal, commit) and returns.
//
// It never spawns a process, never opens a socket and never reads the
// environment: agents, working folders, clock and identity are given to it. So
// the same code runs in a CI job, on a laptop, and ten thousand times in the
// simulation of its tests.
package thread
