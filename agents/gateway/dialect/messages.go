package dialect

// messagesFormat is that of Anthropic's messages.
func messagesFormat() format {
	return format{
		path: "/messages", messages: anthropicMessages, body: anthropicBody, stream: newAnthropicStream,
		answer: (*Collector).addAnthropicMessage, event: (*Collector).addAnthropicEvent,
		ends: []end{
			{"end_turn", FinishStop}, {"stop_sequence", FinishStop}, {"pause_turn", FinishStop}, {"tool_use", FinishCalls},
			{"max_tokens", FinishLength}, {"model_context_window_exceeded", FinishLength}, {"refusal", FinishFilter},
		},
	}
}

func anthropicMessages(request object) []Message {
	var out []Message
	if s := flattenContent(request["system"]); s != "" {
		out = append(out, Message{Role: "system", Text: s})
	}
	for _, v := range asList(request["messages"]) {
		m := asObject(v)
		msg := Message{Role: mapRole(asString(m["role"]))}
		if text, plain := m["content"].(string); plain {
			msg.Text = text
			out = append(out, msg)
			continue
		}
		var rest list
		for _, b := range asList(m["content"]) {
			block := asObject(b)
			switch asString(block["type"]) {
			case "tool_result":
				out = append(out, Message{Role: "tool", Text: flattenContent(block["content"])})
			case "tool_use":
				msg.Calls = append(msg.Calls, callOf(block, "input"))
			default:
				rest = append(rest, b)
			}
		}
		msg.Text = flattenContent(rest)
		if msg.Text != "" || len(msg.Calls) > 0 {
			out = append(out, msg)
		}
	}
	return out
}

// callOf reads a call of a tool, whose arguments are an object in a field of that name.
func callOf(o object, args string) Call {
	c := Call{ID: asString(o["id"]), Name: asString(o["name"]), Args: "{}"}
	if o[args] != nil {
		c.Args = Args(writeJSON(o[args]))
	}
	return c
}

// addAnthropicMessage adds a plain answer, or the beginning of one that is streamed.
func (c *Collector) addAnthropicMessage(o object) {
	c.addAnthropicUsage(asObject(o["usage"]))
	for i, b := range asList(o["content"]) {
		c.beginBlock(i, asObject(b))
	}
	if reason := asString(o["stop_reason"]); reason != "" {
		c.answer.Finish = c.format.readEnd(reason)
	}
}

func (c *Collector) addAnthropicEvent(kind string, o object) {
	a, index, delta := &c.answer, intOf(o["index"]), asObject(o["delta"])
	switch kind {
	case "message_start":
		c.addAnthropicMessage(asObject(o["message"]))
	case "content_block_start":
		c.beginBlock(index, asObject(o["content_block"]))
	case "content_block_delta":
		a.Bytes += countText(delta)
		a.Text += asString(delta["text"])
		if _, known := c.calls[index]; known {
			c.callAt(index).Args += Args(asString(delta["partial_json"]))
		}
	case "message_delta":
		delta["usage"] = o["usage"]
		c.addAnthropicMessage(delta)
	case "message_stop":
		c.done, c.ended = true, true
	}
}

func (c *Collector) beginBlock(index int, block object) {
	c.answer.Bytes += countText(block)
	switch asString(block["type"]) {
	case "text":
		c.addText(asString(block["text"]))
	case "tool_use":
		call := c.callAt(index)
		*call = callOf(block, "input")
		if isEmpty(block["input"]) { // it comes in parts
			call.Args = ""
		}
	}
}

// addAnthropicUsage adds a report to what is known: in a stream the input comes
// with the first event and the output, as a running total, with the last.
func (c *Collector) addAnthropicUsage(u object) {
	known := &c.answer.Usage
	keep := func(to *int64, v any) {
		if n, ok := parseCount(asNumber(v)); ok {
			*to = n
		}
	}
	if fresh, ok := parseCount(asNumber(u["input_tokens"])); ok {
		keep(&known.CacheRead, u["cache_read_input_tokens"])
		keep(&known.CacheWrite, u["cache_creation_input_tokens"])
		keep(&known.CacheHour, asObject(u["cache_creation"])["ephemeral_1h_input_tokens"])
		known.In, known.HasIn = max(known.In, fresh+known.CacheRead+known.CacheWrite), true
	}
	if out, ok := parseCount(asNumber(u["output_tokens"])); ok {
		known.Out, known.HasOut = max(known.Out, out), true
		keep(&known.Reasoning, asObject(u["output_tokens_details"])["thinking_tokens"])
		known.Reasoning = min(known.Reasoning, known.Out)
	}
}

func anthropicBody(r Reply) object {
	content := list{}
	if r.Thoughts != "" {
		content = append(content, object{"type": "thinking", "thinking": r.Thoughts, "signature": ""})
	}
	if r.Text != "" {
		content = append(content, object{"type": "text", "text": r.Text})
	}
	for _, c := range r.Calls {
		content = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": c.Args.toObject()})
	}
	u := r.Usage
	return object{"id": "msg_" + r.ID, "type": "message", "role": "assistant", "model": r.Model,
		"content": content, "stop_reason": messagesFormat().writeEnd(r.Finish), "stop_sequence": nil, "usage": object{
			"input_tokens":                max(0, u.In-u.CacheRead-u.CacheWrite),
			"cache_read_input_tokens":     u.CacheRead,
			"cache_creation_input_tokens": u.CacheWrite,
			"output_tokens":               u.Out,
			"output_tokens_details":       object{"thinking_tokens": u.Reasoning},
		}}
}
