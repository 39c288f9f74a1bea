package dialect

import "slices"

// Collector puts a streamed answer together while it passes by. Feed it every
// event; it never fails on what it does not know.
type Collector struct {
	dialect Dialect
	answer  Answer
	calls   map[int]int // index in the stream → index in answer.Calls
	texts   int
	choices map[int]bool
	done    bool
	ended   bool
	err     error
}

// NewCollector starts an answer of the dialect.
func NewCollector(d Dialect) *Collector {
	return &Collector{dialect: d, answer: Answer{Whole: true}, calls: map[int]int{}, choices: map[int]bool{}}
}

// Add takes one event. usageOnly is true for a chat event that carries usage and
// nothing else: the one that only clients expect that asked for it.
func (c *Collector) Add(ev Event) (usageOnly bool) {
	if ev.Data == nil {
		return false
	}
	if string(ev.Data) == "[DONE]" {
		c.done, c.ended = true, true
		return false
	}
	v, err := decode(ev.Data)
	o := obj(v)
	if err != nil || o == nil {
		c.answer.Whole = false
		return false
	}
	kind := str(o["type"])
	if !empty(o["error"]) && (kind == "" || kind == "error") {
		c.err = errorOf(o)
		return false
	}
	switch c.dialect {
	case Messages:
		c.anthropic(kind, o)
	case Responses:
		c.responses(kind, o)
	default:
		return c.chat(o)
	}
	return false
}

// Answer is what has arrived so far.
func (c *Collector) Answer() Answer {
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

func (c *Collector) chat(o object) (usageOnly bool) {
	if u := obj(o["usage"]); u != nil {
		c.answer.Usage = chatUsage(u)
		usageOnly = len(arr(o["choices"])) == 0
	}
	for _, v := range arr(o["choices"]) {
		choice := obj(v)
		index := intOf(choice["index"])
		c.choices[index] = true
		delta := obj(choice["delta"])
		if index == 0 {
			c.chatDelta(delta)
		} else {
			c.answer.Whole = false
			c.answer.Bytes += written(delta)
		}
		if reason := str(choice["finish_reason"]); reason != "" {
			// Not every server says [DONE]; the end of every choice is enough.
			delete(c.choices, index)
			c.done = len(c.choices) == 0
			if index == 0 {
				c.answer.Finish = chatFinish(reason)
			}
		}
		c.answer.Whole = c.answer.Whole && empty(choice["logprobs"])
	}
	return usageOnly
}

func (c *Collector) chatDelta(delta object) {
	a := &c.answer
	a.Text += flatten(delta["content"])
	a.Whole = a.Whole && only(delta, "role", "content", "tool_calls")
	a.Bytes += written(delta)
	for n, v := range arr(delta["tool_calls"]) {
		part := obj(v)
		index := n
		if num(part["index"]) != "" {
			index = intOf(part["index"])
		}
		call := c.call(index)
		if id := str(part["id"]); id != "" {
			call.ID = id
		}
		f := obj(part["function"])
		call.Name += str(f["name"])
		call.Args += str(f["arguments"])
	}
}

// call is the tool call at an index of the stream, made where it is new.
func (c *Collector) call(index int) *Call {
	at, ok := c.calls[index]
	if !ok {
		at = len(c.answer.Calls)
		c.calls[index] = at
		c.answer.Calls = append(c.answer.Calls, Call{})
	}
	return &c.answer.Calls[at]
}

func (c *Collector) anthropic(kind string, o object) {
	a := &c.answer
	switch kind {
	case "message_start":
		a.Usage = anthropicUsage(a.Usage, obj(obj(o["message"])["usage"]))
	case "content_block_start":
		c.blockStart(intOf(o["index"]), obj(o["content_block"]))
	case "content_block_delta":
		delta := obj(o["delta"])
		a.Bytes += written(delta)
		switch str(delta["type"]) {
		case "text_delta":
			a.Text += str(delta["text"])
		case "input_json_delta":
			if _, known := c.calls[intOf(o["index"])]; known {
				c.call(intOf(o["index"])).Args += str(delta["partial_json"])
			}
		default:
			a.Whole = false
		}
	case "message_delta":
		a.Usage = anthropicUsage(a.Usage, obj(o["usage"]))
		if reason := str(obj(o["delta"])["stop_reason"]); reason != "" {
			a.Finish = anthropicFinish(reason)
		}
	case "message_stop":
		c.done, c.ended = true, true
	}
}

func (c *Collector) blockStart(index int, block object) {
	a := &c.answer
	a.Bytes += written(block)
	switch str(block["type"]) {
	case "text":
		c.texts++
		a.Whole = a.Whole && c.texts == 1 && len(a.Calls) == 0
		if c.texts > 1 {
			a.Text += "\n"
		}
		a.Text += str(block["text"])
	case "tool_use":
		call := c.call(index)
		call.ID, call.Name = str(block["id"]), str(block["name"])
		if !empty(block["input"]) {
			call.Args = anthropicCall(block).Args
		}
	default:
		a.Whole = false
	}
}

func (c *Collector) responses(kind string, o object) {
	switch kind {
	case "response.completed", "response.incomplete":
		// The last event holds the whole answer: nothing needs to be put together.
		c.answer = responsesAnswer(obj(o["response"]))
		c.done, c.ended = true, true
	case "response.failed":
		failed := obj(o["response"])
		c.answer.Usage = responsesUsage(obj(failed["usage"]))
		c.err = errorOf(failed)
		c.done, c.ended = true, true
	case "error":
		c.err = errorOf(object{"error": object{"code": o["code"], "message": o["message"]}})
	default:
		if d := str(o["delta"]); d != "" {
			c.answer.Bytes += len(d)
			if kind == "response.output_text.delta" {
				c.answer.Text += d
			}
		}
	}
}
