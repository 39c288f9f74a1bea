// Package cassette keeps conversations with models in a file that people can
// read, review and write by hand, and plays them again. It knows the file's
// format, how a request is compared with a recorded one and how a step's
// recording gets into the file; it never opens a connection.
//
// # Format
//
// A cassette is one YAML document (version 1):
//
//	version: 1
//	note: what this cassette is for          # optional
//	entries:
//	  - step: 2                              # the thread's step, from 1; optional
//	    role: developer                      # the role that asked
//	    turn: 1                              # the how-manieth request; optional: file order
//	    match:                               # loose: how the request must look; optional
//	      contains: ["FAIL", "stack_test.go"]
//	      tools: [edit_file]
//	      model: gpt-5
//	    answer:
//	      text: I will mend Pop.
//	      calls:
//	        - name: edit_file
//	          args: {path: stack.go, old: "a", new: "b"}
//	      usage: {in: 1200, out: 85, costUsd: 0.004}
//
// An entry is found by step, role and turn; nothing in it depends on the thread
// or the process. Entries with a step go before those without one: where any
// entry names the step that is played, only those are used; an entry without a
// step serves every step of its role.
//
// Each entry has match, or request, or neither (then any request fits). With
// match, every text of contains must occur in what is new in the request: the
// messages after the model's last answer, all of them in the first turn. A text
// fits as it stands or after normalising; tools must all be offered; model must be
// the one asked for.
//
// The recorder writes request instead, which must fit exactly after normalising:
//
//	request:
//	  post: /v1/chat/completions
//	  model: gpt-5
//	  stream: true                       # left out when false
//	  tools: [edit_file, run_command]    # sorted names
//	  continues: true                    # the former turn's messages and its answer come first
//	  messages:
//	    - role: tool                     # system, user, assistant, tool
//	      text: "ok  	example.com/stack	0.012s"
//
// An answer has one of these forms:
//
//	text, calls, finish    what the model said. It is given in the dialect that the
//	                       client speaks, streamed or not. A call has name, args (a
//	                       mapping, or a text with JSON) and maybe an id; finish is
//	                       stop, calls, length or filter
//	body                   a plain answer as it came, any text
//	events                 a streamed answer as it came (server-sent events)
//	error                  a message, given in the client's form with status
//
// status is 200, or 400 beside error, where it is left out. usage has in, out,
// cacheRead, cacheWrite (tokens; in includes both cache counts) and costUsd; where
// it is left out it is estimated.
//
// Unknown fields, duplicate fields, anchors, aliases and tags are errors, and
// every error names file and line.
package cassette

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// Version is the format that this package reads and writes.
const Version = 1

// MaxSize is the largest cassette that is read or written, in bytes.
const MaxSize = 64 << 20

// Cassette is a parsed file.
type Cassette struct {
	File    string // as given to Parse, for messages
	Note    string
	Entries []Entry
}

// Entry is one request and its answer.
type Entry struct {
	Step    int // 0: any step of the role
	Role    string
	Turn    int // from 1
	Line    int // where it stands in the file; 0: not read from one
	Request *Request
	Match   *Match
	Answer  Answer
}

// Request is a recorded request: what must fit exactly.
type Request struct {
	Path      string
	Model     string
	Stream    bool
	Tools     []string
	Continues bool // the former turn's messages and answer come before Messages
	Messages  []dialect.Message
}

// Match is the loose form of Request.
type Match struct {
	Contains []string
	Tools    []string
	Model    string
}

// Answer is a recorded or hand-written answer. At most one of (Text, Calls),
// Body, Events and Error is set.
type Answer struct {
	Status int // HTTP status, never 0 after Parse
	Text   string
	Calls  []dialect.Call
	Finish string
	Usage  dialect.Usage
	Body   string
	Events string
	Error  string
}

// ParseError is one thing that is wrong with a cassette.
type ParseError struct {
	File    string
	Line    int // from 1; 0: unknown
	Column  int
	Problem string
}

func (e *ParseError) Error() string {
	at := e.File
	if e.Line > 0 {
		at += fmt.Sprintf(":%d", e.Line)
		if e.Column > 0 {
			at += fmt.Sprintf(":%d", e.Column)
		}
	}
	return fmt.Sprintf("cassette %s: %s", at, e.Problem)
}

// describeEntry names an entry for messages, as in "solve.yaml:41".
func (c *Cassette) describeEntry(e Entry) string {
	if e.Line == 0 {
		return c.File
	}
	return fmt.Sprintf("%s:%d", c.File, e.Line)
}

// BeyondStep lists entries for steps after the given one: what a thread that
// ended with that step can't have asked for.
func (c *Cassette) BeyondStep(last int) []string {
	var out []string
	for _, e := range c.Entries {
		if e.Step > last {
			out = append(out, fmt.Sprintf("%s: step %d (%s), turn %d", c.describeEntry(e), e.Step, e.Role, e.Turn))
		}
	}
	return out
}

// entriesOf is the entries that one step of one role plays, in order of turns.
func (c *Cassette) entriesOf(step int, role string) []Entry {
	var exact, loose []Entry
	for _, e := range c.Entries {
		switch {
		case e.Role != role:
		case e.Step == step:
			exact = append(exact, e)
		case e.Step == 0:
			loose = append(loose, e)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return loose
}

// Asked is the model that a role's recording asked for first, and how; ok is
// false where nothing was recorded for it, as in a cassette that was written by
// hand.
func (c *Cassette) Asked(role string) (model string, d dialect.Dialect, ok bool) {
	for _, e := range c.Entries {
		if e.Role == role && e.Request != nil {
			d, _ := dialect.ForPath(e.Request.Path)
			return e.Request.Model, d, true
		}
	}
	return "", dialect.Chat, false
}

// describeContents names the steps and roles of a cassette, for the message that one is
// missing.
func (c *Cassette) describeContents() string {
	var names []string
	last := ""
	for _, e := range c.Entries {
		name := e.Role
		if e.Step > 0 {
			name = fmt.Sprintf("step %d (%s)", e.Step, e.Role)
		}
		if name != last {
			names = append(names, name)
		}
		last = name
	}
	if len(names) == 0 {
		return "no entries"
	}
	return strings.Join(names, ", ")
}
