package agents

import "github.com/united-workforce/uwf/agents/internal/proc"

// Conceal hides what this process knows from the agents that it starts: on Linux
// its environment is wiped from /proc, and its memory can't be read by processes
// of the same user, root excepted. Programs that hold keys in their environment
// call it first thing in main; os.Getenv works on.
func Conceal() error { return proc.Conceal() }
