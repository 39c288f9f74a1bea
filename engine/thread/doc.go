// Package thread is the life of a thread over a Store: start, fork, step, pause,
// suspend, resume, retry, poke, cancel, remove. [Engine.Step] runs exactly one
// moderator → agent → extract cycle by the step protocol of the design (load, decide,
// claim, workspace, agent, seal, commit) and returns; [Engine.Plan] only says what it
// would do. What people do to a thread while a job may work on it either does not
// concern the step that runs, ends its claim, or is done with the claim in hand.
//
// It never spawns a process, never opens a socket and never reads the
// environment: agents, working folders, clock and identity are given to it. So
// the same code runs in a CI job, on a laptop, and ten thousand times in the
// simulation of its tests.
package thread
