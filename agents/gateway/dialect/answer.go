package dialect

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Answer is what a model answered.
type Answer struct {
	Text string
	// Thoughts are what a chat model thought before it spoke, where its server tells.
	Thoughts string
	Calls    []Call
	Finish   string // stop, calls, length or filter; empty when the provider did not say
	Usage    Usage
	// Bytes counts what the model wrote, thoughts too, for an estimate where the
	// provider reports no usage.
	Bytes int
}

// The names of Answer.Finish.
const (
	FinishStop   = "stop"
	FinishCalls  = "calls"
	FinishLength = "length"
	FinishFilter = "filter"
)

// ErrAnswer is wrapped by errors about an answer that is none.
var ErrAnswer = errors.New("unusable answer")

// ParseAnswer reads a plain (not streamed) answer of status 200.
func ParseAnswer(d Dialect, body []byte) (Answer, error) {
	v, err := decodeJSON(body)
	if err != nil {
		return Answer{}, fmt.Errorf("%w: no JSON: %w", ErrAnswer, err)
	}
	o := asObject(v)
	if o == nil {
		return Answer{}, fmt.Errorf("%w: no JSON object", ErrAnswer)
	}
	if !isEmpty(o["error"]) { // OpenRouter answers 200 with an error inside
		return Answer{}, errorOf(o)
	}
	c := NewCollector(d)
	c.format.answer(c, o)
	return c.answer, nil
}

// Collector puts a streamed answer together while it passes by. Feed it every
// event; it never fails on what it does not know.
type Collector struct {
	format    format
	answer    Answer
	calls     map[int]int // index in the stream → index in answer.Calls
	texts     int
	choices   map[int]bool // those of chat that go on
	refused   bool         // a chat model refuses in a field of its own
	usageOnly bool         // of the last event
	done      bool
	ended     bool
	err       error
}

// NewCollector starts an answer of the dialect.
func NewCollector(d Dialect) *Collector {
	return &Collector{format: formatOf(d), calls: map[int]int{}, choices: map[int]bool{}}
}

// Add takes one event. usageOnly is true for a chat event that carries usage and
// nothing else: the one that only clients expect that asked for it.
func (c *Collector) Add(ev Event) (usageOnly bool) {
	if string(ev.Data) == "[DONE]" {
		c.done, c.ended = true, true
		return false
	}
	v, err := decodeJSON(ev.Data)
	o := asObject(v)
	if err != nil || o == nil {
		return false
	}
	kind := asString(o["type"])
	if !isEmpty(o["error"]) && (kind == "" || kind == "error") {
		c.err = errorOf(o)
		return false
	}
	c.usageOnly = false
	c.format.event(c, kind, o)
	return c.usageOnly
}

// AnswerSoFar is what has arrived so far.
func (c *Collector) AnswerSoFar() Answer {
	a := c.answer
	a.Calls = slices.Clone(a.Calls)
	return a
}

// Done says whether the whole answer has come; a stream that stops before was
// cut. A report of the usage may still follow.
func (c *Collector) Done() bool { return c.done }

// Ended says whether the dialect's last event has come: nothing follows.
func (c *Collector) Ended() bool { return c.ended }

// Err is the error that the provider reported inside the stream, a *StreamError,
// or nil.
func (c *Collector) Err() error { return c.err }

// callAt is the tool call at an index of the stream, made where it is new.
func (c *Collector) callAt(index int) *Call {
	at, ok := c.calls[index]
	if !ok {
		at = len(c.answer.Calls)
		c.calls[index] = at
		c.answer.Calls = append(c.answer.Calls, Call{})
	}
	return &c.answer.Calls[at]
}

// addText adds the text of another message or block of the answer.
func (c *Collector) addText(text string) {
	if c.texts++; c.texts > 1 {
		c.answer.Text += "\n"
	}
	c.answer.Text += text
}

// countText counts the bytes of all text below v.
func countText(v any) int {
	n := 0
	visitTexts("", v, func(_, text string) { n += len(text) })
	return n
}

// maxTokens is the largest count of tokens that is believed.
const maxTokens = 1 << 40

// parseCount reads a number of tokens. What is negative, broken or beyond belief is
// no number at all.
func parseCount(n json.Number) (int64, bool) {
	if n == "" {
		return 0, false
	}
	f, err := n.Float64()
	if err != nil || f < 0 || f > maxTokens {
		return 0, false
	}
	return int64(f), true
}

// parsePrice reads an amount in US dollars.
func parsePrice(v any) (float64, bool) {
	f, err := asNumber(v).Float64()
	if err != nil || f < 0 || f > 1e6 {
		return 0, false
	}
	return f, true
}

// readOpenAIUsage reads a report of usage in which the counts have these names.
func readOpenAIUsage(u object, in, out string) Usage {
	var usage Usage
	usage.In, usage.HasIn = parseCount(asNumber(u[in+"_tokens"]))
	usage.Out, usage.HasOut = parseCount(asNumber(u[out+"_tokens"]))
	details := asObject(u[in+"_tokens_details"])
	usage.CacheRead, _ = parseCount(asNumber(details["cached_tokens"]))
	usage.CacheWrite, _ = parseCount(asNumber(details["cache_write_tokens"]))
	thought, _ := parseCount(asNumber(asObject(u[out+"_tokens_details"])["reasoning_tokens"]))
	usage.Reasoning = min(thought, usage.Out)
	usage.CostUSD, usage.HasCost = parsePrice(u["cost"])       // OpenRouter, in US dollars
	if byok, _ := u["is_byok"].(bool); byok && usage.HasCost { // billed by the provider behind it as well
		extra, _ := parsePrice(asObject(u["cost_details"])["upstream_inference_cost"])
		usage.CostUSD += extra
	}
	return usage
}

// writeOpenAIUsage writes such a report.
func (r Reply) writeOpenAIUsage(in, out string) object {
	return object{
		in + "_tokens": r.Usage.In, out + "_tokens": r.Usage.Out, "total_tokens": r.Usage.In + r.Usage.Out,
		in + "_tokens_details":  object{"cached_tokens": r.Usage.CacheRead},
		out + "_tokens_details": object{"reasoning_tokens": r.Usage.Reasoning},
	}
}

// Reply is an answer to be written in a dialect: for replays and hand-written
// cassettes. Everything in it that a provider would make up (ids, times) is
// derived from ID, so that the same reply is the same bytes every time.
type Reply struct {
	Answer
	ID    string // as in "uwf-planner-1-2"
	Model string
}

// Body is the reply as one JSON value.
func (r Reply) Body(d Dialect) []byte { return writeJSON(formatOf(d).body(r.fillGaps())) }

// Stream is the reply as server-sent events. wantUsage is what a chat client
// asked for; the other dialects always report usage.
func (r Reply) Stream(d Dialect, wantUsage bool) []byte {
	r = r.fillGaps()
	w := NewStreamWriter(d, r, wantUsage)
	return slices.Concat(w.Add(r.Thoughts, r.Text), w.End(r))
}

// fillGaps is the reply with what it leaves out: ids and arguments of calls, and why it
// ended.
func (r Reply) fillGaps() Reply {
	r.Calls = slices.Clone(r.Calls)
	for i := range r.Calls {
		c := &r.Calls[i]
		if c.ID = cmp.Or(c.ID, fmt.Sprintf("call_%s_%d", r.ID, i+1)); !c.Custom {
			c.Args = cmp.Or(c.Args, "{}")
		}
	}
	if r.Finish == "" && len(r.Calls) > 0 {
		r.Finish = FinishCalls
	}
	r.Finish = cmp.Or(r.Finish, FinishStop)
	return r
}

// ContentType is the header that goes with Body or Stream.
func ContentType(stream bool) string {
	if stream {
		return "text/event-stream; charset=utf-8"
	}
	return "application/json"
}
