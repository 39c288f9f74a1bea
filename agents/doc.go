// Package agents is the protocol between uwf and the process that does the work
// of one step, both sides of it.
//
// The parent's side is the [Spawner]: it gives a child a read-only folder with
// the task (UWF_CONTEXT) and an empty one for new nodes (UWF_STAGE), runs
// `<command> [args] <thread-id> <role>` in the workspace, and takes back what was
// staged, as a draft that nobody trusts yet. The child's side is [Main], the kit
// for agents in Go, and [LoadContext] and [Commit], which `uwf agent context` and
// `uwf agent commit` offer to every other language.
//
// # An agent in Go
//
// An agent is an [Adapter]: Run turns the task into an [Answer], Continue gives
// another one when it can't be taken. The kit does the rest: it checks arguments
// and folders, reads the frontmatter, gives the complaint back to the adapter up to
// [MaxCorrections] times, has the model that is set for it read an answer that
// still does not fit ([Extractor]), stages output, body and step, and prints the
// handle. The example is a whole agent.
//
// What an adapter works with is the [Session]: the Task (prompt, role, model), the
// thread's nodes (Get, Steps, OutputSchema), the Stage for its own, the Workspace.
// Only what is staged, and the workspace's files, outlive the process; a step's
// result, its ids and its hashes are made by the parent.
//
// The package is public, and so is agenttest, which has what a test of an adapter needs.
// Kept stable are the protocol (folders, environment, handle, exit codes) and the hooks of
// Adapter; other functions and types may change until a first release.
//
// It never decides which role is next, never writes to a store, and never gives
// a child a token or a provider's key.
package agents
