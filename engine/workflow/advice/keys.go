// Package advice says what people and models most likely mean by what is wrong in a
// definition: words of other languages, what is nearly a JSON schema. It reports nothing
// itself.
package advice

import (
	"slices"

	"github.com/united-workforce/uwf/internal/strictyaml"
	"github.com/united-workforce/uwf/internal/text"
)

// otherWords are what other workflow languages call the keys of a definition.
func otherWords() map[string][]string {
	return map[string][]string{
		"role": {"to", "next", "target", "goto", "then", "nextRole", "next_role"}, "prompt": {"message", "instructions", "instruction", "text", "task", "input"},
		"location": {"cwd", "dir", "directory", "path", "folder", "workdir", "workingDirectory"}, "condition": {"if", "when"},
		"approval": {"requiresApproval", "requires_approval", "needsApproval", "needs_approval", "approver", "approvers"}, "not": {"except", "exclude", "excluding"},
		"goal": {"objective", "purpose", "aim"}, "capabilities": {"skills", "abilities"}, "procedure": {"process", "steps"},
		"frontmatter": {"schema"}, "systemPrompt": {"prompt", "system", "instructions"},
		"graph": {"edges", "transitions", "flow", "routes", "states"}, "roles": {"agents"}, "name": {"title", "id"},
		"costUsd": {"cost", "budget", "maxCost"}, "wall": {"time", "timeout", "duration", "maxTime", "wallTime"}, "tokens": {"maxTokens"}, "maxSteps": {"steps"}, "maxStepsPerRole": {"perRole"},
		"expression": {"expr", "jsonata", "if"},
	}
}

// misplacedKeys are keys that belong elsewhere, and where.
func misplacedKeys() map[string]string {
	const configured = "remove it: agents, models and tools are configured in .uwf/config.yaml"
	const graph = "say under `graph` what follows a role"
	const actions = "is this a workflow of GitHub Actions? A definition of uwf has roles and a graph"
	return map[string]string{
		"model": configured, "tools": configured, "agent": configured, "provider": configured, "temperature": configured,
		"edges": graph, "next": graph, "graph": graph, "transitions": graph,
		"start": "say under `graph` where a thread begins: $START: {_: {role: …, prompt: …}}", "entry": "say under `graph` where a thread begins: $START: {_: {role: …, prompt: …}}",
		"jobs": actions, "on": actions,
		"status": "write the edges as a map from status to edge; a list chooses by conditions",
	}
}

// Key is the key that an unknown one most likely means; "" where none is close.
func Key(key string, known []string) string {
	for _, k := range known {
		if slices.Contains(otherWords()[k], key) {
			return k
		}
	}
	if misplacedKeys()[key] != "" {
		return ""
	}
	return text.Suggest(key, known)
}

// AdviseMisplacedKey says where a key belongs that stands in the wrong place; "" for others.
func AdviseMisplacedKey(key string) string { return misplacedKeys()[key] }

// Adopt lets a key count as the one that it means: a mistyped key, which
// was reported and is not to be reported as missing too.
func Adopt(v *strictyaml.Node, e *strictyaml.Entry, key string) {
	// A condition under another name could be a status as well.
	if key != "" && key != "condition" && v.Get(key) == nil {
		e.Key = key
	}
}
