// Package translate lets a client that speaks OpenAI's responses, Anthropic's messages or
// Google's generateContent be answered by a provider that speaks chat completions alone. It
// turns the request into one of chat, and the answer, streamed or not, into the client's
// dialect. It translates into chat only and opens no connection. [Items] alone keep something.
package translate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// ErrRequest is wrapped by errors about what has no like in chat: the client's mistake.
var ErrRequest = errors.New("this model is reached by chat completions alone")

// ErrAnswer is wrapped by errors about a chat answer that can't be given to the client.
var ErrAnswer = errors.New("unusable answer")

// WireFor is the dialect in which a provider that speaks these is asked by a client of
// dialect d: the client's own where it can be, else chat. ok is false where neither is spoken.
func WireFor(spoken []dialect.Dialect, d dialect.Dialect) (wire dialect.Dialect, ok bool) {
	if slices.Contains(spoken, d) {
		return d, true
	}
	return dialect.Chat, slices.Contains(spoken, dialect.Chat)
}

// Options of a translation.
type Options struct {
	Model     string   // as the client is told
	ID        string   // of the answer: programs take two answers of one id for parts of one
	MaxOutput int      // tokens that the model can write at most; 0: unknown
	Items     *Items   // what clients of the responses API may refer to; nil: nothing
	Refused   []string // fields that the provider is known to refuse, see Adapt
}

// Translation is one exchange of a client on a wire that is not its own.
type Translation struct {
	// Request is what the provider is asked.
	Request *dialect.Request
	// Lost names what the request has and chat has no place for, see Losses.
	Lost []string
	// Added is how many bytes the request has grown by, because it refers to former answers.
	Added int

	client   dialect.Dialect
	o        Options
	tools    *tools
	thoughts bool // the client wants to read what the model thinks
	fields   object
	input    []any // of the responses API, with what it refers to; nil: the answer is not to be kept
}

// NewTranslation translates a request. Its errors wrap ErrRequest, or are those of
// dialect.ParseRequest.
func NewTranslation(r *dialect.Request, o Options) (*Translation, error) {
	var asked object
	if err := text.DecodeJSON(r.Body(r.Model, false), &asked); err != nil {
		return nil, fmt.Errorf("%w: the body is no JSON object: %w", ErrRequest, err)
	}
	if r.Forced != "" {
		return nil, fmt.Errorf("%w: the tool %.100q, which tool_choice forces, runs at the provider and is not there", ErrRequest, r.Forced)
	}
	b := newBuilder(asked, o)
	var err error
	switch r.Dialect {
	case dialect.Messages:
		err = b.readMessages()
	case dialect.Responses:
		err = b.readResponses()
	case dialect.Gemini:
		err = b.readGemini()
	default:
		err = fmt.Errorf("%w: %s is not translated", ErrRequest, r.Dialect.Path())
	}
	if err != nil {
		return nil, err
	}
	b.loseFields(r.Dialect)
	t := &Translation{client: r.Dialect, o: o, tools: b.tools, thoughts: b.thoughts, Lost: b.lost, Added: b.added, input: b.input}
	t.fields, err = b.writeChat(r, o)
	if err != nil {
		return nil, err
	}
	return t, t.parse()
}

var word = lazyregexp.New(`\w+`)

// Adapt changes the request by what a provider says in refusing it: OpenAI's models that reason
// have another name for the limit of the answer, and some servers refuse fields that they do not know.
// It returns the names of the fields that it leaves out, and reports whether anything changed.
func (t *Translation) Adapt(refusal []byte) (without []string, ok bool) {
	if limit := t.fields["max_tokens"]; limit != nil && bytes.Contains(refusal, []byte("max_completion_tokens")) {
		delete(t.fields, "max_tokens")
		t.fields["max_completion_tokens"] = limit
		return nil, t.parse() == nil
	}
	words := word.FindAllString(string(refusal), -1)
	for _, field := range optionalFields() {
		if t.fields[field] != nil && slices.Contains(words, field) {
			without = append(without, field)
			delete(t.fields, field)
		}
	}
	return without, len(without) > 0 && t.parse() == nil
}

func (t *Translation) parse() error {
	body, err := text.EncodeJSON(t.fields)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRequest, err)
	}
	t.Request, err = dialect.ParseRequest(dialect.Chat, body)
	return err
}

// WriteAnswer is a plain answer in the client's dialect, with the usage that is counted.
func (t *Translation) WriteAnswer(a dialect.Answer, usage dialect.Usage) ([]byte, error) {
	whole, err := t.writeReply(a, usage)
	return whole.Body(t.client), err
}

// writeReply is a chat answer as the client has it: its calls by the client's names for the
// tools. An answer that ended for no known reason may not be whole, and is none; others are kept.
func (t *Translation) writeReply(a dialect.Answer, usage dialect.Usage) (dialect.Reply, error) {
	out := dialect.Reply{Answer: a, ID: t.o.ID, Model: t.o.Model}
	out.Usage, out.Calls = usage, nil
	if !t.thoughts {
		out.Thoughts = ""
	}
	for i, c := range a.Calls {
		if c.Name == "" {
			return out, fmt.Errorf("%w: call %d names no tool", ErrAnswer, i+1)
		}
		if a.Finish == dialect.FinishLength || a.Finish == dialect.FinishFilter {
			if !isObject(string(c.Args)) {
				continue // it was cut
			}
		}
		out.Calls = append(out.Calls, t.tools.readCall(c))
	}
	switch a.Finish {
	case dialect.FinishStop, dialect.FinishCalls:
		if out.Finish = dialect.FinishStop; len(out.Calls) > 0 {
			out.Finish = dialect.FinishCalls
		}
	case dialect.FinishLength, dialect.FinishFilter:
	case "":
		return out, fmt.Errorf("%w: it does not say why it ended", ErrAnswer)
	default:
		return out, fmt.Errorf("%w: it ended because of %.100q, which is no end that is known", ErrAnswer, a.Finish)
	}
	t.keep(out)
	return out, nil
}

// Stream is a streamed answer on its way to the client.
type Stream struct {
	t       *Translation
	w       *dialect.StreamWriter
	past    dialect.Answer
	silence int // chat events in a row of which the client got nothing
}

// NewStream begins a streamed answer.
func (t *Translation) NewStream() *Stream { return &Stream{t: t} }

// silentEvents is how many chat events, of a call's arguments as a rule, pass before the
// client gets a sign of life.
const silentEvents = 20

// Add gives what the client gets after another chat event: a is the answer so far.
func (s *Stream) Add(a dialect.Answer) []byte {
	var begun []byte
	if s.w == nil {
		s.w = dialect.NewStreamWriter(s.t.client, dialect.Reply{ID: s.t.o.ID, Model: s.t.o.Model}, true)
		begun = s.w.Add("", "")
	}
	thought, said := a.Thoughts[len(s.past.Thoughts):], a.Text[len(s.past.Text):]
	s.past = a
	if !s.t.thoughts {
		thought = ""
	}
	out := slices.Concat(begun, s.w.Add(thought, said))
	if s.silence++; len(out) > 0 {
		s.silence = 0
	}
	if s.silence >= silentEvents {
		s.silence = 0
		return s.w.KeepAlive()
	}
	return out
}

// End gives the rest. In an error the client gets no end: the answer is not whole.
func (s *Stream) End(a dialect.Answer, usage dialect.Usage) ([]byte, error) {
	begun := s.Add(a)
	whole, err := s.t.writeReply(a, usage)
	if err != nil {
		return nil, err
	}
	return append(begun, s.w.End(whole)...), nil
}
