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
// It never decides which role is next, never writes to a store, and never gives
// a child a token or a provider's key.
package agents
