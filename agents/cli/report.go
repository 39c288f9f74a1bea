package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/text"
)

// report is what a CLI's output says.
type report struct {
	Session string
	Text    string // the answer
	Failure string // why there is none, as the CLI says; it may be there although the exit code is 0
	Broken  int    // lines that could not be read
	Turns   []turn
	Over    bool // the turn has ended: nothing follows, unless the CLI begins another one by itself

	last string // what may be the answer once the turn ends
	said string // all that the model said since its last tool call

	tell func(line string)      // what goes on, for people
	fits func(text string) bool // whether a text is an answer that the role can give; nil: none is
}

// turn is one message of the conversation.
type turn struct {
	Role  string // assistant or tool
	Text  string
	Calls []toolCall
}

type toolCall struct{ Name, Args string }

// hasAnswer says whether an answer that fits was given.
func (r *report) hasAnswer() bool { return r.isAnswer(r.Text) }

func (r *report) isAnswer(said string) bool { return r.fits != nil && r.fits(said) }

// endTurn takes the answer of a turn: what the CLI calls so, or all that was said since the last
// tool call, of which some CLIs hand out only the end after a cut. Of several turns the last answer
// that fits is the answer: what a CLI says because a background command ended is none.
func (r *report) endTurn(answer string) {
	if !r.isAnswer(answer) && r.isAnswer(r.said) {
		answer = r.said
	}
	if r.isAnswer(answer) || !r.hasAnswer() {
		r.Text = answer
	}
	r.Over, r.last, r.said = true, "", ""
}

// failTurn notes why a turn gave no answer. It takes none back that a turn before has given.
func (r *report) failTurn(why string) {
	if !r.hasAnswer() {
		r.Failure = why
	}
	r.Over, r.last, r.said = true, "", ""
}

// addText adds what the model said.
func (r *report) addText(said string) {
	r.said += said
	if strings.TrimSpace(said) != "" {
		r.Turns = append(r.Turns, turn{Role: "assistant", Text: said})
	}
}

// addCall adds a call of a tool, and tells of it.
func (r *report) addCall(name, args string) {
	r.said = ""
	r.Turns = append(r.Turns, turn{Role: "assistant", Calls: []toolCall{{name, args}}})
	if r.tell != nil {
		r.tell(name + " " + text.Cut(args, 120))
	}
}

// addResult adds what a tool gave.
func (r *report) addResult(result string) {
	r.said = ""
	r.Turns = append(r.Turns, turn{Role: "tool", Text: result})
}

// decodeLine reads a line of JSON; ok is false where it is none, which is counted.
func (r *report) decodeLine(line []byte, v any) (ok bool) {
	if len(bytes.TrimSpace(line)) == 0 {
		return false
	}
	if json.Unmarshal(line, v) != nil {
		r.Broken++
		return false
	}
	return true
}

// maxTurns and maxTurn bound what of a conversation is kept: its number, and bytes of one.
const (
	maxTurns = 500
	maxTurn  = 64 << 10
)

// turns are those of all runs of a step, as they were staged.
type turns struct {
	refs []any
	left int // that were not kept
}

// stageTurns stages what a run did, and the node that lists all of the step.
func (t *turns) stageTurns(s *agents.Session, c call, r *report, began time.Time) (node.Hash, error) {
	for _, one := range r.Turns {
		if len(t.refs) >= maxTurns {
			t.left++
			continue
		}
		h, err := s.Stage.Put(record.BuiltinTurnSchema, one.writePayload())
		if err != nil {
			return "", err
		}
		t.refs = append(t.refs, string(h))
	}
	return s.Stage.Put(record.BuiltinDetailSchema, map[string]any{
		"sessionId": c.Session, "model": c.Model, "duration": max(s.Now().Sub(began).Milliseconds(), 0),
		"turnCount": len(t.refs) + t.left, "turns": append([]any{}, t.refs...),
	})
}

func (t turn) writePayload() map[string]any {
	out := map[string]any{"role": t.Role, "content": clipTurn(t.Text), "toolCalls": nil, "reasoning": nil}
	var calls []any
	for _, c := range t.Calls {
		calls = append(calls, map[string]any{"name": c.Name, "args": clipTurn(c.Args)})
	}
	if calls != nil {
		out["toolCalls"] = calls
	}
	return out
}

// clipTurn keeps the beginning and the end of a text.
func clipTurn(s string) string {
	if len(s) <= maxTurn {
		return strings.ToValidUTF8(s, "�")
	}
	const half = maxTurn / 2
	return strings.ToValidUTF8(fmt.Sprintf("%s… [%d bytes left out] …%s", s[:half], len(s)-2*half, s[len(s)-half:]), "")
}

// lines gives a parser one line after the other, or all at once.
type lines struct {
	whole bool
	most  int64
	take  func(line []byte)

	seen int64
	rest []byte
}

func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	if l.seen += int64(n); l.seen > l.most {
		return 0, fmt.Errorf("it printed more than %d bytes on stdout", l.most)
	}
	for !l.whole {
		line, rest, ok := bytes.Cut(p, []byte("\n"))
		if !ok {
			break
		}
		l.take(append(l.rest, line...))
		l.rest, p = l.rest[:0], rest
	}
	l.rest = append(l.rest, p...)
	return n, nil
}

// endLines gives what is left.
func (l *lines) endLines() {
	if len(bytes.TrimSpace(l.rest)) > 0 {
		l.take(l.rest)
	}
	l.rest = nil
}
