package mock

import (
	"fmt"
	"time"

	"github.com/united-workforce/uwf/engine/config/table"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/strictyaml"
	"github.com/united-workforce/uwf/internal/text"
)

// Script is what the mock agent plays.
type Script struct {
	Entries []Entry
	// InOrder says that the first entry is the thread's first step, and so on. Such are
	// the scripts of the TypeScript uwf.
	InOrder bool
}

// Entry is what happens in one step. The package comment describes the fields.
type Entry struct {
	Line  int  // where it stands in the script
	plain bool // it has a role and one output, and nothing else

	Role    string // "": any
	Step    int    // 0: any
	Visit   int    // 0: any
	Attempt int    // 0: any

	Outputs  []string
	Delay    time.Duration
	Write    map[string]string
	Delete   []string
	Commands []string
	Usage    record.Usage
	Stderr   string
	Stdout   string
	Size     int
	Flood    int
	Daemon   bool
	Stage    map[string]string
	Hang     bool
	Exit     *int
	Kill     bool
	Handle   *string
	Extract  bool
	As       As
}

// As is what a lying step says of itself; empty fields tell the truth.
type As struct {
	Role, Agent string
	Start, Prev node.Hash
}

// Moment is what an entry's conditions are held against.
type Moment struct {
	Role                 string
	Step, Visit, Attempt int
}

// Pick returns the first entry whose conditions hold; of a script that is played in order,
// the one of the step, which must be of its role.
func (s Script) Pick(m Moment) (Entry, error) {
	if s.InOrder {
		return s.inOrder(m)
	}
	for _, e := range s.Entries {
		if (e.Role == "" || e.Role == m.Role) && matchesIndex(e.Step, m.Step) && matchesIndex(e.Visit, m.Visit) && matchesIndex(e.Attempt, m.Attempt) {
			return e, nil
		}
	}
	return Entry{}, fmt.Errorf("the script has no entry for role %s at step %d (visit %d, attempt %d); add one", m.Role, m.Step, m.Visit, m.Attempt)
}

// inOrder returns the entry of the step. That it is of another role means that the
// workflow went another way than the script's author thought.
func (s Script) inOrder(m Moment) (Entry, error) {
	if m.Step > len(s.Entries) {
		return Entry{}, fmt.Errorf("the script, which is played in order, ends after %s: it has no entry for step %d, of role %s; add one", text.Plural(len(s.Entries), "step"), m.Step, m.Role)
	}
	e := s.Entries[m.Step-1]
	if e.Role != "" && e.Role != m.Role {
		return Entry{}, fmt.Errorf("the script, which is played in order, has role %s for step %d (line %d), and it is the turn of %s", e.Role, m.Step, e.Line, m.Role)
	}
	return e, nil
}

// comesInOrder reports a script of the TypeScript uwf: each entry has a role and an output
// and nothing else, and a role comes again, which by its role alone would never be played.
func comesInOrder(entries []Entry) bool {
	seen, again := map[string]bool{}, false
	for _, e := range entries {
		if !e.plain || e.Role == "" {
			return false
		}
		again = again || seen[e.Role]
		seen[e.Role] = true
	}
	return again
}

func matchesIndex(want, have int) bool { return want == 0 || want == have }

// ScriptError lists everything that is wrong with a script, each with its place.
type ScriptError struct{ Problems []table.Problem }

func (e *ScriptError) Error() string { return "mock script: " + table.Lines(e.Problems) }

// Parse reads a script. Name is used in errors, which are a *ScriptError.
func Parse(name string, b []byte) (Script, error) {
	r := &table.Reader{File: name}
	var s Script
	entries := []*Entry{}
	r.Read(b, scriptSettings(&entries))
	if len(r.Problems) == 0 && len(entries) == 0 {
		r.Problems = append(r.Problems, table.Problem{File: name, Line: 1, Col: 1, Message: "no steps", Fix: "a script is a map with the list \"steps\""})
	}
	if len(r.Problems) > 0 {
		return Script{}, &ScriptError{Problems: r.Problems}
	}
	for _, e := range entries {
		s.Entries = append(s.Entries, *e)
	}
	s.InOrder = comesInOrder(s.Entries)
	return s, nil
}

// scriptSettings are what may stand in a script. Each entry is added to into.
func scriptSettings(into *[]*Entry) table.Setting {
	steps := table.Items("What happens in each step: of these, the first whose conditions hold.", func(line int) table.Setting {
		e := &Entry{Line: line}
		*into = append(*into, e)
		return e.settings()
	}).Requiring(func(schema map[string]any) { schema["type"], schema["minItems"] = "array", 1 })
	return table.Object("A script of the mock agent: what it answers in place of a model, for nothing.", table.Field{Name: "steps", Setting: steps}).
		Requiring(func(schema map[string]any) { schema["type"], schema["required"] = "object", []any{"steps"} })
}

// SchemaID names the JSON Schema of scripts.
const SchemaID = "https://raw.githubusercontent.com/united-workforce/uwf/main/examples/mock.schema.json"

// Schema is the JSON Schema (draft 7, which editors know) of a script, made of the table that
// scripts are read with.
func Schema() map[string]any {
	return scriptSettings(&[]*Entry{}).Document(SchemaID, "uwf mock script")
}

// settings are what may stand in an entry.
func (e *Entry) settings() table.Setting {
	exit, handle, cost := 0, "", (*float64)(nil)
	field := func(name string, s table.Setting) table.Field { return table.Field{Name: name, Setting: s} }
	do := func(fn func()) func(*table.Reader, *strictyaml.Node, string) {
		return func(*table.Reader, *strictyaml.Node, string) { fn() }
	}
	return table.Object("What happens in a step.",
		field("role", table.Text("Condition: the role whose turn it is.", &e.Role)),
		field("step", table.Whole("Condition: the thread's step, from 1.", &e.Step, 1, maxNumber)),
		field("visit", table.Whole("Condition: how often it is the role's turn, from 1.", &e.Visit, 1, maxNumber)),
		field("attempt", table.Whole("Condition: the try at this step, from 1. It is 2 after a failure.", &e.Attempt, 1, maxNumber)),
		field("output", table.TextOrList("The answer, markdown below a frontmatter. Of a list, the first is the answer, and the others answer corrections.", &e.Outputs)),
		field("extract", table.Flag("A model may read an output that can't be taken, as it may for other agents. It costs what the model costs.", &e.Extract)),
		field("delay", table.Span("How long it works, before all else.", &e.Delay)),
		field("write", table.Texts("Files of the workspace that it writes.", "The whole file.", &e.Write)),
		field("delete", table.List("Files of the workspace that it deletes, where they are.", &e.Delete)),
		field("commands", table.List("What it runs in the workspace, by sh -c. One that fails fails the step.", &e.Commands)),
		field("usage", table.Object("What it says that it used.",
			field("turns", table.Whole("Answers of a model.", &e.Usage.Turns, 0, maxNumber)),
			field("inputTokens", table.Whole("Tokens that went in.", &e.Usage.InputTokens, 0, maxNumber)),
			field("outputTokens", table.Whole("Tokens that came out.", &e.Usage.OutputTokens, 0, maxNumber)),
			field("costUsd", table.Amount("Dollars. Without it, tokens have no price.", &cost).Then(do(func() {
				if cost != nil {
					e.Usage.CostUSD = *cost
				}
			}))),
		).Then(do(func() { e.Usage.Unpriced = cost == nil && e.Usage.InputTokens+e.Usage.OutputTokens > 0 }))),
		field("stderr", table.Text("What it prints on stderr: the step's log.", &e.Stderr)),
		field("stdout", table.Text("What it prints on stdout, before the handle.", &e.Stdout)),
		field("size", table.Whole("Bytes that the output is padded to.", &e.Size, 1, maxNumber)),
		field("flood", table.Whole("Bytes of noise on stdout.", &e.Flood, 1, maxNumber)),
		field("daemon", table.Flag("It leaves a process behind, in a session of its own and without environment.", &e.Daemon)),
		field("stage", table.Texts("Files that it puts among the step's nodes as they are.", "The whole file.", &e.Stage)),
		field("hang", table.Flag("It never ends, and is deaf to SIGTERM.", &e.Hang)),
		field("exit", table.Whole("It ends with this exit code, and hands nothing over.", &exit, 0, 255).Then(do(func() { e.Exit = &exit }))),
		field("kill", table.Flag("It dies of SIGKILL.", &e.Kill)),
		field("handle", table.Text("What it prints in place of the step's handle; nothing, where it is empty.", &handle).Then(do(func() { e.Handle = &handle }))),
		field("as", table.Object("What the step says of itself, where that is a lie.",
			field("role", table.Text("Another role.", &e.As.Role)),
			field("agent", table.Text("Another agent.", &e.As.Agent)),
			field("start", hashSetting("Another thread's start: a node's hash.", &e.As.Start)),
			field("prev", hashSetting("Another former step: a node's hash.", &e.As.Prev)),
		)),
	).Then(func(r *table.Reader, n *strictyaml.Node, path string) {
		e.plain = len(n.Entries) == 2 && e.Role != "" && len(e.Outputs) == 1
		if len(e.Outputs) == 0 && e.Exit == nil && !e.Hang && !e.Kill {
			r.NoteProblem(n, path, "", "an entry needs an output, or one of exit, hang, kill")
		}
	}).Requiring(func(schema map[string]any) {
		var ends []any
		for _, key := range []string{"output", "exit", "hang", "kill"} {
			ends = append(ends, map[string]any{"required": []any{key}})
		}
		schema["type"], schema["anyOf"] = "object", ends
	})
}

// maxNumber is the largest number of a script.
const maxNumber = 1<<31 - 1

// hashSetting is a node's hash.
func hashSetting(doc string, into *node.Hash) table.Setting {
	return table.Text(doc, into).Then(func(r *table.Reader, n *strictyaml.Node, path string) {
		if !into.Valid() {
			r.NoteProblem(n, path, "", "must be a node's hash, 13 characters")
		}
	})
}
