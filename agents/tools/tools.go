// Package tools are the hands of the builtin agent: files, search and commands
// within one workspace. Files are reached through os.Root only, so that nothing
// outside the workspace is read or written; `.git` is out of reach by any name;
// what is not a regular file is never opened to the end. Every result is bounded.
// The package never talks to a model, never reads the environment, and reaches nothing
// but uwf's gateway.
package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/agents/internal/proc"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lists"
)

// Options configure a Set.
type Options struct {
	// Dir is the workspace.
	Dir string
	// AllowShell has run_command done. It is offered always, so that all roles have the same
	// tools: providers keep these with what requests begin with.
	AllowShell bool
	// Environ is the whole environment of commands; it is given to them as it is.
	Environ []string
	// Explain says in one short line what would help against what an output complains of;
	// empty: nothing. Nil: nobody knows.
	Explain func(output string) string
	// Gateway is asked for what is outside of this machine.
	Gateway Gateway
	// Mark is the value of the process mark in this process's environment.
	Mark string
	// MaxResult bounds one result, in bytes. 0: 48 KiB.
	MaxResult int
}

// Limits of the tools, in bytes unless said otherwise.
const (
	defaultMaxResult = 48 << 10
	maxArguments     = 2 << 20
	maxRead          = 8 << 20 // files that read_file and edit_file open
	maxWrite         = 1 << 20 // content of write_file, result of edit_file
	maxGrepFile      = 2 << 20
	maxEntries       = 100_000 // files and folders looked at by one search
	maxListed        = 1000    // entries of list_dir, results of glob
	maxMatches       = 200     // results of grep
	maxLine          = 400     // of a line shown by grep
)

// CallError is a call that could not be done, in words for the model. It is no reason
// to end the agent.
type CallError struct{ Msg string }

func (e *CallError) Error() string { return e.Msg }

func newError(format string, args ...any) error { return &CallError{Msg: fmt.Sprintf(format, args...)} }

// Definition describes a tool as OpenAI-compatible APIs want it.
type Definition struct {
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON schema
}

// tool is a definition with what it does.
type tool struct {
	Definition
	call func(s *Set, ctx context.Context, args []byte) (string, error)
}

// Set is the tools over one workspace. It is safe for concurrent use.
type Set struct {
	dir    string
	root   *os.Root
	o      Options
	tools  []tool
	runner *proc.Runner
}

// Open opens a workspace. Close the set after use.
func Open(o Options) (*Set, error) {
	if o.MaxResult <= 0 {
		o.MaxResult = defaultMaxResult
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the workspace: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the workspace: %w", err)
	}
	s := &Set{dir: dir, root: root, o: o, tools: append(fileTools(), commandTool()), runner: proc.NewRunner(o.Mark)}
	if o.Gateway.Hosts != "" { // the same for all roles of a thread
		s.tools = append(s.tools, fetchTool(o.Gateway.Hosts))
	}
	return s, nil
}

// Close releases the workspace.
func (s *Set) Close() error { return s.root.Close() }

// Definitions lists the tools in a fixed order.
func (s *Set) Definitions() []Definition {
	return lists.Map(s.tools, func(t tool) Definition { return t.Definition })
}

// Call does one call. Args is the JSON object that the model wrote. A mistake of
// the model is a *CallError; any other error ends the agent.
func (s *Set) Call(ctx context.Context, name, args string) (string, error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	for _, t := range s.tools {
		if t.Name != name {
			continue
		}
		if len(args) > maxArguments {
			return "", newError("%s: %d bytes of arguments; at most %d are taken", name, len(args), maxArguments)
		}
		out, err := t.call(s, ctx, []byte(args))
		if cerr := context.Cause(ctx); cerr != nil {
			return "", cerr
		}
		if err != nil {
			return "", describeError(name, err)
		}
		return s.boundResult(out), nil
	}
	return "", newError("no tool %q; there are: %s", name, strings.Join(s.Names(), ", "))
}

// Names lists the tools' names in the same order.
func (s *Set) Names() []string {
	return lists.Map(s.tools, func(t tool) string { return t.Name })
}

// describeError names the tool in an error, and turns what the file system says into
// a *CallError: a missing file is the model's business.
func describeError(name string, err error) error {
	if errors.As(err, new(*proc.LeftoverError)) {
		return err
	}
	return newError("%s: %v", name, err)
}

// boundResult cuts a result that is too long in its middle, where least is lost.
func (s *Set) boundResult(text string) string {
	if len(text) <= s.o.MaxResult {
		return text
	}
	half := s.o.MaxResult / 2
	head, tail := text[:half], text[len(text)-half:]
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s",
		strings.ToValidUTF8(head, ""), len(text)-2*half, strings.ToValidUTF8(tail, ""))
}

// decodeArguments reads a call's arguments. Unknown ones are refused, so that a model
// learns of a misspelt name.
func decodeArguments[T any](args []byte) (T, error) {
	var v T
	if len(bytes.TrimSpace(args)) == 0 {
		args = []byte("{}")
	}
	if err := node.DecodeJSON(args, &v); err != nil {
		return v, fmt.Errorf("the arguments are not the JSON object of the schema (%w)", err)
	}
	return v, nil
}

// newTool builds a tool from a typed function.
func newTool[T any](name, description, schema string, f func(s *Set, ctx context.Context, in T) (string, error)) tool {
	return tool{
		Definition: Definition{Name: name, Description: description, Parameters: json.RawMessage(schema)},
		call: func(s *Set, ctx context.Context, args []byte) (string, error) {
			in, err := decodeArguments[T](args)
			if err != nil {
				return "", err
			}
			return f(s, ctx, in)
		},
	}
}
