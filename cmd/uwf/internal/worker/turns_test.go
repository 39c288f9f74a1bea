package worker

import (
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// What a model wants done is told in a line, by the names that each agent's tools have.
func TestDescribeCalls(t *testing.T) {
	call := func(name, args string) dialect.Call { return dialect.Call{Name: name, Args: dialect.Args(args)} }
	for want, calls := range map[string][]dialect.Call{
		"":                                   nil,
		"read_file a/b.go":                   {call("read_file", `{"path": "a/b.go"}`)},
		"Bash go test ./...":                 {call("Bash", `{"command": "go test ./...", "description": "Run tests"}`)},
		"shell bash -lc ls (and 1 more)":     {call("shell", `{"command": ["bash", "-lc", "ls"]}`), call("read", `{"filePath": "x"}`)},
		"Edit /w/a.go":                       {call("Edit", `{"old_string": "x", "file_path": "/w/a.go"}`)},
		"glob":                               {call("glob", `{`)},
		"list_dir":                           {call("list_dir", `{"path": ""}`)},
		"apply_patch sub/x.go":               {{Name: "apply_patch", Custom: true, Args: "*** Begin Patch\n*** Update File: sub/x.go\n@@\n"}},
		"run_command echo one && echo two":   {call("run_command", `{"command": "echo one &&\n  echo two"}`)},
		"mcp__docs__search how to":           {call("mcp__docs__search", `{"limit": 3, "query": "how to"}`)},
		"fetch_url https://example.com/page": {call("fetch_url", `{"url": "https://example.com/page"}`)},
	} {
		if got := describeCalls(calls); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
