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
	return &Collector{dialect: d, calls: map[int]int{}, choices: map[int]bool{}}
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
	switch c.dialect {
	case Messages:
		c.addAnthropic(kind, o)
	case Responses:
		c.addResponses(kind, o)
	default:
		return c.addChat(o)
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

func (c *Collector) addChat(o object) (usageOnly bool) {
	if u := asObject(o["usage"]); u != nil {
		c.answer.Usage = chatUsage(u)
		usageOnly = len(asList(o["choices"])) == 0
	}
	for _, v := range asList(o["choices"]) {
		choice := asObject(v)
		index := intOf(choice["index"])
		c.choices[index] = true
		delta := asObject(choice["delta"])
		if index == 0 {
			c.chatDelta(delta)
		} else {
			c.answer.Bytes += countText(delta)
		}
		if reason := asString(choice["finish_reason"]); reason != "" {
			// Not every server says [DONE]; the end of every choice is enough.
			delete(c.choices, index)
			c.done = len(c.choices) == 0
			if index == 0 {
				c.answer.Finish = chatFinish(reason)
			}
		}
	}
	return usageOnly
}

func (c *Collector) chatDelta(delta object) {
	a := &c.answer
	a.Text += flattenContent(delta["content"])
	a.Bytes += countText(delta)
	for n, v := range asList(delta["tool_calls"]) {
		part := asObject(v)
		index := n
		if asNumber(part["index"]) != "" {
			index = intOf(part["index"])
		}
		call := c.callAt(index)
		if id := asString(part["id"]); id != "" {
			call.ID = id
		}
		f := asObject(part["function"])
		call.Name += asString(f["name"])
		call.Args += Args(asString(f["arguments"]))
	}
}

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

func (c *Collector) addAnthropic(kind string, o object) {
	a := &c.answer
	switch kind {
	case "message_start":
		a.Usage = anthropicUsage(a.Usage, asObject(asObject(o["message"])["usage"]))
	case "content_block_start":
		c.blockStart(intOf(o["index"]), asObject(o["content_block"]))
	case "content_block_delta":
		delta := asObject(o["delta"])
		a.Bytes += countText(delta)
		switch asString(delta["type"]) {
		case "text_delta":
			a.Text += asString(delta["text"])
		case "input_json_delta":
			if _, known := c.calls[intOf(o["index"])]; known {
				c.callAt(intOf(o["index"])).Args += Args(asString(delta["partial_json"]))
			}
		}
	case "message_delta":
		a.Usage = anthropicUsage(a.Usage, asObject(o["usage"]))
		if reason := asString(asObject(o["delta"])["stop_reason"]); reason != "" {
			a.Finish = anthropicFinish(reason)
		}
	case "message_stop":
		c.done, c.ended = true, true
	}
}

func (c *Collector) blockStart(index int, block object) {
	a := &c.answer
	a.Bytes += countText(block)
	switch asString(block["type"]) {
	case "text":
		c.texts++
		if c.texts > 1 {
			a.Text += "\n"
		}
		a.Text += asString(block["text"])
	case "tool_use":
		call := c.callAt(index)
		call.ID, call.Name = asString(block["id"]), asString(block["name"])
		if !isEmpty(block["input"]) {
			call.Args = anthropicCall(block).Args
		}
	}
}

func (c *Collector) addResponses(kind string, o object) {
	switch kind {
	case "response.completed", "response.incomplete":
		// The last event holds the whole answer: nothing needs to be put together.
		c.answer = responsesAnswer(asObject(o["response"]))
		c.done, c.ended = true, true
	case "response.failed":
		failed := asObject(o["response"])
		c.answer.Usage = responsesUsage(asObject(failed["usage"]))
		c.err = errorOf(failed)
		c.done, c.ended = true, true
	case "error":
		c.err = errorOf(object{"error": object{"code": o["code"], "message": o["message"]}})
	default:
		if d := asString(o["delta"]); d != "" {
			c.answer.Bytes += len(d)
			if kind == "response.output_text.delta" {
				c.answer.Text += d
			}
		}
	}
}
