// Package thread is the life of a thread over a Store: start, fork, pause, suspend, resume,
// retry, poke, cancel, remove. What people do to a thread while a job may work on it either
// does not concern the step that runs, ends its claim, or is done with the claim in hand.
// Steps and deliveries are made of a [Session], see packages step and deliver.
//
// It never spawns a process, never opens a socket and never reads the
// environment: agents, working folders, clock and identity are given to it. So
// the same code runs in a CI job, on a laptop, and ten thousand times in the
// simulation of its tests.
package thread
