package agents

import (
	"github.com/united-workforce/uwf/agents/internal/proc"
	"github.com/united-workforce/uwf/agents/sandbox"
)

// RunHelper makes this process what a Spawner starts its own binary (Options.Self) for
// besides agents: the watcher of an agent, which ends all of the agent's processes when
// the spawning process is killed outright, or an agent on its way into its sandbox.
// Programs with a Spawner call it first thing in main, with their command line and
// environment (NAME=value); where ours is true they exit with the code.
func RunHelper(args, environ []string) (code int, ours bool) {
	if code, ours := proc.Watch(args); ours {
		return code, true
	}
	return sandbox.Helper(args, environ)
}

// Conceal hides what this process knows from the agents that it starts: on Linux
// its environment is wiped from /proc, and its memory can't be read by processes
// of the same user, root excepted. Programs that hold keys in their environment
// call it first thing in main; os.Getenv works on.
func Conceal() error { return proc.Conceal() }
