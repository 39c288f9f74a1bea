// Package cassette keeps exchanges with models in a file, and plays them again. It knows
// the file's format, how a request is compared with a recorded one and how a step's
// recording gets into the file; it never opens a connection.
//
// # Format
//
// A cassette is JSON lines: one object for each exchange, in the order in which they are
// played. Empty lines may stand between them. One that was written by hand:
//
//	{"step":2,"role":"developer","match":{"contains":["FAIL","stack_test.go"],"tools":["edit_file"],"model":"gpt-5"},
//	 "answer":{"text":"I will mend Pop.","calls":[{"name":"edit_file","args":{"path":"stack.go","old":"a","new":"b"}}],
//	 "usage":{"in":1200,"out":85,"costUsd":0.004}}}
//
// (on one line). An exchange is found by the thread's step, from 1, and the role that
// asked; nothing in it depends on the thread or the process. Where any exchange names the
// step that is played, only those are used; one without a step serves every step of its
// role. A note says to people what it is for.
//
// Each exchange has match, or request, or neither (then any request fits). With
// match, every text of contains must occur in what is new in the request: the
// messages after the model's last answer, all of them in the first turn. A text
// fits as it stands or after normalising; tools must all be offered; model must be
// the one asked for.
//
// The recorder writes request instead, which must fit exactly after normalising:
//
//	"request":{"post":"/v1/chat/completions","model":"gpt-5","stream":true,"tools":["edit_file","run_command"],
//	 "repeats":3,"messages":[{"role":"tool","text":"ok  \texample.com/stack\t0.012s"}]}
//
// So many messages as repeats says, the first ones of the request before, come before
// those that are listed. Roles are system, user, assistant and tool. tools must be the ones
// that are offered; ["*"] is any list of them: a program's next version may offer others.
//
// An answer has one of these forms:
//
//	text, calls, finish    what the model said; nothing, where finish stands alone. It is
//	                       given in the dialect that the client speaks, streamed or not.
//	                       A call has name, args (an object, or a text with JSON) and
//	                       maybe an id; OpenAI's custom tools have custom, their args
//	                       are any text; namespace is where a tool stands; finish is stop, calls, length or filter
//	body                   a plain answer as it came, any text
//	events                 a streamed answer as it came (server-sent events)
//	error                  a message, given in the client's form with status
//
// status is 200, or 400 beside error, where it is left out. usage has in, out,
// cacheRead, cacheWrite (tokens; in includes both cache counts) and costUsd; where
// usage is left out it is estimated.
//
// What an agent asked a gateway for besides its model stands beside the exchanges of its
// step. It is found by path and body, in any order; the last of several is played again:
//
//	{"step":2,"role":"developer","aside":{"post":"/fetch","body":"{\"url\":\"https://go.dev/\"}"},
//	 "answer":{"body":"{\"status\":200,\"text\":\"Go\"}"}}
package cassette

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// MaxSize is the largest cassette that is read or written, in bytes.
const MaxSize = 64 << 20

// Cassette is a parsed file.
type Cassette struct {
	File    string // as given to Parse, for messages
	Entries []Entry
}

// Entry is one request and its answer.
type Entry struct {
	Note    string   `json:"note,omitempty"`
	Step    int      `json:"step,omitempty"` // 0: any step of the role
	Role    string   `json:"role"`
	Request *Request `json:"request,omitempty"`
	Match   *Match   `json:"match,omitempty"`
	Aside   *Aside   `json:"aside,omitempty"`
	Answer  Answer   `json:"answer"`

	line int // where it stands in the file
}

// Request is a recorded request: what must fit exactly.
type Request struct {
	Path     string            `json:"post"`
	Model    string            `json:"model,omitempty"`
	Stream   bool              `json:"stream,omitempty"`
	Tools    []string          `json:"tools,omitempty"`
	Repeats  int               `json:"repeats,omitempty"` // messages of the request before that come before Messages
	Messages []dialect.Message `json:"messages,omitempty"`
}

// Aside is what was asked for besides a model.
type Aside struct {
	Path string `json:"post"`
	Body string `json:"body"`
}

// Match is the loose form of Request.
type Match struct {
	Contains []string `json:"contains,omitempty"`
	Tools    []string `json:"tools,omitempty"`
	Model    string   `json:"model,omitempty"`
}

// Answer is a recorded or hand-written answer. At most one of (Text, Calls, Finish),
// Body, Events and Error is set.
type Answer struct {
	Status int            `json:"status,omitempty"` // HTTP status, never 0 after Parse
	Text   string         `json:"text,omitempty"`
	Calls  []dialect.Call `json:"calls,omitempty"`
	Finish string         `json:"finish,omitempty"`
	Body   string         `json:"body,omitempty"`
	Events string         `json:"events,omitempty"`
	Error  string         `json:"error,omitempty"`
	Usage  *Usage         `json:"usage,omitempty"` // nil: unknown
}

// Usage is what an answer cost, in tokens and US dollars.
type Usage struct {
	In         int64    `json:"in"`
	Out        int64    `json:"out"`
	CacheRead  int64    `json:"cacheRead,omitempty"`
	CacheWrite int64    `json:"cacheWrite,omitempty"`
	CostUSD    *float64 `json:"costUsd,omitempty"` // nil: unknown
}

func newUsage(u dialect.Usage) *Usage {
	out := &Usage{In: u.In, Out: u.Out, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
	if u.HasCost {
		out.CostUSD = &u.CostUSD
	}
	return out
}

// Dialect is the usage as an answer of a model has it. Nil is one that says nothing.
func (u *Usage) Dialect() dialect.Usage {
	if u == nil {
		return dialect.Usage{}
	}
	out := dialect.Usage{In: u.In, Out: u.Out, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, HasIn: true, HasOut: true}
	if u.CostUSD != nil {
		out.CostUSD, out.HasCost = *u.CostUSD, true
	}
	return out
}

// ParseError is one thing that is wrong with a cassette.
type ParseError struct {
	File    string
	Line    int // from 1; 0: unknown
	Problem string
}

func (e *ParseError) Error() string {
	at := e.File
	if e.Line > 0 {
		at += fmt.Sprintf(":%d", e.Line)
	}
	return fmt.Sprintf("cassette %s: %s", at, e.Problem)
}

// Load reads a cassette from a file.
func Load(file string) (*Cassette, error) {
	f, err := lockedfile.Open(file) // another process may be writing it
	if err != nil {
		return nil, fmt.Errorf("read cassette: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read cassette: %w", err)
	}
	return Parse(file, b)
}

// maxProblems bounds the problems that one error holds.
const maxProblems = 20

// Parse reads a cassette. name stands in messages. The error holds a *ParseError for each
// line with a problem (at most twenty).
func Parse(name string, b []byte) (*Cassette, error) {
	if len(b) > MaxSize {
		return nil, &ParseError{File: name, Problem: fmt.Sprintf("larger than %d bytes", MaxSize)}
	}
	c := &Cassette{File: name}
	var problems []error
	line := 0
	for text := range bytes.Lines(b) {
		line++
		if len(bytes.TrimSpace(text)) == 0 || len(problems) == maxProblems {
			continue
		}
		e, err := parseEntry(text)
		if err != nil {
			problems = append(problems, &ParseError{File: name, Line: line, Problem: err.Error()})
			continue
		}
		e.line = line
		c.Entries = append(c.Entries, e)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return c, nil
}

func parseEntry(text []byte) (e Entry, err error) {
	var wrong *json.UnmarshalTypeError
	var syntax *node.SyntaxError
	switch err := node.DecodeJSON(bytes.TrimSpace(text), &e); {
	case errors.As(err, &syntax):
		return e, fmt.Errorf("not an exchange as JSON on one line: column %d: %s", syntax.Column, syntax.Msg)
	case errors.As(err, &wrong):
		return e, fmt.Errorf("%s can't be %s", cmp.Or(wrong.Field, "an exchange"), wrong.Value)
	case err != nil:
		return e, fmt.Errorf("not an exchange as JSON on one line: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if r := e.Request; r != nil {
		d, known := dialect.ForPath(r.Path)
		if !known {
			return e, fmt.Errorf("post must be %s, %s, %s or %s", dialect.Chat.Path(), dialect.Responses.Path(), dialect.Messages.Path(), dialect.Gemini.Path())
		}
		if strings.ContainsFunc(r.Model, unicode.IsControl) { // it is handed to programs
			return e, errors.New("model is a name on one line")
		}
		r.Path = d.Path()
		slices.Sort(r.Tools)
	}
	if e.Answer.Status == 0 {
		e.Answer.Status = 200
		if e.Answer.Error != "" {
			e.Answer.Status = 400
		}
	}
	return e, errors.Join(e.checkPlace(), e.Answer.checkForm(), e.Answer.Usage.checkCounts())
}

// checkPlace checks what an exchange is found by.
func (e *Entry) checkPlace() error {
	switch {
	case e.Role == "":
		return errors.New("role is missing")
	case e.Step < 0:
		return errors.New("step counts from 1")
	case e.Request != nil && e.Match != nil:
		return errors.New("an exchange has request (exact) or match (loose), not both")
	case e.Aside != nil && (e.Request != nil || e.Match != nil || e.Aside.Path == "" || e.Answer.Body == ""):
		return errors.New("an aside has post and body, and its answer a body")
	case e.Request != nil && e.Request.Repeats < 0:
		return errors.New("repeats is a number of messages")
	}
	return nil
}

func (a *Answer) checkForm() error {
	said := a.Text != "" || len(a.Calls) > 0 || a.Finish != ""
	forms := 0
	for _, set := range []bool{said, a.Body != "", a.Events != "", a.Error != ""} {
		if set {
			forms++
		}
	}
	finishes := []string{"", dialect.FinishStop, dialect.FinishCalls, dialect.FinishLength, dialect.FinishFilter}
	switch {
	case forms != 1:
		return errors.New("an answer has one of text (with calls and finish), body, events and error")
	case a.Status > 599 || (a.Error != "") != (a.Status >= 400 && a.Body == ""), a.Status < 400 && a.Status != 200:
		return fmt.Errorf("status %d does not fit: an error (or body) has 400 to 599, any other answer 200", a.Status)
	case !slices.Contains(finishes, a.Finish):
		return fmt.Errorf("finish is stop, calls, length or filter, not %q", a.Finish)
	case slices.ContainsFunc(a.Calls, func(c dialect.Call) bool { return c.Name == "" }):
		return errors.New("a call needs a name")
	}
	return nil
}

// What is believed of a usage.
const (
	maxCount = 1 << 40 // tokens
	maxCost  = 1e6     // US dollars
)

func (u *Usage) checkCounts() error {
	if u == nil {
		return nil
	}
	for _, n := range []int64{u.In, u.Out, u.CacheRead, u.CacheWrite} {
		if n < 0 || n > maxCount {
			return fmt.Errorf("usage counts tokens from 0 to %d, and not %d", int64(maxCount), n)
		}
	}
	if u.CostUSD != nil && (*u.CostUSD < 0 || *u.CostUSD > maxCost) {
		return fmt.Errorf("costUsd is an amount in US dollars, and not %v", *u.CostUSD)
	}
	return nil
}

// encodeEntries writes exchanges as Parse reads them.
func encodeEntries(entries []Entry) ([]byte, error) {
	var out []byte
	for _, e := range entries {
		line, err := text.EncodeJSON(e)
		if err != nil {
			return nil, err
		}
		out = append(append(out, line...), '\n')
	}
	return out, nil
}

// describeEntry names an entry for messages, as in "solve.jsonl:41".
func (c *Cassette) describeEntry(e Entry) string { return fmt.Sprintf("%s:%d", c.File, e.line) }

// entriesOf is the entries that one step of one role plays.
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
	for _, e := range c.Entries {
		name := e.Role
		if e.Step > 0 {
			name = fmt.Sprintf("step %d (%s)", e.Step, e.Role)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "no entries"
	}
	return strings.Join(slices.Compact(names), ", ")
}
