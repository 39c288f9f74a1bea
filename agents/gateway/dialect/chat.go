package dialect

import "cmp"

// chatFormat is that of OpenAI's chat completions and of all that is compatible with it.
func chatFormat() format {
	return format{
		path: "/chat/completions", messages: chatMessages, body: chatBody, stream: newChatStream,
		answer: func(c *Collector, o object) { c.addChat(o, "message") },
		event:  func(c *Collector, _ string, o object) { c.addChat(o, "delta") },
		ends:   []end{{"tool_calls", FinishCalls}, {"function_call", FinishCalls}, {"content_filter", FinishFilter}},
	}
}

func chatMessages(request object) []Message {
	var out []Message
	for _, v := range asList(request["messages"]) {
		m := asObject(v)
		msg := Message{Role: mapRole(asString(m["role"])), Text: flattenContent(m["content"])}
		for _, c := range asList(m["tool_calls"]) {
			msg.Calls = append(msg.Calls, chatCall(asObject(c)))
		}
		out = append(out, msg)
	}
	return out
}

func chatCall(c object) Call {
	f := asObject(c["function"])
	return Call{ID: asString(c["id"]), Name: asString(f["name"]), Args: Args(asString(f["arguments"]))}
}

// addChat adds the messages of a plain answer, or the deltas of an event.
func (c *Collector) addChat(o object, part string) {
	a, choices := &c.answer, asList(o["choices"])
	if u := asObject(o["usage"]); u != nil {
		a.Usage = readOpenAIUsage(u, "prompt", "completion")
		c.usageOnly = len(choices) == 0
	}
	for n, v := range choices {
		choice := asObject(v)
		index := indexOf(choice, n)
		c.choices[index] = true
		m := asObject(choice[part])
		a.Bytes += countText(m)
		if index == 0 {
			c.addChatMessage(m)
		}
		if reason := asString(choice["finish_reason"]); reason != "" {
			// Not every server says [DONE]; the end of every choice is enough.
			delete(c.choices, index)
			c.done = len(c.choices) == 0
			if index == 0 {
				if a.Finish = c.format.readEnd(reason); c.refused {
					a.Finish = FinishFilter
				}
			}
		}
	}
}

func (c *Collector) addChatMessage(m object) {
	c.answer.Text += flattenContent(m["content"])
	if refusal := asString(m["refusal"]); refusal != "" {
		c.answer.Text, c.refused = c.answer.Text+refusal, true
	}
	c.answer.Thoughts += cmp.Or(asString(m["reasoning_content"]), asString(m["reasoning"]))
	for n, v := range asList(m["tool_calls"]) {
		part := chatCall(asObject(v))
		call := c.callAt(indexOf(asObject(v), n))
		if part.ID != "" {
			call.ID = part.ID
		}
		if part.Name != call.Name { // some servers repeat it in each event
			call.Name += part.Name
		}
		call.Args += part.Args
	}
}

// indexOf is the index of what stands at a place in a list.
func indexOf(o object, at int) int {
	if asNumber(o["index"]) == "" {
		return at
	}
	return intOf(o["index"])
}

func chatCalls(r Reply) list {
	var out list
	for i, c := range r.Calls {
		out = append(out, object{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": string(c.Args)}})
	}
	return out
}

func chatBody(r Reply) object {
	m := object{"role": "assistant", "content": r.Text}
	if r.Thoughts != "" {
		m["reasoning_content"] = r.Thoughts
	}
	if calls := chatCalls(r); len(calls) > 0 {
		for _, call := range calls {
			delete(asObject(call), "index")
		}
		m["tool_calls"] = calls
		if r.Text == "" {
			m["content"] = nil
		}
	}
	return object{
		"id": "chatcmpl-" + r.ID, "object": "chat.completion", "created": 0, "model": r.Model,
		"choices": list{object{"index": 0, "message": m, "finish_reason": chatFormat().writeEnd(r.Finish), "logprobs": nil}},
		"usage":   r.writeOpenAIUsage("prompt", "completion"),
	}
}
