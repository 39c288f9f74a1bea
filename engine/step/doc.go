// Package step runs one cycle of a thread, moderator → agent → extract, by the step protocol
// of the design, and returns. There is a file for each phase: decide whose turn it is and
// what the limits leave; claim; prepare the task and the workspace; run the agent; seal what
// it left; keep it on this machine; commit, or suspend, or keep it as an attempt; and bring
// in what another job sealed. What a phase finds out is in the type that the next embeds:
// turn, agentRun, keeper, run.
package step
